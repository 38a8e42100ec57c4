"""Long series in windows: a partition of unity, sums of moments, and no seam."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf.data.rows import Block
from rwf.inference.spike_slab import Schedule, fit_spike_slab, fit_windows

SHORT = Schedule(chains=2, sweeps=5, burn_in=2, keeping=2, attempts=1, draws=8)


def series(n, seed):
    """Jumps on a slow wave; the noise doubles halfway."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(10.0, 12.0, n))
    f = np.sin(4 * x) + 1.0 * (x > 10.5) - 1.5 * (x > 11.3)
    noise = np.where(x < 11, 0.1, 0.2)
    return Block(x[:, None], (f + noise * rng.normal(size=n))[:, None], np.ones(n)), f


@pytest.fixture(scope="module")
def case():
    patch = pytest.MonkeyPatch()
    patch.setattr("rwf.inference.spike_slab.windows.LONGEST", 300)
    patch.setattr("rwf.inference.spike_slab.windows.LENGTH", 200)
    patch.setattr("rwf.inference.spike_slab.windows.MARGIN", 30)
    rows, f = series(600, 0)
    fit = fit_windows(rows, np.random.default_rng(0), schedule=SHORT)
    patch.undo()
    return rows, f, fit


def test_shares_are_a_smooth_partition_of_unity_inside_the_windows(case):
    rows, _, fit = case
    assert len(fit.windows) == 3
    x = np.linspace(9.0, 13.0, 4001)
    shares = np.stack([window.share(x) for window in fit.windows])
    assert_allclose(shares.sum(axis=0), 1.0, atol=1e-12)
    assert (shares >= 0).all()
    assert np.abs(np.diff(shares)).max() < 0.05
    for window, share in zip(fit.windows, shares, strict=True):
        used = x[share > 0]
        assert window.low <= used.min()
        assert used.max() <= window.high
        # Rows of the window go on beyond where it is used.
        beyond = (used.max() > rows.X) | (window.high < rows.X)
        assert beyond.all() or ((used.max() < rows.X) & (window.high >= rows.X)).sum() >= 10


def test_windows_predict_with_their_own_noise_and_cover(case):
    rows, f, fit = case
    p = fit.posterior(fit.collect(rows)).predict(rows.X)
    assert np.sqrt(np.mean((p.mean - f) ** 2)) < 0.08
    inside = np.abs(rows.y[:, 0] - p.mean) < 1.96 * np.sqrt(p.variance)
    assert 0.9 < inside.mean() < 0.99
    left, right = p.variance[rows.X[:, 0] < 10.5], p.variance[rows.X[:, 0] > 11.5]
    assert 2.5 < np.median(right) / np.median(left) < 6.0


def test_windows_that_meet_are_a_mixture(case):
    rows, _, fit = case
    moments = fit.collect(rows)
    low, high = fit.windows[0].fall
    x = np.linspace(low, high, 9)[:, None]
    p = fit.posterior(moments).predict(x)
    parts = [
        w.fit.posterior(m).predict(w.fit.features(x))
        for w, m in zip(fit.windows[:2], moments.parts[:2], strict=True)
    ]
    a, b = parts
    share = fit.windows[0].share(x[:, 0])
    assert_allclose(p.mean, share * a.mean + (1 - share) * b.mean, rtol=1e-9)
    apart = share * (1 - share) * (a.mean - b.mean) ** 2
    assert_allclose(p.variance, share * a.variance + (1 - share) * b.variance + apart, rtol=1e-9)
    assert apart.max() > 1e-9


def test_there_is_no_seam(case):
    rows, _, fit = case
    posterior = fit.posterior(fit.collect(rows))
    for window in fit.windows[:-1]:
        low, high = window.fall
        x = np.linspace(low, high, 2001)[:, None]
        p = posterior.predict(x)
        # Steps of atoms aside, which are not where the windows are.
        assert np.quantile(np.abs(np.diff(p.mean)), 0.99) < 0.01
        assert (p.variance > 0).all()


def test_any_split_of_rows_gives_the_same_predictions(case, rng):
    rows, _, fit = case
    chosen = rng.random(600) < 0.4
    parts = [fit.collect(Block(rows.X[c], rows.y[c], rows.weights[c])) for c in (chosen, ~chosen)]
    whole = fit.posterior(fit.collect(rows)).predict(rows.X)
    split = fit.posterior(parts[0] + parts[1]).predict(rows.X)
    assert_allclose(split.mean, whole.mean, rtol=1e-7, atol=1e-9)
    assert_allclose(split.variance, whole.variance, rtol=1e-7)


def test_drawn_functions_have_the_mean_of_the_posterior(case, rng):
    rows, _, fit = case
    posterior = fit.posterior(fit.collect(rows))
    X = rows.X[::50]
    F = posterior.sample(X, 4000, rng)
    p = posterior.predict(X)
    assert (np.abs(F.mean(axis=1) - p.mean) < 5 * np.sqrt(p.variance / 4000)).all()


def test_a_short_series_is_one_window_and_the_same_fit():
    rows, _ = series(120, 1)
    windowed = fit_windows(rows, np.random.default_rng(3), schedule=SHORT)
    plain = fit_spike_slab(rows, np.random.default_rng(3), schedule=SHORT)
    a = windowed.posterior(windowed.collect(rows)).predict(rows.X)
    b = plain.posterior(plain.collect(rows)).predict(plain.features(rows.X))
    assert_allclose(a.mean, b.mean, rtol=1e-12)
    assert_allclose(a.variance, b.variance, rtol=1e-12)
    assert windowed.windows[0].fit.report.converged == plain.report.converged


def test_chains_go_on_with_the_atoms_of_an_interval(case):
    _, _, fit = case
    for chain, whole in enumerate(fit.last_states(-np.inf, np.inf)):
        ends = [window.fit.last_states[chain].atoms.shifts for window in fit.windows]
        counted = [t[w.share(t) > 0.5] for w, t in zip(fit.windows, ends, strict=True)]
        assert_array_equal(whole.atoms.shifts, np.concatenate(counted))
        part = fit.last_states(10.5, 11.5)[chain]
        inside = np.abs(whole.atoms.shifts - 11.0) < 0.5
        assert 0 < inside.sum() < len(inside)
        assert_array_equal(part.atoms.shifts, whole.atoms.shifts[inside])
        assert_array_equal(part.variances, whole.variances[inside])


def test_too_many_inputs_for_one_window_are_refused_with_advice(rng):
    x = np.arange(5001.0)[:, None]
    with pytest.raises(ValueError, match="fit_windows"):
        fit_spike_slab(Block(x, x, np.ones(5001)), rng)
