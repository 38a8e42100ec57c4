r"""The columns of a dictionary at sorted rows, compressed, and their moments by structure.

The moments are those of :func:`rwf.inference.moments.accumulate`: they add over rows. But steps
need partial sums alone, and local atoms only the rows where two of them overlap; and of the Gram
matrix of thousands of atoms, only the rows of the few that become active are ever made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf._types import Array
from rwf.inference.spike_slab.dictionary import STEP, Dictionary

if TYPE_CHECKING:
    from rwf.inference.spike_slab._atoms import Runs


@dataclass(frozen=True)
class CompressedColumns:
    """√v z_j at n sorted rows of weights v: local atoms, then steps."""

    runs: Runs

    @classmethod
    def of(cls, dictionary: Dictionary, x: Array, weights: Array) -> Self:
        """The columns at sorted inputs, shape (n,), of local atoms followed by steps."""
        from rwf.inference.spike_slab._atoms import Runs, fill_runs

        is_step = dictionary.kinds == STEP
        assert not is_step[:-1][np.diff(is_step)].any()
        local = dictionary.take(~is_step)
        first, last = local.runs(x)
        sizes = last - first
        total = int(sizes.sum())
        gaps = np.searchsorted(x, dictionary.shifts[is_step], side="left")
        room = (np.empty(total), np.empty(total))
        runs = Runs(first, sizes, np.cumsum(sizes) - sizes, *room, gaps, np.sqrt(weights))
        atoms = (local.kinds, local.scales, local.shifts, local.frequencies, local.phases)
        fill_runs(x, runs, *atoms)
        return cls(runs)

    @property
    def n_atoms(self) -> int:
        return len(self.runs.first) + len(self.runs.gaps)

    @cached_property
    def energies(self) -> Array:
        """‖√v z_j‖², shape (m,)."""
        from rwf.inference.spike_slab._atoms import energies

        out = np.empty(self.n_atoms)
        energies(self.runs, out)
        return out

    def products(self, A: Array) -> Array:
        """ZᵀV^½A, shape (m, q), for rows A, shape (n, q), already times √v."""
        from rwf.inference.spike_slab._atoms import products

        out = np.empty((self.n_atoms, A.shape[1]))
        products(self.runs, np.ascontiguousarray(A), out)
        return out
