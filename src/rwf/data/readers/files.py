"""What a file format gives: the schema of a file, and batches of its rows, as pyarrow has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rwf._types import Array
from rwf.data.readers.base import SPACED_ROWS, digest, piece_rows

if TYPE_CHECKING:
    from types import ModuleType

    import pyarrow

ENDS = 2**16  # bytes at both ends of a file that are in its fingerprint


def arrow(name: str = "") -> ModuleType:
    """A module of pyarrow, which is imported only for tables."""
    try:
        return __import__(f"pyarrow.{name}", fromlist=[name]) if name else __import__("pyarrow")
    except ImportError:
        raise ImportError(
            'Parquet and CSV files are read by pyarrow: install it, or pip install "rwf[files]".',
            name="pyarrow",
        ) from None


@dataclass(frozen=True)
class TableFile(ABC):
    """One file of a table. A file format is a subclass, in :data:`rwf.data.readers.FORMATS`."""

    path: Path

    @property
    def typed(self) -> bool:
        """Whether columns have types; else they are guessed, and text may look like numbers."""
        return True

    @property
    @abstractmethod
    def schema(self) -> pyarrow.Schema: ...

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if it is known without reading them."""
        return None

    @abstractmethod
    def batches(
        self, columns: Sequence[str], start: int, as_text: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        """Some columns from row ``start`` on; a file without types reads some of them as text."""

    def content(self) -> str:
        """What tells the file from others, found without reading all of it."""
        size = self.path.stat().st_size
        with self.path.open("rb") as content:
            ends = [content.read(ENDS)]
            content.seek(max(0, size - ENDS))
            ends.append(content.read(ENDS))
        return f"{size} bytes, {digest(ends)}"


@dataclass(frozen=True)
class LoadedTable(TableFile):
    """A table in memory: a dataframe, or a file of a format that is read as a whole."""

    table: pyarrow.Table

    @property
    def schema(self) -> pyarrow.Schema:
        return distinct_names(self.table.schema, self.path)

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def batches(
        self, columns: Sequence[str], start: int, as_text: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        rows = self.table.select(list(columns)).slice(start)
        yield from rows.to_batches(max_chunksize=piece_rows(len(columns)))

    def content(self) -> str:
        some = self.table.take(range(0, self.n_rows, max(1, self.n_rows // SPACED_ROWS)))
        return f"{self.n_rows} rows, {digest([repr(some.to_pydict()).encode()])}"


@contextmanager
def errors_name(what: str) -> Iterator[None]:
    """A context in which errors of pyarrow become a ValueError that names the file."""
    pa = arrow()
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{what}: names of columns are not UTF-8") from None
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (pa.ArrowException, OSError, OverflowError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{what}: {reason[0]}") from None


def distinct_names(schema: pyarrow.Schema, path: Path) -> pyarrow.Schema:
    """The schema, if no two columns have one name."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{path} has several columns that are called {', '.join(map(repr, repeated[:5]))}: "
            "give every column a name of its own."
        )
    return schema


def is_number(dtype: pyarrow.DataType) -> bool:
    """Whether a column of this type holds numbers, truth values, or nothing at all."""
    types = arrow().types
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_kind(dtype) for is_kind in kinds)


def values_in(column: pyarrow.Array) -> Array:
    """A column in double precision; what is missing is NaN."""
    values: Array = column.cast(arrow().float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
