"""The spike-and-slab fit: predictions follow from moments and draws, in any units, on any data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from rwf.data.rows import Block, distinct
from rwf.datasets import SIX_PLATEAUS, multi_step
from rwf.features import FourierFamily, LinearFamily, Stack
from rwf.inference.spike_slab import Schedule, Smooth, fit_spike_slab
from rwf.inference.spike_slab.chain import Chain, Task
from rwf.inference.spike_slab.dense import DensePart
from rwf.inference.spike_slab.fit import agree, gather, score
from rwf.inference.spike_slab.mixture import Mixture
from rwf.inference.spike_slab.spread import neighbour_noise

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=12)


def bumpy(n, seed, noise=0.2):
    """A jump and a narrow bump on a line, at uneven inputs around five."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(4.0, 6.0, n)
    f = 3.0 + x + 2.0 * (x > 4.7) + 1.5 * np.exp(-(((x - 5.4) / 0.05) ** 2))
    return Block(x[:, None], (f + noise * rng.normal(size=n))[:, None], np.ones(n)), f


def fitted(rows, seed=0, **options):
    return fit_spike_slab(rows, np.random.default_rng(seed), **{"schedule": SHORT, **options})


def predicted(fit, rows, X):
    return fit.posterior(fit.collect(rows)).predict(fit.features(X))


def smooth_part(x, n=40, seed=0):
    rng = np.random.default_rng(seed)
    features = Stack(
        tuple(f.draw(n, x[:, None], rng) for f in (FourierFamily("se", 0.05), LinearFamily()))
    )
    return Smooth(features, np.where(features.groups == 0, 2.0, 0.5), features.groups)


@pytest.fixture(scope="module")
def case():
    rows, f = bumpy(300, 1)
    return rows, f, fitted(rows)


def test_jump_and_bump_are_found_and_covered(case):
    rows, f, fit = case
    p = predicted(fit, rows, rows.X)
    error = np.sqrt(np.mean((p.mean - f) ** 2))
    assert error < 0.1  # the noise is 0.2
    deviation = np.sqrt(p.variance - fit.posterior(fit.collect(rows)).noise_variance)
    assert np.mean(np.abs(p.mean - f) < 1.96 * deviation) > 0.85
    assert 0.17 < np.mean(fit.report.noise_deviations) < 0.23


def test_the_report_counts_what_was_done(case):
    _, _, fit = case
    report = fit.report
    assert report.dictionaries == 4
    assert report.sweeps == 24
    assert len(report.noise_deviations) == len(report.scores) == 2
    assert len(fit.draws) == 12
    assert report.active == np.mean([len(draw.atoms) for draw in fit.draws])


def test_the_same_seed_gives_the_same_fit_whatever_the_number_of_threads(case, monkeypatch):
    rows, _, fit = case
    monkeypatch.setattr("rwf.linalg.threads.cores", lambda: 1)
    again = fitted(rows)
    assert_array_equal(again.features(rows.X), fit.features(rows.X))
    assert_array_equal(predicted(again, rows, rows.X).mean, predicted(fit, rows, rows.X).mean)
    assert again.report == fit.report
    other = fitted(rows, seed=1)
    assert other.features.n_features != fit.features.n_features


