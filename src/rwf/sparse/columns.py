r"""The columns of a dictionary at sorted rows, compressed, and their moments by structure.

The moments are those of :func:`rwf.moments.accumulate`: they add over rows. But where it needs
n m² products, here steps need partial sums alone, and local atoms only the rows where two of them
overlap, so that a Gram matrix of thousands of atoms takes about as long as to write it down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf.sparse.dictionary import STEP, Dictionary
from rwf.types import Array, FloatArray, IntArray


@dataclass(frozen=True)
class Columns:
    """√v z_j at n sorted rows of weights v: local atoms, then steps.

    Args:
        first: the first row of each local atom's run.
        last: one past its last row.
        starts: where the run is among the values.
        values: √v z on all runs.
        gaps: how many rows are before each step.
        root: √v, shape (n,).
    """

    first: IntArray
    last: IntArray
    starts: IntArray
    values: Array
    gaps: IntArray
    root: Array

    @classmethod
    def of(cls, dictionary: Dictionary, x: Array, weights: Array) -> Self:
        """The columns at sorted inputs, shape (n,), of local atoms followed by steps."""
        from rwf.sparse import _atoms

        is_step = dictionary.kinds == STEP
        assert not is_step[:-1][np.diff(is_step)].any()
        local = dictionary.take(~is_step)
        first, last = local.runs(x)
        ends = np.cumsum(last - first)
        starts, root = ends - (last - first), np.sqrt(weights)
        values = np.empty(int(ends[-1]) if len(ends) else 0)
        atoms = (local.kinds, local.scales, local.shifts, local.frequencies, local.phases)
        _atoms.columns(x, root, first, last, starts, *atoms, values)
        gaps = np.searchsorted(x, dictionary.shifts[is_step], side="left")
        return cls(first, last, starts, values, gaps, root)

    @property
    def n_atoms(self) -> int:
        return len(self.first) + len(self.gaps)

    def gram(self, G: FloatArray) -> None:
        """Fill the upper triangle of G, shape (m, m), with ZᵀVZ."""
        from rwf.sparse import _atoms

        runs = (self.first, self.last, self.starts, self.values)
        _atoms.local_gram(*runs, G)
        _atoms.step_gram(*runs, self.root, self.gaps, G)

    def products(self, A: Array) -> Array:
        """ZᵀV^½A, shape (m, q), for rows A, shape (n, q), already times √v."""
        from rwf.sparse import _atoms

        out = np.empty((self.n_atoms, A.shape[1]))
        rows = np.ascontiguousarray(A)
        runs = (self.first, self.last, self.starts, self.values)
        _atoms.products(*runs, self.gaps, self.root, rows, out)
        return out
