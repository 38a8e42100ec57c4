"""Compiled loops over rows and their nearest neighbors: small Cholesky factors, one per row."""

from __future__ import annotations

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled, exp, wide

FEWEST, MOST, ENTRIES = 16, 64, 1024  # rows side by side, with so many entries if possible
NEAREST, FARTHEST = 1e-150, 700.0  # distances with a slope, and with an exponential


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
def _correlations(P: Array, twice_order: int, K: Array, S: Array) -> None:
    """κ of all pairs of rows of P and its slopes by q, in strict lower triangles: no branches.

    κ = (1 + bx + cx²)e^-x with x² = 2νq, and dκ/dq = -(s/x + t + ux)e^-x.
    """
    wide()
    b, c, s, t, u = 0.0, 0.0, 0.5, 0.0, 0.0
    if twice_order == 3:
        b, s, t = 1.0, 0.0, 1.5
    if twice_order == 5:
        b, c, s, t, u = 1.0, 1.0 / 3.0, 0.0, 5.0 / 6.0, 5.0 / 6.0
    for i in range(len(P)):
        for j in range(i):
            q, slope = K[i, j], S[i, j]
            for r in range(len(q)):
                q[r] = 0.0
            for m in range(P.shape[1]):
                v, w = P[i, m], P[j, m]
                for r in range(len(q)):
                    q[r] += (v[r] - w[r]) * (v[r] - w[r])
            for r in range(len(q)):
                x = min(np.sqrt(twice_order * q[r]), FARTHEST)
                e = exp(-x) if x < FARTHEST else 0.0
                q[r] = (1.0 + x * (b + c * x)) * e
                slope[r] = -(s / max(x, NEAREST) + t + u * x) * e


@compiled
def _subtract_product(out: Array, u: Array, v: Array) -> None:
    wide()
    for r in range(len(out)):
        out[r] -= u[r] * v[r]


@compiled
def _multiply(out: Array, u: Array) -> None:
    wide()
    for r in range(len(out)):
        out[r] *= u[r]


@compiled
def _eliminate(K: Array, nugget: float, pivots: Array) -> None:
    """Rows of K become those of L with LLᵀ = K + νI, further rows v become L⁻¹v.

    ``pivots`` become 1/L_aa.
    """
    k = K.shape[1]
    for a in range(len(K)):
        for b in range(min(a, k)):
            for c in range(b):
                _subtract_product(K[a, b], K[a, c], K[b, c])
            _multiply(K[a, b], pivots[b])
        if a < k:
            pivot = pivots[a]
            for r in range(len(pivot)):
                pivot[r] = 1.0 + nugget
            for c in range(a):
                _subtract_product(pivot, K[a, c], K[a, c])
            for r in range(len(pivot)):
                pivot[r] = 1.0 / np.sqrt(pivot[r])


@compiled
def _substitute_back(K: Array, pivots: Array, v: Array) -> None:
    """v ← L⁻ᵀv."""
    k = K.shape[1]
    for a in range(k - 1, -1, -1):
        for c in range(a + 1, k):
            _subtract_product(v[a], K[c, a], v[c])
        _multiply(v[a], pivots[a])


