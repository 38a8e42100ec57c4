"""What one pass over a table counts: gaps, ranges and categories of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from rwf._types import Array, BoolArray
from rwf.data.readers.files import arrow, values_in
from rwf.data.readers.table import Place
from rwf.data.scaling import LARGEST_INPUT
from rwf.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, SpelledColumn
from rwf.data.schema.dates import cycles_in, days_in
from rwf.data.schema.text import as_strings, missing_strings, spelled_numbers

if TYPE_CHECKING:
    import pyarrow

AnyColumn: TypeAlias = NumberColumn | SpelledColumn | DateColumn | CategoryColumn

INDICATED = 0.01  # share of missing values at which a column says where they are
IDENTIFIES = 0.5  # categories per row at which text is an identifier, or prose
MOST_CATEGORIES = 100_000  # of a column; they are kept in memory
SAMPLE_ROWS = 2**17  # rows for medians and cycles; of more rows, a sample


def gaps_at(count: int, first: str) -> str:
    """How many values are missing, and the place of the first."""
    return f"{count:,} missing value{'s' if count > 1 else ''}, the first at {first}"


def refuse_beyond(most: float, numbers: Array, place: Place, name: str) -> None:
    """Raise an error at the first number that is infinite or too large."""
    wrong = np.abs(numbers) > most
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "infinity" if np.isinf(numbers[row]) else f"{numbers[row]:.3g}, beyond {most:.0e}"
        raise ValueError(
            f"{place(row)}, column {name!r}: {what}. Correct it, or leave it empty, as a missing "
            "value."
        )


class Sample:
    """Rows of numbers: all of them, or as many as are enough, each with the same chance."""

    def __init__(self, width: int) -> None:
        self.rows, self._keys = np.empty((0, width)), np.empty(0)
        self._rng = np.random.default_rng(0)

    def add(self, rows: Array) -> None:
        keys = np.concatenate([self._keys, self._rng.uniform(size=len(rows))])
        table = np.vstack([self.rows, rows])
        if len(keys) > SAMPLE_ROWS:
            kept = np.argpartition(-keys, SAMPLE_ROWS)[:SAMPLE_ROWS]
            keys, table = keys[kept], table[kept]
        self.rows, self._keys = table, keys


class ColumnCounts(ABC):
    """What was seen of an input column."""

    as_text: ClassVar[bool] = False  # whether files without types read it as text

    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype
        self.n_rows = self.gaps = 0
        self._first = ""  # the place of the first gap

    def add(self, values: pyarrow.Array, place: Place) -> Array:
        """Count some rows, and return their numbers, NaN where there are none."""
        missing, numbers = self._count(values, place)
        if missing.any() and not self.gaps:
            self._first = place(int(np.argmax(missing)))
        self.n_rows += len(missing)
        self.gaps += int(missing.sum())
        return numbers

    @abstractmethod
    def _count(self, values: pyarrow.Array, place: Place) -> tuple[BoolArray, Array]:
        """Which values are missing, and their numbers."""

    @property
    @abstractmethod
    def unusable(self) -> str:
        """Why the column is left out; empty if it is not."""

    @abstractmethod
    def column(self, numbers: Array, y: Array) -> AnyColumn:
        """The column, by a sample of its numbers and of the target."""

    @property
    def repair(self) -> str:
        """What must be encoded in another way than as it is; empty if nothing must."""
        return ""

    @property
    def wide(self) -> bool:
        """Whether there are too many categories to encode them one-hot."""
        return False

    @property
    def indicated(self) -> bool:
        """Whether so many values are missing that a column says where."""
        return self.gaps > INDICATED * self.n_rows

    @property
    def problems(self) -> list[str]:
        """What strict tables must not have."""
        found = [self.unusable or self.repair]
        if self.gaps:
            found.append(gaps_at(self.gaps, self._first))
        return [f"column {self.name!r}: {each}" for each in found if each]


class NumberCounts(ColumnCounts):
    """Of a column of numbers."""

    def __init__(self, name: str, dtype: str) -> None:
        super().__init__(name, dtype)
        self._low, self._high = np.inf, -np.inf

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        return values_in(values)

    def _count(self, values: pyarrow.Array, place: Place) -> tuple[BoolArray, Array]:
        numbers = self._numbers(values, place)
        missing = np.isnan(numbers)
        if not missing.all():
            self._low = min(self._low, float(np.nanmin(numbers)))
            self._high = max(self._high, float(np.nanmax(numbers)))
        refuse_beyond(LARGEST_INPUT, numbers, place, self.name)
        return missing, numbers

    @property
    def unusable(self) -> str:
        if self._low > self._high:
            return "empty"
        return "constant" if self._low == self._high and not self.indicated else ""

    def _fill(self, numbers: Array) -> float:
        known = numbers[np.isfinite(numbers)]
        return float(np.median(known)) if len(known) else float(np.clip(0, self._low, self._high))

    def column(self, numbers: Array, y: Array) -> AnyColumn:
        fill = self._fill(numbers)
        return NumberColumn(self.name, self.dtype, fill, self.gaps, self.indicated)


class SpelledCounts(NumberCounts):
    """Of a column of numbers with other text among them."""

    as_text: ClassVar[bool] = True

    @property
    def repair(self) -> str:
        return "text among numbers, which counts as missing"

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        return spelled_numbers(as_strings(values, self.name))

    def column(self, numbers: Array, y: Array) -> AnyColumn:
        fill = self._fill(numbers)
        return SpelledColumn(self.name, self.dtype, fill, self.gaps, self.indicated)


class DateCounts(NumberCounts):
    """Of a column of dates."""

    as_text: ClassVar[bool] = True

    @property
    def repair(self) -> str:
        return "dates, which must become numbers"

    def _numbers(self, values: pyarrow.Array, place: Place) -> Array:
        try:
            return days_in(values)
        except ValueError as error:
            raise ValueError(
                f"{place(0)} or later, column {self.name!r}: {error}. Correct it, or declare the "
                f"column as categories: categorical=[{self.name!r}], or --categorical."
            ) from None

    def column(self, numbers: Array, y: Array) -> AnyColumn:
        fill, cycles = self._fill(numbers), cycles_in(numbers, y)
        return DateColumn(self.name, self.dtype, fill, self.gaps, self.indicated, cycles)


class TextCounts(ColumnCounts):
    """Of a column of categories."""

    as_text: ClassVar[bool] = True

    def __init__(self, name: str, dtype: str, max_one_hot: int) -> None:
        super().__init__(name, dtype)
        self._seen, self._most = Counter[str](), max_one_hot

    def _count(self, values: pyarrow.Array, place: Place) -> tuple[BoolArray, Array]:
        strings = as_strings(values, self.name)
        missing = missing_strings(strings)
        if len(self._seen) <= MOST_CATEGORIES:
            present = strings.filter(arrow().array(~missing))
            for entry in arrow("compute").value_counts(present).to_pylist():
                self._seen[entry["values"]] += entry["counts"]
        return missing, np.full(len(missing), np.nan)

    @property
    def wide(self) -> bool:
        return len(self._seen) > self._most

    @property
    def repair(self) -> str:
        return f"{len(self._seen):,} categories, more than {self._most}" if self.wide else ""

    @property
    def unusable(self) -> str:
        count, known = len(self._seen), self.n_rows - self.gaps
        if not count:
            return "empty"
        if count == 1 and not self.indicated:
            return "constant"
        many = self.wide and count > IDENTIFIES * known
        return "another text in almost every row" if many or count > MOST_CATEGORIES else ""

    def column(self, numbers: Array, y: Array) -> AnyColumn:
        top = min(self._seen, key=lambda category: (-self._seen[category], category))
        categories = tuple(sorted(self._seen))
        return CategoryColumn(self.name, self.dtype, categories, top, self.gaps, self.indicated)
