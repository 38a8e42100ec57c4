"""Predictions of every kind of model: their parts, densities and errors, which calibrate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.inference.spike_slab import Schedule
from rwf.models.base import ENOUGH_SCORES, Calibration, Prediction
from rwf.models.dense import DenseModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.tree import TreeModel
from rwf.priors.spike_slab import SpikeSlab

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)


def stepped(n, seed):
    """A wave with little noise below five and much above, and a line."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, 1))
    wave = 50.0 + 2.0 * np.sin(2.0 * X[:, 0])
    wave += np.where(X[:, 0] < 5.0, 0.1, 1.0) * rng.normal(size=n)
    return X, np.column_stack([wave, 9.0 - X[:, 0] + 0.1 * rng.normal(size=n)])


KINDS = {
    "multiscale": ({"prior": "multiscale"}, DenseModel),
    "heteroscedastic": ({"prior": "multiscale", "noise": "heteroscedastic"}, DenseModel),
    "nystrom": ({"prior": "nystrom", "max_iter": 5, "n_restarts": 0}, DenseModel),
    "multifrontal": ({"solver": "multifrontal", "noise": "heteroscedastic"}, TreeModel),
    "spike_slab": ({"prior": SpikeSlab(SHORT), "n_components": None}, SpikeSlabModel),
    "uncalibrated": ({"prior": "multiscale", "calibration": None}, DenseModel),
    "blended": ({"solver": "multifrontal", "neighbors": 8}, TreeModel),
}


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def model(request):
    options, kind = request.param
    X, Y = stepped(350, 0)
    found = RWFRegressor(**{"n_components": 20, "random_state": 0} | options).fit(X, Y).model_
    assert isinstance(found.base, kind)
    return found


def test_the_variance_is_that_of_the_function_and_of_the_noise(model):
    X = np.linspace(-60.0, 60.0, 241)[:, None]
    p = model.predict(X)
    assert p.mean.shape == p.variance.shape == (241, 2)
    assert_array_equal(p.variance, p.function_variance + p.noise_variance)
    assert (p.function_variance >= 0).all()
    assert (p.noise_variance > 0).all()
    assert_allclose(p.mean, model.mean(X), rtol=1e-9, atol=1e-12)


def test_support_lies_between_zero_and_one(model):
    p = model.predict(np.linspace(-60.0, 60.0, 241)[:, None])
    among = model.predict(np.linspace(-1.4, 1.4, 50)[:, None])
    for support in (p.support, among.support):
        assert ((support >= 0) & (support <= 1)).all()
    assert (among.support > 0.9).all()
    if model.summary.reverts:
        assert_allclose(p.support[[0, -1]], 0.0, atol=1e-3)


def test_the_covariance_has_the_variances_of_predictions(model):
    X = np.linspace(-2.5, 2.5, 11)[:, None]
    p = model.predict(X)
    for noise, variance in ((True, p.variance), (False, p.function_variance)):
        found = np.einsum("iik->ik", model.covariance(X, noise=noise))
        assert_allclose(found, variance, rtol=1e-6, atol=1e-12)


def test_log_density_is_that_of_the_normal_distribution(model):
    rows = model.units.rows(Block(*stepped(40, 5), np.ones(40)))
    p = model.predict(rows.X)
    expected = norm.logpdf(rows.y, p.mean, np.sqrt(p.variance)).sum(axis=1)
    assert_allclose(p.log_density(rows.y), expected, rtol=1e-7, atol=1e-7)


def test_scores_are_errors_over_standard_deviations(model):
    X, Y = stepped(350, 0)
    rows = model.units.rows(Block(X, Y, np.ones(350)))
    p = model.leave_one_out(rows)
    assert_array_equal(p.calibration(rows.y).scores, (rows.y - p.mean) / np.sqrt(p.variance))
    assert_array_equal(p.variance, p.function_variance + p.noise_variance)


