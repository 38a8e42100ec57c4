"""Columns of pandas and polars dataframes by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import as_numbers, require_columns


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
