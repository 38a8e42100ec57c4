r"""Compiled moves of the sampler: births, deaths and relocations as rank-one updates.

For active atoms A with slab precisions α and noise precision β, the state holds the covariance
:math:`\Sigma = (\beta G_{AA} + \operatorname{diag}\alpha)^{-1}` and the mean
:math:`m = \beta\Sigma b_A` of their weights, and for every atom what its birth would gain (Tipping
and Faul 2003):

.. math:: S_j = \beta G_{jj} - \beta^2 G_{jA}\Sigma G_{Aj}, \qquad Q_j = \beta(b_j - G_{jA}m).

With prior odds ω, the posterior odds of having an inactive atom are
:math:`\omega_j \sqrt{\alpha_j/(\alpha_j + S_j)}\, e^{Q_j^2/2(\alpha_j + S_j)}`. Those of an active
one are the same, with Σ_jj in the place of 1/(α + S) and m_j²/Σ_jj in that of Q²/(α + S).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled, exp
from rwf.inference.spike_slab._atoms import Runs, gram_row

LARGEST_EXPONENT = 600.0  # exponents are clipped here: e^±700 is the range of doubles


class Terms(NamedTuple):
    """What the moves take as given."""

    columns: Runs  # all m atoms at the rows
    H: Array  # what the dense part takes off their Gram matrix, G = ZᵀZ - HᵀH, shape (p, m)
    noise_precision: float  # β
    precisions: Array  # α of every atom, shape (m,)
    odds: Array  # ω of every atom, shape (m,)


class State(NamedTuple):
    """What the moves change. Only the first ``size`` entries of the active set count."""

    size: IntArray  # the number of active atoms, shape (1,)
    active: IntArray  # their indices, shape (capacity,)
    rows: Array  # their rows of G, shape (capacity, m)
    place: IntArray  # where an atom is among the active ones, or -1, shape (m,)
    Sigma: Array  # Σ, shape (capacity, capacity)
    mean: Array  # m, shape (capacity,)
    S: Array  # shape (m,)
    Q: Array  # shape (m,)


@compiled
def _combine(rows: Array, v: Array, size: int, out: Array) -> None:
    """out -= Σ_a v_a rows_a, four rows at a time."""
    m = len(out)
    whole = size - size % 4
    for a in range(0, whole, 4):
        g0, g1, g2, g3 = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        v0, v1, v2, v3 = v[a], v[a + 1], v[a + 2], v[a + 3]
        for i in range(m):
            out[i] -= (v0 * g0[i] + v1 * g1[i]) + (v2 * g2[i] + v3 * g3[i])
    for a in range(whole, size):
        g0, v0 = rows[a], v[a]
        for i in range(m):
            out[i] -= v0 * g0[i]


@compiled
def fill_row(terms: Terms, j: int, row: Array) -> None:
    """Row j of G."""
    gram_row(terms.columns, j, np.empty(len(terms.columns.root) + 1), row)
    _combine(terms.H, np.ascontiguousarray(terms.H[:, j]), len(terms.H), row)


@compiled
def birth(state: State, terms: Terms, j: int, v: Array, e: Array) -> None:
    """Activate atom j; v and e are buffers of the lengths of the active set and of all atoms."""
    k, beta = state.size[0], terms.noise_precision
    row, active, Sigma = state.rows[k], state.active, state.Sigma
    fill_row(terms, j, row)
    for a in range(k):
        total = 0.0
        for c in range(k):
            total += Sigma[a, c] * row[active[c]]
        v[a] = beta * total
    for i in range(len(e)):
        e[i] = row[i]
    _combine(state.rows, v, k, e)
    kappa, q = 1.0 / (terms.precisions[j] + max(state.S[j], 0.0)), state.Q[j]
    for i in range(len(e)):
        rise = beta * e[i]
        state.S[i] -= kappa * rise * rise
        state.Q[i] -= kappa * q * rise
    for a in range(k):
        for c in range(k):
            Sigma[a, c] += kappa * v[a] * v[c]
        Sigma[a, k] = Sigma[k, a] = -kappa * v[a]
        state.mean[a] -= kappa * q * v[a]
    Sigma[k, k], state.mean[k] = kappa, kappa * q
    active[k], state.place[j] = j, k
    state.size[0] = k + 1


@compiled
def _influence(state: State, a: int, v: Array, e: Array) -> None:
    """v = Σ_a and e = -G_A v: what the a-th active atom has to do with all others."""
    k = state.size[0]
    for c in range(k):
        v[c] = state.Sigma[a, c]
    e[:] = 0.0
    _combine(state.rows, v, k, e)


@compiled
def _remove(state: State, terms: Terms, a: int, v: Array, e: Array) -> None:
    """Deactivate the a-th active atom, given its influence; the last one takes its place."""
    last, Sigma, mean = state.size[0] - 1, state.Sigma, state.mean
    inverse, weight = 1.0 / v[a], mean[a] / v[a]
    for i in range(len(e)):
        fall = terms.noise_precision * e[i]
        state.S[i] += inverse * fall * fall
        state.Q[i] -= weight * fall
    for c in range(last + 1):
        mean[c] -= weight * v[c]
        for d in range(last + 1):
            Sigma[c, d] -= inverse * v[c] * v[d]
    state.place[state.active[a]] = -1
    if a != last:
        for c in range(last + 1):
            Sigma[a, c] = Sigma[last, c]
        for c in range(last + 1):
            Sigma[c, a] = Sigma[c, last]
        mean[a], state.active[a] = mean[last], state.active[last]
        for i in range(len(e)):
            state.rows[a, i] = state.rows[last, i]
        state.place[state.active[a]] = a
    state.size[0] = last


@compiled
def death(state: State, terms: Terms, a: int, v: Array, e: Array) -> None:
    """Deactivate the a-th active atom."""
    _influence(state, a, v, e)
    _remove(state, terms, a, v, e)


@compiled
def _chosen(weights: Array, target: float) -> int:
    """The index at which the sum of weights reaches the target; its weight is positive."""
    total, last = 0.0, -1
    for i in range(len(weights)):
        if weights[i] > 0.0:
            total += weights[i]
            last = i
            if total >= target:
                break
    return last


@compiled
def _sum(weights: Array) -> float:
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    return total


@compiled
def _flip_rates(state: State, terms: Terms, rates: Array) -> float:
    """The rate min(1, odds of the flip) of every atom, and their sum."""
    k, full = state.size[0], state.size[0] == len(state.active)
    for i in range(len(rates)):
        alpha = terms.precisions[i]
        kappa = 1.0 / (alpha + max(state.S[i], 0.0))
        gain = min(0.5 * state.Q[i] * state.Q[i] * kappa, LARGEST_EXPONENT)
        rates[i] = min(terms.odds[i] * np.sqrt(alpha * kappa) / exp(-gain), 1.0)
    if full:
        rates[:] = 0.0
    for a in range(k):
        i, variance = state.active[a], state.Sigma[a, a]
        gain = min(0.5 * state.mean[a] * state.mean[a] / variance, LARGEST_EXPONENT)
        odds = terms.odds[i] * np.sqrt(terms.precisions[i] * variance)
        rates[i] = min(exp(-gain) / odds, 1.0)
    total: float = _sum(rates)
    return total


@compiled
def birth_death(state: State, terms: Terms, duration: float, rng: np.random.Generator) -> int:
    """Births and deaths in continuous time, without rejections; how many there were.

    Every atom flips at the rate min(1, posterior odds of the flip): detailed balance holds.
    """
    v, e, rates = np.empty(len(state.active)), np.empty(len(state.S)), np.empty(len(state.S))
    time, events = 0.0, 0
    while True:
        total = _flip_rates(state, terms, rates)
        if total <= 0.0:
            return events
        time += rng.standard_exponential() / total
        if time > duration:
            return events
        j = _chosen(rates, rng.random() * total)
        if state.place[j] < 0:
            birth(state, terms, j, v, e)
        else:
            death(state, terms, state.place[j], v, e)
        events += 1


@compiled
def _birth_weights(state: State, terms: Terms, S: Array, Q: Array, weights: Array) -> float:
    """Odds of a birth of every atom, up to a common factor e^-top, and that top exponent."""
    top = 0.0
    for i in range(len(weights)):
        alpha = terms.precisions[i]
        kappa = 1.0 / (alpha + max(S[i], 0.0))
        weights[i] = 0.5 * Q[i] * Q[i] * kappa
        # An active atom may have a large exponent and no part in this.
        top = max(top, weights[i]) if state.place[i] < 0 else top
    for i in range(len(weights)):
        alpha = terms.precisions[i]
        kappa = 1.0 / (alpha + max(S[i], 0.0))
        exponent = max(min(weights[i] - top, 0.0), -LARGEST_EXPONENT)
        weight = terms.odds[i] * np.sqrt(alpha * kappa) * exp(exponent)
        weights[i] = weight if state.place[i] < 0 else 0.0
    return top


@compiled
def relocate(state: State, terms: Terms, times: int, rng: np.random.Generator) -> int:
    """Gibbs steps that draw a successor of a random active atom by the odds; how many moved."""
    v, e, weights = np.empty(len(state.active)), np.empty(len(state.S)), np.empty(len(state.S))
    S, Q = np.empty(len(state.S)), np.empty(len(state.S))
    moved = 0
    for _ in range(times if state.size[0] > 0 else 0):
        a = int(rng.random() * state.size[0])
        j = state.active[a]
        _influence(state, a, v, e)
        inverse, weight = 1.0 / v[a], state.mean[a] / v[a]
        for i in range(len(e)):
            fall = terms.noise_precision * e[i]
            S[i] = state.S[i] + inverse * fall * fall
            Q[i] = state.Q[i] - weight * fall
        state.place[j] = -1
        _birth_weights(state, terms, S, Q, weights)
        state.place[j] = a
        successor = _chosen(weights, rng.random() * _sum(weights))
        if successor != j:
            _remove(state, terms, a, v, e)
            birth(state, terms, successor, v, e)
            moved += 1
    return moved


def grow(state: State, terms: Terms, rng: np.random.Generator) -> None:
    """Births drawn in proportion to their odds, while there are odds above one, or room."""
    v, e, weights = np.empty(len(state.active)), np.empty(len(state.S)), np.empty(len(state.S))
    while state.size[0] < len(state.active):
        top = _birth_weights(state, terms, state.S, state.Q, weights)
        j = _chosen(weights, rng.random() * _sum(weights))
        if j < 0 or np.log(weights.max()) + top <= 0.0:
            return
        birth(state, terms, j, v, e)
