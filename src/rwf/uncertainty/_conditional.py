"""Compiled loops of fields that are drawn place by place, each given earlier ones."""

from __future__ import annotations

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled
from rwf.uncertainty._kriging import LEAST_VARIANCE, _covariance
from rwf.uncertainty._vecchia import _solve_upper, _squared_distance


@compiled
def _append(K: Array, diagonal: float, place: int, L: Array, least: float) -> None:
    """A further line of the Cholesky factor, from the covariances with the earlier ones."""
    for b in range(place):
        s = K[b]
        for c in range(b):
            s -= L[place, c] * L[b, c]
        L[place, b] = s / L[b, b]
    s = diagonal
    for c in range(place):
        s -= L[place, c] * L[place, c]
    L[place, place] = np.sqrt(max(s, least))


@compiled
def covariances(V: Array, kernel: Array, K: Array) -> None:
    """k of all pairs of places, without the nugget."""
    for i in range(len(V)):
        for j in range(i + 1):
            K[i, j] = _covariance(kernel, _squared_distance(V[i], V[j]))
            K[j, i] = K[i, j]


@compiled
def condition(
    U: Array, V: Array, numbers: IntArray, kernel: Array, weights: Array, variances: Array
) -> None:
    """Weights of values at some of U, with a nugget, in the kriging of f at V, and its variance.

    These are given by their numbers, -1 for none.
    """
    most = numbers.shape[1]
    field, nugget = kernel[0] + kernel[2], kernel[4]
    least = LEAST_VARIANCE * field
    L, K, z = np.empty((most, most)), np.empty(most), np.empty(most)
    given = np.empty(most, dtype=np.intp)
    for i in range(len(V)):
        count, left = 0, field
        for a in range(most):
            if numbers[i, a] < 0:
                continue
            u = U[numbers[i, a]]
            given[count] = a
            for b in range(count):
                K[b] = _covariance(kernel, _squared_distance(u, U[numbers[i, given[b]]]))
            _append(K, field + nugget, count, L, least)
            s = _covariance(kernel, _squared_distance(u, V[i]))
            for c in range(count):
                s -= L[count, c] * z[c]
            z[count] = s / L[count, count]
            left -= z[count] * z[count]
            count += 1
        variances[i] = max(left, least)
        _solve_upper(L[:count, :count], z[:count])
        for c in range(count):
            weights[i, given[c]] = z[c]


@compiled
def forward(
    weights: Array, earlier: IntArray, deviations: Array, first: int, values: Array
) -> None:
    """Draws, place by place from ``first`` on, of independent normal values of shape (n, q)."""
    for i in range(first, len(values)):
        for c in range(values.shape[1]):
            values[i, c] *= deviations[i]
        for a in range(earlier.shape[1]):
            j = earlier[i, a]
            if j >= 0:
                for c in range(values.shape[1]):
                    values[i, c] += weights[i, a] * values[j, c]


@compiled
def backward(
    weights: Array, earlier: IntArray, deviations: Array, first: int, values: Array
) -> None:
    """The transpose of :func:`forward`."""
    for i in range(len(values) - 1, first - 1, -1):
        for a in range(earlier.shape[1]):
            j = earlier[i, a]
            if j >= 0:
                for c in range(values.shape[1]):
                    values[j, c] += weights[i, a] * values[i, c]
        for c in range(values.shape[1]):
            values[i, c] *= deviations[i]
