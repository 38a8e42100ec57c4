"""A stack of features with its dissection, on which rows are sorted and moments are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.features.base import Stack
from rwf.inference.multifrontal.cells import SortedRows
from rwf.inference.multifrontal.dissection import LEAF_COLUMNS, Dissection, dissect
from rwf.inference.multifrontal.supports import ColumnSupports
from rwf.linalg.threads import in_parallel

if TYPE_CHECKING:
    from rwf.inference.multifrontal._rows import ColumnTable

CELL_ROWS = 256  # most rows of a cell: fewer meet fewer columns, but make products slower


@dataclass(frozen=True)
class AtomTree:
    """The columns of a stack, and the tree that they are on."""

    columns: ColumnSupports  # supports and values of the columns
    # the tree; it depends on supports alone, so that statistics of any rows add
    dissection: Dissection

    @classmethod
    def of(cls, features: Stack, n_inputs: int, leaf_columns: int = LEAF_COLUMNS) -> Self:
        """The tree of a stack of feature maps."""
        columns = ColumnSupports(features, n_inputs)
        return cls(columns, dissect(columns.centres, columns.radii, leaf_columns))

    @property
    def n_features(self) -> int:
        return self.dissection.n_columns

    @cached_property
    def _table(self) -> ColumnTable:
        return self.columns.table(self.dissection.order)

    @cached_property
    def _others(self) -> bool:
        """Whether some columns have no compiled formula."""
        from rwf.inference.multifrontal import _rows

        return bool((self._table.kinds == _rows.OTHER).any())

    def sorted_rows(self, X: Array, root: Array | None = None) -> SortedRows:
        """Rows by leaf, in small cells; features are to be multiplied by ``root``."""
        if X.ndim != 2 or X.shape[1] != self.columns.n_inputs:
            raise ValueError(
                f"X has shape {X.shape}, but the atoms have {self.columns.n_inputs} inputs: give "
                f"an array of shape (n, {self.columns.n_inputs})."
            )
        coordinates = self.columns.features.coordinates(X)
        return SortedRows.of(self.dissection, coordinates, root, CELL_ROWS)

    def workspace(self, extra: int = 0) -> Workspace:
        """Memory for the features of one cell, and of ``extra`` lines more."""
        widest = int(self.dissection.fronts.max()) + extra
        return Workspace(np.empty(widest * CELL_ROWS), np.empty(widest, dtype=np.intp))

    def features_of(
        self, rows: SortedRows, leaf: int, begin: int, end: int, work: Workspace
    ) -> tuple[IntArray, Array]:
        """Places in the leaf's list of the columns that reach a cell, and their Zᵀ, in ``work``."""
        from rwf.inference.multifrontal import _rows

        columns = self.dissection.columns(leaf)
        count = _rows.features(
            rows.XT, begin, end, rows.root, columns, self._table, work.places, work.values
        )
        places, n = work.places[:count], end - begin
        Z = work.values[: count * n].reshape(count, n)
        if self._others:
            self._fill_others(rows, begin, end, columns[places], Z)
        return places, Z

    def in_columns(self, X: Array) -> Array:
        """Zᵀ of a few rows, one line per column in the order of the tree, shape (p, n)."""
        rows, work = self.sorted_rows(X), self.workspace()
        out = np.zeros((self.n_features, len(X)))
        for leaf, begin, end in rows.cells.tolist():
            places, Z = self.features_of(rows, leaf, begin, end, work)
            out[np.ix_(self.dissection.columns(leaf)[places], rows.order[begin:end])] = Z
        return out

    def times(self, X: Array, W: Array) -> Array:
        """ZW of many rows, for W in the original order of columns, shape (n, q)."""
        weights = self.dissection.in_tree_order(W)
        return self._by_row(X, W.shape[1], lambda columns, Z: Z.T @ weights[columns])

    def block_energies(self, X: Array) -> Array:
        """Σz² of every block of columns at rows, shape (n, B)."""
        blocks = self.columns.features.blocks[self.dissection.order]
        every = np.arange(len(self.columns.features.maps))[:, None]

        def energies(columns: IntArray, Z: Array) -> Array:
            sums: Array = (blocks[columns] == every).astype(np.float64) @ (Z * Z)
            return sums.T

        return self._by_row(X, len(every), energies)

    def _by_row(self, X: Array, width: int, values: Callable[[IntArray, Array], Array]) -> Array:
        """Values of rows, shape (n, width), from the columns that reach a cell and their Zᵀ."""
        rows, out = self.sorted_rows(X), np.empty((len(X), width))

        def fill(cells: IntArray) -> None:
            work = self.workspace()
            for leaf, begin, end in cells.tolist():
                places, Z = self.features_of(rows, leaf, begin, end, work)
                out[rows.order[begin:end]] = values(self.dissection.columns(leaf)[places], Z)

        in_parallel(fill, rows.batches())
        return out

    def _fill_others(
        self, rows: SortedRows, begin: int, end: int, columns: IntArray, Z: Array
    ) -> None:
        from rwf.inference.multifrontal import _rows

        which = np.flatnonzero(self._table.kinds[columns] == _rows.OTHER)
        if len(which):
            X = np.ascontiguousarray(rows.XT[:, begin:end].T)
            values = self.columns.values(X, self.dissection.order[columns[which]])
            Z[which] = values.T * rows.root[begin:end]


@dataclass(frozen=True)
class Workspace:
    """Buffers of one thread."""

    values: Array
    places: IntArray
