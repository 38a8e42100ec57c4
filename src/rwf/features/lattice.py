r"""A frame: octave after octave of atoms on a jittered lattice, as dense as their scale asks for.

Octave o has scale :math:`s_o = s_0 2^{-o}` and atoms :math:`s_o/c` apart in every column, so that
all scales cover all places, fine atoms are local, and a prior variance per octave and place is the
measure p(s, t) itself, to be learned. Atoms that hardly any row would inform are left out, so that
dense regions have finer atoms than sparse ones.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array
from rwf.features.local import LocalAtoms
from rwf.wavelets import Wavelet

DENSITY = {1: 2.0, 2: 1.25, 3: 1.0}
"""Atoms per scale length in every column, by the number of columns."""

LEAST_ROWS = 8
"""An atom needs so many rows in reach."""

REACH = 2.0
"""Scales within which rows inform an atom; atoms begin half of that beyond the data."""

COARSEST = 2.0 ** np.linspace(0.0, -1.0, 9)
"""Coarsest scales to choose from, as a share of half the span."""


def draw_lattice(
    wavelet: Wavelet, X: Array, n_features: int, rng: np.random.Generator
) -> tuple[LocalAtoms, ...]:
    """At most ``n_features`` atoms, as fine as that number and the rows X allow.

    Of several coarsest scales, the one that uses most of the number is taken.
    """
    half = 0.5 * float(np.ptp(X, axis=0).max())
    half = half if half > 0 else 1.0
    tree = cKDTree(X)
    frames = [
        _octaves(wavelet, X, tree, half * share, n_features, np.random.default_rng(seed))
        for share, seed in zip(COARSEST, rng.integers(2**63, size=len(COARSEST)), strict=True)
    ]
    return max(frames, key=lambda frame: sum(octave.n_features for octave in frame))


def _octaves(
    wavelet: Wavelet,
    X: Array,
    tree: cKDTree,
    scale: float,
    n_features: int,
    rng: np.random.Generator,
) -> tuple[LocalAtoms, ...]:
    octaves: list[LocalAtoms] = []
    left = n_features
    least = min(LEAST_ROWS, len(X))
    while left > 0:
        spacing = scale / DENSITY[X.shape[1]]
        sides = np.ptp(X, axis=0) + REACH * scale
        if float(np.prod(np.ceil(sides / spacing))) > 64 * left:
            break
        shifts = _lattice(X.min(axis=0) - 0.5 * REACH * scale, sides, spacing, rng)
        reached = tree.query_ball_point(shifts, REACH * scale, return_length=True)
        shifts = shifts[reached >= least]
        if not 0 < len(shifts) <= left:
            break
        octaves.append(LocalAtoms.of_scale(wavelet, scale, shifts))
        left -= len(shifts)
        scale *= 0.5
    return tuple(octaves) or (LocalAtoms.of_scale(wavelet, scale, X[:1]),)


def _lattice(corner: Array, sides: Array, spacing: float, rng: np.random.Generator) -> Array:
    """One point at random in every cell of a grid over a box."""
    counts = np.maximum(np.ceil(sides / spacing), 1).astype(np.intp)
    index = np.stack(np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"), axis=-1)
    index = index.reshape(-1, len(counts))
    return corner + (index + rng.uniform(size=index.shape)) / counts * sides
