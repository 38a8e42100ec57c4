"""Rows of Parquet and CSV files, by the names of their columns, a batch of rows at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import checked, digest, skipped
from rwf.data.readers.files import TableFile, arrow, open_table
from rwf.data.rows import Block

if TYPE_CHECKING:
    import pyarrow

ENDS = 2**16
"""Bytes at both ends of a file by which it is told from others."""


@dataclass(frozen=True)
class TableReader:
    """Rows of files that are one table.

    Args:
        files: in the order of their rows.
        names: the input columns.
        targets: the target columns; none if only inputs are wanted.
        weight: the column that says how many times a row counts, if there is one.
        single_output: whether the target is one column, and not a table of one.
    """

    files: tuple[TableFile, ...]
    names: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    single_output: bool

    @classmethod
    def of(
        cls,
        path: str,
        targets: Sequence[str] = (),
        weight: str | None = None,
        names: Sequence[str] | None = None,
        *,
        single_output: bool = False,
    ) -> TableReader:
        """A reader of a file, of all files in a folder, or of those that a pattern matches.

        Without names, inputs are all columns but targets and weights.
        """
        files = open_table(path)
        others = {*targets, *([] if weight is None else [weight])}
        if names is None:
            names = [name for name in files[0].schema.names if name not in others]
        reader = cls(files, tuple(names), tuple(targets), weight, single_output)
        for file in files:
            _require_numbers(file, reader.columns)
        if not names:
            raise ValueError(f"{files[0].path} has no column beside {sorted(others)}.")
        return reader

    @property
    def columns(self) -> tuple[str, ...]:
        """All that are read."""
        return (*self.names, *self.targets, *([] if self.weight is None else [self.weight]))

    @property
    def n_inputs(self) -> int:
        return len(self.names)

    @property
    def n_outputs(self) -> int:
        return len(self.targets)

    @property
    def n_rows(self) -> int | None:
        return total_rows(self.files)

    def read(self, start: int = 0) -> Iterator[Block]:
        return rows_from(self.files, start, self._read)

    def _read(self, file: TableFile, row: int) -> Iterator[Block]:
        d, k = self.n_inputs, self.n_outputs
        for batch in file.batches(self.columns, row):
            if not batch.num_rows:
                continue
            table = np.empty((batch.num_rows, len(self.columns)))
            for index, name in enumerate(self.columns):
                table[:, index] = values_in(batch.column(name))
            yield checked(
                np.ascontiguousarray(table[:, :d]),
                np.ascontiguousarray(table[:, d : d + k]),
                np.ones(len(table)) if self.weight is None else table[:, -1].copy(),
                functools.partial(place_in, file.path, row),
                lambda column: f"column {self.names[column]!r}",
                lambda column: f"column {self.targets[column]!r}",
            )
            row += batch.num_rows

    def fingerprint(self) -> dict[str, str]:
        found = {
            "columns": ", ".join(self.names),
            "targets": ", ".join(self.targets),
            "weight": str(self.weight),
        }
        for file in self.files:
            found[f"file {file.path.name}"] = content_of(file.path)
        return found


def content_of(path: Path) -> str:
    """By what a file is told from others, without reading all of it."""
    size = path.stat().st_size
    with path.open("rb") as content:
        ends = [content.read(ENDS)]
        content.seek(max(0, size - ENDS))
        ends.append(content.read(ENDS))
    return f"{size} bytes, {digest(ends)}"


def rows_from(
    files: Sequence[TableFile], start: int, read: Callable[[TableFile, int], Iterator[Block]]
) -> Iterator[Block]:
    """The rows of all files from some row on; read gives those of one file."""
    for file in files:
        if file.n_rows is not None and start >= file.n_rows:
            start -= file.n_rows
        elif file.n_rows is not None:
            yield from read(file, start)
            start = 0
        else:
            seen = 0
            for piece in read(file, 0):
                yield from skipped([piece], max(0, start - seen))
                seen += len(piece)
            start = max(0, start - seen)


def total_rows(files: Sequence[TableFile]) -> int | None:
    """How many rows all files have, if that is known without reading them."""
    counts = [file.n_rows for file in files if file.n_rows is not None]
    return sum(counts) if len(counts) == len(files) else None


def _require_numbers(file: TableFile, columns: Sequence[str]) -> None:
    """That a file has these columns, and that they hold numbers."""
    pa, schema = arrow(""), file.schema
    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ValueError(
            f"{file.path} has no column {', '.join(map(repr, missing))}; its columns are "
            f"{', '.join(map(repr, schema.names))}."
        )
    for name in columns:
        kind = schema.field(name).type
        is_number = (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_null(kind)
        )
        if not is_number:
            raise ValueError(
                f"column {name!r} of {file.path} holds {kind}, and not numbers. Encode it, for "
                "example with sklearn.preprocessing.OneHotEncoder, or write the table without it."
            )


def values_in(column: pyarrow.Array) -> Array:
    """A column in double precision; what is missing is NaN."""
    values: Array = column.cast(arrow("").float64(), safe=False).to_numpy(zero_copy_only=False)
    return values


def place_in(path: Path, first: int, row: int) -> str:
    return f"{path}, row {first + row} (the first is 0)"
