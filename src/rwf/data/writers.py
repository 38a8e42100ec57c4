"""Columns of numbers to a CSV or Parquet file, block by block, all of it or nothing."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rwf._types import Array
from rwf.data.atomic import replace_file
from rwf.data.readers.files import arrow

if TYPE_CHECKING:
    import pyarrow

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
"""Ends of the names of files that can be written."""


def check_suffix(path: Path) -> None:
    """That the end of the name is that of a format that can be written."""
    if not path.name.endswith(PARQUET + CSV):
        raise ValueError(
            f"{path} is written by the end of its name, which should be one of "
            f"{', '.join(PARQUET + CSV)}."
        )


def write_columns(path: Path, blocks: Iterable[Mapping[str, Array]]) -> int:
    """Write blocks of columns, and count their rows; the old file stays until all are there."""
    check_suffix(path)
    count = 0

    def fill(file: BinaryIO) -> None:
        nonlocal count
        pa, writer = arrow(), None
        with _writer(path, file) as open_writer:
            for block in blocks:
                batch = pa.record_batch(dict(block))
                writer = writer or open_writer(batch.schema)
                writer.write_batch(batch)
                count += batch.num_rows

    replace_file(path, fill)
    return count


@contextmanager
def _writer(
    path: Path, file: BinaryIO
) -> Iterator[Callable[[pyarrow.Schema], pyarrow.csv.CSVWriter | pyarrow.parquet.ParquetWriter]]:
    """A function that opens the writer; it is closed at the end, and a compressed stream too."""
    opened = []
    zipped = gzip.GzipFile(fileobj=file, mode="wb") if path.name.endswith(".gz") else None

    def open_writer(
        schema: pyarrow.Schema,
    ) -> pyarrow.csv.CSVWriter | pyarrow.parquet.ParquetWriter:
        parquet = path.name.endswith(PARQUET)
        make = arrow("parquet").ParquetWriter if parquet else arrow("csv").CSVWriter
        opened.append(make(zipped or file, schema))
        return opened[-1]

    yield open_writer
    for writer in opened:
        writer.close()
    if zipped is not None:
        zipped.close()
