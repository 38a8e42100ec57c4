"""Calibrated variances: one factor per output, or by place; means stay those of the model."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone

from rwf import RFFRegressor, RWFRegressor
from rwf.data.rows import Block, distinct
from rwf.models.base import Calibration
from rwf.models.corrected import Calibrated, LocallyCalibrated, calibrate

BREAK = 5.0


def stepped(n, seed, d=1):
    """A wave with little noise below the break and much above."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    noise = np.where(X[:, 0] < BREAK, 0.1, 1.0) * rng.normal(size=n)
    return X, 50.0 + 2.0 * np.sin(2.0 * X[:, 0]) + noise


def even(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, 1))
    return X, 50.0 + 2.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def multiscale(**options):
    settings = {"n_components": 30, "prior": "multiscale", "noise": "constant", "random_state": 0}
    return RWFRegressor(**(settings | options))


def factors(model, X):
    """c at inputs in their own units, shape (n, k)."""
    wrapped, unit = model.model_.model, model.model_.units.inputs(X)
    return model.model_.correction(unit, wrapped.predict(unit)).factor


@pytest.fixture(scope="module")
def data():
    return stepped(600, 0)


@pytest.fixture(scope="module")
def local(data):
    return multiscale().fit(*data)


@pytest.fixture(scope="module")
def plain(data):
    return multiscale(calibration="global").fit(*data)


def shares(model, calibration, coverage=0.95, n=4000):
    """The share of new rows in their intervals, below and above the break, away from it."""
    X, y = stepped(n, 9)
    low, high = model.predict_interval(X, coverage, calibration)
    inside = (low < y) & (y < high)
    return inside[X[:, 0] < BREAK - 0.2].mean(), inside[X[:, 0] > BREAK + 0.2].mean()


@pytest.mark.parametrize("calibration", ["gaussian", "loo"])
@pytest.mark.parametrize("coverage", [0.95, 0.8])
def test_intervals_have_their_coverage_below_and_above_the_break(
    local, plain, coverage, calibration
):
    error = np.sqrt(coverage * (1 - coverage) * (1 / 270 + 1 / 1800))  # rows of each half
    for share in shares(local, calibration, coverage):
        assert abs(share - coverage) < 5 * error
    quiet, loud = shares(plain, calibration, coverage)
    assert quiet == 1.0
    assert loud < coverage - 3 * np.sqrt(coverage * (1 - coverage) / 1800)


def test_scores_after_local_calibration_are_of_unit_size_everywhere(data, local):
    known = distinct(Block(data[0], data[1][:, None], np.ones(600)))
    squares = local.model_.calibration.scores[:, 0] ** 2
    for side in (known.X[:, 0] < BREAK - 0.2, known.X[:, 0] > BREAK + 0.2):
        # c is learned from one half and scored on the other: both have sampling error.
        assert abs(squares[side].mean() - 1.0) < 5 * np.sqrt(2 / side.sum() + 2 / (side.sum() / 2))


def test_the_log_density_of_new_rows_rises_by_the_gain(local, plain):
    X, y = stepped(4000, 9)
    nll = [-norm.logpdf(y, *model.predict(X, return_std=True)).mean() for model in (plain, local)]
    assert isinstance(local.model_, LocallyCalibrated)
    assert local.model_.gain == pytest.approx(nll[0] - nll[1], abs=0.1)
    assert local.model_.gain > 0.5
    assert isinstance(plain.model_, Calibrated)


def test_the_report_scores_the_locally_calibrated_model(data, local, plain):
    X, y = data
    known = local.model_.units.rows(distinct(Block(X, y[:, None], np.ones(len(X)))))
    wrapped = local.model_.model
    left_out = wrapped.leave_one_out(known)
    c = local.model_.correction(known.X, left_out).factor
    z = wrapped.leave_one_out(known).calibration(known.y).scores
    gain = 0.5 * np.mean(z**2 * (1 - 1 / c) - np.log(c))
    assert plain.fit_report_.nll - local.fit_report_.nll == pytest.approx(gain, rel=1e-9)
    change = local.model_.leave_one_out(known).log_density(known.y)
    change -= left_out.log_density(known.y)
    assert change.mean() == pytest.approx(gain, rel=1e-9)


def test_means_are_those_of_global_calibration(local, plain):
    X = np.linspace(-1.0, 12.0, 300)[:, None]
    assert_array_equal(local.predict(X), plain.predict(X))
    assert_array_equal(local.predict_function(X)[0], plain.predict_function(X)[0])
    unit = local.model_.units.inputs(X)
    a, b = local.model_.model.predict(unit), plain.model_.predict(unit)
    assert_array_equal(a.function_variance, b.function_variance)
    assert_array_equal(a.noise_variance, b.noise_variance)