def test_predictions_from_moments_equal_those_of_the_sampler_itself():
    """While sampling, the constant is integrated out; from moments, it is a column."""
    rows, _ = bumpy(150, 2)
    smooth = smooth_part(np.sort(rows.X[:, 0]))
    for part in (None, smooth):
        task = Task.of(rows, part)
        chain = Chain(task, np.random.default_rng(4))
        chain.burn_in(1, 4)
        pool, sampler = chain.redraw(0)
        sampler.sweep(1.0)
        cheap = chain.remember(pool, sampler)
        A, k = sampler.active, len(sampler.active)
        features, draws = gather([cheap], task)
        mixture = Mixture(draws, fit_moments(features, task.rows))
        # The union of atoms is in another order than the active set.
        columns = {tuple(row) for row in features(task.rows.X)[:, :k].T}
        Z = pool.dictionary.take(A)(task.rows.X)
        assert columns == {tuple(row) for row in Z.T}
        (component,) = mixture.components
        S = component.weight_covariance()[:k, :k]
        order = [int(np.flatnonzero((z == features(task.rows.X)[:, :k].T).all(1))[0]) for z in Z.T]
        place = np.array([int(np.flatnonzero(draws[0].atoms == j)[0]) for j in order])
        scale = np.abs(sampler.state.mean[:k]).max()
        assert_allclose(component.mean[place], sampler.state.mean[:k], atol=1e-6 * scale)
        Sigma = sampler.state.Sigma[:k, :k]
        assert_allclose(S[np.ix_(place, place)], Sigma, atol=1e-6 * Sigma.max())


def fit_moments(features, rows):
    from rwf.inference.moments import accumulate

    return accumulate(features, [rows], 1)


def test_a_mixture_averages_its_draws(case):
    rows, _, fit = case
    X = np.linspace(3.9, 6.1, 50)[:, None]
    moments, Z = fit.collect(rows), fit.features(X)
    p = fit.posterior(moments).predict(Z)
    each = [Mixture((draw,), moments).predict(Z) for draw in fit.draws]
    means = np.stack([q.mean for q in each])
    assert_allclose(p.mean, means.mean(axis=0), rtol=1e-10)
    spread = np.mean([q.variance for q in each], axis=0) + means.var(axis=0)
    assert_allclose(p.variance, spread, rtol=1e-9)
    posterior = fit.posterior(moments)
    assert_allclose(Z @ posterior.mean, p.mean, rtol=1e-9)
    C = posterior.covariance(Z)
    assert_allclose(C.diagonal() + posterior.noise_variance, p.variance, rtol=1e-9)


def test_drawn_functions_have_the_mean_and_covariance_of_the_mixture(case, rng):
    rows, _, fit = case
    posterior = fit.posterior(fit.collect(rows))
    Z, count = fit.features(np.array([[4.2], [4.71], [5.4]])), 20_000
    F = Z @ posterior.sample_weights(count, rng)
    C = posterior.covariance(Z)
    error = np.sqrt(C.diagonal() / count)
    assert (np.abs(F.mean(axis=1) - Z @ posterior.mean) < 5 * error).all()
    assert_allclose(np.cov(F), C, rtol=0, atol=10 * C.max() / np.sqrt(count))


def test_any_split_of_rows_gives_the_same_predictions(case):
    rows, _, fit = case
    cuts = [slice(0, 70), slice(70, 71), slice(71, 300)]
    parts = [fit.collect(Block(rows.X[c], rows.y[c], rows.weights[c])) for c in cuts]
    X = np.linspace(3.9, 6.1, 50)[:, None]
    whole = predicted(fit, rows, X)
    split = fit.posterior(parts[2] + parts[0] + parts[1]).predict(fit.features(X))
    assert_allclose(split.mean, whole.mean, rtol=1e-8)
    assert_allclose(split.variance, whole.variance, rtol=1e-8)


def test_rows_that_come_later_sharpen_the_prediction(case):
    rows, _, fit = case
    more, _ = bumpy(3000, 5)
    X = np.linspace(4.1, 5.9, 80)[:, None]
    truth = 3 + X[:, 0] + 2 * (X[:, 0] > 4.7) + 1.5 * np.exp(-(((X[:, 0] - 5.4) / 0.05) ** 2))
    moments = fit.collect(rows)
    before = fit.posterior(moments).predict(fit.features(X))
    after = fit.posterior(moments + fit.collect(more)).predict(fit.features(X))
    assert np.mean(after.variance) < np.mean(before.variance)
    assert np.mean((after.mean - truth) ** 2) < np.mean((before.mean - truth) ** 2)


