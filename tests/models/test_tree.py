"""The tree engine behind the regressor: the dense model's numbers, sums of rows, and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import rwf.models.noise
import rwf.priors.recipes
from numpy.testing import assert_allclose

from rwf import RandomFeatures, RFFRegressor, RWFRegressor
from rwf.data.rows import Block
from rwf.diagnostics.decomposition import atom_table, components
from rwf.errors import IncompatibleModelsError, NoAtomsNearbyWarning
from rwf.inference.multifrontal import TreeTooLargeError
from rwf.inference.posterior import Marginals
from rwf.models.base import log_density
from rwf.models.dense import DenseModel
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.statistics import collect


def chirp(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + 2.0 * rng.uniform(size=(n, d))
    f = np.sin(40 / (X[:, 0] - 4.7)) + (X[:, -1] - 5) ** 2
    return X, 100 + 20 * (f + 0.1 * rng.normal(size=n)), 100 + 20 * f


@pytest.fixture(
    scope="module",
    params=[(1, "auto"), (2, "auto"), (1, "varying")],
    ids=["line", "plane", "line of varying noise"],
)
def fitted(request):
    d, noise = request.param
    X, y, f = chirp(900, d)
    model = RWFRegressor(300, solver="multifrontal", noise=noise, random_state=0).fit(X, y)
    assert (model.model_.base.noise is not None) >= (noise == "varying")
    return X, y, f, model


def test_it_is_the_dense_model_of_the_same_atoms(fitted):
    X, y, _, model = fitted
    tree = model.model_
    variances = tree.fits[0].variances
    shape = Hyperparameters(
        tree.shape.features, variances.log_priors, np.array([variances.log_noise])
    )
    rows = Block(X, y[:, None], np.ones(len(X)))
    statistics = collect(tree.scaler, shape, rows, "gram", noise=tree.noise)
    dense = DenseModel(tree.scaler, shape, statistics, levels=tree.levels, noise=tree.noise)
    own = shape.variances(0)
    posterior = statistics.posterior(
        0, own.prior_variances(shape.features.groups), own.noise_variance
    )
    dense.__dict__["tuned"] = (tree.fits[0].__class__(own, posterior, 0, ()),)
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
        model.empty_copy().predict(X)
    halves = [model.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    merged = halves[0].merge(halves[1])
    whole = model.empty_copy().partial_fit(X, y)
    for a, b in zip(merged.predict(X, True), whole.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert merged.model_.n_rows == len(X)
    other = RWFRegressor(100, solver="multifrontal", random_state=1).fit(X, y)
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
    dense = model.model_.base.hyperparameters.features(model.model_.units.inputs(X[:20]))[
        :, table.columns
    ]
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
    model = RWFRegressor(100, solver="multifrontal", random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (400, 2)
    assert model.noise_variance_[1] < 1e-3 * model.noise_variance_[0]
    assert_allclose(mean[:, 1], Y[:, 1], atol=1e-2)
    assert model.sample_y(X[:3], 5).shape == (3, 2, 5)


def test_the_engine_is_chosen_by_columns_and_rows(monkeypatch):
    X, y, _ = chirp(300, 1)
    many = RWFRegressor(9000, random_state=0).fit(X, y)
    assert many.fit_report_.statistics == "tree"
    assert many.fit_report_.solver == "multifrontal: 9000 columns are more than 8000"
    few = RWFRegressor(50, random_state=0).fit(X, y)
    assert few.fit_report_.statistics != "tree"
    assert few.fit_report_.solver == f"dense: {few.n_features_out_} columns"
    monkeypatch.setattr("rwf.estimators.regressor.ADAPTIVE_ROWS", 200)
    long = RWFRegressor(random_state=0).fit(X, y)
    assert long.fit_report_.statistics == "tree"
    assert (
        long.fit_report_.solver == "multifrontal: 300 rows are more than 200, on 1 input column(s)"
    )
    dense = RWFRegressor(random_state=0, solver="dense").fit(X, y)
    assert dense.fit_report_.statistics != "tree"
    assert dense.fit_report_.solver == "dense: solver='dense' was asked for"


def test_the_report_says_which_engine_was_taken_and_why(monkeypatch):
    X, y, _ = chirp(300, 2)
    asked = RWFRegressor(40, solver="multifrontal", random_state=0).fit(X, y)
    assert asked.fit_report_.solver == "multifrontal: solver='multifrontal' was asked for"
    fourier = RFFRegressor(20, max_iter=3, n_restarts=0, random_state=0).fit(X, y)
    assert fourier.fit_report_.solver == "dense: 23 columns"
    monkeypatch.setattr("rwf.estimators.regressor.MOST_DENSE", 10)
    cells = RWFRegressor(20, prior="multiscale", random_state=0).fit(X, y)
    assert cells.fit_report_.solver == "multifrontal: 20 columns are more than 10"
    options = {"max_iter": 3, "n_restarts": 0, "random_state": 0}
    projected = RWFRegressor(20, prior="nystrom", **options).fit(X, y)
    assert projected.fit_report_.solver == "dense: prior='nystrom' has no other"


def test_a_tree_that_wins_among_priors_is_named(monkeypatch):
    X, y, _ = chirp(300, 2)

    def best_on_a_tree(model, rows, factors):
        return np.full(len(rows), float(model.form == "tree"))

    monkeypatch.setattr("rwf.priors.auto.log_density", best_on_a_tree)
    model = RWFRegressor(max_iter=3, n_restarts=0, random_state=0).fit(X, y)
    assert model.fit_report_.statistics == "tree"
    assert model.fit_report_.solver == "multifrontal: cells on it predicted held-out rows best"


def test_what_cannot_be_had_is_refused(monkeypatch):
    X, y, _ = chirp(200, 1)
    with pytest.raises(ValueError, match="solver='forest' is unknown"):
        RWFRegressor(solver="forest").fit(X, y)
    with pytest.raises(ValueError, match="leave that out"):
        RWFRegressor(solver="multifrontal", prior="nystrom").fit(X, y)
    with pytest.raises(ValueError, match="no use for prior='random_features'"):
        RWFRegressor(solver="multifrontal", prior="random_features").fit(X, y)
    with pytest.raises(ValueError, match="no use for wavelet, shifts"):
        RWFRegressor(prior=RandomFeatures(wavelet="haar", shifts="box"), solver="multifrontal").fit(
            X, y
        )
    with pytest.raises(ValueError, match="X has 4 columns"):
        RWFRegressor(solver="multifrontal").fit(np.hstack([X] * 4), y)
    monkeypatch.setattr(rwf.priors.recipes, "free_memory", lambda: 200_000)
    with pytest.raises(TreeTooLargeError, match="ask for at most"):
        RWFRegressor(150, solver="multifrontal").fit(X, y)


def test_free_memory_is_a_plausible_number():
    assert 10**7 < rwf.priors.recipes.free_memory() < 10**14


# -------------------------------------------------------------------------------- noise that varies


def stepped(n, seed=0):
    """A wave between 5 and 7 whose noise is ten times as large above 6."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(5.0, 7.0, (n, 1))
    sd = np.where(X[:, 0] < 6.0, 2.0, 20.0)
    return X, 100.0 + 40.0 * np.sin(5.0 * X[:, 0]) + sd * rng.normal(size=n), sd


