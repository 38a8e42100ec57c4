r"""K nearest neighbours: the mean of the targets around a point, with an error bar from them.

.. math::
    \hat f(x) = \sum_{i \in N_k(x)} w_i y_i \Big/ \sum_{i \in N_k(x)} w_i,
    \qquad s^2(x) = c\, v(x) + e,

with weights one or 1/distance, and v the variance of the :data:`SPREAD` nearest targets. A tenth of
the training rows, kept back, chooses k and the weights by its RMSE, and c and e by the density of
its errors. The error bar knows rough ground from flat, and does not know a gap: nothing in it grows
with distance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.spatial import cKDTree

from experiments.data.splits import random_tenth
from rwf._types import Array

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The numbers of neighbours that compete."""

SPREAD = 16
"""Neighbours whose variance is the local spread: few enough to be local, and more than chance."""

LOWEST, HIGHEST = (1e-6, 1e-8), (1e4, 10.0)
"""Bounds of c, and of e in variances of the targets. e keeps an error bar where all the neighbours
are equal."""


@dataclass(eq=False)
class Nearest:
    """The mean of the nearest rows, in standardised units.

    Args:
        random_state: seed of the rows that are kept back.
    """

    random_state: int

    def fit(self, X: Array, y: Array) -> Self:
        kept = random_tenth(X, self.random_state)
        distances, values = _around(cKDTree(X[kept.train]), y[kept.train], X[kept.test])
        wanted = y[kept.test]
        errors = {
            (k, weighted): wanted - _mean(distances, values, k, weighted)
            for k in COUNTS
            for weighted in (False, True)
        }
        best = min(errors, key=lambda choice: float(np.mean(errors[choice] ** 2)))
        self._k, self._weighted = best
        self._c, self._e = spread_to_variance(_spread(values), errors[best])
        self._tree, self._y = cKDTree(X), y
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        distances, values = _around(self._tree, self._y, X)
        mean = _mean(distances, values, self._k, self._weighted)
        return mean, np.sqrt(self._c * _spread(values) + self._e)

    def facts(self) -> Mapping[str, object]:
        return {
            "n_neighbours": self._k,
            "weights": "1/distance" if self._weighted else "uniform",
            "spread_factor": self._c,
            "std": "spread of the nearest targets, by errors of rows that were kept back",
        }


def spread_to_variance(spread: Array, errors: Array) -> tuple[float, float]:
    """c and e of the variance c·spread + e under which the errors are most probable."""

    def loss(theta: Array) -> float:
        variance = np.exp(theta[0]) * spread + np.exp(theta[1])
        return float(np.mean(np.log(variance) + errors**2 / variance))

    total = float(np.mean(errors**2))
    low, high = np.log(LOWEST), np.log(HIGHEST)
    first = np.log([(total + 1e-12) / (spread.mean() + 1e-12), 0.1 * total + 1e-12])
    start: Array = np.clip(first, low, high)
    found = minimize(loss, start, method="L-BFGS-B", bounds=Bounds(low, high))
    c, e = np.exp(found.x)
    return float(c), float(e)


def _around(tree: cKDTree, y: Array, X: Array) -> tuple[Array, Array]:
    """Distances and targets of the nearest rows of every row of X, nearest first."""
    ranks = np.arange(1, min(max(COUNTS), len(y)) + 1)
    distances, near = tree.query(X, k=ranks)
    return np.asarray(distances), y[near]


def _mean(distances: Array, values: Array, k: int, weighted: bool) -> Array:
    """The mean of the k nearest targets; rows at the very place outweigh all others."""
    weights = 1 / np.maximum(distances[:, :k], 1e-12) if weighted else np.ones_like(values[:, :k])
    mean: Array = (weights * values[:, :k]).sum(axis=1) / weights.sum(axis=1)
    return mean


def _spread(values: Array) -> Array:
    spread: Array = values[:, :SPREAD].var(axis=1)
    return spread
