"""Kinds of columns of a table, and how each becomes numbers."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from rwf._types import Array, BoolArray, IntArray
from rwf.data.readers.base import listed
from rwf.data.readers.files import arrow, is_number, values_in
from rwf.data.readers.table import Place
from rwf.data.schema.dates import date_text, days_in, is_date, is_text, phases
from rwf.data.schema.text import as_strings, missing_strings, spelled_numbers
from rwf.errors import UnknownCategoryWarning

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["number", "date", "text", "nothing", "other"]


def kind_of(dtype: pyarrow.DataType) -> Kind:
    """What a column of this type holds; whatever is encoded by a dictionary counts as text."""
    types = arrow().types
    if types.is_null(dtype):
        return "nothing"
    if is_number(dtype):
        return "number"
    if is_date(dtype):
        return "date"
    return "text" if is_text(dtype) or types.is_dictionary(dtype) else "other"


@dataclass(frozen=True)
class Column(ABC):
    """An input column as it was in the fit."""

    as_text: ClassVar[bool] = False  # whether files without types read it as text
    takes: ClassVar[tuple[Kind, ...]] = ("number", "nothing")  # what tables may hold in it
    holds: ClassVar[str] = "numbers"

    name: str
    dtype: str

    def fits(self, dtype: pyarrow.DataType) -> bool:
        """Whether a column of this type can be encoded as this one was in the fit."""
        return str(dtype) == self.dtype or kind_of(dtype) in self.takes

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""

    @property
    @abstractmethod
    def imputed(self) -> str:
        """What a missing value is replaced by, in words."""

    @abstractmethod
    def encode(
        self, values: pyarrow.Array, place: Place, *, strict: bool, folds: IntArray | None
    ) -> Array:
        """The numbers of some rows, shape (n, len(names)).

        Args:
            values: what the table has.
            place: where the rows are, for errors.
            strict: whether missing values and new categories are errors.
            folds: for rows of the fit, which of the folds each is in.
        """

    def _refuse(self, wrong: BoolArray, place: Place, what: str) -> None:
        """Raise an error at the first wrong row, if there is one."""
        if wrong.any():
            raise ValueError(
                f"{place(int(np.argmax(wrong)))}, column {self.name!r}: {what}. Correct such rows, "
                "or do without strict=True, or --strict."
            )


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers or truth values."""

    fill: float = 0.0  # replaces a missing value: the median
    gaps: int = 0  # missing values in the fit
    indicated: bool = False  # whether one more column says where values are missing

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._own_names, *([missing_name(self.name)] if self.indicated else []))

    @property
    def imputed(self) -> str:
        return f"the median {self.fill:.6g}"

    @property
    def _own_names(self) -> tuple[str, ...]:
        return (self.name,)

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        return values_in(values)

    def _parts(self, numbers: Array) -> Array:
        return numbers[:, None]

    def encode(
        self, values: pyarrow.Array, place: Place, *, strict: bool, folds: IntArray | None
    ) -> Array:
        numbers = self._numbers(values, place)
        missing = np.isnan(numbers)
        if strict:
            self._refuse(missing, place, "a missing value")
        parts = self._parts(np.where(missing, self.fill, numbers))
        return np.column_stack([parts, missing]) if self.indicated else parts


@dataclass(frozen=True)
class SpelledColumn(NumberColumn):
    """A column of numbers in a file without types; other text in it, such as ?, is missing."""

    as_text: ClassVar[bool] = True
    takes: ClassVar[tuple[Kind, ...]] = ("number", "text", "nothing")

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        return spelled_numbers(as_strings(values, self.name))


@dataclass(frozen=True)
class DateColumn(NumberColumn):
    """A column of dates: days since 1970, and the phases of cycles."""

    as_text: ClassVar[bool] = True
    takes: ClassVar[tuple[Kind, ...]] = ("date", "text", "nothing")
    holds: ClassVar[str] = "dates"

    cycles: tuple[str, ...] = ()

    @property
    def imputed(self) -> str:
        return f"the median {date_text(np.floor(self.fill))}"

    @property
    def _own_names(self) -> tuple[str, ...]:
        waves = [f"{self.name}: {wave} of {c}" for c in self.cycles for wave in ("sine", "cosine")]
        return (self.name, *waves)

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        try:
            return days_in(values)
        except ValueError as error:
            raise ValueError(
                f"{place(0)} or later, column {self.name!r}: {error}. Correct it, or declare the "
                f"column as categories: categorical=[{self.name!r}], or --categorical."
            ) from None

    def _parts(self, numbers: Array) -> Array:
        return np.column_stack([numbers, *(phases(numbers, cycle) for cycle in self.cycles)])


