"""Spike-and-slab models in the regressor: units, sums of rows, gaps, and refused parameters."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.datasets import SIX_PLATEAUS, multi_step
from rwf.errors import IncompatibleModelsError, NoAtomsNearbyWarning
from rwf.inference.spike_slab import Schedule
from rwf.priors.spike_slab import SpikeSlab

SHORT = Schedule(chains=2, sweeps=10, burn_in=3, keeping=3, attempts=1, draws=20)


def spike_slab(**options):
    return RWFRegressor(prior=SpikeSlab(SHORT), **({"random_state": 0} | options))


@pytest.fixture
def short(monkeypatch):
    """Model selection with short chains."""
    monkeypatch.setattr("rwf.priors.auto.SpikeSlab", partial(SpikeSlab, SHORT))


def plateaus(n, seed=0, noise=0.05):
    s = multi_step(n, np.random.default_rng(seed), noise, SIX_PLATEAUS)
    return 100.0 + 10.0 * s.X, 5.0 + 3.0 * s.y, 5.0 + 3.0 * s.f


@pytest.fixture(scope="module")
def fitted():
    X, y, f = plateaus(400)
    return X, y, f, spike_slab().fit(X, y)


def test_plateaus_are_found_and_covered_in_any_units(fitted):
    X, _, f, model = fitted
    mean, std = model.predict_function(X)
    away = np.abs(f - np.roll(f, 1)) < 1  # next to a jump, the side is unknown
    assert np.sqrt(np.mean((mean - f)[away] ** 2)) < 0.3 * 0.15
    assert np.mean(np.abs(mean - f) < 2 * std) > 0.9
    assert_allclose(model.noise_variance_, 0.15**2, rtol=0.3)
    assert model.prior_variances_.shape == (model.n_features_out_,)
    assert model.fit_report_.statistics == "windows"
    assert model.fit_report_.solver.startswith("Gibbs sampler in windows: ")
    assert model.fit_report_.beats_trivial
    assert model.length_scales_.shape[0] == 0


def test_predictions_agree_with_their_covariance_and_their_samples(fitted):
    model = copy.copy(fitted[-1])
    model.model_ = model.model_.base  # the posterior itself
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
    other = spike_slab(random_state=1).fit(X[:100], y[:100])
    with pytest.raises(IncompatibleModelsError, match="different atoms"):
        merged.merge(other)


def test_in_gaps_and_beyond_the_ends_the_variance_reverts_to_that_of_the_signal():
    X, y, _ = plateaus(600, 1)
    hole = (X[:, 0] > 104) & (X[:, 0] < 106)
    X, y = X[~hole], y[~hole]
    model = spike_slab().fit(X, y)
    far = np.array([[105.0], [90.0], [120.0]])
    with pytest.warns(NoAtomsNearbyWarning):
        _, std = model.predict(far, return_std=True)
    assert (std > np.sqrt(y.var() - 0.15**2)).all()
    assert_allclose(model.support(far), 0.0, atol=1e-3)
    assert_allclose(model.support(X), 1.0)
    bare = spike_slab(calibration=None).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (bare.predict(far, return_std=True)[1] <= std).all()
    assert_array_equal(bare.support(far), 1.0)


def test_outputs_have_their_own_atoms():
    X, y, _ = plateaus(200, 2)
    Y = np.column_stack([y, -4.0 * X[:, 0]])
    model = spike_slab().fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (200, 2)
    assert np.sqrt(np.mean((mean[:, 1] - Y[:, 1]) ** 2)) < 0.05 * Y[:, 1].std()
    assert model.prior_variances_.shape == (model.n_features_out_, 2)
    assert ((model.prior_variances_ > 0).sum(axis=1) == 1).all()
    assert model.sample_y(X[:3], 5).shape == (3, 2, 5)
    assert model.predict(X[:3], return_cov=True)[1].shape == (3, 3, 2)


def test_parameters_that_do_not_apply_are_refused():
    X, y, _ = plateaus(60)
    for bad, match in [
        ({"n_components": 50}, "finds the number of its atoms"),
        ({"noise": "heteroscedastic"}, "constant noise"),
        ({"solver": "multifrontal"}, "leave the solver out"),
    ]:
        with pytest.raises(ValueError, match=match):
            RWFRegressor(prior="spike_slab", **bad).fit(X, y)
    with pytest.raises(ValueError, match=r"up to 1 input column\(s\), and X has 2"):
        RWFRegressor(prior="spike_slab").fit(np.hstack([X, X]), y)
    model = spike_slab().fit(X, y)
    assert not hasattr(model, "log_marginal_likelihood_value_")
    with pytest.raises(AttributeError, match="held-out rows"):
        model.log_marginal_likelihood()


def test_auto_chooses_spike_and_slab_for_plateaus(short):
    X, y, _ = plateaus(500, 3)
    model = RWFRegressor(max_iter=10, n_restarts=0, random_state=0).fit(X, y)
    held_out = {s.name: s.held_out for s in model.fit_report_.trials}
    assert any(
        s.chosen and s.name.startswith("prior 'spike_slab'") for s in model.fit_report_.trials
    )
    # The lattice leads first; others do not start once nothing is to be won.
    assert held_out["prior 'multiscale, multifrontal'"] < max(held_out.values())


def test_auto_skips_spike_and_slab_for_signals_that_are_not_sparse(short):
    rng = np.random.default_rng(0)
    X = np.arange(400.0)[:, None]
    y = np.cumsum(rng.normal(size=400))  # a step at every row
    model = RWFRegressor(max_iter=10, n_restarts=0, random_state=0).fit(X, y)
    names = {s.name.split("'")[1] for s in model.fit_report_.trials if "'" in s.name}
    assert "spike_slab" not in names
    assert {"nystrom", "multiscale, multifrontal"} <= names