@pytest.mark.parametrize("seed", [0, 1, 2, 13, 19, 21])  # the last three gain, but not clearly
def test_homoscedastic_errors_are_calibrated_by_one_factor(seed):
    model = multiscale(random_state=seed).fit(*even(400, seed))
    assert isinstance(model.model_, Calibrated)


def test_few_rows_are_calibrated_by_one_factor():
    assert isinstance(multiscale().fit(*stepped(63, 0)).model_, Calibrated)
    assert isinstance(multiscale().fit(*stepped(200, 0)).model_, LocallyCalibrated)


def test_every_kind_of_prediction_has_the_same_standard_deviation(local, plain):
    X = np.linspace(2.0, 8.0, 30)[:, None]
    mean, std = local.predict(X, return_std=True)
    factor = np.sqrt(factors(local, X)[:, 0])
    assert np.ptp(factor) > 0.5
    assert_array_equal(local.predict(X), mean)
    assert_allclose(std, factor * plain.predict(X, return_std=True)[1], rtol=1e-12)
    assert_allclose(local.predict_function(X)[1], factor * plain.predict_function(X)[1], rtol=1e-12)
    again, covariance = local.predict(X, return_cov=True)
    assert_array_equal(again, mean)
    assert_allclose(np.diag(covariance), std**2, rtol=1e-8)
    assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10 * covariance.max()
    assert_allclose(
        covariance, np.outer(factor, factor) * plain.predict(X, return_cov=True)[1], rtol=1e-12
    )
    low, high = local.predict_interval(X, 0.8)
    assert_allclose(high - low, 2 * norm.ppf(0.9) * std)
    assert_allclose(high + low, 2 * mean)
    low, high = local.predict_interval(X, 0.8, "loo")
    assert_allclose(high - low, 2 * local.model_.calibration.reach(0.8) * std)
    for noise, spread in ((True, std), (False, local.predict_function(X)[1])):
        draws = local.sample_y(X, 4000, random_state=0, noise=noise)
        assert draws.shape == (30, 4000)
        assert_allclose(draws.std(1), spread, rtol=5 / np.sqrt(2 * 4000))
        assert (np.abs(draws.mean(1) - mean) < 5 * spread / np.sqrt(4000)).all()


def test_variances_are_inflated_by_the_scores_of_cross_fitted_rows(local):
    X = np.linspace(-2.0, 2.0, 20)[:, None]
    forced = replace(local.model_, errors=Calibration(np.full((100, 1), 2.0)))
    p = local.model_.model.predict(X)
    corrected, found = (model.correction(X, p) for model in (forced, local.model_))
    assert_allclose(corrected.factor / found.factor, 4.0 / local.model_.errors.inflation[0])
    assert_array_equal(corrected.shift, 0.0)
    assert_allclose(forced.predict(X).variance, corrected.factor * p.variance)


def test_beyond_the_rows_variances_are_not_reduced(local):
    queries = np.linspace(-60.0, 60.0, 2401)[:, None]
    model, support = local.model_, local.support(queries)
    factor, unit = factors(local, queries)[:, 0], model.units.inputs(queries)
    c = model.variance(unit)
    assert c[0] < 0.3
    assert (factor >= 1.0 - support).all()
    assert (factor[support < 1e-9] >= 1.0).all()
    assert factor[0] >= 1.0
    function_variance = model.model.predict(unit).function_variance[:, 0]
    among = (support == 1.0) & (function_variance <= model.usual[0])
    assert among.sum() > 50
    assert_allclose(factor[among], model.errors.inflation[0] * c[among], rtol=1e-9)


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
        mean, std = model.predict(queries, return_std=True)
        inside.append(np.abs(waves(queries[:, 0], seed) - mean) < 1.96 * std)
    assert np.mean(inside) > 0.8


def test_outputs_have_one_variance_function_and_their_own_inflation():
    X, y = stepped(500, 0)
    noise = np.where(X[:, 0] < BREAK, 0.1, 1.0) * np.random.default_rng(4).normal(size=500)
    Y = np.column_stack([y, 7.0 - 4.0 * np.cos(X[:, 0]) + 3.0 * noise])
    model = multiscale().fit(X, Y)
    queries = np.linspace(2.0, 8.0, 12)[:, None]
    mean, std = model.predict(queries, return_std=True)
    assert mean.shape == std.shape == (12, 2)
    covariance = model.predict(queries, return_cov=True)[1]
    assert covariance.shape == (12, 12, 2)
    assert_allclose(np.einsum("iik->ik", covariance), std**2, rtol=1e-8)
    assert model.sample_y(queries, 5, random_state=0).shape == (12, 2, 5)
    assert all(end.shape == (12, 2) for end in model.predict_interval(queries, 0.9, "loo"))
    found = model.model_
    assert found.errors.scores.shape == (500, 2)
    p = found.model.predict(found.units.inputs(queries))
    usual = (p.function_variance <= found.usual).all(axis=1) & (p.support == 1.0)
    assert usual.sum() > 6
    factor = factors(model, queries)[usual]
    assert_allclose(factor[:, 1] / factor[:, 0], np.divide(*found.errors.inflation[::-1]))
    quiet, loud = std[(queries < 4.5)[:, 0] & (queries > 3.5)[:, 0]], std[queries[:, 0] > 5.5]
    assert (loud.min(axis=0) > 4 * quiet.max(axis=0)).all()


