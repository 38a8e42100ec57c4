r"""What dropped columns leave open: the variance that they had, held at anchors and interpolated.

A model with fewer columns is too sure: it takes the weights of dropped columns for zero. Under the
model with all columns, the squared error of the smaller model's mean has the expectation

.. math:: v(x) + \left(\hat f(x) - \hat f_S(x)\right)^2 = v_S(x) + e(x), \qquad e \ge 0.

The larger model is at hand once, when columns are dropped: e is computed then at anchors, where
its atoms sit, between and far beyond them, and later interpolated between the nearest ones. Error
bars are as wide as before or, on rough estimates of the second square, a little wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.spatial import cKDTree

from rwf.types import Array, IntArray

NEAREST = 6
"""Anchors between which is interpolated."""


@dataclass(frozen=True)
class Dropped:
    """The variance of dropped columns.

    Args:
        anchors: places in standardised units, shape (m, d).
        variances: e at the anchors, shape (m, k).
        shares: the coverage of the larger model at the anchors, shape (m,).
    """

    anchors: Array
    variances: Array
    shares: Array

    @classmethod
    def everywhere(cls, variances: Array, d: int) -> Self:
        """The same variance at all places, shape (k,)."""
        return cls(np.zeros((1, d)), variances[None], np.ones(1))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.anchors)

    def _weights(self, X: Array) -> tuple[IntArray, Array]:
        """Anchors near rows and their weights, both of shape (n, c); continuous in x.

        Modified Shepard: (1/r - 1/R)², with R the distance of the first anchor that has none.
        """
        count = min(NEAREST + 1, len(self.anchors))
        found = self._tree.query(X, k=np.arange(1, count + 1))
        r, index = np.asarray(found[0]), np.asarray(found[1], dtype=np.intp)
        if count == 1:
            return index, np.ones_like(r)
        R = np.maximum(r[:, -1:], 1e-300)
        # An anchor nearer than a billionth of R has all the weight that there is.
        w = (R / np.maximum(r[:, :-1], 1e-9 * R) - 1.0) ** 2 + 1e-30
        return index[:, :-1], w / w.sum(axis=1, keepdims=True)

    def missing(self, X: Array, output: int) -> Array:
        """e at rows in standardised units, shape (n,)."""
        index, w = self._weights(X)
        e: Array = np.einsum("nc,nc->n", self.variances[index, output], w)
        return e

    def coverage(self, X: Array) -> Array:
        """The share of the prior variance that atoms carried at rows, shape (n,)."""
        index, w = self._weights(X)
        share: Array = np.einsum("nc,nc->n", self.shares[index], w)
        return share
