"""Models on the multifrontal solver: the numbers of the dense model, and sums of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf import RWFRegressor
from rwf.data.rows import Block, Mapped
from rwf.diagnostics.decomposition import atom_table, components
from rwf.errors import IncompatibleModelsError, NoAtomsNearbyWarning
from rwf.inference.empirical_bayes import EmpiricalBayes
from rwf.models.dense import DenseModel, Hyperparameters, collect


def chirp(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + 2.0 * rng.uniform(size=(n, d))
    f = np.sin(40 / (X[:, 0] - 4.7)) + (X[:, -1] - 5) ** 2
    return X, 100 + 20 * (f + 0.1 * rng.normal(size=n)), 100 + 20 * f


@pytest.fixture(
    scope="module",
    params=[(1, "auto"), (2, "auto"), (1, "heteroscedastic")],
    ids=["line", "plane", "line, heteroscedastic"],
)
def fitted(request):
    d, noise = request.param
    X, y, f = chirp(900, d)
    model = RWFRegressor(300, solver="multifrontal", noise=noise, random_state=0).fit(X, y)
    assert (model.model_.base.noise is not None) >= (noise == "heteroscedastic")
    return X, y, f, model


@dataclass(frozen=True, kw_only=True)
class FixedVariances(DenseModel):
    """A dense model that keeps the variances it is given."""

    @cached_property
    def fits(self):
        own = self.hyperparameters.variances(0)
        priors = own.prior_variances(self.features.groups)
        return (
            EmpiricalBayes(own, self.statistics.posterior(0, priors, own.noise_variance), 0, ()),
        )


def test_it_is_the_dense_model_of_the_same_atoms(fitted):
    X, y, _, model = fitted
    tree = model.model_.base
    variances = tree.fits[0].variances
    parameters = Hyperparameters(
        tree.features, variances.log_priors, np.array([variances.log_noise])
    )
    known = tree.units.rows(Block(X, y[:, None], np.ones(len(X))))
    dense = FixedVariances(
        units=tree.units,
        hyperparameters=parameters,
        statistics=collect(parameters, known, "gram", noise=tree.noise),
        levels=tree.levels,
        noise=tree.noise,
    )
    queries = np.vstack([X[:40], X.min(0) - np.array([[0.3], [5.0]]) * np.ones(X.shape[1])])
    queries = tree.units.inputs(queries)
    a, b = tree.predict(queries), dense.predict(queries)
    assert_allclose(a.mean, b.mean, rtol=1e-7, atol=1e-8)
    for name in ("variance", "function_variance", "noise_variance"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-7)
    assert_allclose(a.support, b.support, atol=1e-8)
    assert_allclose(tree.mean(queries), dense.mean(queries), rtol=1e-8, atol=1e-8)
    for noise in (True, False):
        a, b = (m.covariance(queries, noise=noise) for m in (tree, dense))
        assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    for name in ("log_evidence", "noise_variances", "prior_variances", "n_rows", "n_features"):
        a, b = (getattr(m.summary, name) for m in (tree, dense))
        assert_allclose(a, b, rtol=1e-9)
    a, b = tree.leave_one_out(known), dense.leave_one_out(known)
    assert_allclose(a.mean, b.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(a.variance, b.variance, rtol=1e-6)
    a, b = (m.predict(known.X).log_density(known.y) for m in (tree, dense))
    assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_it_learns_and_its_intervals_cover(fitted):
    X, _, _, model = fitted
    new, _, f = chirp(500, X.shape[1], 1)
    mean, std = model.predict_function(new)
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.5 * np.std(f)
    noisy = f + 2.0 * np.random.default_rng(2).normal(size=500)
    low, high = model.predict_interval(new)
    assert 0.85 < np.mean((noisy > low) & (noisy < high)) <= 1.0
    assert (std > 0).all()
    assert model.fit_report_.statistics == "multifrontal"
    assert model.fit_report_.beats_trivial
    assert 200 < model.n_features_out_ <= 303


def test_rows_add_in_any_split(fitted):
    X, y, _, model = fitted
    with pytest.raises(ValueError, match="no rows yet"):
        model.empty_copy().predict(X)
    halves = [model.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    merged = halves[0].merge(halves[1])
    whole = model.empty_copy().partial_fit(X, y)
    for a, b in zip(merged.predict(X, True), whole.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert merged.model_.n_rows == len(X)
    other = RWFRegressor(100, solver="multifrontal", random_state=1).fit(X, y)
    with pytest.raises(IncompatibleModelsError, match="do not add"):
        merged.merge(other)
    with pytest.raises(IncompatibleModelsError, match="different features or units"):
        merged.model_.base.merge(other.model_.base)


def test_draws_have_the_mean_and_the_deviation_of_predictions(fitted):
    X, *_, model = fitted
    mean, std = model.predict(X[:20], return_std=True)
    draws = model.sample_y(X[:20], 4000, random_state=0)
    assert_allclose(draws.mean(1), mean, atol=5 * std.max() / np.sqrt(4000))
    assert_allclose(draws.std(1), std, rtol=0.1)


def test_its_atoms_add_up_to_the_prediction(fitted):
    X, *_, model = fitted
    table = atom_table(model.model_)
    assert len(table.columns) == model.n_features_out_ - 1 - X.shape[1]  # all but the trend
    _, parts = components(model.model_, table, X[:20])
    dense = model.model_.base.hyperparameters.features(model.model_.units.inputs(X[:20]))[
        :, table.columns
    ]
    assert_allclose(parts.sum(axis=0), dense @ table.weights, rtol=1e-8, atol=1e-8)


def test_far_away_the_variance_reverts_to_the_prior(fitted):
    X, y, _, model = fitted
    far = X[:1] + 100.0
    with pytest.warns(NoAtomsNearbyWarning):
        _, std = model.predict(far, return_std=True)
    assert std > 0.5 * np.std(y)
    assert_allclose(model.support(far), 0.0, atol=1e-12)
    assert (model.support(X) > 0.9).all()


def test_several_outputs_have_their_own_variances():
    X, y, _ = chirp(400, 1)
    Y = np.column_stack([y, X[:, 0] + 3.0])
    model = RWFRegressor(100, solver="multifrontal", random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (400, 2)
    assert model.noise_variance_[1] < 1e-3 * model.noise_variance_[0]
    assert_allclose(mean[:, 1], Y[:, 1], atol=1e-2)
    assert model.sample_y(X[:3], 5).shape == (3, 2, 5)


# ---------------------------------------------------------------------------- heteroscedastic noise


@pytest.fixture(scope="module")
def uneven():
    """A wave between 5 and 7 whose noise is ten times as large above 6."""
    rng = np.random.default_rng(0)
    X = rng.uniform(5.0, 7.0, (600, 1))
    sd = np.where(X[:, 0] < 6.0, 2.0, 20.0)
    y = 100.0 + 40.0 * np.sin(5.0 * X[:, 0]) + sd * rng.normal(size=600)
    options = {"solver": "multifrontal", "calibration": "global", "random_state": 0}
    return X, y, RWFRegressor(30, **options).fit(X, y)


def test_rows_add_with_their_noise_and_models_of_other_noise_do_not_merge(uneven):
    X, y, model = uneven
    halves = [model.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    base = halves[1].model_.base
    for other in (None, base.noise.times(2.0)):
        with pytest.raises(IncompatibleModelsError, match="do not add"):
            halves[0].model_.base.merge(replace(base, noise=other))
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), model.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert merged.log_marginal_likelihood() == pytest.approx(model.log_marginal_likelihood())


def test_a_refit_has_the_features_of_the_model_and_the_given_noise(uneven):
    X, y, model = uneven
    base, rows = model.model_.base, Block(X, y[:, None], np.ones(len(X)))
    known = base.units.rows(rows)
    ours = base.refit(Mapped(rows, base.units.rows), base.noise)
    theirs = base.refit(known, base.noise)
    a, b = ours.predict(known.X), theirs.predict(known.X)
    assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-9)
    assert_allclose(a.variance, b.variance, rtol=1e-9)
    plain = base.refit(known, None)
    assert plain.noise is None
    assert plain.n_rows == base.n_rows
    assert np.ptp(np.sqrt(plain.predict(known.X).variance)) < 0.2 * np.ptp(np.sqrt(a.variance))
