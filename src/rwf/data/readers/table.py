"""Rows of tables, by the names of their columns, a batch of rows at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rwf.data.readers.base import (
    Reader,
    RowLayout,
    checked,
    inputs_among,
    require_columns,
    row_place,
    skipped,
)
from rwf.data.readers.files import TableFile, is_number, values_in
from rwf.data.readers.formats import open_table
from rwf.data.rows import Block

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Place:
    """Where the rows of a batch are, for errors."""

    where: object
    first: int  # the number of its first row

    def __call__(self, row: int) -> str:
        return row_place(self.where, self.first, row)


@dataclass(frozen=True)
class FilesReader(Reader):
    """Rows of files that are one table; subclasses turn their columns into numbers."""

    files: tuple[TableFile, ...]  # in the order of their rows

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""

    @property
    def as_text(self) -> tuple[str, ...]:
        """Those that files without types read as text."""
        return ()

    @abstractmethod
    def _block(self, batch: pyarrow.RecordBatch, place: Place) -> Block: ...

    @property
    def n_rows(self) -> int | None:
        counts = [file.n_rows for file in self.files if file.n_rows is not None]
        return sum(counts) if len(counts) == len(self.files) else None

    def read(self, start: int = 0) -> Iterator[Block]:
        for file in self.files:
            if file.n_rows is not None and start >= file.n_rows:
                start -= file.n_rows
            elif file.n_rows is not None:
                yield from self._read(file, start)
                start = 0
            else:
                seen = 0
                for piece in self._read(file, 0):
                    yield from skipped([piece], max(0, start - seen))
                    seen += len(piece)
                start = max(0, start - seen)

    def _read(self, file: TableFile, row: int) -> Iterator[Block]:
        for batch in file.batches(self.columns, row, self.as_text):
            if batch.num_rows:
                yield self._block(batch, Place(file.path, row))
                row += batch.num_rows

    def fingerprint(self) -> dict[str, str]:
        found = {f"file {file.path.name}": file.content() for file in self.files}
        return {"columns": ", ".join(self.layout.names or ()), **found}


@dataclass(frozen=True)
class TableReader(FilesReader):
    """Rows of a table of numbers."""

    inputs: tuple[str, ...]
    target: str | tuple[str, ...]  # one column or several; () if only inputs are wanted
    weight: str | None  # the column that says how many times a row counts

    @classmethod
    def of(
        cls,
        path: str,
        target: str | Sequence[str] = (),
        weight: str | None = None,
        names: Sequence[str] | None = None,
    ) -> TableReader:
        """A reader of a file, folder or pattern; without names, all other columns are inputs."""
        files, target = open_table(path), target if isinstance(target, str) else tuple(target)
        reader = cls(files, (), target, weight)
        inputs = inputs_among(files[0].schema.names, reader.columns, names, str(files[0].path))
        reader = cls(files, inputs, target, weight)
        for file in files:
            _require_numbers(file, reader.columns)
        return reader

    @property
    def layout(self) -> RowLayout:
        single = isinstance(self.target, str)
        return RowLayout(len(self.inputs), len(self.targets), single, self.inputs)

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.inputs, *self.targets, *([] if self.weight is None else [self.weight]))

    def _block(self, batch: pyarrow.RecordBatch, place: Place) -> Block:
        d, k = self.n_inputs, self.n_outputs
        table = np.empty((batch.num_rows, len(self.columns)))
        for index, name in enumerate(self.columns):
            table[:, index] = values_in(batch.column(name))
        X, y = (np.ascontiguousarray(part) for part in (table[:, :d], table[:, d : d + k]))
        weights = np.ones(len(table)) if self.weight is None else table[:, -1].copy()
        return checked(X, y, weights, place, self.inputs, self.targets)

    def fingerprint(self) -> dict[str, str]:
        own = {"targets": ", ".join(self.targets), "weight": str(self.weight)}
        return {**super().fingerprint(), **own}


def _require_numbers(file: TableFile, columns: Sequence[str]) -> None:
    """That a file has these columns, and that they hold numbers."""
    require_columns(columns, file.schema.names, str(file.path))
    for name in columns:
        dtype = file.schema.field(name).type
        if not is_number(dtype):
            raise ValueError(
                f"column {name!r} of {file.path} holds {dtype}, and not numbers. "
                "rwf.TableRegressor takes tables with text, dates and missing values; or write the "
                "table without the column."
            )