@pytest.mark.parametrize("d", [2, 3, 4])
def test_up_to_three_columns_may_be_calibrated_locally(d):
    X, y = stepped(500, 0, d)
    model = RWFRegressor(
        30, prior="random_features", noise="constant", max_iter=5, n_restarts=0, random_state=0
    ).fit(X, y)
    assert isinstance(model.model_, Calibrated if d > 3 else LocallyCalibrated)


def test_fourier_features_are_calibrated_globally_by_default(data):
    options = {"noise": "constant", "max_iter": 5, "n_restarts": 0, "random_state": 0}
    stationary = RFFRegressor(20, **options).fit(*data)
    assert stationary.calibration == "global"
    assert isinstance(stationary.model_, Calibrated)
    local = RFFRegressor(20, calibration="local", **options).fit(*data)
    assert local.model_.gain > 0.3
    assert_array_equal(local.predict(data[0]), stationary.predict(data[0]))
    assert RWFRegressor().calibration == "local"
    assert RWFRegressor.from_paper().calibration is None


def test_unknown_calibration_is_refused(data):
    with pytest.raises(ValueError, match="calibration='none' must be 'local', 'global' or None"):
        RWFRegressor(calibration="none").fit(*data)


def test_a_locally_calibrated_model_can_be_cloned_and_pickled(data, local):
    twin = clone(multiscale(calibration="global"))
    assert twin.get_params()["calibration"] == "global"
    assert clone(twin.set_params(calibration="local")).calibration == "local"
    X = np.linspace(0.0, 9.0, 40)[:, None]
    again = pickle.loads(pickle.dumps(local))
    for a, b in zip(again.predict(X, True), local.predict(X, True), strict=True):
        assert_array_equal(a, b)
    assert again.model_.gain == local.model_.gain


def test_further_rows_keep_the_calibration(data, local):
    X, y = data
    blanks = [local.empty_copy() for _ in range(3)]
    assert all(blank.model_.variance is local.model_.variance for blank in blanks)
    assert all(blank.model_.errors is local.model_.errors for blank in blanks)
    with pytest.raises(ValueError, match="no rows yet"):
        blanks[0].predict(X, return_std=True)
    halves = [blank.partial_fit(X[i::2], y[i::2]) for i, blank in enumerate(blanks[:2])]
    assert halves[1].model_.variance is local.model_.variance
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), local.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)


# --------------------------------------------------------------------------- no calibration, global


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
    assert raw.model_.calibration is None
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
    with pytest.raises(ValueError, match="use calibration='gaussian'"):
        raw.predict_interval(far, calibration="loo")


def test_global_calibration_multiplies_all_variances_by_one_factor_per_output():
    X, y = stepped(300, 0)
    model = multiscale(calibration="global").fit(X, np.column_stack([y, y**2])).model_
    forced = replace(model, errors=Calibration(np.full((100, 2), [2.0, 3.0])))
    queries = np.linspace(-9.0, 9.0, 40)[:, None]
    p = model.base.predict(queries)
    for found, factor in ((model, model.errors.inflation), (forced, np.array([4.0, 9.0]))):
        q = found.predict(queries)
        assert_array_equal(q.mean, p.mean)
        assert_array_equal(q.function_variance, factor * p.function_variance)
        assert_array_equal(q.noise_variance, factor * p.noise_variance)
        assert_array_equal(q.support, p.support)
        base, summary = model.base.summary, found.summary
        assert_array_equal(summary.noise_variances, factor * base.noise_variances)
        assert_array_equal(summary.prior_variances, factor * base.prior_variances)
        assert summary.log_evidence == base.log_evidence


def test_scores_are_leave_one_out_errors_over_standard_deviations(data, plain):
    X, y = data
    base = plain.model_.base
    known = base.units.rows(distinct(Block(X, y[:, None], np.ones(len(X)))))
    p = base.leave_one_out(known)
    expected = (known.y - p.mean) / np.sqrt(p.variance)
    assert_array_equal(calibrate(base, known).errors.scores, expected)
    assert_array_equal(plain.model_.errors.scores, expected)
