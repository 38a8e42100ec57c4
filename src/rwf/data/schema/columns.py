"""Columns of a table, and the numbers that they become.

Numbers and truth values stay as they are. A text becomes one column of zeros and ones for each of
the categories that were seen in the fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from rwf._types import Array
from rwf.data.readers.files import CSV, arrow
from rwf.data.readers.table import values_in
from rwf.errors import NoSuchColumnError, UnknownCategoryWarning

if TYPE_CHECKING:
    import pyarrow

Unknown = Literal["error", "zeros"]
"""What a text is that was not seen in the fit: an error, or none of the categories."""

Place = Callable[[int], str]
"""Where a row is, for errors."""

LISTED = 30
"""Names that an error lists, at most."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers or truth values.

    Args:
        name: of the column.
        dtype: what it held in the fit.
        fill: what stands for a missing value; ``None`` if that is an error.
    """

    name: str
    dtype: str
    fill: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called."""
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
    """A column of texts.

    Args:
        name: of the column.
        dtype: what it held in the fit.
        categories: the texts that it held, sorted.
        fill: what stands for a missing or empty text; ``None`` if that is an error.
    """

    name: str
    dtype: str
    categories: tuple[str, ...]
    fill: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    def encode(self, values: pyarrow.Array, place: Place, unknown: Unknown) -> Array:
        """One column of zeros and ones for each category, shape (n, c)."""
        texts = as_texts(values, self.name)
        missing = missing_texts(texts)
        known = arrow().array(self.categories, type=arrow().string())
        codes = arrow("compute").index_in(texts, value_set=known)
        codes = codes.fill_null(-1).to_numpy(zero_copy_only=False).copy()
        if missing.any():
            codes[missing] = self.categories.index(str(_filled(self, missing, place)))
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            what = (
                f"{place(row)}, column {self.name!r}: {texts[row].as_py()!r} was not among its "
                f"texts in the fit, which are {listed(self.categories)}."
            )
            if unknown == "error":
                raise ValueError(
                    f"{what} Mend it, or take it for none of them: unknown='zeros', or --unknown "
                    "zeros."
                )
            warnings.warn(
                f"{what} It counts as none of them, and so do others like it.",
                UnknownCategoryWarning,
                stacklevel=2,
            )
        return np.asarray(codes[:, None] == np.arange(len(self.categories)), dtype=np.float64)


def _filled(
    column: NumberColumn | CategoryColumn, missing: np.ndarray, place: Place
) -> float | str:
    """What stands for missing values, if anything does."""
    if column.fill is None:
        raise ValueError(
            f"{place(int(np.argmax(missing)))}, column {column.name!r}: a missing value. Drop such "
            "rows, or fit with missing='impute', or --missing impute, which takes the median of "
            "numbers and the most frequent text."
        )
    return column.fill


def as_texts(values: pyarrow.Array, name: str) -> pyarrow.Array:
    """The column of this name as texts."""
    texts = values.cast(arrow().string())
    try:
        texts.validate(full=True)
    except arrow().ArrowInvalid as error:
        raise ValueError(f"the text of column {name!r} cannot be read: {error}") from None
    return texts


def missing_texts(texts: pyarrow.Array) -> np.ndarray:
    """Which texts are missing, or empty, as they are in a CSV file, shape (n,)."""
    empty = arrow("compute").equal(texts, "").fill_null(True)
    found: np.ndarray = empty.to_numpy(zero_copy_only=False).astype(bool)
    return found


def kind_of(dtype: pyarrow.DataType) -> Literal["number", "text"] | None:
    """What a column of this type holds, if it can be used."""
    types = arrow().types
    if types.is_dictionary(dtype):
        dtype = dtype.value_type
        return "text" if _is_text(dtype) else None
    if (
        types.is_integer(dtype)
        or types.is_floating(dtype)
        or types.is_boolean(dtype)
        or types.is_decimal(dtype)
        or types.is_null(dtype)
    ):
        return "number"
    return "text" if _is_text(dtype) else None


def _is_text(dtype: pyarrow.DataType) -> bool:
    types = arrow().types
    return bool(types.is_string(dtype) or types.is_large_string(dtype))


@dataclass(frozen=True)
class TableSchema:
    """Which columns of a table a model takes, in which order, and how they become numbers.

    Args:
        columns: the inputs.
        target: the column of y; ``None`` if it is not known.
        weight: the column that says how many times a row counts, if there is one.
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    target: str | None
    weight: str | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of texts."""
        return tuple(c.name for c in self.columns if isinstance(c, CategoryColumn))

    def encode(self, batch: pyarrow.RecordBatch, place: Place, unknown: Unknown) -> Array:
        """The inputs of some rows as numbers, shape (n, d)."""
        parts = [c.encode(batch.column(c.name), place, unknown) for c in self.columns]
        return np.ascontiguousarray(np.hstack(parts))

    def check(self, schema: pyarrow.Schema, where: str, *, targets: bool) -> None:
        """That a table has these columns, and that they hold what they held in the fit."""
        wanted = [column.name for column in self.columns]
        if targets:
            wanted += [name for name in (self.target, self.weight) if name is not None]
        require_columns(wanted, schema.names, where)
        for name in wanted:
            dtype, wants = schema.field(name).type, "text" if name in self.texts else "number"
            # A CSV file has no types: what looks like numbers may be meant as text.
            if kind_of(dtype) != wants and not (wants == "text" and where.endswith(CSV)):
                then = "text" if wants == "text" else "numbers"
                raise ValueError(
                    f"column {name!r} of {where} holds {dtype}, and should hold {then}, as in the "
                    "fit: mend the column, or fit a model to it."
                )


def require_columns(wanted: Sequence[str], present: Sequence[str], where: str) -> None:
    """That a table has these columns; an error lists its own, and what may have been meant."""
    missing = [name for name in wanted if name not in present]
    if not missing:
        return
    close = [match for name in missing for match in get_close_matches(name, present, n=1)]
    meant = f" Did you mean {listed(list(dict.fromkeys(close)))}?" if close else ""
    raise NoSuchColumnError(
        f"{where} has no column {listed(missing)}; its columns are {listed(present)}.{meant}"
    )


def listed(names: Sequence[str]) -> str:
    """Names with commas between them, if they are not too many."""
    shown = ", ".join(repr(name[:80]) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"
