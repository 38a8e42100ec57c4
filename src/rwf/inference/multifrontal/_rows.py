"""Compiled loops over rows: which leaf they fall in, small cells of them, and their features.

Fast arithmetic may assume that there are no infinities: a column without bounds has the radius
:data:`EVERYWHERE`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled, exp

CONSTANT, LINEAR, COMPACT_HAT, HAT, BUMP, OTHER = 0, 1, 2, 3, 4, 5  # formulas of columns
EVERYWHERE = 1e150  # the radius of a column without bounds: its square does not overflow


class ColumnTable(NamedTuple):
    """The columns, in the order of the tree."""

    centres: Array  # t, shape (p, d)
    radii: Array  # how far from its centre a column may differ from zero, shape (p,)
    kinds: IntArray  # its formula, shape (p,)
    inverse: Array  # 1/s, shape (p,)
    factors: Array  # what multiplies the profile, shape (p,)
    curvatures: Array  # c of a hat, shape (p,)
    orders: IntArray  # order of a compact hat, or the input of a linear column, shape (p,)
    tail: float  # squared radius at which a Gaussian envelope ends


@compiled
def route(X: Array, axes: IntArray, cuts: Array, right: IntArray, out: IntArray) -> None:
    """The leaf of every row; a left child follows its parent."""
    for i in range(len(X)):
        v = 0
        while axes[v] >= 0:
            v = v + 1 if X[i, axes[v]] < cuts[v] else right[v]
        out[i] = v


@compiled
def counting_sort(labels: IntArray, starts: IntArray, order: IntArray) -> None:
    """Order of rows by label, stable; starts_v is where label v begins, one entry more than v."""
    starts[:] = 0
    for label in labels:
        starts[label + 1] += 1
    for v in range(1, len(starts)):
        starts[v] += starts[v - 1]
    place = starts.copy()
    for i in range(len(labels)):
        order[place[labels[i]]] = i
        place[labels[i]] += 1


@compiled
def _widest(X: Array, rows: IntArray) -> tuple[int, float, float]:
    """The input in which rows spread most, and between which values."""
    axis, low, high = 0, 0.0, 0.0
    for k in range(X.shape[1]):
        a = b = X[rows[0], k]
        for i in rows:
            a, b = min(a, X[i, k]), max(b, X[i, k])
        if k == 0 or b - a > high - low:
            axis, low, high = k, a, b
    return axis, low, high


@compiled
def _halve(X: Array, rows: IntArray, axis: int, middle: float) -> int:
    """Move rows below the middle to the front; how many they are."""
    i, j = 0, len(rows) - 1
    while i <= j:
        if X[rows[i], axis] <= middle:
            i += 1
        else:
            rows[i], rows[j] = rows[j], rows[i]
            j -= 1
    return i


@compiled
def split(X: Array, order: IntArray, starts: IntArray, most: int, cells: IntArray) -> int:
    """Split the rows of every leaf, halving their box, until no cell has more than ``most``.

    Reorders the rows within leaves. Writes leaf, begin and end of every cell into ``cells``, shape
    (·, 3), and returns their number. Equal rows are cut into pieces.
    """
    count = 0
    # The smaller half comes first, so that no more than log₂ n others ever wait.
    begins, ends = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    for leaf in range(len(starts) - 1):
        if starts[leaf] == starts[leaf + 1]:
            continue
        top = 0
        begins[0], ends[0] = starts[leaf], starts[leaf + 1]
        while top >= 0:
            begin, end = begins[top], ends[top]
            if end - begin <= most:
                cells[count, 0], cells[count, 1], cells[count, 2] = leaf, begin, end
                count += 1
                top -= 1
                continue
            rows = order[begin:end]
            axis, low, high = _widest(X, rows)
            half = _halve(X, rows, axis, low + 0.5 * (high - low))
            if half == 0 or half == end - begin:  # equal, or one rounding apart
                half = most
            if 2 * half <= end - begin:
                begins[top], ends[top] = begin + half, end
                begins[top + 1], ends[top + 1] = begin, begin + half
            else:
                begins[top], ends[top] = begin, begin + half
                begins[top + 1], ends[top + 1] = begin + half, end
            top += 1
    return count


@compiled
def touching(
    XT: Array, begin: int, end: int, columns: IntArray, table: ColumnTable, active: IntArray
) -> int:
    """Places in ``columns`` of those whose support meets the box of the rows; their number."""
    d = XT.shape[0]
    low, high = np.empty(d), np.empty(d)
    for k in range(d):
        low[k] = high[k] = XT[k, begin]
        for i in range(begin, end):
            low[k], high[k] = min(low[k], XT[k, i]), max(high[k], XT[k, i])
    count = 0
    for place in range(len(columns)):
        column = columns[place]
        distance = 0.0
        for k in range(d):
            t = table.centres[column, k]
            gap = max(low[k] - t, t - high[k], 0.0)
            distance += gap * gap
        if distance <= table.radii[column] * table.radii[column]:
            active[count] = place
            count += 1
    return count


@compiled
def squared_distances(XT: Array, begin: int, end: int, centre: Array, z: Array) -> None:
    """z_i = ‖x_i - centre‖² of some rows."""
    for k in range(len(centre)):
        x, t = XT[k, begin:end], centre[k]
        if k == 0:
            for i in range(end - begin):
                u = x[i] - t
                z[i] = u * u
        else:
            for i in range(end - begin):
                u = x[i] - t
                z[i] += u * u


@compiled
def fill(
    XT: Array, begin: int, end: int, root: Array, columns: IntArray, table: ColumnTable, Z: Array
) -> None:
    """Z_ji = root_i z_j(x_i) of some rows, one line per column; leaves out what is ``OTHER``."""
    n = end - begin
    w, power = root[begin:end], np.empty(n)
    for j in range(len(columns)):
        column = columns[j]
        kind, factor, z = table.kinds[column], table.factors[column], Z[j]
        if kind == CONSTANT:
            for i in range(n):
                z[i] = factor * w[i]
            continue
        if kind == LINEAR:
            x = XT[table.orders[column], begin:end]
            for i in range(n):
                z[i] = factor * w[i] * x[i]
            continue
        if kind == OTHER:
            continue
        square = table.inverse[column] * table.inverse[column]
        squared_distances(XT, begin, end, table.centres[column], z)
        c, order = table.curvatures[column], table.orders[column]
        if kind == COMPACT_HAT:
            narrow = 1.0 / (2.0 * order)
            for i in range(n):
                q = z[i] * square
                h = max(1.0 - q * narrow, 0.0)
                power[i] = h
                z[i] = factor * w[i] * (1.0 - c * q) * (h * h if order > 3 else h)
            for _ in range(order - 4):
                for i in range(n):
                    z[i] *= power[i]
        elif kind == HAT:
            for i in range(n):
                q = z[i] * square
                value = factor * w[i] * (1.0 - c * q) * exp(-0.5 * min(q, table.tail))
                z[i] = value if q <= table.tail else 0.0
        else:
            for i in range(n):
                r = 0.5 * np.sqrt(z[i] * square)
                h = max(1.0 - r, 0.0)
                z[i] = factor * w[i] * (h * h) * (h * h) * (4.0 * r + 1.0)


@compiled
def features(
    XT: Array,
    begin: int,
    end: int,
    root: Array,
    columns: IntArray,
    table: ColumnTable,
    active: IntArray,
    work: Array,
) -> int:
    """Active columns of some rows, and their features in ``work``, one line each; their number."""
    count: int = touching(XT, begin, end, columns, table, active)
    n = end - begin
    Z = work[: count * n].reshape((count, n))
    fill(XT, begin, end, root, columns[active[:count]], table, Z)
    return count


@compiled
def moments_of_rows(Z: Array, V: Array, weights: Array, mean: Array, variance: Array) -> None:
    """mean_i = Σ_j weights_j Z_ji and variance_i = 2 Σ_j Z_ji V_ji."""
    mean[:] = 0.0
    variance[:] = 0.0
    for j in range(len(Z)):
        z, v, w = Z[j], V[j], weights[j]
        for i in range(Z.shape[1]):
            mean[i] += w * z[i]
            variance[i] += 2.0 * z[i] * v[i]
