"""Splits: training rows and test rows.

Every way of holding rows out is a function of the inputs X, shape (n, d), and the number of the
split. Row numbers are 0, 1, …; a fifth, a tenth or a middle is one of the range of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rwf._types import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Split:
    """Row numbers for training, and row numbers for testing."""

    train: IntArray
    test: IntArray


HoldOut = Callable[[Array, int], Split]

CENTERS = (0.5, 0.4, 0.6, 0.3, 0.7)
"""Where holes are, as a share of the range: split 0 has the middle."""


def random_tenth(X: Array, index: int) -> Split:
    """A seeded permutation of the rows, of which the first 90 % are for training."""
    order = np.random.RandomState(index).permutation(len(X))
    cut = int(0.9 * len(X))
    return Split(order[:cut], order[cut:])


def scattered(X: Array, index: int) -> Split:
    """Train on 3000 rows at random, test on 10 000 others: few places of a large map."""
    order = np.random.RandomState(index).permutation(len(X))
    cut = min(3000, int(0.9 * len(X)))
    return Split(order[:cut], order[cut : cut + 10_000])


def quarter(X: Array, index: int) -> Split:
    """Splits 0 to 3 hold out the rows whose number is ``index`` modulo 4, in their order.

    There are no more of those: from split 4 on, a random quarter is held out, of the seed
    ``index``. It leaves longer holes, and is the harder.
    """
    if index < 4:
        return _held_out(np.arange(len(X)) % 4 == index)
    order = np.random.RandomState(index).permutation(len(X))
    return _held_out(order < len(X) // 4)  # as many rows, at random places


def tenth(X: Array, index: int) -> Split:
    """Hold out the rows whose number is ``index`` modulo 10; split k + 10 is split k again."""
    return _held_out(np.arange(len(X)) % 10 == index % 10)


def beyond_a_plane(X: Array, index: int) -> Split:
    """Train on the low 80 % of rows along a random direction, test on those beyond.

    The direction is Gaussian in the standardised columns that vary; rows keep their order.
    """
    scale = X.std(axis=0)
    varying = scale > 0
    rng = np.random.RandomState(index)
    direction = rng.normal(size=int(varying.sum()))
    position = ((X[:, varying] - X[:, varying].mean(axis=0)) / scale[varying]) @ direction
    order = np.argsort(position, kind="stable")
    cut = int(0.8 * len(X))
    return Split(np.sort(order[:cut]), np.sort(order[cut:]))


def block(X: Array, index: int) -> Split:
    """Hold out a rectangle of the first two columns: a tenth of the area of their bounding box.

    Its sides are parallel to the box's and in the same proportion. It lies at the first of a
    seeded sequence of random places that has at least 5 % of the rows, and 15 % at most: scattered
    rows leave parts of their box empty.
    """
    low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
    side = np.sqrt(0.1) * (high - low)
    rng = np.random.RandomState(index)
    for _ in range(1000):
        corner = rng.uniform(low, high - side)
        inside = np.all((X[:, :2] >= corner) & (X[:, :2] <= corner + side), axis=1)
        if 0.05 <= inside.mean() <= 0.15:
            return _held_out(inside)
    raise ValueError("no block of a tenth of the area has 5 to 15 % of the rows: use a gap.")


def hole(X: Array, index: int) -> Split:
    """Hold out a fifth of the range of one column, or a disc in the first two of several.

    Split 0 has its hole in the middle, and splits 1 to 4 have theirs elsewhere around it, at
    :data:`CENTERS`; split k + 5 is split k again. The disc is round in the units of the columns,
    which must be the same, and a tenth of the area of their bounding box.
    """
    low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
    places = [CENTERS[index % 5], CENTERS[2 * index % 5]][: len(low)]
    distance = np.linalg.norm(X[:, :2] - (low + np.array(places) * (high - low)), axis=1)
    size = np.prod(high - low)
    return _held_out(distance <= (0.1 * size if len(low) == 1 else np.sqrt(0.1 * size / np.pi)))


def edge(X: Array, index: int) -> Split:
    """Hold out one end of the range of the first column, for extrapolation.

    Splits 0, 2, 4, … hold out the upper 10, 20, 30, … % of the range, and 1, 3, 5, … the lower.
    """
    x = X[:, 0]
    share = 0.1 * (1 + index // 2)
    if not share < 0.95:
        raise ValueError(f"split {index} of an edge leaves nothing to learn from: use 0 to 17.")
    position = (x - x.min()) / (x.max() - x.min())
    return _held_out(position > 1 - share if index % 2 == 0 else position < share)


def groups(labels: Array, index: int) -> Split:
    """Hold out all rows of a random tenth of groups, two groups at least."""
    names = np.unique(labels)
    held = np.random.RandomState(index).permutation(names)[: max(2, len(names) // 10)]
    return _held_out(np.isin(labels, held))


def _held_out(test: BoolArray) -> Split:
    return Split(np.flatnonzero(~test), np.flatnonzero(test))