def test_the_order_of_rows_and_repeats_instead_of_weights_do_not_matter(rng):
    rows, _ = bumpy(120, 3)
    counts = rng.integers(1, 4, 120)
    weighted = replace(rows, weights=counts.astype(float))
    again = rng.permutation(np.repeat(np.arange(120), counts))
    repeated = Block(rows.X[again], rows.y[again], np.ones(len(again)))
    a, b = fitted(weighted), fitted(repeated)
    p, q = predicted(a, weighted, rows.X), predicted(b, repeated, rows.X)
    assert_allclose(p.mean, q.mean, rtol=1e-7)
    assert_allclose(p.variance, q.variance, rtol=1e-6)


@pytest.mark.parametrize("smooth", [False, True])
def test_units_of_inputs_and_targets_do_not_matter(smooth):
    """Powers of two, so that not even rounding differs; then others, up to rounding."""
    rows, _ = bumpy(120, 4)
    part = smooth_part(rows.X[:, 0]) if smooth else None
    p = predicted(fitted(rows, smooth=part), rows, rows.X)
    for scale, shift in [(4.0, 0.0), (1e3, -2e4)]:
        other = Block(rows.X, scale * rows.y + shift, rows.weights)
        own = (
            None if part is None else replace(part, prior_variances=scale**2 * part.prior_variances)
        )
        q = predicted(fitted(other, smooth=own), other, rows.X)
        if shift == 0:
            assert_allclose(q.mean, scale * p.mean, rtol=1e-9)
            assert_allclose(q.variance, scale**2 * p.variance, rtol=1e-9)
        else:  # rounding changes one move, and all that follow
            error = np.abs(q.mean - scale * p.mean - shift) / (scale * np.sqrt(p.variance))
            assert np.median(error) < 0.5
    if not smooth:
        far = Block(8.0 * rows.X - 64.0, rows.y, rows.weights)
        q = predicted(fitted(far), far, far.X)
        assert_allclose(q.mean, p.mean, rtol=1e-7)


def test_leaving_a_row_out_is_a_posterior_without_it(case):
    """Each draw's Gaussian is exact, and its share falls with what it gave to the row's copies."""
    rows, _, fit = case
    rows = replace(rows, weights=1.0 + np.arange(300) % 3)
    posterior, Z = fit.posterior(fit.collect(rows)), fit.features(rows.X)
    p = posterior.leave_one_out(Z, rows.y[:, 0], rows.weights)
    for i in (0, 17, 151):
        others, v = np.arange(300) != i, int(rows.weights[i])
        without = fit.collect(Block(rows.X[others], rows.y[others], rows.weights[others]))
        parts = [Mixture((draw,), without).predict(Z[[i]]) for draw in fit.draws]
        means = np.array([q.mean[0] for q in parts])
        variances = np.array([q.variance[0] for q in parts])
        shares = np.empty(len(parts))
        for k, draw in enumerate(fit.draws):
            noise = draw.noise_variance
            C = noise * np.eye(v) + (variances[k] - noise) * np.ones((v, v))
            copies = np.full(v, rows.y[i, 0])
            shares[k] = 1 / multivariate_normal(np.full(v, means[k]), C).pdf(copies)
        shares /= shares.sum()
        mean = shares @ means
        assert_allclose(p.mean[i], mean, rtol=1e-8)
        assert_allclose(p.variance[i], shares @ (variances + (means - mean) ** 2), rtol=1e-7)


