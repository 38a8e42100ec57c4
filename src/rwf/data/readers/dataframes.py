"""Columns of pandas and polars frames by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import as_numbers


class Frame(Protocol):
    """What pandas and polars have in common."""

    columns: Sequence[str]

    def __getitem__(self, names: list[str]) -> Frame: ...

    def to_numpy(self) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]: ...


def is_dataframe(X: object) -> TypeGuard[Frame]:
    """Whether this is a frame."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and hasattr(X, "__getitem__")


def columns_of(frame: Frame, names: Sequence[str]) -> Frame:
    """Some columns of a frame, in this order."""
    missing = [name for name in names if name not in list(frame.columns)]
    if missing:
        raise ValueError(
            f"the frame has no column {', '.join(map(repr, missing))}; its columns are "
            f"{', '.join(map(repr, list(frame.columns)))}."
        )
    return frame[list(names)]


def values_of(frame: Frame, names: Sequence[str]) -> Array:
    """Columns that must be numbers, shape (n, len(names))."""
    return np.hstack(
        [as_numbers(columns_of(frame, [name]).to_numpy(), f"column {name!r}") for name in names]
    )
