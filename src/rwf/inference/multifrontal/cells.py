"""Rows sorted by leaf and by small cells within it, so that a cell's rows share most columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.inference.multifrontal.dissection import Dissection
from rwf.linalg.threads import cores

BATCHES_PER_CORE = 4  # more batches than cores even out their different costs


@dataclass(frozen=True)
class SortedRows:
    """Rows in the order of their cells."""

    order: IntArray  # the original number of every row, shape (n,)
    XT: Array  # inputs in this order, shape (d, n)
    root: Array  # what multiplies the features of every row, in this order, shape (n,)
    cells: IntArray  # leaf, begin and end of every cell, shape (cells, 3), ascending by leaf

    @classmethod
    def of(cls, dissection: Dissection, X: Array, root: Array | None, most_rows: int) -> Self:
        from rwf.inference.multifrontal import _rows

        X = np.ascontiguousarray(X, dtype=np.float64)
        leaves, order = np.empty((2, len(X)), dtype=np.intp)
        _rows.route(X, dissection.axes, dissection.cuts, dissection.right, leaves)
        starts = np.empty(dissection.n_nodes + 1, dtype=np.intp)
        _rows.counting_sort(leaves, starts, order)
        cells = np.empty((len(X), 3), dtype=np.intp)
        count = _rows.split(X, order, starts, most_rows, cells)
        ordered = np.ones(len(X)) if root is None else root[order]
        return cls(order, np.ascontiguousarray(X[order].T), ordered, cells[:count].copy())

    def batches(self) -> list[IntArray]:
        """The cells in several parts of about equal size, none of which share a leaf."""
        wanted = min(BATCHES_PER_CORE * cores(), len(self.cells))
        if wanted <= 1:
            return [self.cells] if len(self.cells) else []
        first = np.flatnonzero(np.diff(self.cells[:, 0], prepend=-1))
        shares = np.linspace(0, len(self.cells), wanted + 1)[1:-1]
        at = np.unique(first[np.searchsorted(first, shares, side="right") - 1])
        return [part for part in np.split(self.cells, at) if len(part)]
