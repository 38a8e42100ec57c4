r"""Extrapolation: reversion to the prior variance where there are few atoms or none.

Far from its atoms a wavelet model predicts f = 0 with no variance. Block b of local columns has the
mean prior variance :math:`V_b` over the rows, and carries a share
:math:`c_b(x) = \min(1, e_b(x)/l_b)` of it at x, with :math:`e_b(x) = \sum_{j\in b} z_j(x)^2` and
the level :math:`l_b` its minimum over the rows: c = 1 among the data. The variance that is missing,
:math:`\sum_b V_b (1 - c_b(x))`, is added to that of f. A block that has no atoms at some row, such
as fine atoms at a few edges, has level zero and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf._types import Array, IntArray


def block_energies(Z: Array, blocks: IntArray) -> Array:
    """e_b at rows, shape (n, B)."""
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    energies: Array = np.add.reduceat(Z**2, starts, axis=1)
    return energies


def support_levels(energies: Array, local: Array) -> Array:
    """l of every block from e at some rows, shape (B,); zero for blocks that are not local."""
    return np.where(local, energies.min(axis=0), 0.0)


@dataclass(frozen=True)
class PriorReversion:
    """l and V of every block, shape (B,); a level of zero leaves a block out."""

    levels: Array
    variances: Array

    @classmethod
    def learn(cls, blocks: IntArray, levels: Array, means: Array, prior_variances: Array) -> Self:
        """From the block, the mean of z² and the prior variance of every column, shapes (p,)."""
        variances = np.bincount(blocks, means * prior_variances)
        return cls(levels, np.where(levels > 0, variances, 0.0))

    def missing(self, energies: Array) -> Array:
        """The variance to add at rows, shape (n,), from their e, shape (n, B)."""
        share = energies / np.where(self.levels > 0, self.levels, 1.0)
        missing: Array = np.maximum(1.0 - share, 0.0) @ self.variances
        return missing

    def support(self, energies: Array) -> Array:
        """The share of the local blocks' variance that atoms carry at rows, shape (n,)."""
        total = float(self.variances.sum())
        return np.ones(len(energies)) if total <= 0 else 1.0 - self.missing(energies) / total
