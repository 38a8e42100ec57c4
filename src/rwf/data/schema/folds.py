"""Some rows of a file: those that have a target, and those of a fold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rwf._types import BoolArray, IntArray
from rwf.data.readers.files import TableFile, arrow, values_in
from rwf.data.rows import Block

if TYPE_CHECKING:
    import pyarrow

FOLDS = 5  # parts into which rows are dealt
PERIOD = 2000  # groups of rows after which they are dealt alike

Keep: TypeAlias = "Callable[[pyarrow.RecordBatch, int], BoolArray]"


@dataclass(frozen=True)
class FilteredFile(TableFile):
    """The rows of another file that a function of batches keeps."""

    file: TableFile
    looks_at: tuple[str, ...]  # the columns by which the function decides
    keep: Keep  # of a batch and the number of its first row

    @property
    def typed(self) -> bool:
        return self.file.typed

    @property
    def schema(self) -> pyarrow.Schema:
        return self.file.schema

    def batches(
        self, columns: Sequence[str], start: int, as_text: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        read = list(dict.fromkeys([*columns, *self.looks_at]))
        row = kept = 0
        for batch in self.file.batches(read, 0, as_text):
            rows = batch.filter(arrow().array(self.keep(batch, row))).select(list(columns))
            row += batch.num_rows
            if start < kept + rows.num_rows:
                yield rows.slice(max(0, start - kept))
            kept += rows.num_rows

    def content(self) -> str:
        return self.file.content()


def with_targets(file: TableFile, target: str) -> TableFile:
    """The rows of a file that have a target."""

    def keep(batch: pyarrow.RecordBatch, row: int) -> BoolArray:
        return ~np.isnan(values_in(batch.column(target)))

    return FilteredFile(file.path, file, (target,), keep)


def dealt(rows: IntArray) -> IntArray:
    """The folds of rows by their numbers: every five consecutive ones are dealt at random.

    So folds are equally large, and do not depend on the pieces in which rows are read.
    """
    pattern = np.random.default_rng(0).permuted(np.tile(np.arange(FOLDS), (PERIOD, 1)), axis=1)
    found: IntArray = pattern.ravel()[rows % pattern.size]
    return found


def rows_of_fold(
    files: Sequence[TableFile], target: str, fold: int, *, held: bool, folds: IntArray | None
) -> tuple[TableFile, ...]:
    """The rows of one fold, or all others.

    Args:
        files: whose rows all have a target.
        target: any of their columns.
        fold: its number.
        held: whether rows of the fold are wanted, or all others.
        folds: the fold of every row of all files; ``None`` deals the rows of each.
    """
    found, start = [], 0
    for file in files:
        own = None
        if folds is not None:
            count = sum(batch.num_rows for batch in file.batches([target], 0))
            own, start = folds[start : start + count], start + count
        found.append(FilteredFile(file.path, file, (target,), _in_fold(own, fold, held)))
    return tuple(found)


def _in_fold(folds: IntArray | None, fold: int, held: bool) -> Keep:
    def keep(batch: pyarrow.RecordBatch, row: int) -> BoolArray:
        rows = row + np.arange(batch.num_rows)
        own = dealt(rows) if folds is None else folds[rows]
        return np.asarray((own == fold) == held)

    return keep


def first_copies(rows: Block) -> IntArray:
    """For each row, the number of the first that equals it in inputs and targets."""
    table = np.ascontiguousarray(np.hstack([rows.X, rows.y]) + 0.0)  # -0 becomes 0
    whole = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    _, first, codes = np.unique(whole, return_index=True, return_inverse=True)
    found: IntArray = first[codes]
    return found
