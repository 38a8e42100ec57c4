"""Nested dissection of a domain by the supports of its columns: a k-d tree that needs no rows.

A node is a box. It is cut where the fewest supports straddle; the columns that do are the node's
own, the others go to the side that contains them, and a box of few columns is a leaf. So a column
belongs to the deepest node that contains its support, and columns of different branches never meet.
The outermost boxes are unbounded: every point of space is in a leaf, whose list has all columns
that can differ from zero there. Nodes are numbered so that a left child follows its parent, and a
subtree is a range.

A node's list has its own columns first, then the *boundary*: columns of its ancestors whose
supports meet its box, in the order of the parent's list.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rwf._types import Array, BoolArray, IntArray

AnyArray: TypeAlias = NDArray[Any]  # what is saved: floats or integers
LEAF_COLUMNS = 100  # columns of a leaf: smaller fronts are too small for fast products
MIDDLE = (0.4, 0.6)  # quantiles of centres between which a box is cut: the tree is balanced


@dataclass(frozen=True)
class Dissection:
    """The tree, as arrays over nodes and over the entries of their lists.

    Columns are numbered in the order of the tree, in which a node's own are a range.
    """

    order: Annotated[IntArray, "p"]  # the original number of every column, shape (p,)
    axes: Annotated[IntArray, "v"]  # input at which a node is cut, -1 for leaves, shape (nodes,)
    cuts: Annotated[Array, "v"]  # where it is cut; what is smaller goes left, shape (nodes,)
    right: Annotated[IntArray, "v"]  # the right child, shape (nodes,)
    parents: Annotated[IntArray, "v"]  # shape (nodes,); -1 for the root
    own_starts: Annotated[IntArray, "w"]  # where a node's own columns begin, shape (nodes + 1,)
    list_starts: Annotated[IntArray, "w"]  # where its list begins in ``lists``, shape (nodes + 1,)
    lists: Annotated[IntArray, "l"]  # columns of all lists
    # of every boundary entry, its place in the list of the parent; -1 for own columns
    places: Annotated[IntArray, "l"]

    @property
    def n_nodes(self) -> int:
        return len(self.axes)

    @property
    def n_columns(self) -> int:
        return len(self.order)

    @cached_property
    def own(self) -> IntArray:
        """How many columns every node owns."""
        return np.diff(self.own_starts)

    @cached_property
    def fronts(self) -> IntArray:
        """The length of every node's list."""
        return np.diff(self.list_starts)

    @cached_property
    def leaves(self) -> IntArray:
        """The leaves, ascending."""
        return np.flatnonzero(self.axes < 0)

    @cached_property
    def packed_starts(self) -> IntArray:
        """Where a leaf's packed triangle begins among those of all leaves, shape (nodes + 1,)."""
        sizes = np.where(self.axes < 0, self.fronts * (self.fronts + 1) // 2, 0)
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def panel_starts(self) -> IntArray:
        """Where a node's factor, list × own, begins among those of all, shape (nodes + 1,)."""
        return np.concatenate([[0], np.cumsum(self.fronts * self.own)])

    @cached_property
    def ends(self) -> IntArray:
        """The node after the last one of every subtree, shape (nodes,)."""
        ends = np.arange(1, self.n_nodes + 1)
        for v in range(self.n_nodes - 1, 0, -1):
            ends[self.parents[v]] = max(ends[self.parents[v]], ends[v])
        return ends

    @cached_property
    def depths(self) -> IntArray:
        """How many nodes are above every node."""
        depths = np.zeros(self.n_nodes, dtype=np.intp)
        for v in range(1, self.n_nodes):
            depths[v] = depths[self.parents[v]] + 1
        return depths

    def sizes(self, v: int) -> tuple[int, int]:
        """How many columns a node owns, and how many are on its boundary."""
        own = int(self.own[v])
        return own, int(self.fronts[v]) - own

    def columns(self, v: int) -> IntArray:
        """The list of a node."""
        return self.lists[self.list_starts[v] : self.list_starts[v + 1]]

    def boundary(self, v: int) -> IntArray:
        """The part of the list that ancestors own."""
        return self.columns(v)[self.own[v] :]

    def boundary_places(self, v: int) -> IntArray:
        """Where the boundary stands in the list of the parent."""
        return self.places[self.list_starts[v] + self.own[v] : self.list_starts[v + 1]]

    def children(self, v: int) -> tuple[int, ...]:
        return () if self.axes[v] < 0 else (v + 1, int(self.right[v]))

    def in_tree_order(self, values: Array) -> Array:
        """Values by column, from their original order."""
        return values[self.order]

    def in_original_order(self, values: Array) -> Array:
        """Values by column, from the order of the tree."""
        out = np.empty_like(values)
        out[self.order] = values
        return out

    def same_as(self, other: Dissection) -> bool:
        """Whether statistics of the two can be added."""
        return self is other or all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )


