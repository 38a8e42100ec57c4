"""Rows in blocks, so that memory is bounded whatever their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rwf.types import Array, IntArray

BLOCK_BYTES = 64 * 2**20
"""Memory for one block of features."""


@dataclass(frozen=True)
class Block:
    """Some rows.

    Args:
        X: inputs, shape (n, d).
        y: targets, shape (n, k).
        weights: how many times each row counts, shape (n,).
        noise: v, the noise variance of each row relative to σ², shape (n,); ``None`` where it is
            the same for all.
    """

    X: Array
    y: Array
    weights: Array
    noise: Array | None = None

    def __len__(self) -> int:
        return len(self.X)

    def part(self, which: slice | Array | IntArray) -> Block:
        """Some of the rows."""
        noise = None if self.noise is None else self.noise[which]
        return Block(self.X[which], self.y[which], self.weights[which], noise)

    @property
    def log_volume(self) -> float:
        """Σ w log v, by which noise that varies changes the evidence."""
        return 0.0 if self.noise is None else float(self.weights @ np.log(self.noise))

    @property
    def root_precision(self) -> Array:
        """√(w/v), by which features and targets are multiplied, shape (n, 1)."""
        precision = self.weights if self.noise is None else self.weights / self.noise
        return np.sqrt(precision)[:, None]


def block_rows(n_features: int, budget: int = BLOCK_BYTES) -> int:
    """Rows whose features fit the budget; at least 256, so that matrix products stay efficient."""
    return max(256, budget // (8 * max(n_features, 1)))


def blocks(rows: Block, n_features: int, budget: int = BLOCK_BYTES) -> Iterator[Block]:
    """The rows in blocks, in their order."""
    size = block_rows(n_features, budget)
    for start in range(0, len(rows), size):
        yield rows.part(slice(start, start + size))


def distinct(rows: Block) -> Block:
    """The same rows in a canonical order, with equal ones joined and those of no weight left out.

    A fit that starts from this depends neither on the order of the rows nor on whether a row
    is repeated or has a larger weight.
    """
    table = np.hstack([rows.X, rows.y])[rows.weights > 0]
    weights = rows.weights[rows.weights > 0]
    order = np.lexsort(table.T[::-1])
    table, weights = table[order], weights[order]
    first = np.ones(len(table), dtype=bool)
    first[1:] = (table[1:] != table[:-1]).any(axis=1)
    totals = np.add.reduceat(weights, np.flatnonzero(first))
    d = rows.X.shape[1]
    return Block(
        np.ascontiguousarray(table[first, :d]), np.ascontiguousarray(table[first, d:]), totals
    )


def hold_out(rows: Block, share: float, rng: np.random.Generator) -> tuple[Block, Block]:
    """Rows to learn from, and a share of them, drawn at random, to judge by."""
    held = np.zeros(len(rows), dtype=bool)
    held[rng.permutation(len(rows))[: int(share * len(rows))]] = True
    return rows.part(~held), rows.part(held)


def sample(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` rows, drawn without replacement in proportion to their weights.

    All rows if there are no more than ``size``; drawn rows have weight one. The result is made
    distinct.
    """
    if len(rows) <= size:
        return distinct(rows)
    # Efraimidis and Spirakis (2006): the largest log(u)/w are a weighted sample.
    with np.errstate(divide="ignore"):
        keys = np.log(rng.uniform(size=len(rows))) / rows.weights
    keep = np.argpartition(-keys, size)[:size]
    keep = np.sort(keep[rows.weights[keep] > 0])
    return distinct(Block(rows.X[keep], rows.y[keep], np.ones(len(keep))))
