"""The reader for what a user gives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from rwf.data.readers.arrays import ArrayReader
from rwf.data.readers.base import Reader, as_numbers
from rwf.data.readers.blocks import BlockReader, Blocks
from rwf.data.readers.dask import Collection, DaskReader
from rwf.data.readers.table import TableReader

Data: TypeAlias = ArrayLike | os.PathLike[str] | Blocks | Collection | Reader
"""Rows: an array or a dataframe, the path of a table, blocks, or a Dask array or dataframe."""

Targets: TypeAlias = ArrayLike | str | Sequence[str] | Collection  # or names of columns


def open_rows(
    X: Data, y: Targets | None, sample_weight: Targets | None, names: Sequence[str] | None
) -> Reader | None:
    """A reader of rows that need not be in memory; ``None`` for arrays and dataframes.

    With names of columns for y and the weights, the inputs are those named, or all others.
    """
    if is_collection(X):
        return _open_partitions(X, y, sample_weight, names)
    if _is_path(X):
        targets = names_of(y)
        if not targets:
            raise ValueError(
                f"fit({str(X)!r}, y) needs the name of the target's column for y, as in "
                f"fit({str(X)!r}, 'y'), or a list of several names."
            )
        weight = names_of(sample_weight)
        if sample_weight is not None and len(weight or ()) != 1:
            raise ValueError("with a path, sample_weight is the name of a column, or None.")
        target = y if isinstance(y, str) else targets
        return TableReader.of(os.fspath(X), target, weight[0] if weight else None, names)
    if y is None and (_is_blocks(X) or _is_list_of_blocks(X)):
        if sample_weight is not None:
            raise ValueError("blocks bring their own weights: give (X, y, weights) as a block.")
        return BlockReader.of(X, targets=True)  # type: ignore[arg-type]
    if _is_map(X) and y is not None:
        targets_of_rows = y if isinstance(y, np.memmap) else np.asarray(y)
        given = sample_weight
        weights = None if given is None else as_numbers(given, "sample_weight")  # type: ignore[arg-type]
        if (
            targets_of_rows.ndim in (1, 2)
            and targets_of_rows.dtype.kind in "buif"
            and len(targets_of_rows) == len(X)
            and (weights is None or weights.shape == (len(X),))
        ):
            return ArrayReader(X, targets_of_rows, weights)
    return None  # other errors are raised where arrays are checked


def open_inputs(X: Data, names: Sequence[str] | None) -> Reader | None:
    """A reader of inputs that need not be in memory; ``None`` for arrays and dataframes."""
    if is_collection(X):
        return DaskReader.of(X, names=names)
    if _is_path(X):
        return TableReader.of(os.fspath(X), names=names)
    if _is_blocks(X):
        return BlockReader.of(X, targets=False)
    if _is_map(X):
        return ArrayReader(X, np.empty((len(X), 0)))
    return None


def _open_partitions(
    X: Collection, y: Targets | None, sample_weight: Targets | None, names: Sequence[str] | None
) -> DaskReader:
    targets = y if is_collection(y) or isinstance(y, str) else names_of(y)
    if targets is None:
        raise TypeError(
            "fit(X, y) with a Dask collection X needs another for y, such as "
            "dask.array.from_array(y, chunks=X.chunks[0]), or the name of a dataframe's column."
        )
    if not (
        sample_weight is None or isinstance(sample_weight, str) or is_collection(sample_weight)
    ):
        raise TypeError(
            "with a Dask collection X, sample_weight is another, or the name of a dataframe's "
            "column, or None."
        )
    return DaskReader.of(X, targets, sample_weight, names)


def names_of(y: object) -> tuple[str, ...] | None:
    """The names of columns, if that is what was given."""
    if isinstance(y, str):
        return (y,)
    if isinstance(y, list | tuple) and y and all(isinstance(name, str) for name in y):
        return tuple(y)
    return None


def is_collection(X: object) -> TypeGuard[Collection]:
    """Whether this is one of Dask's, by its methods: Dask is not imported.

    Containers such as those of xarray have a graph only if what they hold is Dask's.
    """
    if not hasattr(type(X), "__dask_graph__"):
        return False
    ours = type(X).__module__.startswith("dask")
    return ours or X.__dask_graph__() is not None  # type: ignore[attr-defined]


def _is_path(X: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(X, str | os.PathLike)


def _is_map(X: object) -> TypeGuard[np.memmap]:
    return isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "buif"


def _is_blocks(X: object) -> TypeGuard[Blocks]:
    """Whether this gives blocks; a list is an array, unless it holds tuples and no y is given."""
    if callable(X):
        return True
    if isinstance(X, list | tuple | dict | str | bytes):
        return False
    return isinstance(X, Iterable) and not hasattr(X, "shape") and not hasattr(X, "__array__")


def _is_list_of_blocks(X: object) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], tuple)
