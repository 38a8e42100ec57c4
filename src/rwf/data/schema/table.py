"""The columns of a table that a model takes, and what was done to make numbers of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.readers.base import require_columns
from rwf.data.readers.files import TableFile
from rwf.data.readers.table import Place
from rwf.data.schema.columns import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    SpelledColumn,
    TargetEncodedColumn,
    kind_of,
    missing_name,
)
from rwf.data.wording import aligned, counted

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class TableSchema:
    """Which columns of a table a model takes, in which order, and how they become numbers."""

    columns: tuple[
        NumberColumn | SpelledColumn | DateColumn | CategoryColumn | TargetEncodedColumn, ...
    ]
    target: str | None  # the column of y; None if it is not known
    weight: str | None = None  # the column that says how many times a row counts
    group: str | None = None  # the column of groups, which are held out together; no input
    given: tuple[str, ...] = ()  # all columns that were given as inputs, those left out, too
    named: bool = True  # whether their names are the user's, and not those of an array

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def as_text(self) -> tuple[str, ...]:
        """Names of the columns that files without types read as text."""
        return tuple(column.name for column in self.columns if column.as_text)

    def of_kind(self, kind: type) -> list[str]:
        """Names of the columns of one kind."""
        return [column.name for column in self.columns if type(column) is kind]

    def read_columns(self, *, targets: bool) -> tuple[str, ...]:
        """Names of the columns that are read: inputs, then the target and weights if wanted."""
        others = (self.target, self.weight) if targets else ()
        return (*(c.name for c in self.columns), *(name for name in others if name is not None))

    def encode(
        self, batch: pyarrow.RecordBatch, place: Place, *, strict: bool, folds: IntArray | None
    ) -> Array:
        """The inputs of some rows as numbers, shape (n, d)."""
        parts = [
            column.encode(batch.column(column.name), place, strict=strict, folds=folds)
            for column in self.columns
        ]
        return np.ascontiguousarray(np.hstack(parts))

    def check(self, file: TableFile, *, targets: bool) -> None:
        """That a table has these columns, and that they hold what they held in the fit."""
        where = str(file.path)
        require_columns(self.read_columns(targets=targets), file.schema.names, where)
        for column in self.columns:
            dtype = file.schema.field(column.name).type
            if not column.fits(dtype) and (file.typed or not column.as_text):
                raise _wrong_type(column.name, where, dtype, column.holds)
        for name in [self.target, self.weight] if targets else []:
            if name is not None and kind_of(file.schema.field(name).type) not in (
                "number",
                "nothing",
            ):
                raise _wrong_type(name, where, file.schema.field(name).type, "numbers")


def _wrong_type(name: str, where: str, dtype: pyarrow.DataType, wanted: str) -> ValueError:
    return ValueError(
        f"column {name!r} of {where} holds {dtype}, and should hold {wanted}, as in the fit: "
        "correct the column, or fit a model to it."
    )


@dataclass(frozen=True, repr=False)
class Preparation:
    """What was found in a table and done about it. Printed, it is about ten lines."""

    schema: TableSchema
    n_rows: int  # all rows that were read
    without_target: int = 0  # which were left out
    repeated: int = 0  # rows that repeat another exactly
    left_out: tuple[tuple[str, str], ...] = ()  # columns, and why

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What is said, each with a label."""
        return [line for line in self._lines() if line[1]]

    def _lines(self) -> Iterator[tuple[str, str]]:
        schema, columns = self.schema, self.schema.columns
        yield "rows", self._rows()
        numbers = counted(len(schema.names), "number")
        yield "inputs", f"{counted(len(columns), 'column')}, as {numbers}"
        yield (
            "numbers",
            _some([c.name for c in columns if type(c) in (NumberColumn, SpelledColumn)]),
        )
        yield "dates", _some([_dated(c) for c in columns if type(c) is DateColumn])
        few = [f"{c.name} ({len(c.categories)})" for c in columns if type(c) is CategoryColumn]
        yield "one-hot", _some(few)
        many = [
            f"{c.name} ({len(c.categories)})" for c in columns if type(c) is TargetEncodedColumn
        ]
        yield "mean target", _some(many)
        yield "missing", _some([_filled(column) for column in columns if column.gaps])
        yield "left out", _some([f"{name} ({why})" for name, why in self.left_out])

    def _rows(self) -> str:
        parts = [f"{self.n_rows:,} read"]
        if self.without_target:
            parts.append(f"{self.without_target:,} without {self.schema.target!r} left out")
        if self.repeated:
            parts.append(f"{self.repeated:,} repeat another exactly")
        return ", ".join(parts)

    def __repr__(self) -> str:
        return aligned(self.lines)


def _some(names: list[str], most: int = 12) -> str:
    """Some names, and how many there are beside them."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _dated(column: DateColumn) -> str:
    cycles = " and ".join(column.cycles)
    return f"{column.name} (days{f', cycle of the {cycles}' if cycles else ''})"


def _filled(column: NumberColumn | CategoryColumn | TargetEncodedColumn) -> str:
    marked = ", marked" if missing_name(column.name) in column.names else ""
    return f"{column.name} ({column.gaps:,}: {column.imputed}{marked})"
