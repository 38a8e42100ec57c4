"""Rows of Dask arrays and dataframes: partitions that are computed where the cluster likes.

Dask is imported only once somebody gives one of its collections.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import as_numbers, checked, digest, skipped
from rwf.data.readers.collections import (
    ArrayCollection,
    Collection,
    FrameCollection,
    is_array,
    is_dataframe,
)
from rwf.data.rows import Block

if TYPE_CHECKING:
    from dask.delayed import Delayed

AT_ONCE = 8
"""Partitions that are computed together where all rows are read."""

GRAPH_BYTES = "1GiB"
"""Size of a graph above which Dask warns: a model is in it, once, so that no worker's loss is."""


@dataclass(frozen=True)
class _Layout:
    """Which columns of a partition are what; where they have no names, all of them.

    Args:
        inputs: names of columns.
        targets: names of columns, if these are in the same frame as inputs.
        weight: the same.
        n_outputs: how many targets there are.
    """

    inputs: tuple[str, ...] | None
    targets: tuple[str, ...]
    weight: str | None
    n_outputs: int


@dataclass(frozen=True)
class PartitionReader:
    """Rows of collections that are parted alike.

    Args:
        layout: which columns are what.
        n_inputs: columns of X.
        single_output: whether the target is one column, and not a table of one.
        parts: inputs of every partition, then its targets and weights, where they lie apart.
        known: rows of every partition, if that is known without computing them.
        index: what to count otherwise.
    """

    layout: _Layout
    n_inputs: int
    single_output: bool
    parts: tuple[tuple[Delayed | None, ...], ...]
    known: tuple[int, ...] | None
    index: tuple[Delayed, ...]

    @classmethod
    def of(
        cls,
        X: Collection,
        y: Collection | Sequence[str] = (),
        weights: Collection | str | None = None,
        names: Sequence[str] | None = None,
        *,
        single_output: bool = False,
    ) -> PartitionReader:
        """A reader of a collection.

        Args:
            X: inputs; a dataframe may hold targets and weights as well.
            y: targets, or the names of their columns.
            weights: how many times each row counts, or the name of a column.
            names: the input columns of a dataframe; ``None`` for all that are left.
            single_output: whether the name in y is one target, and not a list of one.
        """
        targets = tuple(y) if isinstance(y, Sequence) else ()
        weight = weights if isinstance(weights, str) else None
        columns, known, inputs, index = _inputs(X, names, (*targets, *([weight] if weight else [])))
        n_outputs = len(targets)
        if not isinstance(y, Sequence):
            n_outputs = 1 if y.ndim == 1 else int(y.shape[1])  # type: ignore[attr-defined]
            single_output = y.ndim == 1
        parts: list[Sequence[Delayed | None]] = [inputs]
        for part, what in ((y, "y"), (weights, "sample_weight")):
            if isinstance(part, Sequence) or part is None:
                parts.append([None] * len(inputs))
            else:
                parts.append(_aligned(part, known, len(inputs), what))
        return cls(
            _Layout(columns, targets, weight, n_outputs),
            int(X.shape[1]) if columns is None else len(columns),  # type: ignore[attr-defined]
            single_output,
            tuple(zip(*parts, strict=True)),
            known,
            index,
        )

    @property
    def names(self) -> tuple[str, ...] | None:
        names = self.layout.inputs
        return names if names and all(isinstance(name, str) for name in names) else None

    @property
    def n_outputs(self) -> int:
        return self.layout.n_outputs

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
            delayed(functools.partial(_block, self.layout, number))(*part)
            for number, part in enumerate(self.parts)
        )

    def read(self, start: int = 0) -> Iterator[Block]:
        found = (
            block
            for first in range(0, len(self.blocks), AT_ONCE)
            for block in computed(self.blocks[first : first + AT_ONCE])
        )
        return skipped(cast(Iterator[Block], found), start)

    def fingerprint(self) -> dict[str, str]:
        first = next(self.read())
        return {
            "columns": f"{self.n_inputs} and {self.n_outputs}",
            "partitions": digest([np.array(self.lengths).tobytes()]),
            "first rows": digest([part.tobytes() for part in (first.X, first.y, first.weights)]),
        }


def computed(tasks: Sequence[Delayed]) -> tuple[object, ...]:
    """Results of tasks, on the cluster that is current, or by threads if there is none.

    A process that has not imported ``distributed`` has no cluster, and its configuration must be
    left alone: a key that is set before the package loads its defaults hides all of them.
    """
    import dask

    if "distributed" not in sys.modules:
        return tuple(dask.compute(*tasks, traverse=False))
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": GRAPH_BYTES}):
        return tuple(dask.compute(*tasks, traverse=False))


def _inputs(
    X: Collection, names: Sequence[str] | None, others: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None, list[Delayed], tuple[Delayed, ...]]:
    """Names of input columns, rows of partitions, these themselves, and what counts them."""
    if is_dataframe(X):
        columns = _columns(X, names, set(others))
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


def _columns(X: FrameCollection, names: Sequence[str] | None, others: set[str]) -> tuple[str, ...]:
    """The input columns of a dataframe, if it has them and the others."""
    columns = list(X.columns)
    wanted = [name for name in columns if name not in others] if names is None else list(names)
    missing = [name for name in (*wanted, *sorted(others)) if name not in columns]
    if missing:
        raise ValueError(
            f"the dataframe has no column {', '.join(map(repr, missing))}; its columns are "
            f"{', '.join(map(repr, columns))}."
        )
    if not wanted:
        raise ValueError(f"the dataframe has no column beside {sorted(others)}.")
    return tuple(wanted)


def _lengths(X: ArrayCollection) -> tuple[int, ...] | None:
    """Rows of every partition of an array, if they are known."""
    found = X.chunks[0]
    return None if any(math.isnan(length) for length in found) else tuple(map(int, found))


def _aligned(
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


def _block(layout: _Layout, number: int, X: object, y: object, weights: object) -> Block:
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
    names, targets = layout.inputs, layout.targets
    return checked(
        inputs,
        outputs,
        times,
        lambda row: f"{where}, row {row} (the first is 0)",
        lambda column: f"column {column if names is None else names[column]!r}",
        lambda column: f"column {targets[column]!r}" if targets else f"target {column}",
    )


def _table(values: object, names: Sequence[str] | None, what: str) -> Array:
    """Values, or some columns of a frame, as numbers, shape (n, columns)."""
    if names is None:
        table = as_numbers(np.asarray(values), what)
        return np.ascontiguousarray(table[:, None] if table.ndim == 1 else table)
    table = np.empty((len(values), len(names)))  # type: ignore[arg-type]
    for index, name in enumerate(names):
        column = values[name].to_numpy()  # type: ignore[index]
        table[:, index] = as_numbers(column, f"{what}, column {name!r}")
    return table
