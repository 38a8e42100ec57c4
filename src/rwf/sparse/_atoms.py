"""Compiled loops over atoms of one variable: features, compressed columns, their Gram matrix.

At sorted inputs a local atom is nonzero on one run of rows, so a column is that run and its values,
and two columns have a product only where their runs overlap. A step is -½ before its gap and ½
after it: its products are partial sums.
"""

from __future__ import annotations

import numpy as np

from rwf.features._fused import _compiled, _cos_sin
from rwf.types import Array, FloatArray, IntArray

STEP, CUSP, HAT, GABOR = 0, 1, 2, 3


@_compiled
def _profile(kind: int, u: float, frequency: float, phase: float) -> float:
    """ψ(u), of peak one; a step is half as high on either side."""
    if kind == STEP:
        return 0.5 if u >= 0.0 else -0.5
    if kind == CUSP:
        h = max(1.0 - 0.125 * abs(u), 0.0)
        h *= h
        h *= h
        return h * h
    h = max(1.0 - 0.125 * u * u, 0.0)
    h *= h
    if kind == HAT:
        return h * (1.0 - 0.875 * u * u)
    if h == 0.0:
        return 0.0
    return h * h * _cos_sin(frequency * u + phase)[0]


@_compiled
def features(
    x: Array,
    kinds: IntArray,
    scales: Array,
    shifts: Array,
    frequencies: Array,
    phases: Array,
    out: Array,
) -> None:
    """out_ij = ψ_j((x_i - t_j)/s_j)."""
    for j in range(len(kinds)):
        kind, s, t, f, p = kinds[j], scales[j], shifts[j], frequencies[j], phases[j]
        for i in range(len(x)):
            out[i, j] = _profile(kind, (x[i] - t) / s, f, p)


@_compiled
def columns(
    x: Array,
    root: Array,
    first: IntArray,
    last: IntArray,
    starts: IntArray,
    kinds: IntArray,
    scales: Array,
    shifts: Array,
    frequencies: Array,
    phases: Array,
    values: Array,
) -> None:
    """Values √v_i ψ_j(x_i) of every atom on its rows [first, last), one run after another."""
    for j in range(len(kinds)):
        kind, s, t, f, p = kinds[j], scales[j], shifts[j], frequencies[j], phases[j]
        offset = starts[j] - first[j]
        for i in range(first[j], last[j]):
            values[offset + i] = root[i] * _profile(kind, (x[i] - t) / s, f, p)


@_compiled
def _dot(a: Array, b: Array) -> float:
    """aᵀb in four sums, which the processor adds side by side."""
    n = len(a)
    s0 = s1 = s2 = s3 = 0.0
    for i in range(0, n - 3, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(n - n % 4, n):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@_compiled
def local_gram(
    first: IntArray, last: IntArray, starts: IntArray, values: Array, G: FloatArray
) -> None:
    """The upper triangle of G for local atoms: products of runs where they overlap."""
    for i in range(len(first)):
        for j in range(i, len(first)):
            low, high = max(first[i], first[j]), min(last[i], last[j])
            if low < high:
                a, b = starts[i] - first[i], starts[j] - first[j]
                G[i, j] = _dot(values[a + low : a + high], values[b + low : b + high])
            else:
                G[i, j] = 0.0


@_compiled
def step_gram(
    first: IntArray,
    last: IntArray,
    starts: IntArray,
    values: Array,
    root: Array,
    gaps: IntArray,
    G: FloatArray,
) -> None:
    """The columns of G for steps, which follow the local atoms: half a total less a sum before."""
    n_local, n = len(first), len(root)
    before = np.zeros(n + 1)
    for j in range(n_local):
        offset, low, high = starts[j] - first[j], first[j], last[j]
        before[low] = 0.0
        for i in range(low, high):
            before[i + 1] = before[i] + root[i] * values[offset + i]
        for k in range(len(gaps)):
            G[j, n_local + k] = 0.5 * before[high] - before[min(max(gaps[k], low), high)]
    before[0] = 0.0
    for i in range(n):
        before[i + 1] = before[i] + root[i] * root[i]
    for k in range(len(gaps)):
        for j in range(k, len(gaps)):
            between = abs(before[gaps[k]] - before[gaps[j]])
            G[n_local + k, n_local + j] = 0.25 * before[n] - 0.5 * between


@_compiled
def products(
    first: IntArray,
    last: IntArray,
    starts: IntArray,
    values: Array,
    gaps: IntArray,
    root: Array,
    V: Array,
    out: Array,
) -> None:
    """out = ZᵀV for rows V, shape (n, q), already times √v; local atoms first, then steps."""
    n_local, (n, q) = len(first), V.shape
    for j in range(n_local):
        offset = starts[j] - first[j]
        out[j] = 0.0
        for i in range(first[j], last[j]):
            for c in range(q):
                out[j, c] += values[offset + i] * V[i, c]
    before = np.zeros((n + 1, q))
    for i in range(n):
        for c in range(q):
            before[i + 1, c] = before[i, c] + root[i] * V[i, c]
    for k in range(len(gaps)):
        for c in range(q):
            out[n_local + k, c] = 0.5 * before[n, c] - before[gaps[k], c]


@_compiled
def mirror(G: FloatArray) -> None:
    """Copy the upper triangle to the lower one, tile by tile."""
    size, tile = len(G), 32
    for top in range(0, size, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, size)):
                for j in range(left, min(left + tile, i)):
                    G[i, j] = G[j, i]
