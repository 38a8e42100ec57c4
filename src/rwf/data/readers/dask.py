"""Rows of Dask arrays and dataframes: partitions that are computed on the cluster."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, cast

import numpy as np

from rwf._types import Array
from rwf.data.progress import Progress, silent
from rwf.data.readers.base import (
    Reader,
    Results,
    RowLayout,
    as_numbers,
    checked,
    digest,
    digest_of,
    inputs_among,
    row_place,
    skipped,
)
from rwf.data.readers.dask_tasks import computed, map_partitions, sample_partitions, sum_partitions
from rwf.data.rows import Block, RowSum, Sum, joined
from rwf.data.stream import Stream

if TYPE_CHECKING:
    from dask.delayed import Delayed

AT_ONCE = 8  # partitions that are computed together where all rows are read


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


@dataclass(frozen=True)
class _Partition(RowLayout):
    """Which columns of a partition are what; where they have no names, all of them."""

    inputs: tuple[str, ...] | None = None  # names of columns
    targets: tuple[str, ...] = ()  # names of columns, if they are in the same dataframe as inputs
    weight: str | None = None  # the same


@dataclass(frozen=True)
class DaskReader(Reader):
    """Rows of collections that have the same partitions."""

    always_streams: ClassVar[bool] = True

    partition: _Partition
    parts: tuple[tuple[Delayed | None, ...], ...]  # X, y, weights of every partition
    known: tuple[int, ...] | None  # rows of partitions, if known without computing them
    index: tuple[Delayed, ...]  # what to count otherwise

    @classmethod
    def of(
        cls,
        X: Collection,
        y: Collection | str | Sequence[str] = (),
        weights: Collection | str | None = None,
        names: Sequence[str] | None = None,
    ) -> DaskReader:
        """A reader of a collection; a dataframe X may hold named targets and weights as well."""
        targets: tuple[str, ...] = ()
        if isinstance(y, Sequence):
            targets = (y,) if isinstance(y, str) else tuple(y)
            n_outputs, single = len(targets), isinstance(y, str)
        else:
            n_outputs = 1 if y.ndim == 1 else int(y.shape[1])
            single = y.ndim == 1
        weight = weights if isinstance(weights, str) else None
        others = (*targets, *([weight] if weight else []))
        columns, known, inputs, index = _input_partitions(X, names, others)
        n_inputs = int(X.shape[1]) if columns is None else len(columns)
        parts: list[Sequence[Delayed | None]] = [inputs]
        for part, what in ((y, "y"), (weights, "sample_weight")):
            if isinstance(part, Sequence) or part is None:
                parts.append([None] * len(inputs))
            else:
                parts.append(_aligned_partitions(part, known, len(inputs), what))
        named = columns is not None and all(isinstance(name, str) for name in columns)
        shown = columns if named else None
        layout = _Partition(n_inputs, n_outputs, single, shown, columns, targets, weight)
        return cls(layout, tuple(zip(*parts, strict=True)), known, index)

    @property
    def layout(self) -> RowLayout:
        return self.partition

    @property
    def n_rows(self) -> int | None:
        return None if self.known is None else sum(self.known)

    @functools.cached_property
    def lengths(self) -> tuple[int, ...]:
        """Rows of every partition; they are computed to be counted, if need be."""
        from dask import delayed

        if self.known is not None:
            return self.known
        return cast(tuple[int, ...], computed([delayed(len)(part) for part in self.index]))

    @functools.cached_property
    def blocks(self) -> tuple[Delayed, ...]:
        """Every partition as a :class:`Block` that is yet to be computed, and checked."""
        from dask import delayed

        return tuple(
            delayed(functools.partial(_block, self.partition, number))(*part)
            for number, part in enumerate(self.parts)
        )

    def read(self, start: int = 0) -> Iterator[Block]:
        found = (
            block
            for first in range(0, len(self.blocks), AT_ONCE)
            for block in computed(self.blocks[first : first + AT_ONCE])
        )
        return skipped(cast(Iterator[Block], found), start)

    def sum(self, row_sum: RowSum[Sum], stream: Stream | None = None) -> Sum:
        return sum_partitions(self.blocks, row_sum, stream or Stream(self))

    def sample(
        self, size: int, rng: np.random.Generator, progress: Progress = silent
    ) -> tuple[Block, int]:
        n = sum(self.lengths)
        if not n:
            raise ValueError("the source has no rows.")
        if n <= size:
            return joined([*self.read()]), n
        return sample_partitions(self.blocks, self.lengths, size, rng, progress), n

    def map(self, function: Callable[[Array], Results], example: Array) -> Results:
        """Dask arrays that are yet to be computed, with the partitions of the inputs."""
        # The call here also computes what predictions of all rows have in common.
        shapes = [array.shape[1:] for array in function(example)]
        return map_partitions(self.blocks, self.known, function, shapes)

    def fingerprint(self) -> dict[str, str]:
        return {
            "columns": f"{self.n_inputs} and {self.n_outputs}",
            "partitions": digest([np.array(self.lengths).tobytes()]),
            "first rows": digest_of(next(self.read())),
        }


def _is_array(X: Collection) -> bool:
    return hasattr(X, "chunks") and hasattr(X, "rechunk")


def _is_dataframe(X: Collection) -> bool:
    return hasattr(X, "divisions") and hasattr(X, "columns") and X.ndim == 2


def _input_partitions(
    X: Collection, names: Sequence[str] | None, others: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None, list[Delayed], tuple[Delayed, ...]]:
    """Names of input columns, rows of partitions, these themselves, and what counts them."""
    if _is_dataframe(X):
        columns = inputs_among(list(X.columns), others, names, "the dataframe")
        return columns, None, _partitions(X[[*columns, *others]]), tuple(_partitions(X.index))
    if not _is_array(X) or X.ndim != 2:
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


def _aligned_partitions(
    part: Collection, known: tuple[int, ...] | None, count: int, what: str
) -> list[Delayed]:
    """Partitions of targets or weights that go with those of the inputs."""
    if _is_array(part):
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


def _block(layout: _Partition, number: int, X: object, y: object, weights: object) -> Block:
    """The rows of a partition, on the worker that has it."""
    where = f"partition {number}"
    inputs = _table(X, layout.inputs, f"{where}, X")
    n = len(inputs)
    outputs = _table(X, layout.targets, f"{where}, y") if y is None else _table(y, None, where)
    outputs = outputs if layout.n_outputs else np.empty((n, 0))
    times = np.ones(n)
    if layout.weight is not None:
        times = _table(X, (layout.weight,), where)[:, 0]
    elif weights is not None:
        times = as_numbers(np.asarray(weights), f"{where}, sample_weight")
    if outputs.shape != (n, layout.n_outputs) or times.shape != (n,):
        raise ValueError(
            f"{where} has {n} rows of X, y of shape {outputs.shape} and weights of shape "
            f"{times.shape}: give one target and one weight for each row."
        )
    place = functools.partial(row_place, where, 0)
    return checked(inputs, outputs, times, place, layout.inputs, layout.targets or None)


def _table(values: object, names: Sequence[str] | None, what: str) -> Array:
    """Values, or some columns of a dataframe, as numbers, shape (n, columns)."""
    if names is None:
        table = as_numbers(np.asarray(values), what)
        return np.ascontiguousarray(table[:, None] if table.ndim == 1 else table)
    table = np.empty((len(values), len(names)))  # type: ignore[arg-type]
    for index, name in enumerate(names):
        column = values[name].to_numpy()  # type: ignore[index]
        table[:, index] = as_numbers(column, f"{what}, column {name!r}")
    return table
