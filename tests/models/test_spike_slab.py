"""Sparse weights behind the regressor: units, rows that add, gaps, and what they refuse."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import rwf.priors.recipes
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.datasets import SIX_PLATEAUS, multi_step
from rwf.errors import IncompatibleModelsError, NoAtomsNearbyWarning
from rwf.inference.spike_slab import Schedule
from rwf.inference.spike_slab.extrapolation import GapReversion

SHORT = Schedule(chains=2, sweeps=10, burn_in=3, keeping=3, attempts=1, draws=20)


@pytest.fixture(scope="module", autouse=True)
def short():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rwf.priors.recipes, "SPARSE_SCHEDULE", SHORT)
        yield


def plateaus(n, seed=0, noise=0.05):
    s = multi_step(n, np.random.default_rng(seed), noise, SIX_PLATEAUS)
    return 100.0 + 10.0 * s.X, 5.0 + 3.0 * s.y, 5.0 + 3.0 * s.f


@pytest.fixture(scope="module")
def fitted():
    X, y, f = plateaus(400)
    return X, y, f, RWFRegressor(prior="spike_slab", random_state=0).fit(X, y)


def test_plateaus_are_found_in_any_units_and_covered(fitted):
    X, _, f, model = fitted
    mean, std = model.predict_function(X)
    away = np.abs(f - np.roll(f, 1)) < 1  # next to a jump, no one can know the side
    assert np.sqrt(np.mean((mean - f)[away] ** 2)) < 0.3 * 0.15
    assert np.mean(np.abs(mean - f) < 2 * std) > 0.9
    assert_allclose(model.noise_variance_, 0.15**2, rtol=0.3)
    assert model.prior_variances_.shape == (model.n_features_out_,)
    assert model.fit_report_.statistics == "windows"
    assert model.fit_report_.beats_trivial
    assert model.length_scales_.shape[0] == 0


def test_predictions_agree_with_their_covariance_and_their_samples(fitted):
    *_, model = fitted
    X = np.linspace(100.2, 109.8, 30)[:, None]
    mean, std = model.predict(X, return_std=True)
    assert_allclose(model.predict(X), mean, rtol=1e-9)
    assert_allclose(np.diag(model.predict(X, return_cov=True)[1]), std**2, rtol=1e-6)
    draws = model.sample_y(X, 20_000, random_state=0)
    assert_allclose(draws.mean(1), mean, atol=5 * std.max() / np.sqrt(20_000))
    assert_allclose(draws.var(1), std**2, rtol=0.1)
    fm, fs = model.predict_function(X)
    assert_allclose(fm, mean)
    assert_allclose(fs**2 + model.noise_variance_, std**2, rtol=1e-6)


def test_rows_add_in_any_split(fitted):
    X, y, _, model = fitted
    blank = model.empty_copy()
    with pytest.raises(ValueError, match="no rows yet"):
        blank.predict(X)
    # A copy that has been to another process is still the same model.
    blanks = [model.empty_copy(), pickle.loads(pickle.dumps(model.empty_copy()))]
    halves = [blanks[i].partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    merged = halves[0].merge(halves[1])
    for a, b in zip(merged.predict(X, True), model.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-7)
    assert merged.model_.n_rows == model.model_.n_rows == 400
    more = model.empty_copy().partial_fit(X, y).partial_fit(X[:50], y[:50], np.full(50, 2.0))
    assert more.model_.n_rows == 500
    other = RWFRegressor(prior="spike_slab", random_state=1).fit(X[:100], y[:100])
    with pytest.raises(IncompatibleModelsError, match="different atoms"):
        merged.merge(other)


def test_in_gaps_and_beyond_the_ends_the_variance_of_the_signal_comes_back():
    X, y, _ = plateaus(600, 1)
    hole = (X[:, 0] > 104) & (X[:, 0] < 106)
    X, y = X[~hole], y[~hole]
    model = RWFRegressor(prior="spike_slab", random_state=0).fit(X, y)
    far = np.array([[105.0], [90.0], [120.0]])
    with pytest.warns(NoAtomsNearbyWarning):
        _, std = model.predict(far, return_std=True)
    assert (std > np.sqrt(y.var() - 0.15**2)).all()
    assert_allclose(model.coverage(far), 0.0, atol=1e-3)
    assert_allclose(model.coverage(X), 1.0)
    bare = RWFRegressor(prior="spike_slab", random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (bare.predict(far, return_std=True)[1] <= std).all()
    assert_array_equal(bare.coverage(far), 1.0)


def test_outputs_have_their_own_atoms():
    X, y, _ = plateaus(200, 2)
    Y = np.column_stack([y, -4.0 * X[:, 0]])
    model = RWFRegressor(prior="spike_slab", random_state=0).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (200, 2)
    assert np.sqrt(np.mean((mean[:, 1] - Y[:, 1]) ** 2)) < 0.05 * Y[:, 1].std()
    assert model.prior_variances_.shape == (model.n_features_out_, 2)
    assert ((model.prior_variances_ > 0).sum(axis=1) == 1).all()
    assert model.sample_y(X[:3], 5).shape == (3, 2, 5)
    assert model.predict(X[:3], return_cov=True)[1].shape == (3, 3, 2)


def test_what_cannot_be_had_is_refused():
    X, y, _ = plateaus(60)
    for bad, match in [
        ({"n_components": 50}, "finds the number of its atoms"),
        ({"noise": "heteroscedastic"}, "constant noise"),
        ({"wavelet": "haar"}, "no use for wavelet"),
    ]:
        with pytest.raises(ValueError, match=match):
            RWFRegressor(prior="spike_slab", **bad).fit(X, y)
    with pytest.raises(ValueError, match="one input column, and X has 2"):
        RWFRegressor(prior="spike_slab").fit(np.hstack([X, X]), y)
    model = RWFRegressor(prior="spike_slab", random_state=0).fit(X, y)
    assert not hasattr(model, "log_marginal_likelihood_value_")
    with pytest.raises(AttributeError, match="held-out rows"):
        model.log_marginal_likelihood()


def test_auto_finds_that_plateaus_are_sparse():
    X, y, _ = plateaus(500, 3)
    model = RWFRegressor(random_state=0).fit(X, y)
    held_out = {s.name: s.held_out for s in model.fit_report_.trials}
    assert any(
        s.chosen and s.name.startswith("prior 'spike_slab'") for s in model.fit_report_.trials
    )
    assert {f"prior {p!r}" for p in ("nystrom", "cells on a tree", "adaptive")} <= set(held_out)


def test_signals_that_are_not_sparse_are_left_to_other_priors():
    rng = np.random.default_rng(0)
    X = np.arange(400.0)[:, None]
    y = np.cumsum(rng.normal(size=400))  # a step at every row
    model = RWFRegressor(random_state=0).fit(X, y)
    names = {s.name.split("'")[1] for s in model.fit_report_.trials if "'" in s.name}
    assert "spike_slab" not in names
    assert {"nystrom", "cells on a tree"} <= names


@given(st.integers(2, 40), st.integers(0, 10**6), st.floats(-3, 3))
def test_the_prior_share_is_zero_among_rows_and_grows_away_from_them(n, seed, power):
    x = 10.0**power * np.random.default_rng(seed).normal(size=n)
    gaps = GapReversion.between(x)
    assert_array_equal(gaps.prior_share(x), 0.0)
    span = np.ptp(x) or 1.0
    assert_allclose(gaps.prior_share(np.array([x.min() - 40 * span, x.max() + 40 * span])), 1.0)
    line = np.linspace(x.max(), x.max() + 3 * span, 50)
    assert (np.diff(gaps.prior_share(line)) >= 0).all()
    # Shift and unit do not matter.
    q = np.random.default_rng(seed + 1).normal(size=20) * span
    assert_allclose(
        GapReversion.between(3 * x + 7).prior_share(3 * q + 7),
        gaps.prior_share(q),
        rtol=1e-5,
        atol=1e-9,
    )
