"""The method as printed: its units, features, posterior, and the recipe for speech."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.features import WaveletFamily
from rwf.priors.random_features import (
    WARM_UP_REACH,
    draw_stack,
    first_hyperparameters,
    learn_hyperparameters,
    maximize_evidence,
)
from rwf.wavelets import ComplexMorlet, MexicanHat
from rwf.wavelets.measure import Box, Measure

pytestmark = pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")
QUICK = {"max_iter": 3, "n_restarts": 0, "random_state": 0}


@pytest.fixture
def data(rng):
    """Two columns with spans of 30 and 0.2, and different shapes of their laws."""
    X = np.column_stack([10 * rng.gamma(1.0, 1.0, 60), 5 + rng.uniform(0, 0.2, 60)])
    return X, 40 + 7 * np.sin(20 * X[:, 1]) + 0.1 * X[:, 0] + rng.normal(0, 0.5, 60)


def units_by_hand(X, normalize):
    middle = (X.min(axis=0) + X.max(axis=0)) / 2
    if normalize is None:
        return middle, np.full(2, np.ptp(X, axis=0).max())
    if normalize == "unit_box":
        return middle, np.ptp(X, axis=0)
    scale = X.std(axis=0)
    return X.mean(axis=0), scale * np.ptp(X / scale, axis=0).max()


@pytest.mark.parametrize("normalize", ["standard", "unit_box", None])
def test_features_are_the_papers_in_normalised_units(data, normalize):
    X, y = data
    model = RWFRegressor.from_paper(25, normalize=normalize, **QUICK).fit(X, y)
    center, scale = units_by_hand(X, normalize)
    A, T = (X - center) / scale, (model.shifts_ - center) / scale
    assert_allclose(model.model_.units.inputs(X), A, atol=1e-13)
    assert_allclose(np.ptp(A, axis=0).max(), 1.0)
    s = model.scales_ * (model.length_scales_[0] / scale)[0]
    assert_allclose(model.length_scales_[0] / scale, (model.length_scales_[0] / scale)[0])
    r2 = ((A[:, None] - T) ** 2).sum(-1) / s**2
    # d = 2: C⁻² = π (1 - 2 + 2·4/4) = π.
    expected = s**-1.0 * np.pi**-0.5 * (1 - r2) * np.exp(-r2 / 2) / np.sqrt(25)
    Z = model.model_.base.features(model.model_.units.inputs(X))
    assert_allclose(Z, expected, atol=1e-12 * np.abs(expected).max())
    assert (model.shifts_ >= X.min(axis=0) - 1e-9).all()
    assert (model.shifts_ <= X.max(axis=0) + 1e-9).all()


@pytest.mark.parametrize("speech", [False, True])
def test_predictions_are_those_of_algorithm_1(data, speech):
    X, y = data
    model = RWFRegressor.from_paper(30, speech=speech, **QUICK).fit(X[:50], y[:50])
    units = model.model_.units
    Z, Z_new = (np.asarray(model.model_.base.features(units.inputs(U))) for U in (X[:50], X[50:]))
    assert len(model.scales_) == (15 if speech else 30)  # atoms have a real and imaginary part
    noise = model.noise_variance_ / y[:50].var()
    precision = 1 + 2e-4 if speech else 1.0
    S = np.linalg.inv(precision * np.eye(Z.shape[1]) + Z.T @ Z / noise)
    v = (y[:50] - y[:50].mean()) / y[:50].std()
    mean, variance = Z_new @ (S @ (Z.T @ v) / noise), np.sum(Z_new @ S * Z_new, axis=1) + noise
    found = model.predict(X[50:], return_std=True)
    assert_allclose(found[0], y[:50].mean() + y[:50].std() * mean, rtol=1e-6)
    assert_allclose(found[1], y[:50].std() * np.sqrt(variance), rtol=1e-6)


def test_normalised_inputs_do_not_depend_on_the_units_of_columns(data):
    X, y = data
    for normalize, same in (("standard", True), ("unit_box", True), (None, False)):
        here = RWFRegressor.from_paper(25, normalize=normalize, **QUICK).fit(X, y).predict(X)
        other = X * [1.0, 1e4]
        there = RWFRegressor.from_paper(25, normalize=normalize, **QUICK).fit(other, y)
        assert np.allclose(here, there.predict(other), rtol=1e-6) == same
    with pytest.raises(ValueError, match="normalize='box' is unknown"):
        RWFRegressor.from_paper(25, normalize="box", **QUICK).fit(X, y)


def test_the_recipe_for_speech_is_as_printed():
    prior = RWFRegressor.from_paper(speech=True).prior
    assert prior.wavelet == "complex_morlet"
    assert prior.scales == (1 / 16, 4.0)
    assert prior.shifts == Box(pad=0.0)
    assert (prior.ridge, prior.normalization, prior.normalize) == (1e-4, "energy", "standard")
    assert prior.warm_up > 0
    assert RWFRegressor.from_paper().prior.ridge == 0.0


def test_scales_are_clipped_while_learning_warms_up_and_not_after(rng):
    X = rng.normal(size=(80, 1))
    rows = Block(X, np.sin(9 * X), np.ones(80))
    family = WaveletFamily(MexicanHat(), Measure(1 / 16, 4.0, Box()), 30.0)
    stack = draw_stack([family], 20, X, rng)
    first = first_hyperparameters([family], stack, 1)
    warm, _ = maximize_evidence(first, rows, 15, reach=WARM_UP_REACH)
    moved = np.abs(warm.features.theta - first.features.theta)
    assert 0.5 * np.log(2.0) < moved.max() <= np.log(2.0) + 1e-9  # 30 is far too long
    free, _ = maximize_evidence(first, rows, 15)
    assert np.abs(free.features.theta - first.features.theta).max() > 2 * np.log(2.0)

    def learned(warm_up):
        own = np.random.default_rng(1)
        return learn_hyperparameters(
            [family], rows, own, n_features=20, n_trials=1, max_iter=1, warm_up=warm_up
        )[0]

    assert not np.allclose(learned(0).features.theta, learned(15).features.theta)


def test_a_ridge_adds_to_the_precision_of_the_weights(rng):
    family = WaveletFamily(ComplexMorlet(), Measure(0.5, 2.0, Box()), 1.0)
    stack = draw_stack([family], 8, rng.normal(size=(9, 2)), rng)
    assert_array_equal(first_hyperparameters([family], stack, 1).log_priors, 0.0)
    ridge = first_hyperparameters([family], stack, 1, ridge=0.3)
    assert_allclose(np.exp(-ridge.log_priors), 1.6)
