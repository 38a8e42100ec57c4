"""Compiled loops of kriging: rows are chosen one by one, and a kernel has two components.

A kernel is an array: amplitude and twice the Matérn order of its short component, amplitude of its
long exponential one, the ratio of both lengths, and the nugget.
"""

from __future__ import annotations

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled
from rwf.uncertainty._vecchia import _profile, _solve_lower, _solve_upper, _squared_distance

LEAST_GAIN = 1e-7  # share of the variance below which another row explains nothing
LEAST_VARIANCE = 1e-12  # of a row given others, over that of the field: rounding leaves no less


@compiled
def _covariance(kernel: Array, q: float) -> float:
    """k at the squared distance q, in lengths of the short component."""
    short, twice_order, long, ratio = kernel[0], int(kernel[1]), kernel[2], kernel[3]
    value: float = short * _profile(twice_order, q)[0]
    if long > 0.0:
        value += long * np.exp(-np.sqrt(q) / ratio)
    return value


@compiled
def _most_telling(cross: Array, rest: Array, least_rest: float, least_gain: float) -> int:
    """The row of a pool that explains most of the variance left, -1 if none does."""
    best, gain = -1, least_gain
    for a in range(len(cross)):
        if rest[a] > least_rest:
            explained = cross[a] * cross[a] / rest[a]
            if explained > gain:
                best, gain = a, explained
    return best


@compiled
def _eliminate(
    U: Array, pool: IntArray, kernel: Array, best: int, L: Array, cross: Array, rest: Array
) -> None:
    """Condition a pool on one of its rows; L has a line for every row taken, the last for this."""
    step = len(L) - 1
    pivot = np.sqrt(rest[best])
    weight = cross[best] / pivot
    rest[best] = -1.0
    for a in range(len(pool)):
        if rest[a] > 0.0:
            value = _covariance(kernel, _squared_distance(U[pool[best]], U[pool[a]]))
            for r in range(step):
                value -= L[r, best] * L[r, a]
            value /= pivot
            L[step, a] = value
            cross[a] -= value * weight
            rest[a] -= value * value


@compiled
def condition(
    U: Array,
    values: Array,
    V: Array,
    pools: IntArray,
    kernel: Array,
    mean: Array,
    variance: Array,
    total: Array,
    chosen: IntArray,
) -> None:
    """Kriging at V from rows U, taken from a pool each, -1 for none, by the most they explain.

    This is a pivoted Cholesky factor of the pool's covariance. ``total`` is the sum of the kriging
    weights; the variance includes the nugget.
    """
    size, most = pools.shape[1], chosen.shape[1]
    field, nugget = kernel[0] + kernel[2], kernel[4]
    least = 0.5 * nugget + LEAST_VARIANCE * field
    L, cross, rest = np.empty((most, size)), np.empty(size), np.empty(size)
    y, ones = np.empty(most), np.empty(most)
    for i in range(len(V)):
        for a in range(size):
            rest[a] = -1.0
            if pools[i, a] >= 0:
                cross[a] = _covariance(kernel, _squared_distance(V[i], U[pools[i, a]]))
                rest[a] = field + nugget
        mean[i], total[i], left, chosen[i] = 0.0, 0.0, field, -1
        for step in range(most):
            best = _most_telling(cross, rest, least, LEAST_GAIN * left)
            if best < 0:
                break
            pivot = np.sqrt(rest[best])
            weight, row = cross[best] / pivot, pools[i, best]
            target, one = values[row], 1.0
            for r in range(step):
                target -= L[r, best] * y[r]
                one -= L[r, best] * ones[r]
            y[step], ones[step] = target / pivot, one / pivot
            mean[i] += weight * y[step]
            total[i] += weight * ones[step]
            left -= weight * weight
            chosen[i, step] = row
            if step + 1 < most:
                _eliminate(U, pools[i], kernel, best, L[: step + 1], cross, rest)
        variance[i] = max(left, LEAST_VARIANCE * field) + nugget


@compiled
def _pairs(P: Array, kernel: Array, K: Array, short: Array, by_q: Array, by_ratio: Array) -> None:
    """k of all pairs of rows of P, its short part, and slopes by q and log ratio, lower halves."""
    twice_order, long, ratio = int(kernel[1]), kernel[2], kernel[3]
    for a in range(len(P)):
        for b in range(a):
            q = _squared_distance(P[a], P[b])
            value, slope = _profile(twice_order, q)
            K[a, b] = short[a, b] = kernel[0] * value
            by_q[a, b], by_ratio[a, b] = kernel[0] * slope, 0.0
            if long > 0.0:
                r = np.sqrt(q) / ratio
                value = long * np.exp(-r)
                K[a, b] += value
                by_ratio[a, b] = value * r
                if q > 0.0:
                    by_q[a, b] -= 0.5 * value * r / q