def test_predictions_are_in_standardised_units():
    X, Y = stepped(200, 0)
    estimator = RWFRegressor(20, prior="multiscale", random_state=0).fit(X, Y)
    units = estimator.model_.units
    p = estimator.model_.predict(units.inputs(X))
    mean, std = estimator.predict(X, return_std=True)
    assert_allclose(mean, units.y.center + units.y.scale * p.mean, rtol=1e-12)
    assert_allclose(std, units.y.scale * np.sqrt(p.variance), rtol=1e-12)
    assert_array_equal(estimator.support(X), p.support)


def test_the_density_of_a_prediction_adds_outputs():
    p = Prediction(np.zeros((2, 2)), np.full((2, 2), 3.0), np.ones((2, 2)), np.ones(2))
    found = p.log_density(np.array([[2.0, 0.0], [4.0, -2.0]]))
    assert_allclose(found, -np.log(2 * np.pi * 4.0) - 0.5 * np.array([1.0, 5.0]))


def test_the_factor_brings_the_mean_square_of_scores_to_one(rng):
    scores = rng.uniform(-1.0, 1.0, (400, 2)) * [5.0, 7.0]
    calibration = Calibration(scores)
    assert_allclose(calibration.inflation, np.mean(scores**2, axis=0))
    again = Calibration(scores / np.sqrt(calibration.inflation))
    assert_allclose(again.inflation, 1.0)


def test_the_factor_brings_95_percent_of_scores_into_95_percent_intervals():
    scores = np.where(np.arange(100) < 10, 4.0, 0.1)[:, None]  # heavy tails, small mean square
    calibration = Calibration(scores)
    assert_allclose(calibration.inflation, (4.0 / norm.ppf(0.975)) ** 2)
    assert calibration.inflation > np.mean(scores**2)


@pytest.mark.parametrize("size", [0.01, 0.5, 1.0])
def test_variances_are_never_reduced(size):
    assert_array_equal(Calibration(np.full((200, 3), size)).inflation, 1.0)


def test_few_scores_do_not_calibrate():
    few, enough = (Calibration(np.full((n, 1), 3.0)) for n in (ENOUGH_SCORES - 1, ENOUGH_SCORES))
    assert_array_equal(few.inflation, 1.0)
    assert_allclose(enough.inflation, 9.0)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_the_reach_is_the_split_conformal_quantile(coverage, rng):
    scores = rng.standard_t(3, (199, 2)) * [1.0, 3.0]
    calibration = Calibration(scores)
    rank = int(np.ceil(200 * coverage))
    sizes = np.sort(np.abs(scores), axis=0) / np.sqrt(calibration.inflation)
    reach = calibration.reach(coverage)
    assert_allclose(reach, sizes[rank - 1])


def test_the_reach_covers_new_scores_of_any_distribution(rng):
    coverage, inside = 0.9, []
    for _ in range(400):
        scores = rng.standard_t(2, (60, 1))
        calibration = Calibration(scores[:50])
        reach = calibration.reach(coverage) * np.sqrt(calibration.inflation)
        inside.append(np.mean(np.abs(scores[50:]) <= reach))
    assert np.mean(inside) > coverage - 5 * np.std(inside) / np.sqrt(400)
    assert np.mean(inside) < coverage + 2 / 51 + 5 * np.std(inside) / np.sqrt(400)


def test_the_reach_of_few_scores_is_their_largest():
    assert_allclose(Calibration(np.array([[1.0], [-2.5], [0.3]])).reach(0.95), 2.5)


def test_combinations_have_the_covariance_of_their_places(model):
    X = np.linspace(2.0, 8.0, 40)[:, None]
    A = np.random.default_rng(0).normal(size=(3, 40))
    mean, covariance = model.combination(X, A)
    C = model.covariance(X, noise=False)
    assert_allclose(mean, A @ model.predict(X).mean, rtol=1e-9, atol=1e-9)
    for output in range(2):
        wanted = A @ C[..., output] @ A.T
        assert_allclose(covariance[..., output], wanted, rtol=1e-8, atol=1e-10 * wanted.max())
