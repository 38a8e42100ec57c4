"""The structure of a stored dissection, whose indices compiled loops follow without a check."""

from __future__ import annotations

import numpy as np

from rwf.inference.multifrontal.dissection import Dissection
from rwf.persistence.registry import require


def check_dissection(tree: Dissection) -> None:
    """A binary tree whose subtrees are ranges, and whose lists hold what its nodes can have."""
    n, p = tree.n_nodes, tree.n_columns
    require(n > 0, "a tree has no nodes")
    require(np.array_equal(np.sort(tree.order), np.arange(p)), "its order is no permutation")
    for starts, end in ((tree.own_starts, p), (tree.list_starts, len(tree.lists))):
        require(len(starts) == n + 1, "its nodes differ in number")
        rising = starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all()
        require(rising, "the parts of its lists are out of order")
    _check_nodes(tree)
    _check_lists(tree)


def _check_nodes(tree: Dissection) -> None:
    n = tree.n_nodes
    inner, parents = np.flatnonzero(tree.axes >= 0), tree.parents
    require(parents[0] == -1, "its root has a parent")
    above = parents[1:]
    require(((above >= 0) & (above < np.arange(1, n))).all(), "a node is above its parent")
    require((np.bincount(above, minlength=n) == 2 * (tree.axes >= 0)).all(), "a child is missing")
    require((inner + 1 < n).all(), "a child is missing")
    require((parents[inner + 1] == inner).all(), "a left child is in the wrong place")
    # With two children each, this makes every subtree a range.
    right = tree.right[inner]
    require(np.array_equal(right, tree.ends[inner + 1]), "a right child is in the wrong place")
    require((right < n).all() and (parents[right] == inner).all(), "a child has two parents")


def _check_lists(tree: Dissection) -> None:
    require((tree.own <= tree.fronts).all(), "a node owns more than its list holds")
    node = np.repeat(np.arange(tree.n_nodes), tree.fronts)
    place = np.arange(len(tree.lists)) - tree.list_starts[node]
    own = place < tree.own[node]
    first = tree.own_starts[node] + place
    require((tree.lists[own] == first[own]).all(), "a node does not list its own columns")
    require((tree.places[own] == -1).all(), "an own column has a place above")
    others = np.flatnonzero(~own)
    require((node[others] > 0).all(), "the root has columns from above")
    parent, where = tree.parents[node[others]], tree.places[others]
    require(((where >= 0) & (where < tree.fronts[parent])).all(), "a place is out of bounds")
    same = tree.lists[others] == tree.lists[tree.list_starts[parent] + where]
    require(same.all(), "a column is not where its place says")
    rises = (np.diff(where) > 0) | (np.diff(node[others]) > 0)
    require(rises.all(), "the places of a node are out of order")
