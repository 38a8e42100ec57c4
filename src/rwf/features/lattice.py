r"""A lattice of atoms in every octave, jittered, with a spacing in proportion to the scale.

Octave o has scale :math:`s_o = s_0 2^{-o}` and atoms :math:`s_o/c` apart in every column, so that
all scales are present everywhere, and a prior variance per octave and place is the measure p(s, t)
itself, to be fitted. Atoms with hardly any row in reach are left out, so that regions of more rows
have finer atoms.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array
from rwf.features.local import LocalAtoms
from rwf.wavelets import Wavelet

DENSITY = {1: 2.0, 2: 1.25, 3: 1.0}  # atoms per scale length by d: in more columns they cost more
LEAST_ROWS = 8  # rows in reach of an atom: with fewer the prior alone gives its weight
REACH = 2.0  # of an atom, in scales; atoms begin half of that beyond the data
COARSEST = 2.0 ** np.linspace(0.0, -1.0, 9)  # coarsest scales to try, over half the span


def draw_lattice(
    wavelet: Wavelet, X: Array, n_features: int, rng: np.random.Generator
) -> tuple[LocalAtoms, ...]:
    """At most ``n_features`` atoms, as fine as that number and the rows X allow."""
    half = 0.5 * float(np.ptp(X, axis=0).max())
    half = half if half > 0 else 1.0
    tree = cKDTree(X)
    lattices = [
        _octaves(wavelet, X, tree, half * share, n_features, np.random.default_rng(seed))
        for share, seed in zip(COARSEST, rng.integers(2**63, size=len(COARSEST)), strict=True)
    ]
    return max(lattices, key=lambda octaves: sum(octave.n_features for octave in octaves))


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
