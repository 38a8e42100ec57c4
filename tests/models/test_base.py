"""Predictions of every kind of model: their parts and densities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.inference.spike_slab import Schedule
from rwf.models.base import Prediction
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


def test_log_density_is_that_of_the_distribution(model):
    rows = model.units.rows(Block(*stepped(40, 5), np.ones(40)))
    p = model.predict(rows.X)
    dof = np.inf if p.dof is None else p.dof
    scale = np.sqrt(p.variance * (1.0 - 2.0 / dof))
    expected = t.logpdf(rows.y, dof, p.mean, scale).sum(axis=1)
    assert_allclose(p.log_density(rows.y), expected, rtol=1e-7, atol=1e-7)
    assert_allclose(p.distribution.std, np.sqrt(p.variance))


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


def test_combinations_have_the_covariance_of_their_places(model):
    X = np.linspace(2.0, 8.0, 40)[:, None]
    A = np.random.default_rng(0).normal(size=(3, 40))
    mean, covariance = model.combination(X, A)
    C = model.covariance(X, noise=False)
    assert_allclose(mean, A @ model.predict(X).mean, rtol=1e-9, atol=1e-9)
    for output in range(2):
        wanted = A @ C[..., output] @ A.T
        assert_allclose(covariance[..., output], wanted, rtol=1e-8, atol=1e-10 * wanted.max())
