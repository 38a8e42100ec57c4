"""Compiled loops over rows and their nearest neighbors: small Cholesky factors, one per row."""

from __future__ import annotations

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled


@compiled
def _profile(twice_order: int, q: float) -> tuple[float, float]:
    """κ of order 1/2, 3/2 or 5/2 at q = r², and dκ/dq."""
    if twice_order == 1:
        r = np.sqrt(q)
        e = np.exp(-r)
        # The slope has no limit at zero; what it multiplies there is zero.
        return e, -0.5 * e / r if r > 0.0 else 0.0
    r = np.sqrt(twice_order * q)
    e = np.exp(-r)
    if twice_order == 3:
        return (1.0 + r) * e, -1.5 * e
    return (1.0 + r + r * r / 3.0) * e, -5.0 / 6.0 * (1.0 + r) * e


@compiled
def _squared_distance(u: Array, v: Array) -> float:
    q = 0.0
    for j in range(len(u)):
        q += (u[j] - v[j]) ** 2
    return q


@compiled
def _correlations(P: Array, twice_order: int, K: Array, S: Array) -> None:
    """κ of all pairs of rows of P and its slopes by q, in the strict lower triangles."""
    for a in range(len(P)):
        for b in range(a):
            K[a, b], S[a, b] = _profile(twice_order, _squared_distance(P[a], P[b]))


@compiled
def _factor(K: Array, nugget: float, L: Array) -> None:
    """L with LLᵀ = K + νI, where K has a diagonal of ones, in the lower triangle."""
    for a in range(len(L)):
        for b in range(a + 1):
            s = K[a, b] if b < a else 1.0 + nugget
            for c in range(b):
                s -= L[a, c] * L[b, c]
            if a == b:
                L[a, a] = np.sqrt(s)
            else:
                L[a, b] = s / L[b, b]


@compiled
def _solve_lower(L: Array, v: Array) -> None:
    """v ← L⁻¹v."""
    for a in range(len(v)):
        s = v[a]
        for c in range(a):
            s -= L[a, c] * v[c]
        v[a] = s / L[a, a]


@compiled
def _solve_upper(L: Array, v: Array) -> None:
    """v ← L⁻ᵀv."""
    for a in range(len(v) - 1, -1, -1):
        s = v[a]
        for c in range(a + 1, len(v)):
            s -= L[c, a] * v[c]
        v[a] = s / L[a, a]


@compiled
def condition(
    U: Array,
    values: Array,
    V: Array,
    neighbors: IntArray,
    twice_order: int,
    nugget: float,
    mean: Array,
    variance: Array,
) -> None:
    """Mean and variance of V given the values of neighbors in U, for unit amplitude and lengths."""
    k, d = neighbors.shape[1], U.shape[1]
    L, K, S, P = np.empty((k, k)), np.empty((k + 1, k)), np.empty((k + 1, k)), np.empty((k + 1, d))
    cross, y = K[k], np.empty(k)
    for i in range(len(V)):
        for a in range(k):
            P[a], y[a] = U[neighbors[i, a]], values[neighbors[i, a]]
        P[k] = V[i]
        _correlations(P, twice_order, K, S)
        _factor(K, nugget, L)
        _solve_lower(L, cross)
        _solve_lower(L, y)
        m, v = 0.0, 1.0 + nugget
        for a in range(k):
            m += cross[a] * y[a]
            v -= cross[a] * cross[a]
        mean[i], variance[i] = m, v


@compiled
def log_density(
    U: Array,
    values: Array,
    rows: IntArray,
    neighbors: IntArray,
    twice_order: int,
    amplitude: float,
    nugget: float,
    gradient: Array,
) -> float:
    """Σ log p(y_i | the values of its neighbors) over rows; the gradient by θ is added to.

    With α = K⁻¹k, β = K⁻¹y, a = (-α, 1) and b = (β, 0), over the neighbors and the row itself, the
    error e = y_i - αᵀy and its variance v = aᵀK₊a change with K₊ by

        ∂e = -aᵀ∂K₊b,    ∂v = aᵀ∂K₊a,

    because α is optimal for v. K₊ is kept in units of the amplitude.
    """
    k, d = neighbors.shape[1], U.shape[1]
    L, K, S, P = np.empty((k, k)), np.empty((k + 1, k)), np.empty((k + 1, k)), np.empty((k + 1, d))
    a, b = np.empty(k + 1), np.empty(k + 1)
    alpha, beta = a[:k], b[:k]
    total = 0.0
    for i in range(len(rows)):
        for m in range(k):
            P[m], beta[m] = U[neighbors[i, m]], values[neighbors[i, m]]
        P[k] = U[rows[i]]
        _correlations(P, twice_order, K, S)
        _factor(K, nugget, L)
        alpha[:] = K[k]
        _solve_lower(L, alpha)
        _solve_lower(L, beta)
        e, unit = values[rows[i]], 1.0 + nugget
        for m in range(k):
            e -= alpha[m] * beta[m]
            unit -= alpha[m] * alpha[m]
        _solve_upper(L, alpha)
        _solve_upper(L, beta)
        for m in range(k):
            alpha[m] = -alpha[m]
        a[k], b[k] = 1.0, 0.0
        v = amplitude * unit
        surprise = e * e / v - 1.0
        total -= 0.5 * (np.log(2.0 * np.pi * v) + surprise + 1.0)
        by_v, by_e = 0.5 * surprise / unit, e / v
        gradient[d] += 0.5 * surprise
        for m in range(k + 1):
            gradient[d + 1] += nugget * a[m] * (by_v * a[m] + by_e * b[m])
            for n in range(m):
                weight = 2.0 * by_v * a[m] * a[n] + by_e * (a[m] * b[n] + a[n] * b[m])
                weight *= 2.0 * S[m, n]
                for j in range(d):
                    gradient[j] -= weight * (P[m, j] - P[n, j]) ** 2
    return total
