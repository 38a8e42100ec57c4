"""The tree engine behind the regressor: the dense model's numbers, sums of rows, and limits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rwf.recipes
from rwf import RWFRegressor
from rwf.anatomy import atom_table, components
from rwf.errors import IncompatibleModelsError, NoAtomsNearbyWarning
from rwf.model import FittedModel, collect
from rwf.models import log_density
from rwf.rows import Block
from rwf.training import Shape
from rwf.tree import TreeTooLargeError


def chirp(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + 2.0 * rng.uniform(size=(n, d))
    f = np.sin(40 / (X[:, 0] - 4.7)) + (X[:, -1] - 5) ** 2
    return X, 100 + 20 * (f + 0.1 * rng.normal(size=n)), 100 + 20 * f


@pytest.fixture(scope="module", params=[1, 2], ids=["line", "plane"])
def fitted(request):
    X, y, f = chirp(900, request.param)
    model = RWFRegressor(300, engine="tree", random_state=0).fit(X, y)
    return X, y, f, model


def test_it_is_the_dense_model_of_the_same_atoms(fitted):
    X, y, _, model = fitted
    tree = model.model_
    variances = tree.tuned[0].variances
    shape = Shape(tree.shape.features, variances.log_priors, np.array([variances.log_noise]))
    rows = Block(X, y[:, None], np.ones(len(X)))
    statistics = collect(tree.scaler, shape, rows, root=False, noise=tree.noise)
    dense = FittedModel(tree.scaler, shape, statistics, cover=tree.cover, noise=tree.noise)
    own = shape.variances(0)
    posterior = statistics.posterior(
        0, own.prior_variances(shape.features.groups), own.noise_variance
    )
    dense.__dict__["tuned"] = (tree.tuned[0].__class__(own, posterior, 0, ()),)
    queries = np.vstack([X[:40], X.min(0) - np.array([[0.3], [5.0]]) * np.ones(X.shape[1])])
    for noise in (True, False):
        for a, b in zip(
            tree.predict(queries, noise=noise), dense.predict(queries, noise=noise), strict=True
        ):
            assert_allclose(a, b, rtol=1e-7)
    assert_allclose(tree.mean(queries), dense.mean(queries), rtol=1e-8)
    assert_allclose(tree.covariance(queries), dense.covariance(queries), rtol=1e-6, atol=1e-8)
    assert_allclose(tree.coverage(queries), dense.coverage(queries), atol=1e-8)
    assert_allclose(tree.log_evidence, dense.log_evidence, rtol=1e-9)
    assert_allclose(tree.noise_variances, dense.noise_variances)
    assert_allclose(tree.prior_variances, dense.prior_variances)
    known = tree.scaler.rows(rows)
    for a, b in ((tree.leave_one_out(known, 0), dense.leave_one_out(known, 0)),):
        assert_allclose(a.mean, b.mean, rtol=1e-6, atol=1e-8)
        assert_allclose(a.variance, b.variance, rtol=1e-6)
    assert_allclose(log_density(tree, known), log_density(dense, known), rtol=1e-6, atol=1e-8)


def test_it_learns_and_its_error_bars_are_honest(fitted):
    X, _, _, model = fitted
    new, _, f = chirp(500, X.shape[1], 1)
    mean, std = model.predict_function(new)
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.5 * np.std(f)
    noisy = f + 2.0 * np.random.default_rng(2).normal(size=500)
    low, high = model.predict_interval(new)
    assert 0.85 < np.mean((noisy > low) & (noisy < high)) <= 1.0
    assert (std > 0).all()
    assert model.fit_report_.statistics == "tree"
    assert model.fit_report_.beats_trivial
    assert 200 < model.n_features_out_ <= 303


def test_rows_add_in_any_split(fitted):
    X, y, _, model = fitted
    with pytest.raises(ValueError, match="no rows yet"):
        model.without_rows().predict(X)
    halves = [model.without_rows().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    merged = halves[0].merge(halves[1])
    whole = model.without_rows().partial_fit(X, y)
    for a, b in zip(merged.predict(X, True), whole.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert merged.model_.n_rows == len(X)
    other = RWFRegressor(100, engine="tree", random_state=1).fit(X, y)
    with pytest.raises(IncompatibleModelsError, match="different atoms"):
        merged.merge(other)


def test_draws_have_the_mean_and_the_deviation_of_predictions(fitted):
    X, *_, model = fitted
    mean, std = model.predict(X[:20], return_std=True)
    draws = model.sample_y(X[:20], 4000, random_state=0)
    assert_allclose(draws.mean(1), mean, atol=5 * std.max() / np.sqrt(4000))
    assert_allclose(draws.std(1), std, rtol=0.1)


def test_what_it_is_made_of_can_be_seen(fitted):
    X, *_, model = fitted
    table = atom_table(model.model_)
    assert len(table.columns) == model.n_features_out_ - 1 - X.shape[1]  # all but the trend
    _, parts = components(model.model_, table, X[:20])
    dense = model.model_.shape.features(model.model_.scaler.inputs(X[:20]))[:, table.columns]
    assert_allclose(parts.sum(axis=0), dense @ table.weights, rtol=1e-8, atol=1e-8)


def test_far_away_the_prior_comes_back(fitted):
    X, y, _, model = fitted
    far = X[:1] + 100.0
    with pytest.warns(NoAtomsNearbyWarning):
        _, std = model.predict(far, return_std=True)
    assert std > 0.5 * np.std(y)
    assert_allclose(model.coverage(far), 0.0, atol=1e-12)
    assert (model.coverage(X) > 0.9).all()


def test_several_outputs_have_their_own_variances():
    X, y, _ = chirp(400, 1)
    Y = np.column_stack([y, X[:, 0] + 3.0])
    model = RWFRegressor(100, engine="tree", random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (400, 2)
    assert model.noise_variance_[1] < 1e-3 * model.noise_variance_[0]
    assert_allclose(mean[:, 1], Y[:, 1], atol=1e-2)
    assert model.sample_y(X[:3], 5).shape == (3, 2, 5)


def test_the_engine_is_chosen_by_columns_and_rows(monkeypatch):
    X, y, _ = chirp(300, 1)
    many = RWFRegressor(9000, random_state=0).fit(X, y)
    assert many.fit_report_.statistics == "tree"
    few = RWFRegressor(50, random_state=0).fit(X, y)
    assert few.fit_report_.statistics != "tree"
    monkeypatch.setattr("rwf.estimators.ADAPTIVE_ROWS", 200)
    long = RWFRegressor(random_state=0).fit(X, y)
    assert long.fit_report_.statistics == "tree"
    dense = RWFRegressor(random_state=0, engine="dense").fit(X, y)
    assert dense.fit_report_.statistics != "tree"


def test_what_cannot_be_had_is_refused(monkeypatch):
    X, y, _ = chirp(200, 1)
    with pytest.raises(ValueError, match="engine='forest' is unknown"):
        RWFRegressor(engine="forest").fit(X, y)
    with pytest.raises(ValueError, match="leave that out"):
        RWFRegressor(engine="tree", prior="projected").fit(X, y)
    with pytest.raises(ValueError, match="X has 4 columns"):
        RWFRegressor(engine="tree").fit(np.hstack([X] * 4), y)
    monkeypatch.setattr(rwf.recipes, "free_memory", lambda: 200_000)
    with pytest.raises(TreeTooLargeError, match="ask for at most"):
        RWFRegressor(150, engine="tree").fit(X, y)


def test_free_memory_is_a_plausible_number():
    assert 10**7 < rwf.recipes.free_memory() < 10**14
