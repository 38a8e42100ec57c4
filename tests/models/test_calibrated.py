"""Calibrated models: distributions follow the errors, and means stay those of the model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone

from rwf import RFFRegressor, RWFRegressor
from rwf.data.rows import Block, distinct
from rwf.models.base import ENOUGH_SCORES
from rwf.models.corrected import Calibrated, calibrate, calibrate_scores
from rwf.uncertainty.student_t import draw_roots, mean_root, variance_ratio

BREAK = 5.0


def stepped(n, seed, d=1):
    """A wave with little noise below the break and much above."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    noise = np.where(X[:, 0] < BREAK, 0.1, 1.0) * rng.normal(size=n)
    return X, 50.0 + 2.0 * np.sin(2.0 * X[:, 0]) + noise


def multiscale(**options):
    settings = {"n_components": 30, "prior": "multiscale", "noise": "constant", "random_state": 0}
    return RWFRegressor(**(settings | options))


def known_rows(model, X, y):
    return model.model_.units.rows(distinct(Block(X, y[:, None], np.ones(len(X)))))


@pytest.fixture(scope="module")
def data():
    return stepped(600, 0)


@pytest.fixture(scope="module")
def local(data):
    return multiscale().fit(*data)


@pytest.fixture(scope="module")
def plain(data):
    return multiscale(calibration="global").fit(*data)


def shares(model, coverage=0.95, n=4000):
    """The share of new rows in their intervals, below and above the break, away from it."""
    X, y = stepped(n, 9)
    low, high = model.predict_interval(X, coverage)
    inside = (low < y) & (y < high)
    return inside[X[:, 0] < BREAK - 0.2].mean(), inside[X[:, 0] > BREAK + 0.2].mean()


@pytest.mark.parametrize("coverage", [0.95, 0.8, 0.5])
def test_intervals_have_their_coverage_below_and_above_the_break(local, plain, coverage):
    error = np.sqrt(coverage * (1 - coverage) * (1 / 270 + 1 / 1800))  # rows of each half
    for share in shares(local, coverage):
        assert abs(share - coverage) < 5 * error
    quiet, loud = shares(plain, coverage)
    assert quiet > coverage + min(5 * error, 0.9 * (1 - coverage))
    assert loud < coverage - 3 * np.sqrt(coverage * (1 - coverage) / 1800)


def test_the_density_of_new_rows_is_higher_where_the_scale_follows_the_place(local, plain):
    X, y = stepped(4000, 9)
    found = [model.predict_distribution(X).logpdf(y).mean() for model in (plain, local)]
    assert found[1] > found[0] + 0.4
    assert plain.fit_report_.nll - local.fit_report_.nll == pytest.approx(
        found[1] - found[0], abs=0.15
    )


def test_the_report_scores_the_calibrated_model(data, local):
    rows = known_rows(local, *data)
    density = local.model_.leave_one_out(rows).log_density(rows.y).mean()
    learned = 1 + len(local.model_.base.hyperparameters.features.maps)
    assert local.fit_report_.nll + density == pytest.approx(
        np.log(local.model_.units.y.scale[0]), abs=2.0 * learned / 600
    )


def test_means_are_those_of_the_model(local, plain):
    X = np.linspace(-1.0, 12.0, 300)[:, None]
    unit = local.model_.units.inputs(X)
    assert_array_equal(local.predict(X), plain.predict(X))
    assert_array_equal(local.predict_function(X)[0], plain.predict_function(X)[0])
    assert_array_equal(local.model_.predict(unit).mean, local.model_.base.predict(unit).mean)


def test_every_kind_of_prediction_has_the_same_distribution(local):
    X = np.linspace(2.5, 7.5, 30)[:, None]
    p = local.predict_distribution(X)
    mean, std = local.predict(X, return_std=True)
    assert np.ptp(p.scale) > 0.3
    assert_allclose(p.mean, mean)
    assert_allclose(p.std, std)
    assert_allclose(local.predict_quantiles(X, (0.1, 0.5)), np.stack([p.ppf(0.1), mean], axis=1))
    assert_array_equal(local.predict_quantiles(X, 0.3), p.ppf(0.3))
    for end, q in zip(local.predict_interval(X, 0.8), (0.1, 0.9), strict=True):
        assert_allclose(end, p.ppf(q))
    again, covariance = local.predict(X, return_cov=True)
    assert_array_equal(again, mean)
    assert_allclose(np.diag(covariance), std**2, rtol=1e-8)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10 * covariance.max()
    draws = local.sample_y(X, 4000, random_state=0)
    for row in (0, 12, 29):
        single = stats.t(p.dof[row], p.mean[row], p.scale[row])
        assert stats.kstest(draws[row], single.cdf).pvalue > 1e-3
    spread = local.predict_function(X)[1]
    assert_allclose(
        local.sample_y(X, 4000, random_state=0, noise=False).std(1),
        spread,
        rtol=5 / np.sqrt(2 * 4000),
    )
    assert (spread < std).all()