@compiled
def _factor(K: Array, diagonal: float, L: Array) -> None:
    """The Cholesky factor of K with this diagonal."""
    for a in range(len(L)):
        for b in range(a + 1):
            s = K[a, b] if b < a else diagonal
            for c in range(b):
                s -= L[a, c] * L[b, c]
            if a == b:
                L[a, a] = np.sqrt(max(s, LEAST_VARIANCE * diagonal))
            else:
                L[a, b] = s / L[b, b]


@compiled
def _add_gradients(
    a: Array,
    b: Array,
    by_e: float,
    by_v: float,
    kernel: Array,
    pairs: tuple[Array, Array, Array, Array],
    PX: Array,
    P: Array,
    gradient: Array,
    by_metric: Array,
) -> None:
    """Add the gradients of one row, from the slopes of its log density by e and v."""
    K, short, by_q, by_ratio = pairs
    d = P.shape[1]
    for m in range(len(a)):
        own = a[m] * (by_v * a[m] + by_e * b[m])
        gradient[0] += own * kernel[0]
        gradient[1] += own * kernel[2]
        gradient[3] += own * kernel[4]
        for n in range(m):
            weight = 2.0 * by_v * a[m] * a[n] + by_e * (a[m] * b[n] + a[n] * b[m])
            gradient[0] += weight * short[m, n]
            gradient[1] += weight * (K[m, n] - short[m, n])
            gradient[2] += weight * by_ratio[m, n]
            weight *= 2.0 * by_q[m, n]
            for j in range(d):
                for c in range(d):
                    by_metric[j, c] += weight * (P[m, j] - P[n, j]) * (PX[m, c] - PX[n, c])


@compiled
def _gather(
    X: Array,
    values: Array,
    target: Array,
    near: IntArray,
    metric: Array,
    P: tuple[Array, Array],
    b: Array,
) -> int:
    """The number of neighbors; their inputs and the target's, also in the metric, and values."""
    PX, PU = P
    k = 0
    while k < len(near) and near[k] >= 0:
        PX[k], b[k] = X[near[k]], values[near[k]]
        k += 1
    PX[k] = target
    for m in range(k + 1):
        for j in range(len(target)):
            PU[m, j] = 0.0
            for c in range(j + 1):
                PU[m, j] += metric[j, c] * PX[m, c]
    return k


@compiled
def log_density(
    X: Array,
    values: Array,
    targets: Array,
    observed: Array,
    neighbors: IntArray,
    metric: Array,
    kernel: Array,
    extra: Array,
    gradient: Array,
    by_metric: Array,
) -> float:
    """Σ log p(y | the values of its neighbors), with ``extra`` variances; gradients are added to.

    They are by the logarithms of the two amplitudes, of the ratio and of the nugget, and by the
    entries of the metric A. With a and b as in :func:`rwf.uncertainty._vecchia.log_density`,
    ∂e = -aᵀ∂K₊b and ∂v = aᵀ∂K₊a.
    """
    most, d = neighbors.shape[1], X.shape[1]
    PX, P = np.empty((most + 1, d)), np.empty((most + 1, d))
    pairs = (
        np.empty((most + 1, most + 1)),
        np.empty((most + 1, most + 1)),
        np.empty((most + 1, most + 1)),
        np.empty((most + 1, most + 1)),
    )
    L, a, b = np.empty((most, most)), np.empty(most + 1), np.empty(most + 1)
    field, nugget, sum_of_logs = kernel[0] + kernel[2], kernel[4], 0.0
    for i in range(len(targets)):
        k = _gather(X, values, targets[i], neighbors[i], metric, (PX, P), b)
        _pairs(P[: k + 1], kernel, *pairs)
        _factor(pairs[0], field + nugget, L[:k, :k])
        a[:k] = pairs[0][k, :k]
        _solve_lower(L, a[:k])
        _solve_lower(L, b[:k])
        e, v = observed[i], field
        for m in range(k):
            e -= a[m] * b[m]
            v -= a[m] * a[m]
        v = max(v, LEAST_VARIANCE * field) + nugget + extra[i]
        _solve_upper(L, a[:k])
        _solve_upper(L, b[:k])
        a[:k] *= -1.0
        a[k], b[k] = 1.0, 0.0
        sum_of_logs -= 0.5 * (np.log(2.0 * np.pi * v) + e * e / v)
        by_e, by_v = e / v, 0.5 * (e * e / v - 1.0) / v
        _add_gradients(
            a[: k + 1], b[: k + 1], by_e, by_v, kernel, pairs, PX, P, gradient, by_metric
        )
    return sum_of_logs