@pytest.fixture(scope="module")
def uneven():
    X, y, _ = stepped(600)
    return (
        X,
        y,
        RWFRegressor(30, solver="multifrontal", calibration="global", random_state=0).fit(X, y),
    )


def own_noise(model, X):
    tree = model.model_
    return np.sqrt(tree.noise_variances[0] * tree.noise(tree.scaler.inputs(X)))


def test_a_step_of_the_noise_is_found(uneven):
    X, _, model = uneven
    new, y, sd = stepped(2000, 1)
    away = np.abs(new[:, 0] - 6.0) > 0.2
    assert np.median(np.abs(np.log(own_noise(model, new) / sd)[away])) < 0.25
    mean, std = model.predict(new, return_std=True)
    for side in (new[:, 0] < 5.8, new[:, 0] > 6.2):
        inside = np.abs(y - mean)[side] < 1.96 * std[side]
        assert abs(inside.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 * (1 / 270 + 1 / side.sum()))
    tree = model.model_
    unit = tree.noise(tree.scaler.inputs(X))
    assert np.mean(1.0 / unit) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("solver", ["multifrontal", "dense"])
def test_the_noise_that_is_asked_for_is_larger_where_rows_are_noisier(solver):
    X, y, sd = stepped(600)
    options = {
        "solver": solver,
        "prior": "multiscale",
        "noise": "heteroscedastic",
        "calibration": "global",
    }
    model = RWFRegressor(60, random_state=0, **options).fit(X, y)
    away = np.abs(X[:, 0] - 6.0) > 0.2
    assert np.median(np.abs(np.log(own_noise(model, X) / sd)[away])) < 0.25


def test_every_kind_of_prediction_has_the_noise_of_its_place(uneven):
    X = np.linspace(5.05, 6.95, 12)[:, None]
    model = uneven[2]
    std, of_f = model.predict(X, return_std=True)[1], model.predict_function(X)[1]
    assert_allclose(std**2, of_f**2 + own_noise(model, X) ** 2, rtol=1e-9)
    assert_allclose(np.diag(model.predict(X, return_cov=True)[1]), std**2, rtol=1e-7)
    for noise, spread in ((True, std), (False, of_f)):
        draws = model.sample_y(X, 4000, random_state=0, noise=noise)
        assert_allclose(draws.std(1), spread, rtol=5 / np.sqrt(2 * 4000))


