"""Rows in blocks, so that memory is bounded whatever their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rwf.types import Array

BLOCK_BYTES = 64 * 2**20
"""Memory for one block of features."""


@dataclass(frozen=True)
class Block:
    """Some rows.

    Args:
        X: inputs, shape (n, d).
        y: targets, shape (n, k).
        weights: how many times each row counts, shape (n,).
    """

    X: Array
    y: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.X)


def block_rows(n_features: int, budget: int = BLOCK_BYTES) -> int:
    """Rows whose features fit the budget; at least 256, so that matrix products stay efficient."""
    return max(256, budget // (8 * max(n_features, 1)))


def blocks(rows: Block, n_features: int, budget: int = BLOCK_BYTES) -> Iterator[Block]:
    """The rows in blocks, in their order."""
    size = block_rows(n_features, budget)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        yield Block(rows.X[part], rows.y[part], rows.weights[part])


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
