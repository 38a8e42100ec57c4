r"""Elimination: the columns of M = I + Λ^½GΛ^½/σ², node by node from the leaves upward.

A node's front F is the part of M over its list that its subtree has brought together. With own
columns o and boundary b,

.. math:: F_{oo} = LL^\top, \qquad W = F_{bo}L^{-\top}, \qquad U = F_{bb} - WW^\top, \qquad
    X = WL^{-1},

and U is added to the parent's front: the multifrontal method (Duff and Reid 1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.errors import NotPositiveDefiniteError
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.factor import TreeFactor
from rwf.inference.multifrontal.schedule import Pile, schedule, threads_for
from rwf.linalg.dense import JITTERS, call
from rwf.linalg.threads import in_parallel

if TYPE_CHECKING:
    from rwf.inference.multifrontal.moments import TreeMoments

SOLVED_AT_ONCE = 64  # columns of a triangular system solved together; the rest is products


class _NotPositiveDefinite(Exception):
    """A front without a Cholesky factor."""


def factor_tree(moments: TreeMoments, prior_variances: Array, noise_variance: float) -> TreeFactor:
    """The factor of M, or of M with as little jitter on its diagonal as will do."""
    tree = moments.tree.dissection
    scale = np.sqrt(tree.in_tree_order(prior_variances) / noise_variance)
    panels = np.empty(int(tree.panel_starts[-1]))
    largest = 1.0
    for jitter in JITTERS:
        if jitter:
            energies = moments.column_energies * prior_variances
            largest = 1.0 + float(energies.max()) / noise_variance
        factor = TreeFactor(tree, panels, jitter * largest)
        try:
            _eliminate(factor, moments, scale)
        except _NotPositiveDefinite:
            continue
        return factor
    raise NotPositiveDefiniteError(
        f"the precision of {tree.n_columns} weights (largest diagonal entry {largest:.3g}) has no "
        f"Cholesky factor even with jitter {JITTERS[-1] * largest:.3g}. Raise the noise variance, "
        "or draw fewer atoms."
    )


def _eliminate(factor: TreeFactor, moments: TreeMoments, scale: Array) -> None:
    top, subtrees = schedule(factor.dissection)
    updates: dict[int, Array] = {}
    work = partial(_eliminate_nodes, factor, moments, scale, updates)
    in_parallel(work, subtrees)
    with threads_for(factor.dissection, top):
        work(top)


def _eliminate_nodes(
    factor: TreeFactor,
    moments: TreeMoments,
    scale: Array,
    updates: dict[int, Array],
    nodes: Sequence[int],
) -> None:
    """Eliminate the own columns of nodes, the last one first; children come before parents."""
    from rwf.inference.multifrontal import _fronts

    tree, inside = factor.dissection, frozenset(nodes)
    # Updates of parents and of children on a pile each: both of a parent's are then on top.
    piles = [Pile(entries) for entries in update_entries(tree, nodes)]
    for v in reversed(nodes):
        own, rest = tree.sizes(v)
        depth = int(tree.depths[v])
        P, U = factor.panel(v), piles[depth % 2].push(rest)
        if tree.axes[v] < 0:
            _fronts.unpack_front(moments.gram(v), scale[tree.columns(v)], 1 + factor.jitter, P, U)
        else:
            _fronts.clear_front(1 + factor.jitter, P, U)
        for child in tree.children(v):
            _fronts.extend_add(updates.pop(child), tree.boundary_places(child), P, U)
            if child in inside:
                piles[(depth + 1) % 2].pop()
        if own:
            _eliminate_own(P, U, own, rest)
        updates[v] = U
    if nodes:
        updates[nodes[0]] = updates[nodes[0]].copy()  # all that is left of the piles


def update_entries(tree: Dissection, nodes: Sequence[int]) -> tuple[int, int]:
    """Most entries of updates in memory at once when nodes are eliminated, by parity of depth."""
    inside = frozenset(nodes)
    squares = (tree.fronts - tree.own) ** 2
    height, most = [0, 0], [0, 0]
    for v in reversed(nodes):
        mine = int(tree.depths[v]) % 2
        height[mine] += int(squares[v])
        most[mine] = max(most[mine], height[mine])
        height[1 - mine] -= sum(int(squares[c]) for c in tree.children(v) if c in inside)
    return most[0], most[1]


def _eliminate_own(P: Array, U: Array, own: int, rest: int) -> None:
    """Replace P by L⁻¹ above X, and take WWᵀ from U."""
    front = own + rest
    if call("dpotrf", "L", own, P, front) != 0 or not np.isfinite(P.diagonal()).all():
        raise _NotPositiveDefinite
    if rest:
        _solve(P, own, rest, 0, own)
        call("dsyrk", "L", "N", rest, own, -1.0, P[0, own:], front, 1.0, U, rest)
    call("dtrtri", "L", "N", own, P, front)
    if rest:
        call("dtrmm", "R", "L", "N", "N", rest, own, 1.0, P, front, P[0, own:], front)


def _solve(P: Array, own: int, rest: int, begin: int, end: int) -> None:
    """Replace columns of F_bo by those of F_bo L⁻ᵀ, all before them being replaced already."""
    front, width = own + rest, end - begin
    if width <= SOLVED_AT_ONCE:
        L, B = P[begin, begin:], P[begin, own:]
        call("dtrsm", "R", "L", "T", "N", rest, width, 1.0, L, front, B, front)
        return
    middle = begin + width // 2
    _solve(P, own, rest, begin, middle)
    done, below, B = P[begin, own:], P[begin, middle:], P[middle, own:]
    call(
        "dgemm", "N", "T", rest, end - middle, middle - begin, -1.0, done, front, below, front,
        1.0, B, front,
    )  # fmt: skip
    _solve(P, own, rest, middle, end)
