"""The sampler is exact: updates equal fresh factors, frequencies equal enumerated posteriors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import beta, invgamma, kstest, multivariate_normal

from rwf.inference.spike_slab._atoms import Runs
from rwf.inference.spike_slab._moves import birth, birth_death, death, relocate
from rwf.inference.spike_slab.columns import CompressedColumns
from rwf.inference.spike_slab.reduction import EffectiveMoments
from rwf.inference.spike_slab.sampler import SCARCITY, Levels, Sampler, VariancePrior

PRIOR = VariancePrior(slab=0.7, noise=0.02)


def problem(n, m, seed, n_blocks=3, noise=0.3):
    """Correlated columns, of which the first two are in y, and levels that differ by block."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, m)) + 1.5 * rng.normal(size=(n, 1))
    w = np.zeros(m)
    w[:2] = [1.0, -0.8][: min(m, 2)]
    y = Z @ w + noise * rng.normal(size=n)
    levels = Levels(noise**2, rng.uniform(0.5, 2.0, n_blocks), rng.uniform(0.05, 0.6, n_blocks))
    return Z, y, rng.integers(n_blocks, size=m), levels, rng


def sampler_of(Z, y, blocks, levels, rng, active=()):
    n, m = Z.shape
    first, sizes = np.zeros(m, dtype=np.intp), np.full(m, n)
    gaps = np.zeros(0, dtype=np.intp)
    values, sums = Z.T.ravel().copy(), np.cumsum(Z.T, axis=1).ravel()
    runs = Runs(first, sizes, np.arange(m) * n, values, sums, gaps, np.ones(n))
    moments = EffectiveMoments(
        CompressedColumns(runs), np.zeros((1, m)), Z.T @ y, float(y @ y), float(n)
    )
    active = np.array(active, dtype=np.intp)
    return Sampler(moments, blocks, PRIOR, levels, active, rng)


def statistics(sampler):
    k, state = len(sampler.active), sampler.state
    return [state.Sigma[:k, :k].copy(), state.mean[:k].copy(), state.S.copy(), state.Q.copy()]


def close(found, expected, tolerance):
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=1e-300))


@given(st.integers(2, 40), st.integers(1, 25), st.integers(0, 10**6))
def test_hundreds_of_updates_equal_a_fresh_factor(n, m, seed):
    Z, y, blocks, levels, rng = problem(n, m, seed)
    sampler = sampler_of(Z, y, blocks, levels, rng)
    v, e = np.empty(m), np.empty(m)
    for _ in range(300):
        j = int(rng.integers(m))
        if sampler.state.place[j] < 0:
            birth(sampler.state, sampler.terms, j, v, e)
        else:
            death(sampler.state, sampler.terms, sampler.state.place[j], v, e)
        relocate(sampler.state, sampler.terms, 1, rng)
    A = sampler.active
    assert (sampler.state.place[A] == np.arange(len(A))).all()
    assert (sampler.state.place >= 0).sum() == len(A)
    updated = statistics(sampler)
    sampler.rebuild()
    close(updated, statistics(sampler), 1e-8)


@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 10**6))
def test_a_fresh_state_is_its_definition(n, m, seed):
    Z, y, blocks, levels, rng = problem(n, m, seed)
    active = np.flatnonzero(rng.random(m) < 0.4)
    sampler = sampler_of(Z, y, blocks, levels, rng, active)
    beta_, alpha, ZA = 1 / levels.noise_variance, 1 / levels.slabs[blocks], Z[:, active]
    C = np.linalg.inv(np.eye(n) / beta_ + (ZA / alpha[active]) @ ZA.T)  # precision of y
    Sigma, mean, S, Q = statistics(sampler)
    assert_allclose(np.linalg.inv(Sigma), beta_ * ZA.T @ ZA + np.diag(alpha[active]), rtol=1e-6)
    assert_allclose(mean, beta_ * Sigma @ ZA.T @ y, rtol=1e-7, atol=1e-9)
    assert_allclose(S, np.einsum("nj,nk,kj->j", Z, C, Z), rtol=1e-7, atol=1e-7)
    assert_allclose(Q, Z.T @ C @ y, rtol=1e-7, atol=1e-7)


def enumerated(Z, y, blocks, levels, sizes):
    """p(A | y) of all sets of the given sizes, by the density of y; as rows of a 0/1 table."""
    n, m = Z.shape
    table = [A for A in itertools.product([0, 1], repeat=m) if sum(A) in sizes]
    log_p = []
    for A in table:
        used = np.flatnonzero(A)
        ZA = Z[:, used]
        cov = levels.noise_variance * np.eye(n) + (ZA * levels.slabs[blocks[used]]) @ ZA.T
        prior = np.log(levels.odds[blocks[used]]).sum()
        log_p.append(prior + multivariate_normal(np.zeros(n), cov).logpdf(y))
    p = np.exp(np.array(log_p) - max(log_p))
    return np.array(table), p / p.sum()


def assert_frequencies(draws, table, p, batches=40):
    """Inclusion and pair frequencies agree with the posterior, to five standard errors."""
    m = table.shape[1]
    pairs = [(i, j) for i in range(m) for j in range(i + 1)]
    for i, j in pairs:
        exact = float(p @ (table[:, i] * table[:, j]))
        means = (draws[:, i] * draws[:, j]).reshape(batches, -1).mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(batches)
        # A pair that was never seen has no spread: it may be as rare as three in all draws.
        assert abs(means.mean() - exact) < 5 * error + 3 / len(draws), f"atoms {i} and {j}"