def test_rows_add_with_their_noise_and_other_noise_is_refused(uneven):
    X, y, model = uneven
    halves = [model.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    tree = halves[1].model_
    for other in (None, tree.noise.times(2.0)):
        with pytest.raises(IncompatibleModelsError, match="do not add"):
            halves[0].model_.merged(replace(tree, noise=other))
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), model.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)
    assert merged.log_marginal_likelihood() == pytest.approx(model.log_marginal_likelihood())


def test_it_is_the_same_for_rows_in_their_own_units(uneven):
    X, y, model = uneven
    tree, rows = model.model_, Block(X, y[:, None], np.ones(len(X)))
    ours = tree.refitted(tree.scaler, rows, tree.noise)
    theirs = tree.refitted(None, tree.scaler.rows(rows), tree.noise)
    assert ours.calibration is None
    for a, b in zip(ours.predict(X), theirs.predict(X), strict=True):
        assert_allclose(a, b, rtol=1e-9)
    plain = tree.refitted(tree.scaler, rows, None)
    assert plain.noise is None
    assert plain.n_rows == tree.n_rows
    assert np.ptp(plain.predict(X)[1]) < 0.2 * np.ptp(ours.predict(X)[1])


def test_constant_noise_is_left_alone():
    X = chirp(400, 1)[0]
    smooth = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    model = RWFRegressor(40, solver="multifrontal", random_state=0).fit(X, smooth)
    assert model.model_.base.noise is None


def seismogram(n, quiet):
    x = np.linspace(10.0, 20.0, n)
    rng = np.random.default_rng(0)
    trace = np.sin(40.0 * x) + 0.3 * rng.normal(size=n)
    return x[:, None], np.where(x < 18.0, quiet, 1.0) * trace


@pytest.mark.parametrize("quiet", [1e-5, 0.0])
def test_noise_does_not_fall_below_what_the_statistics_resolve(quiet, monkeypatch):
    found = []
    learn = rwf.models.noise.learn_variance

    def spy(*args, least):
        found.append((least, learn(*args, least=least)))
        return found[-1][1]

    monkeypatch.setattr(rwf.models.noise, "learn_variance", spy)
    X, y = seismogram(600, quiet)
    options = {"solver": "multifrontal", "calibration": "global", "random_state": 0}
    plain = RWFRegressor(500, noise="constant", **options).fit(X, y)
    model = RWFRegressor(500, noise="heteroscedastic", **options).fit(X, y)
    own = plain.model_.base.fits[0].posterior
    least = plain.model_.base.statistics.resolvable_noise(own.prior_variances) / own.noise_variance
    assert plain.model_.base.least_noise == pytest.approx(least, rel=1e-12, abs=0.0)
    unit = model.model_.units.inputs(X)
    assert len(found) == 2  # by the errors of constant noise, and by those that it leaves
    for given, shape in found:
        assert given == pytest.approx(least, rel=1e-6, abs=0.0)
        assert shape(unit).min() >= given * (1 - 1e-9)
    for p in (model.predict(X, return_std=True), model.predict_function(X)):
        assert np.isfinite(p).all()
    assert (model.predict(X, return_std=True)[1] > 0).all()


def test_the_least_noise_is_that_of_the_output_that_needs_most():
    X, y, _ = chirp(300, 1)
    Y = np.column_stack([y, np.sin(X[:, 0])])
    tree = (
        RWFRegressor(60, solver="multifrontal", noise="constant", random_state=0).fit(X, Y).model_
    )
    each = [
        tree.statistics.resolvable_noise(t.posterior.prior_variances) / t.posterior.noise_variance
        for t in tree.fits
    ]
    assert tree.least_noise == max(each) > min(each)


@dataclass(frozen=True)
class Judged:
    """What :func:`rwf.models.noise._better` asks of a model: leave-one-out predictions of zeros."""

    error: float
    variance: float
    noise: object = None
    n_outputs: int = 1

    def calibration_rows(self, known):
        return known

    def leave_one_out(self, rows, output):
        signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
        return Marginals(self.error * signs, np.full(len(rows), self.variance))


@dataclass(frozen=True)
class Weighted:
    weights: np.ndarray


def test_varying_noise_is_kept_if_densities_gain_and_errors_do_not_grow():
    rows = Block(np.ones((100, 1)), np.zeros((100, 1)), np.ones(100))
    few, many = Weighted(np.ones(3)), Weighted(np.ones(200))
    plain = Judged(error=1.0, variance=9.0)  # far from honest, so that densities may gain much

    def kept(squared, variance, noise=few):
        varying = Judged(np.sqrt(squared), variance, noise)
        return rwf.models.noise._better(plain, varying, rows) is varying

    assert kept(1.09, 1.0)
    assert not kept(1.11, 1.0)
    assert not kept(1.0, 9.0)
    assert not kept(1.0, 1e-2)
    assert not kept(1.0, 1.0, many)  # two nats for parameters, of half a nat to gain
