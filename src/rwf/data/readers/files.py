"""Parquet and CSV files: what their columns are called, and batches of some of them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rwf.data.readers.base import piece_rows

if TYPE_CHECKING:
    from types import ModuleType

    import pyarrow

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
"""How names of files end."""

CSV_BYTES = 4 * 2**20
"""Bytes of a CSV file that are parsed together. Types are guessed by the first so many."""


def arrow(name: str = "") -> ModuleType:
    """A module of pyarrow, which only those need who have tables in files."""
    try:
        return __import__(f"pyarrow.{name}", fromlist=[name]) if name else __import__("pyarrow")
    except ImportError:
        raise ImportError(
            'Parquet and CSV files are read by pyarrow: install it, or pip install "rwf[files]".',
            name="pyarrow",
        ) from None


class TableFile(Protocol):
    """One file of a table."""

    @property
    def path(self) -> Path: ...

    @property
    def schema(self) -> pyarrow.Schema: ...

    @property
    def n_rows(self) -> int | None: ...

    def batches(
        self, columns: Sequence[str], start: int, texts: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        """These columns of the rows from some row on.

        Args:
            columns: their names.
            start: the first row.
            texts: columns that are to be read as text, where the file leaves that open.
        """
        ...


@contextmanager
def _said_of(what: str) -> Iterator[None]:
    """Whatever pyarrow finds wrong with a file, as a ValueError that names the file."""
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


@dataclass(frozen=True)
class ParquetFile:
    path: Path

    @functools.cached_property
    def _metadata(self) -> pyarrow.parquet.FileMetaData:
        with _said_of(f"{self.path} is no Parquet file that can be read"):
            return arrow("parquet").read_metadata(self.path)

    @functools.cached_property
    def schema(self) -> pyarrow.Schema:
        with _said_of(f"{self.path} is no Parquet file that can be read"):
            return _distinct(self._metadata.schema.to_arrow_schema(), self.path)

    @property
    def n_rows(self) -> int:
        return int(self._metadata.num_rows)

    def batches(
        self, columns: Sequence[str], start: int, texts: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        with (
            _said_of(f"{self.path} cannot be read to its end"),
            arrow("parquet").ParquetFile(self.path) as file,
        ):
            for group in range(self._metadata.num_row_groups):
                rows = self._metadata.row_group(group).num_rows
                if start >= rows:
                    start -= rows
                    continue
                found = file.iter_batches(
                    batch_size=piece_rows(len(columns)), row_groups=[group], columns=list(columns)
                )
                for batch in found:
                    if start < batch.num_rows:
                        yield batch.slice(start)
                    start = max(0, start - batch.num_rows)


@dataclass(frozen=True)
class CSVFile:
    path: Path
    n_rows: None = None

    @functools.cached_property
    def schema(self) -> pyarrow.Schema:
        with _said_of(f"{self.path} is no CSV file that can be read"):
            return _distinct(self._open((), {}).schema, self.path)

    def _open(
        self, columns: Sequence[str], types: dict[str, pyarrow.DataType]
    ) -> pyarrow.csv.CSVStreamingReader:
        csv = arrow("csv")
        with _said_of(f"{self.path} is no CSV file that can be read"):
            return csv.open_csv(
                self.path,
                read_options=csv.ReadOptions(block_size=CSV_BYTES),
                convert_options=csv.ConvertOptions(
                    include_columns=list(columns), column_types=types
                ),
            )

    def batches(
        self, columns: Sequence[str], start: int, texts: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        pa, row = arrow(), 0
        # What begins with whole numbers, or with nothing, may go on with others.
        types = {
            name: pa.string() if name in texts else pa.float64()
            for name in columns
            if name in texts or not pa.types.is_boolean(self.schema.field(name).type)
        }
        batches = iter(self._open(columns, types))
        while True:
            with _said_of(f"{self.path}, after row {row}"):
                batch = next(batches, None)
            if batch is None:
                return
            if start < row + batch.num_rows:
                yield batch.slice(max(0, start - row))
            row += batch.num_rows


def _distinct(schema: pyarrow.Schema, path: Path) -> pyarrow.Schema:
    """The schema, if no two columns have one name."""
    repeated = [name for name, count in Counter(schema.names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{path} has several columns that are called {', '.join(map(repr, repeated[:5]))}: "
            "give every column a name of its own."
        )
    return schema


def files_of(path: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, in the order of their names."""
    home = Path(path).expanduser()
    if home.is_dir():
        found = [p for p in home.rglob("*") if p.is_file() and p.name.endswith(PARQUET + CSV)]
        # Names that begin with a dot or a line are other programs' notes about the table.
        found = [p for p in found if not p.name.startswith((".", "_"))]
        what = f"the folder {home} has no files whose names end in {', '.join(PARQUET + CSV)}"
    elif home.exists():
        return [home]
    else:
        top = Path(home.anchor)
        found = [p for p in top.glob(str(home.relative_to(top))) if p.is_file()]
        what = f"there is no file {home}, and as a pattern it matches none"
    if not found:
        raise FileNotFoundError(f"{what}. The present folder is {Path.cwd()}.")
    return sorted(found)


def opened(path: Path) -> TableFile:
    """A file, by the end of its name."""
    if path.name.endswith(PARQUET):
        return ParquetFile(path)
    if path.name.endswith(CSV):
        return CSVFile(path)
    raise ValueError(
        f"{path} is read by the end of its name, which should be one of "
        f"{', '.join(PARQUET + CSV)}: rename it, or give a function that returns blocks of rows."
    )


def open_table(path: str) -> tuple[TableFile, ...]:
    """All files of a table, in the order of their rows."""
    return tuple(opened(found) for found in files_of(path))
