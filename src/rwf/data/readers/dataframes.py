"""Columns of dataframes by their names, and what a user has in memory as a table of pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import as_numbers, require_columns
from rwf.data.readers.files import arrow

if TYPE_CHECKING:
    import pyarrow


class DataFrame(Protocol):
    """What pandas and polars have in common."""

    columns: Sequence[str]

    def __getitem__(self, names: list[str]) -> DataFrame: ...

    def to_numpy(self) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]: ...


def is_dataframe(X: object) -> TypeGuard[DataFrame]:
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and hasattr(X, "__getitem__")


def columns_of(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Some columns of a dataframe, in this order."""
    require_columns(names, list(frame.columns), "the dataframe")
    return frame[list(names)]


def values_of(frame: DataFrame, names: Sequence[str]) -> Array:
    """Columns that must be numbers, shape (n, len(names))."""
    return np.hstack(
        [as_numbers(columns_of(frame, [name]).to_numpy(), f"column {name!r}") for name in names]
    )


def arrow_table(table: object) -> pyarrow.Table | None:
    """A dataframe of pandas, polars or pyarrow as a table of pyarrow; ``None`` for other things."""
    pa = arrow()
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if not is_dataframe(table):
        return None
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    names = [str(name) for name in table.columns]
    columns = [arrow_column(table.iloc[:, i]) for i in range(len(names))]  # type: ignore[attr-defined]
    return pa.Table.from_arrays(columns, names=names)


def arrow_column(values: object) -> pyarrow.Array:
    """A column of pandas or numpy; one of mixed objects becomes text."""
    pa = arrow()
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        text = [None if v is None or v != v else str(v) for v in np.asarray(values, dtype=object)]
        found = pa.array(text, pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
