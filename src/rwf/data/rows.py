"""Rows in blocks, so that memory is bounded whatever their number."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Protocol, TypeVar

import numpy as np

from rwf._types import Array, BoolArray, FloatArray, IntArray
from rwf.linalg.threads import in_parallel

BLOCK_BYTES = 64 * 2**20  # memory for one block of features
ROUNDING = 1e-9  # share of a weight that is left by rounding alone
ENOUGH_ROWS = 30  # distinct rows below which nothing is said of copies
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e15  # beyond, products underflow and sums ignore rows

Sum = TypeVar("Sum")


@dataclass(frozen=True)
class RowSum(Generic[Sum]):
    """A sum over all rows, such as their moments: how to add up some blocks, and what was added."""

    name: str  # sums over the same rows with the same name are equal
    size: int  # rows of a block
    gather: Callable[[Iterable[Block]], Sum]  # the sum over some blocks
    add: Callable[[Sum, Sum], Sum]
    to_arrays: Callable[[Sum], dict[str, Array]]
    from_arrays: Callable[[Mapping[str, Array]], Sum]
    workers: int  # threads that gather, at most; one if gathering has threads of its own


class Rows(Protocol):
    """Rows that can be passed over any number of times, wherever they are."""

    @property
    def n_outputs(self) -> int: ...

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """The sum over all rows."""


@dataclass(frozen=True)
class Block:
    """Some rows."""

    X: Annotated[Array, "n d"]  # inputs
    y: Annotated[Array, "n k"]  # targets
    weights: Annotated[Array, "n"]  # how many times each row counts
    noise: Annotated[Array, "n"] | None = None  # v, variances relative to σ²; None if equal
    # the number of the group that a row is in, such as a speaker's; rows of a group are held out
    # together. None if every row is on its own
    groups: Annotated[IntArray, "n"] | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_outputs(self) -> int:
        return int(self.y.shape[1])

    def part(self, which: slice | IntArray | BoolArray) -> Block:
        """Some of the rows."""
        noise = None if self.noise is None else self.noise[which]
        groups = None if self.groups is None else self.groups[which]
        return Block(self.X[which], self.y[which], self.weights[which], noise, groups)

    @property
    def log_volume(self) -> float:
        """Σ w log v, by which noise that varies changes the evidence."""
        return 0.0 if self.noise is None else float(self.weights @ np.log(self.noise))

    @property
    def root_precision(self) -> Array:
        """√(w/v), by which features and targets are multiplied, shape (n, 1)."""
        precision = self.weights if self.noise is None else self.weights / self.noise
        return np.sqrt(precision)[:, None]

    def parts(self, size: int) -> Iterator[Block]:
        """The rows in blocks of so many, in their order."""
        return (self.part(slice(i, i + size)) for i in range(0, len(self), size))

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """A sum over the rows; every core takes its share of the blocks."""
        workers = max(1, min(row_sum.workers, -(-len(self) // row_sum.size)))

        def share(worker: int) -> Sum:
            return row_sum.gather(itertools.islice(self.parts(row_sum.size), worker, None, workers))

        return functools.reduce(row_sum.add, in_parallel(share, range(workers)))


@dataclass(frozen=True)
class Mapped:
    """Rows seen through a function of blocks, such as a change of units, applied as they pass."""

    rows: Rows
    change: Callable[[Block], Block]

    @property
    def n_outputs(self) -> int:
        return self.rows.n_outputs

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """The sum over all rows."""
        gather, change = row_sum.gather, self.change
        return self.rows.total(replace(row_sum, gather=lambda parts: gather(map(change, parts))))


def block_rows(n_features: int, budget: int = BLOCK_BYTES) -> int:
    """Rows whose features fit the budget; at least 256, so that matrix products stay efficient."""
    return max(256, budget // (8 * max(n_features, 1)))


def slices(n: int, n_features: int) -> Iterator[slice]:
    """So many rows in blocks whose features fit into memory."""
    size = block_rows(n_features)
    return (slice(start, start + size) for start in range(0, n, size))


def blocks(rows: Block, n_features: int, budget: int = BLOCK_BYTES) -> Iterator[Block]:
    """The rows in blocks, in their order."""
    return rows.parts(block_rows(n_features, budget))


def resized(pieces: Iterable[Block], size: int) -> Iterator[Block]:
    """The same rows in blocks of exactly so many, but for the last."""
    waiting: list[Block] = []
    missing = size
    for piece in pieces:
        start = 0
        while len(piece) - start >= missing:
            waiting.append(piece.part(slice(start, start + missing)))
            start += missing
            yield joined(waiting)
            waiting, missing = [], size
        if start < len(piece):
            waiting.append(piece.part(slice(start, None)))
            missing -= len(piece) - start
    if waiting:
        yield joined(waiting)


def joined(blocks: list[Block]) -> Block:
    """Several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    noise = None
    if any(block.noise is not None for block in blocks):
        noise = np.concatenate(
            [np.ones(len(block)) if block.noise is None else block.noise for block in blocks]
        )
    return Block(
        np.concatenate([block.X for block in blocks]),
        np.concatenate([block.y for block in blocks]),
        np.concatenate([block.weights for block in blocks]),
        noise,
        _joined_groups(blocks),
    )


def _joined_groups(blocks: list[Block]) -> IntArray | None:
    codes = [block.groups for block in blocks if block.groups is not None]
    return np.concatenate(codes) if len(codes) == len(blocks) else None


