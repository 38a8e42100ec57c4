"""Variances that follow x: how they are learned, and error bars that are honest by place."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import rwf.priors.recipes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone

import rwf.uncertainty.variance_function
from rwf import RFFRegressor, RWFRegressor
from rwf.data.rows import Block, distinct
from rwf.fit.report import leave_one_out_scores
from rwf.inference.spike_slab import Schedule
from rwf.models.base import log_density, scores
from rwf.models.calibrated import LocalCalibration
from rwf.models.dense import DenseModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.tree import TreeModel
from rwf.uncertainty.calibration import Calibration
from rwf.uncertainty.variance_function import learn_variance

# ---------------------------------------------------------------------- variances that vary with x


def uneven(n, seed, d=1):
    """Rows between 3 and 7, errors of variance 2 + v with log v = -1 + 0.8 x, and v."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    v = np.exp(-1.0 + 0.8 * (X[:, 0] - 5.0))
    errors = np.sqrt(0.2 + v)[:, None] * rng.normal(size=(n, 1))
    return Block(X, np.zeros((n, 1)), np.ones(n)), errors, v


def learned(rows, errors, variances=0.2, **options):
    return learn_variance(rows, errors, variances, np.random.default_rng(3), **options)


@pytest.fixture
def objective(monkeypatch):
    """What is maximised for rows of uneven weights and two outputs, and the terms of it."""
    found = {}
    maximize_evidence = rwf.uncertainty.variance_function.maximize

    def spy(f, start, *args, **kwargs):
        found["f"], found["size"] = f, len(start)
        return maximize_evidence(f, start, *args, **kwargs)

    monkeypatch.setattr(rwf.uncertainty.variance_function, "maximize", spy)
    rng = np.random.default_rng(1)
    rows, errors, _ = uneven(80, 0, d=2)
    rows = replace(rows, weights=rng.uniform(0.5, 2.0, 80))
    errors = np.hstack([errors, 2.0 * errors[::-1]])
    variances = rng.uniform(0.1, 0.4, errors.shape)
    shape = learned(rows, errors, variances)
    return found["f"], found["size"], rows, errors, variances, shape


@pytest.mark.parametrize("seed", range(3))
def test_its_gradient_is_the_central_difference(objective, seed):
    f, size, *_ = objective
    theta = np.random.default_rng(seed).normal(0.3, 0.5, size)
    steps = 1e-6 * np.eye(size)
    slopes = [(f(theta + step)[0] - f(theta - step)[0]) / 2e-6 for step in steps]
    assert_allclose(f(theta)[1], slopes, rtol=1e-5, atol=1e-5)


def test_it_maximises_the_density_of_errors_and_of_unit_weights(objective):
    f, size, rows, errors, variances, _ = objective

    def density(level, penalty):
        spread = np.sqrt(variances + np.exp(level))
        each = norm.logpdf(errors, scale=spread) + 0.5 * np.log(2 * np.pi)
        return float(rows.weights @ each.sum(axis=1)) - 0.5 * penalty

    theta = np.zeros(size)
    for theta[0] in (-0.7, 1.2):
        assert_allclose(f(theta)[0], density(theta[0], 0.0))
    theta[1:] = 0.01
    assert f(theta)[0] != density(theta[0], 0.0)
    far = np.append(-60.0, np.full(size - 1, 1e-9))
    assert np.isfinite(f(far)[0])


def test_a_known_variance_is_found():
    rows, errors, v = uneven(3000, 0)
    found = learned(rows, errors)
    middle = np.abs(rows.X[:, 0] - 5.0) < 1.8
    # Half the variance of log χ² of the rows that one of eight features sees.
    error = np.sqrt(2.0 / (3000 / 8)) * (0.2 + v) / v
    assert (np.abs(np.log(found(rows.X) / v)) < 5 * error)[middle].all()
    assert np.mean(np.log(found(rows.X) / v)[middle]) == pytest.approx(0.0, abs=0.1)


