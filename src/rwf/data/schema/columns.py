"""Columns of a table as numbers: categories that were seen in the fit are one-hot encoded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import listed, require_columns
from rwf.data.readers.files import TableFile, arrow, is_number, values_in
from rwf.data.readers.table import Place
from rwf.errors import UnknownCategoryWarning

if TYPE_CHECKING:
    import pyarrow

Unknown = Literal["error", "zeros"]  # how a category is encoded that was not seen in the fit
Kind = Literal["number", "category"]


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers or truth values."""

    name: str
    dtype: str  # in the fit
    fill: float | None = None  # replaces a missing value; None if that is an error

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name,)

    def encode(self, values: pyarrow.Array, place: Place, unknown: Unknown) -> Array:
        """The numbers, shape (n, 1)."""
        numbers = values_in(values)
        missing = np.isnan(numbers)
        if missing.any():
            numbers = np.where(missing, _filled(self, missing, place), numbers)
        return numbers[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A categorical column."""

    name: str
    dtype: str  # in the fit
    categories: tuple[str, ...]  # those seen in the fit, sorted
    fill: str | None = None  # replaces a missing or empty value; None if that is an error

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, values: pyarrow.Array, place: Place, unknown: Unknown) -> Array:
        """One-hot encoded, shape (n, c)."""
        values = as_strings(values, self.name)
        missing = missing_strings(values)
        known = arrow().array(self.categories, type=arrow().string())
        codes = arrow("compute").index_in(values, value_set=known)
        codes = codes.fill_null(-1).to_numpy(zero_copy_only=False).copy()
        if missing.any():
            codes[missing] = self.categories.index(str(_filled(self, missing, place)))
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            what = (
                f"{place(row)}, column {self.name!r}: {values[row].as_py()!r} was not among its "
                f"categories in the fit, which are {listed(self.categories)}."
            )
            if unknown == "error":
                raise ValueError(
                    f"{what} Correct it, or encode it as zeros: unknown='zeros', or --unknown "
                    "zeros."
                )
            warnings.warn(
                f"{what} It is encoded as zeros, and so are others like it.",
                UnknownCategoryWarning,
                stacklevel=2,
            )
        return np.asarray(codes[:, None] == np.arange(len(self.categories)), dtype=np.float64)


def _filled(
    column: NumberColumn | CategoryColumn, missing: np.ndarray, place: Place
) -> float | str:
    """The replacement of missing values, if there is one."""
    if column.fill is None:
        raise ValueError(
            f"{place(int(np.argmax(missing)))}, column {column.name!r}: a missing value. Drop such "
            "rows, or fit with missing='impute', or --missing impute, which takes the median of "
            "numbers and the most frequent category."
        )
    return column.fill


def as_strings(values: pyarrow.Array, name: str) -> pyarrow.Array:
    """The column of this name as strings."""
    strings = values.cast(arrow().string())
    try:
        strings.validate(full=True)
    except arrow().ArrowInvalid as error:
        raise ValueError(f"the text of column {name!r} cannot be read: {error}") from None
    return strings


def missing_strings(strings: pyarrow.Array) -> np.ndarray:
    """Which strings are missing, or empty, as they are in a CSV file, shape (n,)."""
    empty = arrow("compute").equal(strings, "").fill_null(True)
    found: np.ndarray = empty.to_numpy(zero_copy_only=False).astype(bool)
    return found


def kind_of(dtype: pyarrow.DataType) -> Kind | None:
    """What a column of this type holds, if it can be used."""
    types = arrow().types
    if is_number(dtype):
        return "number"
    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    return "category" if types.is_string(dtype) or types.is_large_string(dtype) else None


@dataclass(frozen=True)
class TableSchema:
    """Which columns of a table a model takes, in which order, and how they become numbers."""

    columns: tuple[NumberColumn | CategoryColumn, ...]  # the inputs
    target: str | None  # the column of y; None if it is not known
    weight: str | None = None  # the column that says how many times a row counts
    group: str | None = None  # the column of groups, which are held out together; no input

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the categorical columns."""
        return tuple(c.name for c in self.columns if isinstance(c, CategoryColumn))

    def read_columns(self, *, targets: bool) -> tuple[str, ...]:
        """Names of the columns that are read: inputs, then the target and weights if wanted."""
        others = (self.target, self.weight) if targets else ()
        return (*(c.name for c in self.columns), *(name for name in others if name is not None))

    def encode(self, batch: pyarrow.RecordBatch, place: Place, unknown: Unknown) -> Array:
        """The inputs of some rows as numbers, shape (n, d)."""
        parts = [c.encode(batch.column(c.name), place, unknown) for c in self.columns]
        return np.ascontiguousarray(np.hstack(parts))

    def check(self, file: TableFile, *, targets: bool) -> None:
        """That a table has these columns, and that they hold what they held in the fit."""
        wanted = self.read_columns(targets=targets)
        require_columns(wanted, file.schema.names, str(file.path))
        for name in wanted:
            dtype, wants = file.schema.field(name).type, "number"
            if name in self.categorical:
                if not file.typed:
                    continue  # what looks like numbers may be meant as categories
                wants = "category"
            if kind_of(dtype) != wants:
                then = "text" if wants == "category" else "numbers"
                raise ValueError(
                    f"column {name!r} of {file.path} holds {dtype}, and should hold {then}, as in "
                    "the fit: correct the column, or fit a model to it."
                )