@compiled
def _side_by_side(n: int, d: int) -> int:
    """How many rows to compute at a time."""
    return max(FEWEST, min(MOST, ENTRIES // d, n))


@compiled
def _reduce(
    U: Array, values: Array, V: Array, neighbors: IntArray, start: int, twice_order: int,
    nugget: float, P: Array, K: Array, S: Array, pivots: Array,
) -> None:  # fmt: skip
    """L, L⁻¹k and L⁻¹y of rows of V from ``start`` on, in the rows of K.

    Of fewer rows than there is room for, the last one is taken again.
    """
    k = neighbors.shape[1]
    for r in range(P.shape[2]):
        i = min(start + r, len(V) - 1)
        for j in range(V.shape[1]):
            P[k, j, r] = V[i, j]
        for c in range(k):
            near = neighbors[i, c]
            K[k + 1, c, r] = values[near]
            for j in range(V.shape[1]):
                P[c, j, r] = U[near, j]
    _correlations(P, twice_order, K, S)
    _eliminate(K, nugget, pivots)


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
    n, k, d = len(V), neighbors.shape[1], U.shape[1]
    m = _side_by_side(n, d)
    P, K, S = np.empty((k + 1, d, m)), np.empty((k + 2, k, m)), np.empty((k + 1, k, m))
    pivots = np.empty((k, m))
    for start in range(0, n, m):
        _reduce(U, values, V, neighbors, start, twice_order, nugget, P, K, S, pivots)
        for r in range(min(m, n - start)):
            total, left = 0.0, 1.0 + nugget
            for c in range(k):
                total += K[k, c, r] * K[k + 1, c, r]
                left -= K[k, c, r] * K[k, c, r]
            mean[start + r], variance[start + r] = total, left


@compiled
def _add_slopes(P: Array, S: Array, a: Array, b: Array, by: Array, slopes: Array) -> None:
    """Add 2 Σ_{i>j} dκ_ij/dq (x_i - x_j)² times the weights of pairs, by lengths."""
    wide()
    by_v, by_e, weight = by[0], by[1], by[2]
    for i in range(len(a)):
        for j in range(i):
            for r in range(len(weight)):
                both = 2.0 * by_v[r] * a[i, r] * a[j, r]
                both += by_e[r] * (a[i, r] * b[j, r] + a[j, r] * b[i, r])
                weight[r] = 2.0 * both * S[i, j, r]
            for m in range(P.shape[1]):
                u, v, slope = P[i, m], P[j, m], slopes[m]
                for r in range(len(weight)):
                    slope[r] -= weight[r] * (u[r] - v[r]) * (u[r] - v[r])


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

    because α is optimal for v. K₊ is kept in units of the amplitude. As one small matrix is too
    small for vector instructions, some rows are side by side, as the last axis of all arrays; a is
    negated.
    """
    n, k, d = len(rows), neighbors.shape[1], U.shape[1]
    m = _side_by_side(n, d)
    P, K, S = np.empty((k + 1, d, m)), np.empty((k + 2, k, m)), np.empty((k + 1, k, m))
    a, b, pivots = np.empty((k + 1, m)), np.empty((k + 1, m)), np.empty((k, m))
    e, by, slopes = np.empty(m), np.empty((3, m)), np.zeros((d, m))
    total, targets = 0.0, U[rows]
    for start in range(0, n, m):
        _reduce(U, values, targets, neighbors, start, twice_order, nugget, P, K, S, pivots)
        for r in range(m):
            e[r] = values[rows[min(start + r, n - 1)]]
            for c in range(k):
                a[c, r], b[c, r] = K[k, c, r], K[k + 1, c, r]
                e[r] -= a[c, r] * b[c, r]
            a[k, r], b[k, r] = -1.0, 0.0
        _substitute_back(K, pivots, a)
        _substitute_back(K, pivots, b)
        for r in range(m):
            unit, seen = 1.0 + nugget, 1.0 if start + r < n else 0.0
            for c in range(k):
                unit -= K[k, c, r] * K[k, c, r]
            v = amplitude * unit
            surprise = seen * (e[r] * e[r] / v - 1.0)
            total -= 0.5 * (seen * (np.log(2.0 * np.pi * v) + 1.0) + surprise)
            by[0, r], by[1, r] = 0.5 * surprise / unit, -seen * e[r] / v
            gradient[d] += 0.5 * surprise
            for c in range(k + 1):
                gradient[d + 1] += nugget * a[c, r] * (by[0, r] * a[c, r] + by[1, r] * b[c, r])
        _add_slopes(P, S, a, b, by, slopes)
    for j in range(d):
        for r in range(m):
            gradient[j] += slopes[j, r]
    return total