def distinct(rows: Block) -> Block:
    """The same rows in a canonical order, with equal ones joined and those of no weight left out.

    So a fit does not depend on the order of rows, or on whether a row is repeated or has a weight.
    Equal rows of different groups stay apart.
    """
    parts = [rows.X, rows.y] if rows.groups is None else [rows.X, rows.y, rows.groups[:, None]]
    table = np.hstack(parts)[rows.weights > 0]
    weights = rows.weights[rows.weights > 0]
    order = np.lexsort(table.T[::-1])
    table, weights = table[order], weights[order]
    first = np.ones(len(table), dtype=bool)
    first[1:] = (table[1:] != table[:-1]).any(axis=1)
    totals = np.add.reduceat(weights, np.flatnonzero(first))
    X, y, codes = np.split(table[first], np.cumsum([rows.X.shape[1], rows.n_outputs]), axis=1)
    groups = None if rows.groups is None else codes[:, 0].astype(np.intp)
    return Block(np.ascontiguousarray(X), np.ascontiguousarray(y), totals, groups=groups)


def copies_among(rows: Block) -> int:
    """How many of some distinct rows' weights are copies, which tell nothing of the noise.

    Rows that repeat the inputs of another would rarely have its targets too if all were observed on
    their own. They are copies if 90 % of them do, and else none is; nor among a few rows.
    """
    inputs, targets = ((A[1:] != A[:-1]).any(axis=1) for A in (rows.X, rows.y))
    equal, others = float(rows.weights.sum()) - len(rows), int((~inputs & targets).sum())
    return int(equal) if len(rows) >= ENOUGH_ROWS and equal >= 9 * others else 0


def counted_once(rows: Block) -> Block:
    """Distinct rows, each of which was seen as many times as it weighs, without copies."""
    return replace(rows, weights=np.ones(len(rows))) if copies_among(rows) else rows


def without(stored: Block, rows: Block) -> Block:
    """Stored rows less the weights of some of them; of equal ones in groups, the last go first."""
    table = np.vstack([np.hstack([part.X, part.y]) for part in (stored, rows)])
    number = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    own, gone = np.split(number, [len(stored)])
    wanted = np.bincount(gone, rows.weights, minlength=len(table)).astype(np.float64)
    left, missing = stored.weights.copy(), wanted.copy()
    places, unseen = np.arange(len(stored))[::-1], own[::-1]
    while len(places):
        _, first = np.unique(unseen, return_index=True)  # one of each that are equal
        its = places[first]
        taken = np.minimum(left[its], missing[own[its]])
        left[its] -= taken
        missing[own[its]] -= taken
        places, unseen = np.delete(places, first), np.delete(unseen, first)
    unknown = (missing > ROUNDING * wanted)[gone]
    if unknown.any():
        raise ValueError(
            f"row {np.flatnonzero(unknown)[0]} is not among the stored rows of the model, or not "
            "so often: forget only rows that were added, exactly as they were."
        )
    return replace(stored, weights=left).part(left > ROUNDING * stored.weights)


def row_numbers(stored: Block, rows: Block) -> IntArray:
    """Where some of the stored rows stand among them; of equal ones, where the last one stands."""
    keys = [
        np.column_stack([part.X, part.y, *(() if part.groups is None else (part.groups,))])
        for part in (stored, rows)
    ]
    number = np.unique(np.vstack(keys), axis=0, return_inverse=True)[1].ravel()
    own, wanted = np.split(number, [len(stored)])
    places = np.empty(len(number), dtype=np.intp)
    places[own] = np.arange(len(stored))
    return places[wanted]


def repeated_share(X: Array) -> float:
    """The share of rows that have the inputs of another row."""
    order = X[np.lexsort(X.T)] if X.shape[1] else X
    same = (order[1:] == order[:-1]).all(axis=1)
    repeated = np.append(same, False) | np.append(False, same)
    return float(repeated.mean()) if len(X) else 0.0


def non_finite(values: FloatArray) -> IntArray:
    """Row and column of every NaN and infinity, shape (count, 2)."""
    # The sum is finite unless an entry is not, or it overflows; only then look closer.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return np.empty((0, 2), dtype=np.intp)
    return np.argwhere(~np.isfinite(values))


def check_weights(weights: Array, label: Callable[[int], str], *, complete: bool = False) -> None:
    """That all weights can be used; the error begins with the label of a row.

    Any of them may be zero, but not all of them if they are complete.
    """
    wrong = (weights > MOST_WEIGHT) | ((weights < LEAST_WEIGHT) & (weights != 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        outside = f"outside {LEAST_WEIGHT:.0e} to {MOST_WEIGHT:.0e}"
        raise ValueError(
            f"{label(row)} {weights[row]:.3g} is {'negative' if weights[row] < 0 else outside}: "
            "a weight says how many times a row counts. Use zero to leave a row out."
        )
    if complete and not weights.any():
        raise ValueError("all sample weights are zero: give at least one non-zero weight.")


def sample(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` distinct rows: all, or a sample in proportion to weights, of weight one."""
    if len(rows) <= size:
        return distinct(rows)
    keys = sampling_keys(rows, rng)
    keep = np.argpartition(-keys, size)[:size]
    keep = np.sort(keep[rows.weights[keep] > 0])
    return distinct(replace(rows.part(keep), weights=np.ones(len(keep))))


def sampling_keys(rows: Block, rng: np.random.Generator) -> Array:
    """log(u)/w, by row: the largest are a sample in proportion to w (Efraimidis et al. 2006)."""
    with np.errstate(divide="ignore"):
        keys: Array = np.log(rng.uniform(size=len(rows))) / rows.weights
    return keys
