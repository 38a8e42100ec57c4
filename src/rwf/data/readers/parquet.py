"""Parquet files."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rwf.data.readers.base import piece_rows
from rwf.data.readers.files import TableFile, arrow, distinct_names, errors_name

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file, read one row group at a time."""

    @functools.cached_property
    def _metadata(self) -> pyarrow.parquet.FileMetaData:
        with errors_name(f"{self.path} is no Parquet file that can be read"):
            return arrow("parquet").read_metadata(self.path)

    @functools.cached_property
    def schema(self) -> pyarrow.Schema:
        with errors_name(f"{self.path} is no Parquet file that can be read"):
            return distinct_names(self._metadata.schema.to_arrow_schema(), self.path)

    @property
    def n_rows(self) -> int:
        return int(self._metadata.num_rows)

    def batches(
        self, columns: Sequence[str], start: int, as_text: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        with (
            errors_name(f"{self.path} cannot be read to its end"),
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
