"""Compiled loops over atoms of one variable: features, compressed columns, their products.

At sorted inputs a local atom is nonzero on one run of rows, so a column is that run and its values,
and two columns have a product only where their runs overlap. A step is -½ before its gap and ½
after it: its products are partial sums.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled, cos_sin
from rwf.inference.spike_slab.dictionary import CUSP, HAT, STEP


class Runs(NamedTuple):
    """√v z_j at n sorted rows of weights v: local atoms, then steps."""

    first: IntArray  # the first row of each local atom's run
    sizes: IntArray  # how many rows it has
    starts: IntArray  # where the run is among the values
    values: Array  # √v z on all runs
    sums: Array  # of v z on a run, up to and with each row
    gaps: IntArray  # how many rows are before each step
    root: Array  # √v, shape (n,)


@compiled
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
    return h * h * cos_sin(frequency * u + phase)[0]


@compiled
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


@compiled
def fill_runs(
    x: Array,
    columns: Runs,
    kinds: IntArray,
    scales: Array,
    shifts: Array,
    frequencies: Array,
    phases: Array,
) -> None:
    """Values √v_i ψ_j(x_i) of every local atom on its rows, and their sums."""
    for j in range(len(kinds)):
        kind, s, t, f, p = kinds[j], scales[j], shifts[j], frequencies[j], phases[j]
        first = columns.first[j]
        offset = columns.starts[j] - first
        total = 0.0
        for i in range(first, first + columns.sizes[j]):
            value = columns.root[i] * _profile(kind, (x[i] - t) / s, f, p)
            total += columns.root[i] * value
            columns.values[offset + i], columns.sums[offset + i] = value, total


@partial(compiled, sums=True)
def _dot(a: Array, b: Array) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def energies(columns: Runs, out: Array) -> None:
    """‖z_j‖² of every atom; local atoms first, then steps."""
    n_local = len(columns.first)
    for j in range(n_local):
        run = columns.values[columns.starts[j] : columns.starts[j] + columns.sizes[j]]
        out[j] = _dot(run, run)
    out[n_local:] = 0.25 * _dot(columns.root, columns.root)


@compiled
def _step_product(columns: Runs, j: int, gap: int) -> float:
    """The product of a local atom with a step: half its sum less what comes before the step."""
    size, start = columns.sizes[j], columns.starts[j]
    if size == 0:
        return 0.0
    before = min(max(gap - columns.first[j], 0), size)
    left = columns.sums[start + before - 1] if before > 0 else 0.0
    product: float = 0.5 * columns.sums[start + size - 1] - left
    return product


@compiled
def gram_row(columns: Runs, j: int, before: Array, out: Array) -> None:
    """Products of atom j with all atoms; ``before`` is room for n + 1 partial sums."""
    n_local, n = len(columns.first), len(columns.root)
    if j < n_local:
        low, high = columns.first[j], columns.first[j] + columns.sizes[j]
        own = columns.starts[j] - low
        for i in range(n_local):
            first = columns.first[i]
            begin, end = max(first, low), min(first + columns.sizes[i], high)
            other = columns.starts[i] - first
            out[i] = 0.0
            if begin < end:
                out[i] = _dot(
                    columns.values[own + begin : own + end],
                    columns.values[other + begin : other + end],
                )
        for k in range(len(columns.gaps)):
            out[n_local + k] = _step_product(columns, j, columns.gaps[k])
        return
    gap = columns.gaps[j - n_local]
    for i in range(n_local):
        out[i] = _step_product(columns, i, gap)
    before[0] = 0.0
    for i in range(n):
        before[i + 1] = before[i] + columns.root[i] * columns.root[i]
    for k in range(len(columns.gaps)):
        between = abs(before[gap] - before[columns.gaps[k]])
        out[n_local + k] = 0.25 * before[n] - 0.5 * between


@compiled
def products(columns: Runs, V: Array, out: Array) -> None:
    """out = ZᵀV for rows V, shape (n, q), already times √v; local atoms first, then steps."""
    n_local, (n, q) = len(columns.first), V.shape
    for j in range(n_local):
        first = columns.first[j]
        offset = columns.starts[j] - first
        out[j] = 0.0
        for i in range(first, first + columns.sizes[j]):
            for c in range(q):
                out[j, c] += columns.values[offset + i] * V[i, c]
    before = np.zeros((n + 1, q))
    for i in range(n):
        for c in range(q):
            before[i + 1, c] = before[i, c] + columns.root[i] * V[i, c]
    for k in range(len(columns.gaps)):
        for c in range(q):
            out[n_local + k, c] = 0.5 * before[n, c] - before[columns.gaps[k], c]