@dataclass(frozen=True)
class Categorical(Column):
    """A column of text, or of numbers that are declared to be categories."""

    as_text: ClassVar[bool] = True
    takes: ClassVar[tuple[Kind, ...]] = ("text", "nothing")
    holds: ClassVar[str] = "text"
    _new_becomes: ClassVar[str] = "zeros"

    categories: tuple[str, ...]  # those seen in the fit, sorted

    def fits(self, dtype: pyarrow.DataType) -> bool:
        declared = not any(word in self.dtype for word in ("string", "dictionary"))
        return super().fits(dtype) or (declared and kind_of(dtype) == "number")

    def codes(
        self, values: pyarrow.Array, place: Place, *, strict: bool
    ) -> tuple[IntArray, BoolArray]:
        """Numbers of the categories, -1 for others, and which values are missing."""
        strings = as_strings(values, self.name)
        missing = missing_strings(strings)
        known = arrow().array(self.categories, type=arrow().string())
        found = arrow("compute").index_in(strings, value_set=known).fill_null(-1)
        codes = found.to_numpy(zero_copy_only=False).astype(np.intp)
        codes[missing] = -1
        new = (codes < 0) & ~missing
        if new.any():
            row = int(np.argmax(new))
            what = f"{strings[row].as_py()!r} was not among its categories in the fit"
            if strict:
                self._refuse(new, place, f"{what}, which are {listed(self.categories)}")
            warnings.warn(
                f"{place(row)}, column {self.name!r}: {what}. It is encoded as "
                f"{self._new_becomes}, and so are others like it.",
                UnknownCategoryWarning,
                stacklevel=2,
            )
        if strict:
            self._refuse(missing, place, "a missing value")
        return codes, missing


@dataclass(frozen=True)
class CategoryColumn(Categorical):
    """A column of few categories, which is one-hot encoded."""

    fill: str = ""  # replaces a missing or empty value: the most frequent category
    gaps: int = 0
    indicated: bool = False

    @property
    def imputed(self) -> str:
        return "zeros" if self.indicated else repr(self.fill)

    @property
    def names(self) -> tuple[str, ...]:
        own = tuple(f"{self.name}={category}" for category in self.categories)
        return (*own, missing_name(self.name)) if self.indicated else own

    def encode(
        self, values: pyarrow.Array, place: Place, *, strict: bool, folds: IntArray | None
    ) -> Array:
        codes, missing = self.codes(values, place, strict=strict)
        if not self.indicated and missing.any():
            codes[missing] = self.categories.index(self.fill)
        parts = np.asarray(codes[:, None] == np.arange(len(self.categories)), dtype=np.float64)
        return np.column_stack([parts, missing]) if self.indicated else parts


@dataclass(frozen=True)
class TargetEncodedColumn(Categorical):
    r"""A column of many categories, each of which becomes a mean of the target.

    Of category c it is (S_c + m μ)/(N_c + m), with the sum S_c of its N_c targets, the mean μ of
    all, and m the ratio of variances within and between categories. A row of the fit has the means
    of the other folds, without its own target. New categories and missing values have μ.
    """

    _new_becomes: ClassVar[str] = "the mean of the target"

    sums: tuple[tuple[float, ...], ...]  # of targets, by fold and category
    counts: tuple[tuple[float, ...], ...]  # of rows, or their weights
    smoothing: float  # m
    gaps: int = 0

    @property
    def imputed(self) -> str:
        return "the mean of all rows"

    @property
    def names(self) -> tuple[str, ...]:
        return (f"mean target of {self.name}",)

    @cached_property
    def means(self) -> Array:
        """Of the categories and of all rows, without each fold in turn, and of all folds."""
        sums, counts = (np.array(table) for table in (self.sums, self.counts))
        sums, counts = (np.vstack([t.sum(axis=0) - t, t.sum(axis=0)]) for t in (sums, counts))
        overall = sums.sum(axis=1) / np.maximum(counts.sum(axis=1), 1e-300)
        shrunk = (sums + self.smoothing * overall[:, None]) / (counts + self.smoothing)
        return np.column_stack([shrunk, overall])

    def encode(
        self, values: pyarrow.Array, place: Place, *, strict: bool, folds: IntArray | None
    ) -> Array:
        codes, _ = self.codes(values, place, strict=strict)
        codes[codes < 0] = len(self.categories)
        means: Array = self.means[-1 if folds is None else folds, codes][:, None]
        return means


def missing_name(name: str) -> str:
    """The name of the column that says where values of another are missing."""
    return f"{name} is missing"
