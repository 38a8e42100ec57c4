"""Which training rows are held out, for every choice that is made by prediction.

Rows of a field are held out alone and in blobs of several sizes, the rows nearest to a random one:
single rows all have close neighbors, and say nothing about predictions in gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, BoolArray, IntArray
from rwf.data.rows import Block

SHARE, MOST = 0.1, 5000
"""Share of the rows, and their largest number: a mean over more of them is hardly more precise."""

ENOUGH, LARGEST_SHARE = 300, 0.3
"""The share grows up to the largest one to hold out enough rows of a small table."""


def held_out_rows(n: int, rng: np.random.Generator) -> IntArray:
    """Indices, ascending, of those of n training rows that are held out."""
    share = min(max(SHARE, ENOUGH / max(n, 1)), LARGEST_SHARE)
    return np.sort(rng.permutation(n)[: min(int(share * n), MOST)])


def hold_out(rows: Block, rng: np.random.Generator) -> tuple[Block, Block]:
    """The rows to learn from, and the rows that are held out."""
    held = np.zeros(len(rows), dtype=bool)
    held[held_out_rows(len(rows), rng)] = True
    return rows.part(~held), rows.part(held)


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
