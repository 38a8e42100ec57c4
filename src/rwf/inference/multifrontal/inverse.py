r"""The selected inverse: the entries of M⁻¹ for all columns that meet, from the root downward.

With L⁻¹ and X of a node and the inverse over its boundary, which its parent has,

.. math:: S_{bo} = -S_{bb}X, \qquad S_{oo} = (LL^\top)^{-1} - X^\top S_{bo}.

What leaves hold is all that predictive variances need; the diagonal is all that the gradient of the
evidence needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.schedule import Pile, schedule, threads_for
from rwf.linalg.dense import call
from rwf.linalg.threads import in_parallel

if TYPE_CHECKING:
    from rwf.inference.multifrontal.factor import TreeFactor

STRIP = 192  # columns of a symmetric product at once: few, so that little is computed twice


@dataclass(frozen=True)
class SelectedInverse:
    """Parts of M⁻¹, in the order of the tree."""

    diagonal: Array  # shape (p,)
    leaves: Array  # its lower triangle over the list of every leaf, packed; or empty


def selected_inverse(factor: TreeFactor, *, leaves: bool = True) -> SelectedInverse:
    """M⁻¹ where columns meet: its diagonal, and its parts over the lists of ``leaves``."""
    tree = factor.dissection
    size = int(tree.packed_starts[-1]) if leaves else 0
    result = SelectedInverse(np.empty(tree.n_columns), np.empty(size))
    top, subtrees = schedule(tree)
    above: dict[int, Array] = {}
    with threads_for(tree, top):
        for v in top:
            above[v] = np.empty((tree.fronts[v], tree.fronts[v]))
            _invert_node(factor, result, v, above.get(int(tree.parents[v])), above[v])
    in_parallel(partial(_descend, factor, result, above), subtrees)
    return result


def _descend(
    factor: TreeFactor, result: SelectedInverse, above: dict[int, Array], nodes: Sequence[int]
) -> None:
    """The inverse over the lists of a subtree's nodes; ``above`` has that of its root's parent."""
    tree, found = factor.dissection, above.copy()
    pile = Pile(inverse_entries(tree, nodes))
    path: list[int] = []
    for v in nodes:
        parent = int(tree.parents[v])
        while path and path[-1] != parent:
            path.pop()
            pile.pop()
        found[v] = pile.push(int(tree.fronts[v]))
        path.append(v)
        _invert_node(factor, result, v, found.get(parent), found[v])


def inverse_entries(tree: Dissection, nodes: Sequence[int]) -> int:
    """Entries of the inverse over all lists on the longest way down a subtree."""
    heights: dict[int, int] = {}
    for v in nodes:
        heights[v] = heights.get(int(tree.parents[v]), 0) + int(tree.fronts[v]) ** 2
    return max(heights.values())


def _invert_node(
    factor: TreeFactor, result: SelectedInverse, v: int, above: Array | None, S: Array
) -> None:
    """The inverse over the list of a node, below the diagonal, from that of its parent."""
    from rwf.inference.multifrontal import _fronts

    tree, starts = factor.dissection, factor.dissection.packed_starts
    own, rest = tree.sizes(v)
    if above is not None:
        _fronts.take_lower(above, tree.boundary_places(v), own, S)
    if own:
        _invert_own(factor.panel(v), S, own, rest)
    result.diagonal[tree.own_starts[v] : tree.own_starts[v + 1]] = S.diagonal()[:own]
    if tree.axes[v] < 0 and len(result.leaves):
        _fronts.pack(S, result.leaves[starts[v] : starts[v + 1]])


def _invert_own(P: Array, S: Array, own: int, rest: int) -> None:
    """S_oo = L⁻ᵀL⁻¹ - Xᵀ S_bo and S_bo = -S_bb X, below the diagonal, from S_bb in its place."""
    front = own + rest
    S[:own, :own] = P[:, :own]
    call("dlauum", "L", own, S, front, 0)
    if not rest:
        return
    X, cross = P[0, own:], S[0, own:]
    call("dsymm", "L", "L", rest, own, -1.0, S[own, own:], front, X, front, 0.0, cross, front)
    for j in range(0, own, STRIP):
        width = min(STRIP, own - j)
        call(
            "dgemm", "T", "N", own - j, width, rest, -1.0, P[j, own:], front, S[j, own:], front,
            1.0, S[j, j:], front,
        )  # fmt: skip
