"""Dask's collections, recognised by their methods, so that Dask is not imported; partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np

from rwf.data.readers.base import inputs_among

if TYPE_CHECKING:
    from dask.delayed import Delayed


class Collection(Protocol):
    """A Dask array, dataframe or series; chunks are of arrays, names of dataframes."""

    ndim: int
    shape: tuple[int, ...]
    chunks: tuple[tuple[float, ...], ...]
    columns: Sequence[str]
    index: Collection

    def __dask_graph__(self) -> object: ...

    def __getitem__(self, names: list[str]) -> Collection: ...

    def rechunk(self, chunks: dict[int, int | tuple[float, ...]]) -> Collection: ...

    def to_delayed(self) -> Sequence[Delayed]: ...


def is_collection(X: object) -> TypeGuard[Collection]:
    """Whether this is one of Dask's."""
    return hasattr(type(X), "__dask_graph__")


def is_array(X: Collection) -> bool:
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def is_dataframe(X: Collection) -> bool:
    return hasattr(X, "divisions") and hasattr(X, "columns") and X.ndim == 2


def input_partitions(
    X: Collection, names: Sequence[str] | None, others: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None, list[Delayed], tuple[Delayed, ...]]:
    """Names of input columns, rows of partitions, these themselves, and what counts them."""
    if is_dataframe(X):
        columns = inputs_among(list(X.columns), others, names, "the dataframe")
        return columns, None, _partitions(X[[*columns, *others]]), tuple(_partitions(X.index))
    if not is_array(X) or X.ndim != 2:
        raise TypeError(
            f"X is a Dask {type(X).__name__}: give a dataframe, or an array of shape (n, d)."
        )
    if others:
        raise ValueError(
            f"a Dask array has no column {others[0]!r}: give y and sample_weight as Dask arrays, "
            "or everything as a dataframe."
        )
    parts = _partitions(X.rechunk({1: -1}))
    return None, _lengths(X), parts, tuple(parts)


def _lengths(X: Collection) -> tuple[int, ...] | None:
    """Rows of every partition of an array, if they are known."""
    found = X.chunks[0]
    return None if any(math.isnan(length) for length in found) else tuple(map(int, found))


def aligned_partitions(
    part: Collection, known: tuple[int, ...] | None, count: int, what: str
) -> list[Delayed]:
    """Partitions of targets or weights that go with those of the inputs."""
    if is_array(part):
        own = _lengths(part)
        if known is not None and own is not None and own != known:
            if sum(own) != sum(known):
                raise ValueError(
                    f"X has {sum(known)} rows and {what} has {sum(own)}: inconsistent numbers of "
                    "samples. Give one for each row."
                )
            part = part.rechunk({0: known})
        if part.ndim == 2:
            part = part.rechunk({1: -1})
    found = _partitions(part)
    if len(found) != count:
        raise ValueError(
            f"X has {count} partitions and {what} has {len(found)}, and how many rows these have "
            "is unknown: take both from the same dataframe, or call compute_chunk_sizes() of "
            "arrays."
        )
    return found


def _partitions(X: Collection) -> list[Delayed]:
    return list(np.ravel(np.array(X.to_delayed(), dtype=object)))
