"""Compiled loops of fields that are drawn place by place, each given rows and earlier places."""

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
def factor(
    U: Array,
    V: Array,
    rows: IntArray,
    earlier: IntArray,
    first: int,
    kernel: Array,
    weights: Array,
    given_all: Array,
    given_rows: Array,
) -> None:
    """Weights of earlier places, and variances given these and the rows, and given the rows alone.

    Rows are numbers in U, with a nugget, and earlier places in V, without one; -1 is for none. The
    place of line i is ``first`` + i.
    """
    most = rows.shape[1] + earlier.shape[1]
    field, nugget = kernel[0] + kernel[2], kernel[4]
    least = LEAST_VARIANCE * field
    L, P, K = np.empty((most, most)), np.empty((most, V.shape[1])), np.empty(most)
    z, slots = np.empty(most), np.empty(most, dtype=np.intp)
    for i in range(len(rows)):
        place = V[first + i]
        count, left, n_rows = 0, field, 0
        given_rows[i] = field
        for a in range(most):
            is_row = a < rows.shape[1]
            number = rows[i, a] if is_row else earlier[i, a - rows.shape[1]]
            if number < 0:
                continue
            P[count] = U[number] if is_row else V[number]
            slots[count] = a
            for b in range(count):
                K[b] = _covariance(kernel, _squared_distance(P[count], P[b]))
            _append(K, field + nugget if is_row else field, count, L, least)
            s = _covariance(kernel, _squared_distance(P[count], place))
            for c in range(count):
                s -= L[count, c] * z[c]
            z[count] = s / L[count, count]
            left -= z[count] * z[count]
            count += 1
            if is_row:
                n_rows = count
                given_rows[i] = max(left, least)
        given_all[i] = max(left, least)
        _solve_upper(L[:count, :count], z[:count])
        for c in range(n_rows, count):
            weights[i, slots[c] - rows.shape[1]] = z[c]


@compiled
def forward(weights: Array, earlier: IntArray, deviations: Array, values: Array) -> None:
    """Draws, place by place; values begin as independent standard normal ones, shape (n, count)."""
    for i in range(len(values)):
        for c in range(values.shape[1]):
            values[i, c] *= deviations[i]
        for a in range(earlier.shape[1]):
            j = earlier[i, a]
            if j >= 0:
                for c in range(values.shape[1]):
                    values[i, c] += weights[i, a] * values[j, c]


@compiled
def backward(weights: Array, earlier: IntArray, deviations: Array, values: Array) -> None:
    """The transpose of :func:`forward`."""
    for i in range(len(values) - 1, -1, -1):
        for a in range(earlier.shape[1]):
            j = earlier[i, a]
            if j >= 0:
                for c in range(values.shape[1]):
                    values[j, c] += weights[i, a] * values[i, c]
        for c in range(values.shape[1]):
            values[i, c] *= deviations[i]
