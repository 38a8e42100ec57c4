"""The groups of training rows: labels that were given, a column of a table, or blocks of a grid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rwf._types import Array, IntArray
from rwf.data.holdout import FEWEST_GROUPS
from rwf.data.readers import (
    Data,
    Targets,
    columns_of,
    is_dataframe,
    names_of,
    open_table,
)
from rwf.data.readers.base import require_columns
from rwf.data.readers.files import TableFile
from rwf.data.rows import Block
from rwf.estimators.validation import require_memory
from rwf.models.base import LOW_DIMENSION

Groups: TypeAlias = ArrayLike | str | None  # labels of rows, or the name of their column
Blocks: TypeAlias = float | Sequence[float] | Literal["auto"] | None  # lengths, in the units of X

BLOCKS_PER_COLUMN = 10  # into which blocks="auto" divides the span of a column


@dataclass(frozen=True)
class Grouping:
    """Which rows are held out together, as it was given to ``fit``."""

    labels: NDArray[np.generic] | None = None  # shape (n,)
    column: str | None = None  # whose labels they are; it is no input
    blocks: Blocks = None  # lengths of blocks, if these are the groups

    @classmethod
    def of(cls, X: Data, y: Targets | None, groups: Groups, blocks: Blocks) -> Grouping:
        """What was given, one of the two, checked."""
        if groups is not None and blocks is not None:
            raise ValueError(
                "groups and blocks were both given, and both say which rows are held out together: "
                "give one of them."
            )
        require_memory(X, y, "groups" if blocks is None else "blocks")
        if blocks is not None:
            return cls(blocks=blocks)
        if not isinstance(groups, str):
            return cls(np.asarray(groups))
        if is_dataframe(X):
            labels = columns_of(X, [groups]).to_numpy()
            return cls(np.asarray(labels).reshape(len(labels)), groups)
        if isinstance(X, str | os.PathLike):
            return cls(read_labels(open_table(X), groups), groups)
        raise ValueError(
            f"groups={groups!r} is the name of a column, but X has no names: give a dataframe, the "
            "path of a table, or an array of labels, one for each row."
        )

    def inputs_of(self, X: Data, y: Targets | None, weight: Targets | None) -> list[str] | None:
        """Names of the input columns, if X has names and one of them is that of the groups."""
        if self.column is None:
            return None
        others = {self.column, *(names_of(y) or ()), *(names_of(weight) or ())}
        present = X.columns if is_dataframe(X) else open_table(X)[0].schema.names
        return [name for name in present if name not in others]

    def on(self, rows: Block) -> tuple[Block, NDArray[np.generic]]:
        """The rows with the numbers of their groups, and their labels."""
        labels = self.labels
        if labels is None:
            labels = blocks_of(rows.X, self.blocks)
        if labels.shape != (len(rows),):
            raise ValueError(
                f"groups has shape {labels.shape}, and X has {len(rows)} rows: give one label for "
                f"each row, shape ({len(rows)},)."
            )
        _require_labels(labels)
        named = labels.astype(str) if labels.dtype == object else labels
        codes = np.unique(named, return_inverse=True)[1]
        used = len(np.unique(codes[rows.weights > 0]))
        if used < FEWEST_GROUPS:
            remedy = "give shorter blocks" if self.labels is None else "leave groups out"
            raise ValueError(
                f"the rows are in {used} group(s), and at least {FEWEST_GROUPS} are needed, so "
                f"that a model can learn from some and predict others: {remedy}."
            )
        return replace(rows, groups=_by_first_row(rows, codes)), labels


def _by_first_row(rows: Block, codes: IntArray) -> IntArray:
    """Numbers of groups that depend on their rows alone, not on labels or the order of rows."""
    order = np.lexsort(np.hstack([rows.X, rows.y]).T[::-1])
    first = np.full(int(codes.max()) + 1, len(rows))
    np.minimum.at(first, codes[order], np.arange(len(rows)))
    return np.argsort(np.argsort(first))[codes]


def _require_labels(labels: NDArray[np.generic]) -> None:
    """That every row has a label."""
    missing = np.array([value is None or value != value for value in labels.tolist()], dtype=bool)
    if missing.any():
        raise ValueError(
            f"groups has no label for row {int(np.argmax(missing))}; {int(missing.sum())} labels "
            "are missing in all. Give every row one, a label of its own if it is in no group."
        )


def read_labels(files: Sequence[TableFile], column: str) -> NDArray[np.generic]:
    """A column of a table as text, shape (n,)."""
    parts: list[object] = []
    for file in files:
        require_columns([column], file.schema.names, str(file.path))
        for batch in file.batches([column], 0, [column]):
            parts += batch.column(column).to_pylist()
    return np.array(parts, dtype=object)


def blocks_of(X: Array, blocks: Blocks) -> NDArray[np.generic]:
    """The number of every row's block in a grid, shape (n,)."""
    low, high = X.min(axis=0), X.max(axis=0)
    lengths = _lengths(blocks, high - low)
    # A row at the upper end of the last block is in that block.
    most = np.maximum(np.ceil((high - low) / lengths * (1.0 - 1e-12)) - 1.0, 0.0)
    cells = np.minimum(np.floor((X - low) / lengths), most)
    numbers: NDArray[np.generic] = np.unique(cells, axis=0, return_inverse=True)[1]
    return numbers.reshape(len(X))


def _lengths(blocks: Blocks, spans: Array) -> Array:
    """The length of blocks in every column; a constant column is not divided."""
    if isinstance(blocks, str):
        if len(spans) > LOW_DIMENSION:
            raise ValueError(
                f"blocks='auto' is for up to {LOW_DIMENSION} columns, and X has {len(spans)}: give "
                "a length for each, np.inf for those that are not divided, or give groups."
            )
        if blocks == "auto":
            return np.where(spans > 0, spans / BLOCKS_PER_COLUMN, np.inf)
    else:
        given = np.asarray(blocks, dtype=np.float64)
        if given.shape in ((), spans.shape) and (given > 0).all():
            return np.broadcast_to(given, spans.shape)
    raise ValueError(
        f"blocks={blocks!r} must be 'auto', or a positive length in the units of X, or one for "
        f"each of its {len(spans)} columns, np.inf for those that are not divided."
    )
