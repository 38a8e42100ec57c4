"""A stack of features with fewer atoms, and its columns as combinations of those there were.

Statistics of rows follow such combinations, Z′ = ZC, without the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from rwf.features.base import AtomMap, FeatureMap
from rwf.features.mixture import ProjectedFeatures
from rwf.features.stack import Stack
from rwf.types import Array, IntArray


@dataclass(frozen=True)
class Thinned:
    """What is left of a stack.

    Args:
        stack: the blocks of which something is left.
        C: Z′ = ZC, shape (p, q).
        growth: the factor of every column that is left, shape (q,): atoms carry m^-½, and there are
            fewer of them now. The variance of its weight falls by the square of it.
    """

    stack: Stack
    C: Array
    growth: Array


def column_owners(stack: Stack) -> IntArray:
    """The atom of every column, numbered through all blocks, shape (p,); -1 for a trend."""
    owners, first = [], 0
    for part in stack.maps:
        if isinstance(part, AtomMap):
            owners.append(first + np.arange(part.n_features) % part.n_atoms)
            first += part.n_atoms
        else:
            owners.append(np.full(part.n_features, -1))
    return np.concatenate(owners).astype(np.intp)


def thinned(stack: Stack, keep: IntArray) -> Thinned:
    """The stack with some of its columns, ascending; all columns of an atom, and every trend."""
    maps, cells, blocks, growth, first = [], [], [], [], 0
    for block, part in enumerate(stack.maps):
        mine = keep[(keep >= first) & (keep < first + part.n_features)] - first
        first += part.n_features
        C = np.eye(part.n_features)[:, mine]
        factor = 1.0
        if isinstance(part, AtomMap) and len(mine):
            which = np.unique(mine % part.n_atoms)
            part, C, factor = _fewer(part, which, C)
        if len(mine):
            maps.append(part)
            if stack.cells is not None:
                cells.append(np.unique(stack.cells[block][mine], return_inverse=True)[1])
        blocks.append(C)
        growth.append(np.full(len(mine), factor))
    left = Stack(tuple(maps), None if stack.cells is None else tuple(cells))
    return Thinned(left, block_diag(*blocks), np.concatenate(growth))


def _fewer(part: AtomMap, which: IntArray, C: Array) -> tuple[FeatureMap, Array, float]:
    """Some atoms of a block, their columns as combinations, and the factor of these."""
    smaller = part.take(which)
    if isinstance(part, ProjectedFeatures) and isinstance(smaller, ProjectedFeatures):
        # z′ = L′⁻¹k_T′ = L′⁻¹L_T′z
        return smaller, solve_triangular(smaller.L, part.L[which], lower=True).T, 1.0
    factor = float(np.sqrt(part.n_atoms / len(which)))
    return smaller, factor * C, factor