def test_draws_of_several_rows_have_the_covariance(local):
    X = np.array([[3.50], [3.501], [6.0]])
    covariance = local.predict(X, return_cov=True)[1]
    p = local.model_.model.predict(local.model_.units.inputs(X))
    change = local.model_.correction(local.model_.units.inputs(X), p)
    assert (change.dof[:, 0] > 4).any()
    own = local.model_.model.covariance(local.model_.units.inputs(X))[..., 0]
    heavy = mean_root(change.dof[:, 0]) * np.sqrt(change.factor[:, 0])
    unit = local.model_.units.y.scale[0] ** 2
    assert_allclose(covariance[0, 1], unit * heavy[0] * heavy[1] * own[0, 1], rtol=1e-9)
    # A normal is multiplied by an independent root for every row.
    rng = np.random.default_rng(0)
    normal = rng.multivariate_normal(np.zeros(2), [[1.0, 0.8], [0.8, 1.0]], 100_000).T
    draws = normal * draw_roots(np.full(2, 12.0), 100_000, rng)
    assert np.mean(draws[0] * draws[1]) == pytest.approx(0.8 * mean_root(12.0) ** 2, rel=0.03)
    assert np.mean(draws[1] ** 2) == pytest.approx(variance_ratio(12.0), rel=0.03)


def test_beyond_the_rows_variances_are_not_reduced(local):
    queries = np.linspace(-60.0, 60.0, 241)[:, None]
    unit = local.model_.units.inputs(queries)
    p = local.model_.model.predict(unit)
    factor = local.model_.correction(unit, p).factor[:, 0]
    assert p.support.min() < 1e-9
    assert (factor[p.support < 1e-9] >= 1.0).all()
    assert factor[p.support == 1.0].min() < 0.5


def waves(x, phase):
    return 2.0 * np.sin(6.0 * x + phase)


@pytest.mark.parametrize("n_components", [60, 300])
def test_in_a_gap_among_rows_of_little_noise_intervals_cover_the_signal(n_components):
    inside, queries = [], np.linspace(3.9, 4.5, 20)[:, None]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(3.0, 7.0, (600, 1))
        y = waves(X[:, 0], seed) + np.where(X[:, 0] < BREAK, 0.05, 1.0) * rng.normal(size=600)
        kept = (X[:, 0] < 3.8) | (X[:, 0] > 4.6)
        model = multiscale(n_components=n_components).fit(X[kept], y[kept])
        low, high = model.predict_interval(queries)
        signal = waves(queries[:, 0], seed)
        inside.append((low < signal) & (signal < high))
    assert np.mean(inside) > 0.8


def test_every_output_has_its_own_density():
    X, y = stepped(500, 0)
    even = 7.0 - 4.0 * np.cos(X[:, 0]) + 3.0 * np.random.default_rng(4).normal(size=500)
    model = multiscale().fit(X, np.column_stack([y, even]))
    queries = np.linspace(3.2, 6.8, 12)[:, None]
    p = model.predict_distribution(queries)
    assert p.mean.shape == p.std.shape == (12, 2)
    assert model.predict_quantiles(queries, (0.1, 0.5, 0.9)).shape == (12, 2, 3)
    assert model.predict_quantiles(queries, 0.1).shape == (12, 2)
    assert all(end.shape == (12, 2) for end in model.predict_interval(queries, 0.9))
    covariance = model.predict(queries, return_cov=True)[1]
    assert_allclose(np.einsum("iik->ik", covariance), p.std**2, rtol=1e-8)
    assert model.sample_y(queries, 5, random_state=0).shape == (12, 2, 5)
    quiet, loud = p.scale[:4].mean(axis=0), p.scale[-4:].mean(axis=0)
    assert loud[0] > 4 * quiet[0]
    assert loud[1] < 1.7 * quiet[1]


@pytest.mark.parametrize("d", [2, 4])
def test_any_number_of_columns_is_calibrated_locally(d):
    X, y = stepped(500, 0, d)
    model = RWFRegressor(
        30, prior="random_features", noise="constant", max_iter=5, n_restarts=0, random_state=0
    ).fit(X, y)
    assert max(model.model_.densities[0].features.amplitudes[1:]) > 0


