"""Which training rows are held out, for every choice that is made by prediction.

Rows that come in groups, such as the recordings of a speaker, are held out by whole groups: rows of
a group that is known flatter every model. Rows of a field are held out alone and in blobs of
several sizes, the rows nearest to a random one: single rows all have close neighbors, and say
nothing about predictions in gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, BoolArray, IntArray
from rwf.data.rows import Block

SHARE, MOST = 0.1, 5000
"""Share of the rows, and their largest number: a mean over more of them is hardly more precise."""

ENOUGH, LARGEST_SHARE = 300, 0.3
"""The share grows up to the largest one to hold out enough rows of a small table."""


FEWEST_GROUPS = 5  # groups below which none can be held out: a model of the others is too poor
HELD_GROUPS, SCORED_GROUPS = 2, 10  # groups that are held out, or scored, at least


def held_out_rows(rows: Block, rng: np.random.Generator, n: int | None = None) -> IntArray:
    """Indices, ascending, of training rows that are held out: whole groups, if there are groups.

    As many as if there were ``n`` rows.
    """
    n = len(rows) if n is None else n
    share = min(max(SHARE, ENOUGH / max(n, 1)), LARGEST_SHARE)
    size = min(int(share * n), MOST)
    if rows.groups is not None:
        return _of_groups(rows.groups, size, HELD_GROUPS, 0.5, rng)
    return np.sort(rng.permutation(len(rows))[:size])


def hold_out(rows: Block, rng: np.random.Generator) -> tuple[Block, Block]:
    """The rows to learn from, and the rows that are held out."""
    held = np.zeros(len(rows), dtype=bool)
    held[held_out_rows(rows, rng)] = True
    return rows.part(~held), rows.part(held)


def scored_rows(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` training rows for leave-one-out errors, at random.

    Groups are whole, as all rows of a group are left out together, and ten of them at least.
    """
    if len(rows) <= size:
        return rows
    if rows.groups is not None:
        return rows.part(_of_groups(rows.groups, size, SCORED_GROUPS, 1.0, rng))
    return rows.part(np.sort(rng.permutation(len(rows))[:size]))


def _of_groups(
    groups: IntArray, size: int, fewest: int, share: float, rng: np.random.Generator
) -> IntArray:
    """Indices of the rows of random groups, ``size`` rows at most but ``fewest`` groups at least.

    These are at most a share of all groups.
    """
    codes, counts = np.unique(groups, return_counts=True)
    order = rng.permutation(len(codes))
    wanted = max(int(np.searchsorted(np.cumsum(counts[order]), size, side="right")), fewest)
    return np.flatnonzero(np.isin(groups, codes[order[: min(wanted, int(share * len(codes)))]]))


def in_random_order(rows: Block, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Indices of all rows, groups together, and where to cut them into halves."""
    half = len(rows) // 2
    if rows.groups is None:
        return rng.permutation(len(rows)), half
    _, numbers, counts = np.unique(rows.groups, return_inverse=True, return_counts=True)
    place = rng.permutation(len(counts))
    ends = np.cumsum(counts[np.argsort(place)])
    return np.argsort(place[numbers], kind="stable"), int(ends[np.searchsorted(ends, half)])


def standard_error(values: Array, groups: IntArray | None) -> float:
    """The standard error of a mean over rows, those of a group being dependent."""
    if groups is None:
        return float(values.std() / np.sqrt(len(values)))
    _, numbers = np.unique(groups, return_inverse=True)
    sums = np.bincount(numbers, values - values.mean())
    return float(np.sqrt(sums @ sums)) / len(values)


def group_parts(groups: IntArray | None, n: int, size: int) -> Iterator[IntArray]:
    """Indices of n rows in parts of ``size`` rows at most; groups are whole, however large."""
    if groups is None:
        yield from (np.arange(i, min(i + size, n)) for i in range(0, max(n, 1), size))
        return
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order], append=groups.max(initial=0) + 1)) + 1
    start = last = 0
    for end in ends.tolist():
        if end - start > size and last > start:
            yield order[start:last]
            start = last
        last = end
    yield order[start:last]


ALONE = 0.04  # share of the rows of a field that are held out alone
BLOBS = ((3e-4, 0.01), (1e-3, 0.02), (3e-3, 0.03), (1e-2, 0.05), (4e-2, 0.08))
"""Sizes of blobs, as shares of all rows, and the share that all blobs of a size hold out."""

SMALLEST_BLOB = 4
SCORED = 2000  # rows of every size that are predicted, at most
LARGE = 2  # size of blobs from which on they tell how well a coarse lattice predicts


@dataclass(frozen=True)
class HeldOutBlobs:
    """Rows held out alone and in blobs."""

    size: IntArray  # of every row: -1 if it is kept, 0 if it is held out alone, 1 and on in blobs
    blob: IntArray  # the number of its blob, from 0; a row alone is a blob

    @property
    def kept(self) -> BoolArray:
        return self.size < 0

    def sample(self, most: int, rng: np.random.Generator) -> IntArray:
        """Indices, ascending, of held-out rows, at most so many of every size."""
        by_size = [np.flatnonzero(self.size == size) for size in range(int(self.size.max()) + 1)]
        return np.sort(np.concatenate([rng.permutation(rows)[:most] for rows in by_size]))


def hold_out_blobs(X: Array, rng: np.random.Generator) -> HeldOutBlobs:
    """Hold out rows alone and in blobs; where blobs overlap, the larger takes all."""
    n, tree = len(X), cKDTree(X)
    size, blob = np.full((2, n), -1)
    alone = rng.permutation(n)[: max(int(ALONE * n), min(ENOUGH, n // 10))]
    size[alone], blob[alone] = 0, np.arange(len(alone))
    number, smaller, kind = len(alone), 0, 0
    for share, all_shares in BLOBS:
        rows = max(int(share * n), SMALLEST_BLOB)
        if rows == smaller:
            continue
        smaller, kind = rows, kind + 1
        for middle in rng.permutation(n)[: max(round(all_shares * n / rows), 1)]:
            around = np.atleast_1d(tree.query(X[middle], k=rows)[1])
            size[around], blob[around] = kind, number
            number += 1
    return HeldOutBlobs(size, blob)


class FieldHoldOut:
    """Rows of a field that are held out, and a sample of them that is predicted."""

    def __init__(self, rows: Block, rng: np.random.Generator) -> None:
        self.blobs = hold_out_blobs(rows.X, rng)
        self.kept = np.flatnonzero(self.blobs.kept)
        self.scored = self.blobs.sample(SCORED, rng)

    def in_large_blobs(self) -> tuple[IntArray, Array]:
        """Scored rows in large blobs, and weights: sizes count equally, and blobs in a size."""
        size = self.blobs.size[self.scored]
        rows = self.scored[size >= min(LARGE, int(size.max()))]
        size, blob = self.blobs.size[rows], self.blobs.blob[rows]
        _, which, counts = np.unique(blob, return_inverse=True, return_counts=True)
        weights = 1.0 / counts[which]
        return rows, weights / np.bincount(size, weights)[size]
