"""Dask's collections by what they can do, so that Dask is not imported to tell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeGuard

if TYPE_CHECKING:
    from dask.delayed import Delayed


class Collection(Protocol):
    """What Dask's arrays, dataframes and series have in common."""

    @property
    def ndim(self) -> int: ...

    def __dask_graph__(self) -> object: ...

    def to_delayed(self) -> Sequence[Delayed]: ...


class ArrayCollection(Collection, Protocol):
    """A Dask array."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def chunks(self) -> tuple[tuple[float, ...], ...]: ...

    def rechunk(self, chunks: dict[int, int | tuple[float, ...]]) -> ArrayCollection: ...


class FrameCollection(Collection, Protocol):
    """A Dask dataframe."""

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def index(self) -> Collection: ...

    def __getitem__(self, names: list[str]) -> FrameCollection: ...


def is_collection(X: object) -> TypeGuard[Collection]:
    """Whether this is one of Dask's."""
    return hasattr(type(X), "__dask_graph__")


def is_array(X: Collection) -> TypeGuard[ArrayCollection]:
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def is_dataframe(X: Collection) -> TypeGuard[FrameCollection]:
    return hasattr(X, "divisions") and hasattr(X, "columns") and X.ndim == 2
