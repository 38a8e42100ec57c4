"""Frames of pandas and polars as tables of one file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rwf.data.readers import is_dataframe
from rwf.data.readers.base import piece_rows
from rwf.data.readers.files import TableFile, arrow, open_table

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class FrameFile:
    """A frame in memory, with the manners of a file."""

    table: pyarrow.Table
    path: Path = Path("the frame")

    @property
    def schema(self) -> pyarrow.Schema:
        return self.table.schema

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def batches(
        self, columns: Sequence[str], start: int, texts: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        rows = self.table.select(list(columns)).slice(start)
        yield from rows.to_batches(max_chunksize=piece_rows(len(columns)))


def open_any(table: object) -> tuple[TableFile, ...]:
    """The files of a path, a folder or a pattern, or a frame as one."""
    if isinstance(table, str | os.PathLike):
        return open_table(os.fspath(table))
    if not is_dataframe(table):
        raise TypeError(
            f"{type(table).__name__} is no table with names: give a path, or a pandas or polars "
            "frame."
        )
    if hasattr(table, "to_arrow"):
        return (FrameFile(table.to_arrow()),)
    return (FrameFile(arrow().Table.from_pandas(table, preserve_index=False)),)