def test_it_does_not_fall_below_the_least_and_stays_in_its_bounds_beyond_the_rows():
    rows, errors, _ = uneven(400, 0)
    far = np.linspace(-90.0, 90.0, 501)[:, None]
    free, bound = learned(rows, errors), learned(rows, errors, least=0.5)
    assert free(rows.X).min() < 0.3
    assert bound(np.vstack([rows.X, far])).min() == pytest.approx(0.5, rel=1e-12)
    assert_allclose(bound(rows.X), np.maximum(free(rows.X), 0.5), rtol=1e-9)
    assert_array_equal(learned(rows, errors, least=1e-30)(far), free(far))
    low, high = free(rows.X).min(), free(rows.X).max()
    assert (free(far) >= low * (1 - 1e-12)).all()
    assert (free(far) <= high * (1 + 1e-12)).all()
    above = learned(rows, errors, least=50.0)
    assert_allclose(above(far), 50.0)


def test_times_multiplies_and_relative_has_a_mean_inverse_of_one():
    rows, errors, _ = uneven(300, 0)
    rows = replace(rows, weights=np.random.default_rng(0).uniform(0.5, 3.0, 300))
    shape = learned(rows, errors, least=0.3)
    X = np.linspace(-20.0, 30.0, 200)[:, None]
    assert_allclose(shape.times(7.0)(X), 7.0 * shape(X), rtol=1e-12)
    unit = shape.relative(rows)
    assert np.average(1.0 / unit(rows.X), weights=rows.weights) == pytest.approx(1.0, rel=1e-12)
    assert np.ptp(unit(X) / shape(X)) < 1e-12
    assert_allclose(unit.relative(rows)(X), unit(X), rtol=1e-12)
    assert_array_equal(shape.on(rows).noise, shape(rows.X))


def test_weights_are_repetitions_and_the_order_of_rows_is_nothing():
    rows, errors, _ = uneven(300, 0)
    X = np.linspace(2.0, 8.0, 50)[:, None]
    weighted = learned(replace(rows, weights=np.full(300, 3.0)), errors)
    order = np.random.default_rng(0).permutation(np.tile(np.arange(300), 3))
    repeated = learned(rows.part(order), errors[order])
    assert_allclose(repeated(X), weighted(X), rtol=1e-3)
    assert not np.allclose(learned(rows, errors)(X), weighted(X), rtol=1e-2)


def test_a_unit_of_the_errors_is_one_of_the_variance():
    rows, errors, _ = uneven(300, 0)
    X = np.linspace(2.0, 8.0, 50)[:, None]
    one, other = learned(rows, errors, 0.2), learned(rows, 3.0 * errors, 9.0 * 0.2)
    assert_allclose(other(X), 9.0 * one(X), rtol=1e-3)
    moved = replace(rows, X=40.0 + 5.0 * rows.X)
    assert_allclose(learned(moved, errors)(40.0 + 5.0 * X).mean(), one(X).mean(), rtol=0.3)


def test_four_columns_have_a_linear_trend_alone():
    rows, errors, v = uneven(2000, 0, d=4)
    shape = learned(rows, errors)
    assert len(shape.weights) == 4
    assert np.mean(np.abs(np.log(shape(rows.X) / v))) < 0.2


# ---------------------------------------------------------------------- error bars that vary with x

BREAK = 5.0


