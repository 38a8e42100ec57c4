"""Columns of numbers to a CSV or Parquet file, block by block, all of it or nothing."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from rwf._types import Array
from rwf.data.atomic import replace_file
from rwf.data.readers.files import arrow

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz")  # ends of names


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
        with ExitStack() as opened:
            target: BinaryIO | gzip.GzipFile = file
            if path.name.endswith(".gz"):
                target = opened.enter_context(gzip.GzipFile(fileobj=file, mode="wb"))
            for block in blocks:
                batch = pa.record_batch(dict(block))
                if writer is None:
                    parquet = path.name.endswith(PARQUET)
                    make = arrow("parquet").ParquetWriter if parquet else arrow("csv").CSVWriter
                    writer = opened.enter_context(make(target, batch.schema))
                writer.write_batch(batch)
                count += batch.num_rows

    replace_file(path, fill)
    return count