def test_a_smooth_part_spares_atoms_and_errors():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, 300))
    smooth = smooth_part(x, 100)
    wave = smooth.features(x[:, None]) @ rng.normal(size=len(smooth.groups))
    jump = 2.0 * (x > 0.43)
    rows = Block(x[:, None], (wave + jump + 0.02 * rng.normal(size=300))[:, None], np.ones(300))
    plain, both = fitted(rows, seed=1), fitted(rows, seed=1, smooth=smooth)
    assert both.report.active < 0.7 * plain.report.active
    errors = [
        np.sqrt(np.mean((predicted(fit, rows, rows.X).mean - wave - jump) ** 2))
        for fit in (plain, both)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_retuning_finds_the_ratio_of_highest_evidence(rng):
    rows, _ = bumpy(100, 6)
    dense = DensePart.of(smooth_part(rows.X[:, 0]), 0.05)
    chain = Chain(Task.of(rows, None), rng)
    chain.burn_in(1, 2)
    atoms, variances = chain.state.atoms, chain.state.variances
    fits = dense.with_best_ratios(rows, atoms, variances, 0.05)
    assert_allclose(fits.ratios[0], dense.ratios[0])
    factor = fits.ratios / dense.ratios
    assert len(np.unique(np.round(factor, 8))) == 3

    def best_evidence(ratios):
        """The highest log density of y over σ², by definition."""
        Z, Zd = atoms(rows.X), dense.features(rows.X)
        values = []
        for noise in np.exp(np.linspace(-6, 0, 61)):
            C = noise * (np.eye(100) + (Zd * ratios) @ Zd.T) + (Z * variances) @ Z.T
            y = rows.y[:, 0]
            values.append(-0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(C)[1]))
        return max(values)

    top = best_evidence(fits.ratios)
    for group in (1, 2):
        for nudge in (0.5, 2.0):
            other = np.where(dense.groups == group, nudge, 1.0) * fits.ratios
            assert best_evidence(other) < top + 0.05


def test_chains_that_disagree_go_on_and_say_so(monkeypatch):
    assert agree([1.0, 1.01], [-1.0, -1.01], 1e4)
    assert not agree([1.0, 1.2], [-1.0, -1.0], 1e4)
    assert not agree([1.0, 1.0], [-1.0, -1.2], 1e4)
    rows, _ = bumpy(60, 7)
    monkeypatch.setattr("rwf.inference.spike_slab.fit.agree", lambda *_: False)
    fit = fitted(rows, schedule=replace(SHORT, attempts=3))
    assert not fit.report.converged
    assert fit.report.dictionaries == 2 + 3 * 2
    assert len(fit.draws) == 12


def test_chains_go_on_from_the_states_of_a_fit_to_some_of_the_rows(case):
    rows, f, _ = case
    some = rows.part(np.arange(len(rows)) % 3 > 0)
    first = fitted(some, schedule=replace(SHORT, burn_in=6))
    states = first.last_states
    assert [len(s.variances) for s in states] == [len(first.draws[i].atoms) for i in (5, 11)]
    assert states[1].noise_variance == first.draws[11].noise_variance
    chain = Chain(Task.of(rows, None), np.random.default_rng(0), states[1])
    pool, sampler = chain.redraw(0)
    assert_array_equal(
        np.sort(pool.dictionary.take(pool.active).shifts), np.sort(states[1].atoms.shifts)
    )
    assert sampler.levels.noise_variance == states[1].noise_variance
    chain.burn_in(6, 6)
    assert chain.dictionaries < 4  # there was little left to find
    again = fitted(rows, start=states, schedule=replace(SHORT, burn_in=1, keeping=1))
    assert again.report.dictionaries == 2
    assert np.sqrt(np.mean((predicted(again, rows, rows.X).mean - f) ** 2)) < 0.08


def test_burn_in_ends_when_the_noise_falls_no_more():
    rows, _ = bumpy(200, 9)
    chain = Chain(Task.of(rows, None), np.random.default_rng(0))
    chain.burn_in(50, 6)
    assert 2 <= chain.dictionaries < 20


def test_a_single_chain_is_compared_with_itself_and_few_draws_are_possible():
    rows, _ = bumpy(60, 8)
    fit = fitted(rows, schedule=replace(SHORT, chains=1))
    assert len(fit.report.scores) == 2
    fit = fitted(rows, schedule=replace(SHORT, chains=1, draws=1))
    assert len(fit.draws) == 2