def restless(n, seed, d=1):
    """A wave that is calm below the break and noisy above."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    noise = np.where(X[:, 0] < BREAK, 0.1, 1.0) * rng.normal(size=n)
    return X, 50.0 + 2.0 * np.sin(2.0 * X[:, 0]) + noise


def even(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, 1))
    return X, 50.0 + 2.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def cells(**options):
    settings = {"n_components": 30, "prior": "multiscale", "noise": "constant", "random_state": 0}
    return RWFRegressor(**(settings | options))


@pytest.fixture(scope="module")
def data():
    return restless(600, 0)


@pytest.fixture(scope="module")
def local(data):
    return cells().fit(*data)


@pytest.fixture(scope="module")
def plain(data):
    return cells(calibration="global").fit(*data)


def shares(model, calibration, coverage=0.95, n=4000):
    """The share of new rows in their intervals, below and above the break, away from it."""
    X, y = restless(n, 9)
    low, high = model.predict_interval(X, coverage, calibration)
    inside = (low < y) & (y < high)
    return inside[X[:, 0] < BREAK - 0.2].mean(), inside[X[:, 0] > BREAK + 0.2].mean()


@pytest.mark.parametrize("calibration", ["gaussian", "loo"])
@pytest.mark.parametrize("coverage", [0.95, 0.8])
def test_intervals_are_honest_below_and_above_the_break(local, plain, coverage, calibration):
    error = np.sqrt(coverage * (1 - coverage) * (1 / 270 + 1 / 1800))  # rows of each half
    for share in shares(local, calibration, coverage):
        assert abs(share - coverage) < 5 * error
    calm, loud = shares(plain, calibration, coverage)
    assert calm == 1.0
    assert loud < coverage - 3 * np.sqrt(coverage * (1 - coverage) / 1800)


def test_errors_that_calibrate_it_are_of_unit_size_everywhere(data, local):
    known = distinct(Block(data[0], data[1][:, None], np.ones(600)))
    squares = local.correction_.calibration.scores[:, 0] ** 2
    for side in (known.X[:, 0] < BREAK - 0.2, known.X[:, 0] > BREAK + 0.2):
        # Halves of these rows teach, and others are judged: both have sampling error.
        assert abs(squares[side].mean() - 1.0) < 5 * np.sqrt(2 / side.sum() + 2 / (side.sum() / 2))


def test_the_density_of_new_rows_rises_by_the_gain(local, plain):
    X, y = restless(4000, 9)
    nll = [-norm.logpdf(y, *model.predict(X, return_std=True)).mean() for model in (plain, local)]
    assert isinstance(local.correction_, LocalCalibration)
    assert local.correction_.gain == pytest.approx(nll[0] - nll[1], abs=0.1)
    assert local.correction_.gain > 0.5
    assert plain.correction_ is None


def test_the_report_counts_the_local_error_bars(data, local, plain):
    X, y = data
    known = local.model_.units.rows(distinct(Block(X, y[:, None], np.ones(len(X)))))
    c = local.correction_.variances(local.model_, local.model_.units.original_inputs(known.X))
    z = scores(local.model_, known)
    gain = 0.5 * np.mean(z**2 * (1 - 1 / c) - np.log(c))
    assert plain.fit_report_.nll - local.fit_report_.nll == pytest.approx(gain, rel=1e-9)
    change = leave_one_out_scores(local.model_, known) - leave_one_out_scores(
        local.model_, known, c
    )
    assert change.mean() == pytest.approx(gain, rel=1e-9)


def test_means_are_those_of_global_error_bars(local, plain):
    X = np.linspace(-1.0, 12.0, 300)[:, None]
    assert_array_equal(local.predict(X), plain.predict(X))
    assert_array_equal(local.predict_function(X)[0], plain.predict_function(X)[0])
    assert_array_equal(local.model_.predict(X)[1], plain.model_.predict(X)[1])


@pytest.mark.parametrize("seed", [0, 1, 2, 13, 19, 21])  # the last three gain, but not clearly
def test_where_errors_are_even_there_is_no_scale(seed):
    model = cells(random_state=seed).fit(*even(400, seed))
    assert model.correction_ is None


def test_few_rows_have_no_scale():
    assert cells().fit(*restless(63, 0)).correction_ is None
    assert cells().fit(*restless(200, 0)).correction_ is not None


def test_every_kind_of_prediction_has_the_same_error_bars(local, plain):
    X = np.linspace(2.0, 8.0, 30)[:, None]
    mean, std = local.predict(X, return_std=True)
    factor = np.sqrt(local.correction_.variances(local.model_, X)[:, 0])
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
    assert_allclose(high - low, 2 * local.correction_.calibration.reach(0.8) * std)
    for noise, spread in ((True, std), (False, local.predict_function(X)[1])):
        draws = local.sample_y(X, 4000, random_state=0, noise=noise)
        assert draws.shape == (30, 4000)
        assert_allclose(draws.std(1), spread, rtol=5 / np.sqrt(2 * 4000))
        assert (np.abs(draws.mean(1) - mean) < 5 * spread / np.sqrt(4000)).all()


def test_variances_are_enlarged_where_unseen_errors_ask_for_it(local):
    X = np.linspace(3.0, 7.0, 20)[:, None]
    scale = local.correction_
    forced = replace(scale, calibration=Calibration(np.full((100, 1), 2.0)))
    ratio = forced.variances(local.model_, X) / scale.variances(local.model_, X)
    assert_allclose(ratio, 4.0 / scale.calibration.inflation[0])
    corrected = forced.at(local.model_, X)
    assert_allclose(corrected.factor**2, forced.variances(local.model_, X))
    assert_array_equal(corrected.shift, 0.0)


def test_beyond_the_rows_no_error_bar_is_small(local):
    queries = np.linspace(-60.0, 60.0, 2401)[:, None]
    scale, coverage = local.correction_, local.coverage(queries)
    variances = scale.variances(local.model_, queries)[:, 0]
    c = scale.shape(local.model_.units.inputs(queries))
    assert c[0] < 0.3
    assert (variances >= 1.0 - coverage).all()
    assert (variances[coverage < 1e-9] >= 1.0).all()
    assert variances[0] >= 1.0
    deviation = local.model_.predict(queries, noise=False)[1][:, 0]
    among = (coverage == 1.0) & (deviation**2 <= scale.usual[0])
    assert among.sum() > 50
    assert_allclose(variances[among], scale.calibration.inflation[0] * c[among], rtol=1e-9)


def waves(x, phase):
    return 2.0 * np.sin(6.0 * x + phase)


@pytest.mark.parametrize("n_components", [60, 300])
def test_in_a_hole_among_calm_rows_intervals_hold_the_signal(n_components):
    inside, queries = [], np.linspace(3.9, 4.5, 20)[:, None]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(3.0, 7.0, (600, 1))
        y = waves(X[:, 0], seed) + np.where(X[:, 0] < BREAK, 0.05, 1.0) * rng.normal(size=600)
        kept = (X[:, 0] < 3.8) | (X[:, 0] > 4.6)
        model = cells(n_components=n_components).fit(X[kept], y[kept])
        mean, std = model.predict(queries, return_std=True)
        inside.append(np.abs(waves(queries[:, 0], seed) - mean) < 1.96 * std)
    assert np.mean(inside) > 0.8


def test_outputs_have_one_scale_and_their_own_enlargement():
    X, y = restless(500, 0)
    noise = np.where(X[:, 0] < BREAK, 0.1, 1.0) * np.random.default_rng(4).normal(size=500)
    Y = np.column_stack([y, 7.0 - 4.0 * np.cos(X[:, 0]) + 3.0 * noise])
    model = cells().fit(X, Y)
    queries = np.linspace(2.0, 8.0, 12)[:, None]
    mean, std = model.predict(queries, return_std=True)
    assert mean.shape == std.shape == (12, 2)
    covariance = model.predict(queries, return_cov=True)[1]
    assert covariance.shape == (12, 12, 2)
    assert_allclose(np.einsum("iik->ik", covariance), std**2, rtol=1e-8)
    assert model.sample_y(queries, 5, random_state=0).shape == (12, 2, 5)
    assert all(end.shape == (12, 2) for end in model.predict_interval(queries, 0.9, "loo"))
    scale = model.correction_
    assert scale.calibration.scores.shape == (500, 2)
    variances = scale.variances(model.model_, queries)
    usual = (model.model_.predict(queries, noise=False)[1] ** 2 <= scale.usual).all(axis=1)
    usual &= model.coverage(queries) == 1.0
    assert usual.sum() > 6
    ratio = variances[usual, 1] / variances[usual, 0]
    assert_allclose(ratio, np.divide(*scale.calibration.inflation[::-1]))
    calm, loud = std[(queries < 4.5)[:, 0] & (queries > 3.5)[:, 0]], std[queries[:, 0] > 5.5]
    assert (loud.min(axis=0) > 4 * calm.max(axis=0)).all()


@pytest.mark.parametrize("d", [2, 3, 4])
def test_up_to_three_columns_may_have_a_scale(d):
    X, y = restless(500, 0, d)
    model = RWFRegressor(
        30, prior="random_features", noise="constant", max_iter=5, n_restarts=0, random_state=0
    ).fit(X, y)
    assert (model.correction_ is None) == (d > 3)


def test_fourier_features_have_global_error_bars_unless_asked(data):
    options = {"noise": "constant", "max_iter": 5, "n_restarts": 0, "random_state": 0}
    stationary = RFFRegressor(20, **options).fit(*data)
    assert stationary.error_bars == "global"
    assert stationary.correction_ is None
    asked = RFFRegressor(20, calibration="local", **options).fit(*data)
    assert asked.correction_.gain > 0.3
    assert_array_equal(asked.predict(data[0]), stationary.predict(data[0]))
    assert RWFRegressor().error_bars == "local"
    assert RWFRegressor.from_paper().error_bars == "global"


def test_other_error_bars_are_refused(data):
    with pytest.raises(ValueError, match="error_bars='none' is unknown: use 'local' or 'global'"):
        RWFRegressor(error_bars="none").fit(*data)


def test_it_can_be_cloned_and_pickled(data, local):
    twin = clone(cells(calibration="global"))
    assert twin.get_params()["error_bars"] == "global"
    assert clone(twin.set_params(calibration="local")).error_bars == "local"
    X = np.linspace(0.0, 9.0, 40)[:, None]
    again = pickle.loads(pickle.dumps(local))
    for a, b in zip(again.predict(X, True), local.predict(X, True), strict=True):
        assert_array_equal(a, b)
    assert again.correction_.gain == local.correction_.gain


def test_further_rows_keep_it(data, local):
    X, y = data
    scale = local.correction_
    blanks = [local.empty_copy() for _ in range(3)]
    assert all(blank.correction_ is scale for blank in blanks)
    with pytest.raises(ValueError, match="no rows yet"):
        blanks[0].predict(X, return_std=True)
    halves = [blank.partial_fit(X[i::2], y[i::2]) for i, blank in enumerate(blanks[:2])]
    assert halves[1].correction_ is scale
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), local.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)


# ---------------------------------------------------------------------- densities of every model

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"prior": "multiscale"}, DenseModel),
        ({"prior": "multiscale", "noise": "heteroscedastic"}, DenseModel),
        ({"solver": "multifrontal", "noise": "heteroscedastic"}, TreeModel),
        ({"prior": "spike_slab", "n_components": None}, SpikeSlabModel),
    ],
    ids=["multiscale", "cells, varying", "tree", "spike_slab"],
)
def test_log_density_is_that_of_the_normal_distribution(options, kind, monkeypatch):
    monkeypatch.setattr(rwf.priors.recipes, "SPARSE_SCHEDULE", SHORT)
    X, y = restless(250, 0)
    Y = np.column_stack([y, 9.0 - X[:, 0]])
    Y[:, 1] += 0.1 * np.random.default_rng(0).normal(size=250)
    model = RWFRegressor(**{"n_components": 20, "random_state": 0} | options).fit(X, Y).model_
    assert isinstance(model, kind)
    queries, targets = restless(40, 5)
    targets = np.column_stack([targets, 9.1 - queries[:, 0]])
    mean, std = model.predict(queries)
    unit = model.scaler.rows(Block(queries, targets, np.ones(40)))
    factors = np.random.default_rng(1).uniform(0.3, 3.0, (40, 2))
    jacobian = np.log(model.scaler.y.scale).sum()
    for given, spread in ((None, std), (factors, std * np.sqrt(factors))):
        expected = norm.logpdf(targets, mean, spread).sum(axis=1) + jacobian
        assert_allclose(log_density(model, unit, given), expected, rtol=1e-7, atol=1e-7)
