"""Columns of many categories, encoded by the mean target of each (Micci-Barreca 2001)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.readers.files import TableFile, values_in
from rwf.data.readers.table import Place
from rwf.data.schema.columns import CategoryColumn, TargetEncodedColumn
from rwf.data.schema.folds import FOLDS, dealt
from rwf.data.schema.table import TableSchema

if TYPE_CHECKING:
    import pyarrow

LEAST, MOST = 0.1, 1e4  # smoothing, in rows


def encode_by_target(
    files: Sequence[TableFile], schema: TableSchema, names: Collection[str]
) -> TableSchema:
    """The schema with some categorical columns encoded by the target, in one pass over the rows."""
    columns = [c for c in schema.columns if type(c) is CategoryColumn and c.name in names]
    sums = {c.name: _Sums(c) for c in columns}
    read = [*sums, *schema.read_columns(targets=True)[len(schema.columns) :]]
    for file in files:
        row = 0
        for batch in file.batches(read, 0, [*sums]):
            y, weights = values_in(batch.column(str(schema.target))), np.ones(batch.num_rows)
            if schema.weight is not None:
                weights = values_in(batch.column(schema.weight))
            folds = dealt(row + np.arange(batch.num_rows))
            for name, each in sums.items():
                each.add(batch.column(name), Place(file.path, row), (y, weights), folds)
            row += batch.num_rows
    found = tuple(sums[c.name].column if c.name in sums else c for c in schema.columns)
    return replace(schema, columns=found)


class _Sums:
    """Sums over the rows of each category in each fold."""

    def __init__(self, column: CategoryColumn) -> None:
        self._column = column
        self._size = len(column.categories)
        self._sums, self._counts = np.zeros((FOLDS, self._size)), np.zeros((FOLDS, self._size))
        self._squares = 0.0

    def add(
        self, values: pyarrow.Array, place: Place, rows: tuple[Array, Array], folds: np.ndarray
    ) -> None:
        codes, missing = self._column.codes(values, place, strict=False)
        y, weights = (each[~missing] for each in rows)
        where = (folds[~missing], codes[~missing])
        np.add.at(self._counts, where, weights)
        np.add.at(self._sums, where, weights * y)
        self._squares += float(weights @ y**2)

    @property
    def column(self) -> TargetEncodedColumn:
        c = self._column
        sums, counts = (tuple(map(tuple, t.tolist())) for t in (self._sums, self._counts))
        return TargetEncodedColumn(
            c.name, c.dtype, c.categories, sums, counts, self._smoothing, c.gaps
        )

    @property
    def _smoothing(self) -> float:
        """The ratio of variances within and between categories, by their mean squares (ANOVA)."""
        S, N = self._sums.sum(axis=0), self._counts.sum(axis=0)
        S, N = S[N > 0], N[N > 0]
        n, c = float(N.sum()), len(N)
        between = float((S**2 / N).sum() - S.sum() ** 2 / n) if n else 0.0
        within = max(self._squares - float((S**2 / N).sum()), 0.0) / max(n - c, 1.0)
        size = (n - float((N**2).sum()) / n) if n else 1.0  # c - 1 times the usual count
        variance = max(between - (c - 1) * within, 0.0) / max(size, 1e-300)
        return float(np.clip(within / max(variance, 1e-300), LEAST, MOST))
