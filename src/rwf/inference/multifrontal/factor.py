r"""The triangular factor of M = I + Λ^½GΛ^½/σ² on a tree, and what is solved with it.

Of every node there is L⁻¹, where L is the factor of its own columns o once all below them are
eliminated, and :math:`X = F_{bo}F_{oo}^{-1}`, by which they act on its boundary b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from rwf._types import Array
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.inverse import SelectedInverse, selected_inverse
from rwf.linalg.dense import call
from rwf.linalg.threads import one_blas_thread


@dataclass(frozen=True)
class TreeFactor:
    """M = LLᵀ, by nodes."""

    dissection: Dissection  # the tree
    panels: Annotated[Array, "g"]  # L⁻¹ above X of every node, (list, own), in Fortran's order
    jitter: float = 0.0  # what was added to the diagonal of M to make it positive definite

    def panel(self, v: int) -> Array:
        """L⁻¹ above X of a node; one line per own column."""
        starts = self.dissection.panel_starts
        shape = int(self.dissection.own[v]), int(self.dissection.fronts[v])
        return self.panels[starts[v] : starts[v + 1]].reshape(shape)

    @property
    def log_determinant(self) -> float:
        """log |M|."""
        return -2.0 * sum(
            float(np.log(self.panel(v).diagonal()).sum()) for v in range(self.dissection.n_nodes)
        )

    def forward(self, V: Array) -> None:
        """Replace V, shape (p, k) in the order of the tree, by L⁻¹V."""
        with one_blas_thread():
            for v in range(self.dissection.n_nodes - 1, -1, -1):
                self._forward_node(v, V)

    def _forward_node(self, v: int, V: Array) -> None:
        tree, k = self.dissection, V.shape[1]
        own, rest = tree.sizes(v)
        P, mine = self.panel(v), V[tree.own_starts[v] : tree.own_starts[v + 1]]
        if own and rest:
            X, moved = P[0, own:], np.empty((rest, k))
            call("dgemm", "N", "T", k, rest, own, 1.0, mine, k, X, own + rest, 0.0, moved, k)
            V[tree.boundary(v)] -= moved
        if own:
            call("dtrmm", "R", "L", "T", "N", k, own, 1.0, P, own + rest, mine, k)

    def backward(self, V: Array) -> None:
        """Replace V, shape (p, k) in the order of the tree, by L⁻ᵀV."""
        with one_blas_thread():
            for v in range(self.dissection.n_nodes):
                self._backward_node(v, V)

    def _backward_node(self, v: int, V: Array) -> None:
        tree, k = self.dissection, V.shape[1]
        own, rest = tree.sizes(v)
        P, mine = self.panel(v), V[tree.own_starts[v] : tree.own_starts[v + 1]]
        if own:
            call("dtrmm", "R", "L", "N", "N", k, own, 1.0, P, own + rest, mine, k)
        if own and rest:
            X, above = P[0, own:], V[tree.boundary(v)]
            call("dgemm", "N", "N", k, own, rest, -1.0, above, k, X, own + rest, 1.0, mine, k)

    @cached_property
    def inverse(self) -> SelectedInverse:
        """M⁻¹ where columns meet; computed when it is first needed, and kept."""
        return selected_inverse(self)

    def inverse_diagonal(self) -> Array:
        """The diagonal of M⁻¹ in the original order of columns, shape (p,)."""
        inverse = selected_inverse(self, leaves=False)
        return self.dissection.in_original_order(inverse.diagonal)
