"""CSV files, compressed or not."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rwf.data.readers.files import TableFile, arrow, distinct_names, errors_name

if TYPE_CHECKING:
    import pyarrow

CSV_BYTES = 4 * 2**20  # parsed together; types are guessed by the first so many


@dataclass(frozen=True)
class CSVFile(TableFile):
    """A CSV file, whose types are guessed."""

    @property
    def typed(self) -> bool:
        return False

    @functools.cached_property
    def schema(self) -> pyarrow.Schema:
        with errors_name(f"{self.path} is no CSV file that can be read"):
            return distinct_names(self._open((), {}).schema, self.path)

    def _open(
        self, columns: Sequence[str], types: dict[str, pyarrow.DataType]
    ) -> pyarrow.csv.CSVStreamingReader:
        csv = arrow("csv")
        convert = csv.ConvertOptions(include_columns=list(columns), column_types=types)
        with errors_name(f"{self.path} is no CSV file that can be read"):
            return csv.open_csv(
                self.path,
                read_options=csv.ReadOptions(block_size=CSV_BYTES),
                convert_options=convert,
            )

    def batches(
        self, columns: Sequence[str], start: int, as_text: Collection[str] = ()
    ) -> Iterator[pyarrow.RecordBatch]:
        pa, row = arrow(), 0
        # What begins with whole numbers, or with nothing, may go on with others.
        types = {
            name: pa.string() if name in as_text else pa.float64()
            for name in columns
            if name in as_text or not pa.types.is_boolean(self.schema.field(name).type)
        }
        batches = iter(self._open(columns, types))
        while True:
            with errors_name(f"{self.path}, after row {row}"):
                batch = next(batches, None)
            if batch is None:
                return
            if start < row + batch.num_rows:
                yield batch.slice(max(0, start - row))
            row += batch.num_rows
