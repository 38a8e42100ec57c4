"""The pairs (x, y) at which a kernel is evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.features.base import row_chunks


@dataclass(frozen=True)
class Pairs:
    """All pairs of rows of A and B, or (``every`` false) each row of A with the same row of B."""

    A: Array
    B: Array
    every: bool

    def axis(self, k: int) -> Pairs:
        """The same pairs, seen along one axis."""
        A = self.A[:, [k]]
        return Pairs(A, A if self.B is self.A else self.B[:, [k]], self.every)

    def dot(self, F: Array, G: Array) -> Array:
        """Products of the features F of A, shape (n, p), and G of B: one for each pair."""
        products: Array = F @ G.T if self.every else np.einsum("np,np->n", F, G)
        return products

    def each(self, f: Callable[[Array, Array], Array], work: int = 1) -> Array:
        """f(x, y) of every pair, f elementwise over leading axes with ``work`` doubles a pair."""
        n, m = len(self.A), len(self.B) if self.every else 1
        parts = []
        for rows in row_chunks(n, m * work):
            x, y = self.A[rows], self.B if self.every else self.B[rows]
            parts.append(f(x[:, None], y[None]) if self.every else f(x, y))
        return np.concatenate(parts)