def test_fourier_features_are_calibrated_globally_by_default(data):
    options = {"noise": "constant", "max_iter": 5, "n_restarts": 0, "random_state": 0}
    stationary = RFFRegressor(20, **options).fit(*data)
    assert stationary.calibration == "global"
    assert stationary.model_.densities[0].features.amplitudes[1:] == (0.0, 0.0, 0.0)
    local = RFFRegressor(20, calibration="local", **options).fit(*data)
    assert max(local.model_.densities[0].features.amplitudes[1:]) > 0
    assert_array_equal(local.predict(data[0]), stationary.predict(data[0]))
    assert RWFRegressor().calibration == "local"
    assert RWFRegressor.from_paper().calibration is None


def test_unknown_calibration_is_refused(data):
    with pytest.raises(ValueError, match="calibration='none' must be 'local', 'global' or None"):
        RWFRegressor(calibration="none").fit(*data)


def test_a_calibrated_model_can_be_cloned_and_pickled(local):
    twin = clone(multiscale(calibration="global"))
    assert twin.get_params()["calibration"] == "global"
    X = np.linspace(0.0, 9.0, 40)[:, None]
    again = pickle.loads(pickle.dumps(local))
    for a, b in zip(again.predict(X, True), local.predict(X, True), strict=True):
        assert_array_equal(a, b)


def test_further_rows_keep_the_calibration(data, local):
    X, y = data
    blanks = [local.empty_copy() for _ in range(3)]
    assert all(blank.model_.densities is local.model_.densities for blank in blanks)
    with pytest.raises(ValueError, match="no rows yet"):
        blanks[0].predict(X, return_std=True)
    halves = [blank.partial_fit(X[i::2], y[i::2]) for i, blank in enumerate(blanks[:2])]
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), local.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)


def test_few_rows_leave_the_model_as_it_is(data, plain):
    base, rows = plain.model_.base, known_rows(plain, *data)
    for n in (ENOUGH_SCORES - 1, ENOUGH_SCORES):
        few = rows.part(slice(0, n))
        rng = np.random.default_rng(0)
        found = calibrate(base, few, base.leave_one_out(few), rng, local=False)
        assert isinstance(found, Calibrated) == (n == ENOUGH_SCORES)
        scores = [np.linspace(-2.0, 2.0, n)]
        assert isinstance(calibrate_scores(base, scores, rng), Calibrated) == (n == ENOUGH_SCORES)


def test_scores_calibrate_everywhere_alike(plain, rng):
    base = plain.model_.base
    found = calibrate_scores(base, [3.0 * rng.normal(size=4000)], rng)
    X = np.linspace(-60.0, 60.0, 50)[:, None]
    ratio = found.predict(X).variance / base.predict(X).variance
    assert_allclose(ratio, ratio[0, 0])
    assert ratio[0, 0] == pytest.approx(9.0, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": "multifrontal"}, {"prior": "nystrom", "max_iter": 3, "n_restarts": 0}],
    ids=["multiscale", "multifrontal", "nystrom"],
)
def test_without_calibration_the_model_is_the_posterior_itself(data, options):
    X, y = data[0], np.column_stack([data[1], np.cos(data[0][:, 0])])
    raw = multiscale(calibration=None, **options).fit(X, y)
    scaled = multiscale(calibration="global", **options).fit(X, y)
    assert raw.model_ is raw.model_.base
    assert np.isinf(raw.predict_distribution(X).dof).all()
    unit = raw.model_.units.inputs(X)
    a, b = raw.model_.predict(unit), scaled.model_.base.predict(unit)
    usual = b.support == 1.0 if "prior" not in options else np.ones(len(X), dtype=bool)
    assert usual.mean() > 0.9
    assert_array_equal(a.mean, b.mean)
    assert_array_equal(a.function_variance[usual], b.function_variance[usual])
    assert_array_equal(a.noise_variance, b.noise_variance)


def test_without_calibration_the_variance_does_not_revert_to_the_prior(data, plain):
    raw = multiscale(calibration=None).fit(*data)
    far = np.array([[90.0]])
    trend = raw.model_.base.features(raw.model_.units.inputs(far))
    assert np.count_nonzero(trend) == 2  # a constant and a line
    assert not raw.model_.summary.reverts
    assert plain.model_.summary.reverts
    assert_array_equal(raw.support(far), 1.0)
    with pytest.warns(match="no atoms nearby"):
        assert plain.predict(far, return_std=True)[1] > raw.predict(far, return_std=True)[1]
    with pytest.warns(match="no atoms nearby"):
        plain.predict_quantiles(far, 0.5)
