r"""A lattice of a requested number of atoms, wherever the rows are, in well under a second.

Every octave is a jittered lattice with half the spacing of the one before. How far its atoms
overlap, :data:`OVERLAP`, decides what a tree of them costs. A cell of the lattice has an atom if
enough rows are in it and around it, so that regions of more rows have finer atoms. Only cells with
rows, and those around them, are ever listed, so that large empty regions cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, BoolArray, IntArray
from rwf.features.lattice import LEAST_ROWS
from rwf.features.local import LocalAtoms
from rwf.inference.multifrontal.supports import support_radius
from rwf.wavelets import Wavelet

OVERLAP = {1: 4.0, 2: 1.75, 3: 1.6}
"""Radius of a support in spacings of its lattice, by the number of inputs. A larger one gives a
smoother lattice of coarser atoms for the same number, and costs its d + 1st power."""

WIDEST = 3.0  # largest radius, in scales, that spacings allow for
REACH = 0.7  # share of the support within which rows count: it is close to zero at the rim
JITTER = 0.3  # largest distance of an atom from the middle of its cell, in spacings
CLOSE = 0.97  # share of the requested number that is close enough
ATTEMPTS = 10  # how many finest spacings are tried at most; three or four are usual
MOST_ROWS = 2**20  # of more rows, a sample shows as well where rows are
DEEPEST = {1: 50, 2: 28, 3: 18}  # most octaves, so that a cell's number fits an integer


@dataclass(frozen=True)
class _Lattice:
    """One octave: the cells that have an atom, and which of them have no row themselves."""

    spacing: float
    cells: IntArray
    empty: BoolArray


def draw_multifrontal_lattice(
    wavelet: Wavelet, X: Array, n_features: int, rng: np.random.Generator
) -> tuple[LocalAtoms, ...]:
    """Octaves of atoms, coarse to fine, of nearly ``n_features`` columns if rows inform as many."""
    d = X.shape[1]
    if d not in OVERLAP:
        raise ValueError(f"X has {d} columns, but a lattice is for one, two or three inputs.")
    wanted = n_features // wavelet.columns
    if wanted < 1 or len(X) == 0:
        raise ValueError(f"{n_features} columns on {len(X)} rows give no lattice: ask for more.")
    least = min(LEAST_ROWS, len(X))
    if len(X) > MOST_ROWS:
        least = max(2, LEAST_ROWS * MOST_ROWS // len(X))
        X = X[rng.integers(len(X), size=MOST_ROWS)]
    span = float(np.ptp(X, axis=0).max()) or 1.0
    scales_per_spacing = OVERLAP[d] / min(support_radius(wavelet, d), WIDEST)
    coarsest = 0.5 * span / scales_per_spacing  # the spacing of atoms half as wide as the data
    tree = cKDTree(X, balanced_tree=False, compact_nodes=False)
    spacing = min(coarsest, coarsest * (2.0 / wanted) ** (1 / d))
    best, most = list[tuple[float, Array]](), 0
    for _ in range(ATTEMPTS):
        octaves = _octaves(X, spacing, coarsest, least)
        placed = [(octave.spacing, _placed(octave, tree, least, rng)) for octave in octaves]
        total = sum(len(shifts) for _, shifts in placed)
        if most < total <= wanted:
            best, most = placed, total
        if CLOSE * wanted <= total <= wanted:
            break
        # The number goes as spacing^-d; aim a little below it, and take steps of one octave.
        ratio = max(total, 1) / (0.985 * wanted)
        spacing *= float(np.clip(ratio ** (1 / d), 0.5, 2.0))
    # Where rows are few the number hardly changes with the spacing, and may never come close.
    if not best:
        middle = X.mean(axis=0, keepdims=True)  # of a few rows that are far apart
        best = _trimmed(placed, total - wanted, rng) if total else [(coarsest, middle)]
    return tuple(
        LocalAtoms.of_scale(wavelet, scales_per_spacing * width, shifts)
        for width, shifts in best
        if len(shifts)
    )


def _trimmed(
    placed: list[tuple[float, Array]], surplus: int, rng: np.random.Generator
) -> list[tuple[float, Array]]:
    """The atoms without so many of the finest, which fewest rows inform."""
    kept = []
    for spacing, shifts in placed[::-1]:
        drop = min(surplus, len(shifts))
        kept.append((spacing, shifts[np.sort(rng.permutation(len(shifts))[drop:])]))
        surplus -= drop
    return kept[::-1]


def _placed(lattice: _Lattice, tree: cKDTree, least: int, rng: np.random.Generator) -> Array:
    """Atoms near the middles of their cells; those that hardly touch a row are left out."""
    places = rng.uniform(0.5 - JITTER, 0.5 + JITTER, size=lattice.cells.shape) + lattice.cells
    shifts: Array = tree.mins + lattice.spacing * places
    doubtful = np.flatnonzero(lattice.empty)
    radius = OVERLAP[tree.m] * lattice.spacing
    reached = tree.query_ball_point(shifts[doubtful], radius, return_length=True)
    return np.delete(shifts, doubtful[reached < least], axis=0)


def _octaves(X: Array, finest: float, coarsest: float, least: int) -> list[_Lattice]:
    """All octaves from the coarsest spacing to the finest, those without atoms left out."""
    d = X.shape[1]
    around = max(1, int(REACH * OVERLAP[d]))
    depth = min(max(int(np.log2(coarsest / finest)), 0) + 1, DEEPEST[d])
    rows = np.floor((X - X.min(axis=0)) / finest).astype(np.int64)
    cells, counts = _merged(rows, np.ones((len(X), 1)))
    octaves: list[_Lattice] = []
    for octave in range(depth):
        near, reached = cells, np.hstack([counts, counts])
        for axis in range(d):
            near, reached = _spread(near, reached, axis, around)
        enough = reached[:, 0] >= least
        if enough.any():
            lattice = _Lattice(finest * 2.0**octave, near[enough], reached[enough, 1] == 0)
            octaves.append(lattice)
        cells, counts = _merged(cells >> 1, counts)
    return octaves[::-1]


def _spread(cells: IntArray, counts: Array, axis: int, around: int) -> tuple[IntArray, Array]:
    """Cells up to so many steps away along an axis: sums of rows that far around, and own rows."""
    shift = np.zeros(cells.shape[1], dtype=np.int64)
    shifted, carried = [], []
    for step in range(-around, around + 1):
        shift[axis] = step
        shifted.append(cells + shift)
        carried.append(counts * [1.0, float(step == 0)])
    return _merged(np.concatenate(shifted), np.concatenate(carried))


def _merged(cells: IntArray, counts: Array) -> tuple[IntArray, Array]:
    """Every cell once, with the sums of its counts."""
    low = cells.min(axis=0)
    sizes = tuple((cells.max(axis=0) - low + 1).tolist())
    keys = np.ravel_multi_index(tuple((cells - low).T), sizes)
    if prod(sizes) <= 4 * len(cells):  # a table is faster than sorting
        found = np.flatnonzero(np.bincount(keys))
        which = np.empty(prod(sizes), dtype=np.intp)
        which[found] = np.arange(len(found))
        which = which[keys]
    else:
        found, which = np.unique(keys, return_inverse=True)
    sums = [np.bincount(which, weights=c).astype(np.float64) for c in counts.T]
    return np.stack(np.unravel_index(found, sizes), axis=1) + low, np.stack(sums, axis=1)