def test_the_score_is_the_log_density_of_rows_left_out(case):
    rows, _, _ = case
    task = Task.of(rows, None)
    chain = Chain(task, np.random.default_rng(0))
    chain.burn_in(1, 5)
    value = score(chain.keep(1, 5, 1), task)
    best = -0.5 * np.log(2 * np.pi * 0.04) - 0.5
    assert best - 0.2 < value < best + 0.1


# ------------------------------------------------------------------------------------- odd inputs


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_few_rows(n):
    rows, _ = bumpy(n, n)
    p = predicted(fitted(rows), rows, np.linspace(3, 7, 20)[:, None])
    assert np.isfinite(p.mean).all()
    assert (p.variance > 0).all()


def test_constant_targets():
    x = np.linspace(2, 3, 30)[:, None]
    for level in (0.0, 3.3, -1e6):
        rows = Block(x, np.full((30, 1), level), np.ones(30))
        p = predicted(fitted(rows), rows, x)
        assert_allclose(p.mean, level, atol=1e-3 * max(abs(level), 1.0))
        assert (p.variance > 0).all()


def test_inputs_that_are_all_equal(rng):
    rows = Block(np.full((20, 1), 7.0), rng.normal(3, 2, (20, 1)), np.ones(20))
    fit = fitted(rows)
    assert fit.report.active == 0
    p = predicted(fit, rows, np.array([[6.0], [7.0], [8.0]]))
    assert_allclose(p.mean, rows.y.mean(), rtol=1e-6)
    assert_allclose(p.variance, rows.y.var(), rtol=0.6)


def test_repeated_inputs_and_long_gaps(rng):
    x = np.concatenate([np.repeat(np.arange(20.0), 5), [1e6, 1e6 + 1]])
    y = 2.0 * (x > 9.5) + 0.1 * rng.normal(size=len(x))
    rows = Block(x[:, None], y[:, None], np.ones(len(x)))
    p = predicted(fitted(rows), rows, rows.X)
    assert np.sqrt(np.mean((p.mean - 2.0 * (x > 9.5)) ** 2)) < 0.1


def test_rows_without_noise():
    x = np.linspace(0, 1, 64)
    rows = Block(x[:, None], np.where(x > 0.4, 1.0, 0.0)[:, None], np.ones(64))
    p = predicted(fitted(rows), rows, rows.X)
    assert_allclose(p.mean, rows.y[:, 0], atol=0.02)
    assert np.sqrt(p.variance).max() < 0.1


@pytest.mark.parametrize(
    "X, y, match",
    [
        (np.zeros((5, 2)), np.zeros((5, 1)), "one input"),
        (np.zeros((5, 1)), np.zeros((5, 2)), "one output"),
        (np.zeros((1, 1)), np.zeros((1, 1)), "two rows"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_advice(X, y, match):
    with pytest.raises(ValueError, match=match):
        fitted(Block(X, y, np.ones(len(X))))


@pytest.mark.parametrize("repeats", [1, 7])
def test_noise_from_neighbours_knows_weights_and_repeated_inputs(repeats, rng):
    n = 20_000
    x, v = np.sort(np.arange(n) // repeats).astype(float), rng.uniform(0.2, 5.0, n)
    y = 3.0 + 0.5 * rng.normal(size=n) / np.sqrt(v)
    rows = distinct(Block(x[:, None], y[:, None], v))
    # Sums of squares of neighbours' differences vary by √(3/n), others by less.
    assert_allclose(neighbour_noise(rows), 0.25, rtol=5 * np.sqrt(3 / n))


def test_six_plateaus():
    sample = multi_step(700, np.random.default_rng(0), 0.05, SIX_PLATEAUS)
    rows = Block(sample.X, sample.y[:, None], np.ones(700))
    fit = fitted(rows, schedule=replace(SHORT, burn_in=3))
    assert 5 <= fit.report.active < 12
    p = predicted(fit, rows, rows.X)
    assert np.sqrt(np.mean((p.mean - sample.f) ** 2)) < 0.02