def dissect(centres: Array, radii: Array, leaf_columns: int = LEAF_COLUMNS) -> Dissection:
    """The tree of columns with these supports; an infinite radius is a column without bounds."""
    return _Builder(centres, radii, leaf_columns).build()


@dataclass(frozen=True)
class _Box:
    """A box to be made a node: the columns inside it, and what its parent's list holds."""

    low: Array
    high: Array
    inside: IntArray
    above: IntArray
    parent: int
    is_right: bool


class _Builder:
    def __init__(self, centres: Array, radii: Array, leaf_columns: int) -> None:
        self.centres, self.radii, self.leaf_columns = centres, radii, leaf_columns
        self.axes: list[int] = []
        self.cuts: list[float] = []
        self.right: list[int] = []
        self.parents: list[int] = []
        self.own: list[IntArray] = []
        self.lists: list[IntArray] = []
        self.places: list[IntArray] = []

    def build(self) -> Dissection:
        p, d = self.centres.shape
        nothing = np.empty(0, dtype=np.intp)
        waiting = [_Box(np.full(d, -np.inf), np.full(d, np.inf), np.arange(p), nothing, -1, False)]
        while waiting:
            waiting.extend(self._add(waiting.pop()))
        order = np.concatenate(self.own)
        place = np.empty(p, dtype=np.intp)
        place[order] = np.arange(p)
        return Dissection(
            order,
            np.array(self.axes),
            np.array(self.cuts),
            np.array(self.right),
            np.array(self.parents),
            _starts(self.own),
            _starts(self.lists),
            place[np.concatenate(self.lists)],
            np.concatenate(self.places),
        )

    def _add(self, box: _Box) -> list[_Box]:
        """Make a box a node; its halves, the left one last."""
        v = len(self.axes)
        if box.is_right:
            self.right[box.parent] = v
        met = np.flatnonzero(self._meets(box.above, box.low, box.high))
        axis, cut, sides = self._cut(box.inside)
        own = box.inside[sides == 0] if axis >= 0 else box.inside
        columns = np.concatenate([own, box.above[met]])
        self.axes.append(axis)
        self.cuts.append(cut)
        self.right.append(-1)
        self.parents.append(box.parent)
        self.own.append(own)
        self.lists.append(columns)
        self.places.append(np.concatenate([np.full(len(own), -1), met]))
        if axis < 0:
            return []
        high, low = box.high.copy(), box.low.copy()
        high[axis] = low[axis] = cut
        return [
            _Box(low, box.high, box.inside[sides > 0], columns, v, True),
            _Box(box.low, high, box.inside[sides < 0], columns, v, False),
        ]

    def _meets(self, columns: IntArray, low: Array, high: Array) -> BoolArray:
        t = self.centres[columns]
        gap = np.maximum(np.maximum(low - t, t - high), 0.0)
        meets: BoolArray = np.einsum("nk,nk->n", gap, gap) <= self.radii[columns] ** 2
        return meets

    def _cut(self, inside: IntArray) -> tuple[int, float, IntArray]:
        """The best axis, -1 for none, the cut, and the side of every column: -1, 0 or 1."""
        none = (-1, 0.0, np.zeros(len(inside), dtype=np.intp))
        if len(inside) <= self.leaf_columns:
            return none
        fewest, best = len(inside), none
        r = self.radii[inside]
        for axis in range(self.centres.shape[1]):
            t = self.centres[inside, axis]
            low, high = t - r, t + r
            straddling, cut = _best_cut(low, high, t)
            left, right = high <= cut, low >= cut
            if straddling < fewest and left.any() and right.any():
                fewest = straddling
                best = axis, cut, right.astype(np.intp) - left
        return best


def _best_cut(low: Array, high: Array, centres: Array) -> tuple[int, float]:
    """The cut, at the end of a support, that the fewest supports straddle, and their number."""
    ends, begins = np.sort(high), np.sort(low)
    ranks = [int(share * len(low)) for share in MIDDLE]
    first, last = np.partition(centres, ranks)[ranks]
    tried = np.append(ends[(ends >= first) & (ends <= last)], 0.5 * (first + last))
    straddling = np.searchsorted(begins, tried) - np.searchsorted(ends, tried, side="right")
    best = int(np.argmin(straddling))
    return int(straddling[best]), float(tried[best])


def _starts(parts: list[IntArray]) -> IntArray:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])])