@pytest.mark.parametrize("seed", [0, 1])
def test_births_and_deaths_visit_sets_as_often_as_they_are_likely(seed):
    Z, y, blocks, levels, rng = problem(12, 7, seed, noise=0.9)
    table, p = enumerated(Z, y, blocks, levels, range(8))
    assert (p @ table < 0.98).all()
    sampler = sampler_of(Z, y, blocks, levels, rng)
    draws = np.zeros((40_000, 7))
    for draw in draws:
        birth_death(sampler.state, sampler.terms, 1.5, rng)
        draw[sampler.active] = 1
    assert_frequencies(draws, table, p)


@pytest.mark.parametrize("seed, size", [(0, 2), (1, 3)])
def test_relocations_visit_sets_of_their_size_as_often_as_they_are_likely(seed, size):
    Z, y, blocks, levels, rng = problem(12, 7, seed, noise=0.9)
    table, p = enumerated(Z, y, blocks, levels, [size])
    sampler = sampler_of(Z, y, blocks, levels, rng, np.arange(size))
    draws = np.zeros((20_000, 7))
    for draw in draws:
        assert relocate(sampler.state, sampler.terms, 2, rng) <= 2
        draw[sampler.active] = 1
    assert_frequencies(draws, table, p)


def test_a_full_active_set_admits_no_birth(rng):
    Z, y, blocks, levels, _ = problem(12, 7, 0)
    sampler = sampler_of(Z, y, blocks, levels, rng, [0, 1, 2])
    state = sampler.state
    sampler.state = state._replace(
        active=state.active[:3].copy(), Sigma=state.Sigma[:3, :3].copy(), mean=state.mean[:3]
    )
    for _ in range(50):
        birth_death(sampler.state, sampler.terms, 5.0, rng)
        sampler.grow()
        assert len(sampler.active) <= 3


def test_growth_ends_where_no_birth_gains(rng):
    Z, y, blocks, levels, _ = problem(60, 20, 3)
    sampler = sampler_of(Z, y, blocks, levels, rng)
    sampler.grow()
    assert {0, 1} <= set(sampler.active)
    S, Q, alpha = sampler.state.S, sampler.state.Q, sampler.terms.precisions
    odds = sampler.terms.odds * np.sqrt(alpha / (alpha + S)) * np.exp(0.5 * Q**2 / (alpha + S))
    assert (odds[sampler.state.place < 0] <= 1).all()


def test_hyperparameters_follow_their_conditionals(rng):
    """Without active atoms all conditionals are known; with some, those of π are."""
    Z, y, blocks, levels, _ = problem(30, 9, 1)
    drawn = [sampler_of(Z, y, blocks, levels, rng).draw_levels() for _ in range(400)]
    noise = invgamma(1 + 15, scale=PRIOR.noise + 0.5 * y @ y)
    assert kstest([d.noise_variance for d in drawn], noise.cdf).pvalue > 1e-4
    assert kstest([d.slabs[1] for d in drawn], invgamma(1, scale=PRIOR.slab).cdf).pvalue > 1e-4
    active = np.flatnonzero(blocks == 1)[:2]
    others = (blocks == 1).sum() - len(active)
    sampler = sampler_of(Z, y, blocks, levels, rng, active)
    odds = np.array([sampler.draw_levels().odds[1] for _ in range(400)])
    share = beta(0.5 + len(active), 0.5 + others + SCARCITY * (blocks == 1).sum())
    assert kstest(odds / (1 + odds), share.cdf).pvalue > 1e-4


def test_weights_and_variances_agree_with_a_long_gibbs_sampler(rng):
    """σ² and τ given the active set, integrated over w by Gibbs on the rows themselves."""
    Z, y, _, _, _ = problem(25, 3, 2)
    blocks = np.zeros(3, dtype=np.intp)
    sampler = sampler_of(Z, y, blocks, Levels(0.1, np.ones(1), np.ones(1)), rng, [0, 1])
    chain = []
    for _ in range(3000):
        sampler.set_levels(sampler.draw_levels())
        chain.append([sampler.levels.noise_variance, sampler.levels.slabs[0]])
    ZA, noise, slab, direct = Z[:, :2], 0.1, 1.0, []
    for _ in range(3000):
        P = ZA.T @ ZA / noise + np.eye(2) / slab
        w = rng.multivariate_normal(np.linalg.solve(P, ZA.T @ y / noise), np.linalg.inv(P))
        r = y - ZA @ w
        noise = (PRIOR.noise + 0.5 * r @ r) / rng.gamma(1 + 12.5)
        slab = (PRIOR.slab + 0.5 * w @ w) / rng.gamma(1 + 1)
        direct.append([noise, slab])
    a, b = np.log(chain), np.log(direct)
    for column in range(2):
        error = np.hypot(
            *(v[:, column].reshape(30, -1).mean(1).std() / np.sqrt(30) for v in (a, b))
        )
        assert abs(a[:, column].mean() - b[:, column].mean()) < 5 * error
        assert abs(a[:, column].std() / b[:, column].std() - 1) < 0.15
