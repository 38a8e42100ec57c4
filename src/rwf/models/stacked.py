r"""A model stacked with a straight line or a constant, for data in which it finds little.

.. math:: m(x) = w\, m_\text{model}(x) + (1 - w)\, m_\text{line}(x)

The weight minimises squared leave-one-out errors. Those of the model are optimistic, as its p
hyperparameters were learned from the same n rows: by Akaike's criterion that hides a squared error
of :math:`2p\sigma^2/n`, and twice as much shrinks the weight. A model of single rows that has most
of the weight stays as it is; one of rows in groups is stacked at any weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array
from rwf.data.holdout import group_parts
from rwf.data.rows import Block
from rwf.linalg.dense import factor_matrix
from rwf.models.base import Model, Prediction
from rwf.models.corrected import CorrectedModel, Correction

ALONE = 0.5  # weight from which on the model stays as it is, unless groups were left out
CAUTION = 2.0  # times the criterion: kernels fit noise better than as many coefficients would
LEAST_SHARE = 1e-9  # of the variance of y that is taken to be that of f
RIDGE = 1e-9  # relative to the mean square of a column: columns may be linear in others


@dataclass(frozen=True)
class Line:
    """Least squares on some rows: a straight line, or a constant."""

    coefficients: Annotated[Array, "p k"]
    root: Annotated[Array, "p p"]  # R with RᵀR = ZᵀWZ, upper triangle

    @classmethod
    def fit(cls, rows: Block, n_columns: int) -> Line:
        """With an intercept and the first so many input columns."""
        root = np.sqrt(rows.weights)[:, None]
        Z = np.hstack([np.ones((len(rows), 1)), rows.X[:, :n_columns]])
        gram = (root * Z).T @ (root * Z)
        gram[np.diag_indices_from(gram)] *= 1.0 + RIDGE
        factor = factor_matrix(gram)
        return cls(factor.solve(Z.T @ (rows.weights[:, None] * rows.y)), factor.L.T.copy())

    def _columns(self, X: Array) -> Array:
        return np.hstack([np.ones((len(X), 1)), X[:, : len(self.root) - 1]])

    def __call__(self, X: Array) -> Array:
        """Means at inputs, shape (n, k)."""
        mean: Array = self._columns(X) @ self.coefficients
        return mean

    def leave_one_out(self, rows: Block) -> Array:
        """Means of some of the rows, each without itself, or without its group."""
        root = np.sqrt(rows.weights)[:, None]
        V = root * solve_triangular(self.root, self._columns(rows.X).T, lower=False, trans="T").T
        residuals, mean = rows.y - self(rows.X), np.empty_like(rows.y)
        if rows.groups is None:
            rest = 1.0 - np.einsum("np,np->n", V, V)
            np.subtract(rows.y, residuals / np.maximum(rest, 1e-12)[:, None], out=mean)
            return mean
        for its in group_parts(rows.groups, len(rows), 1):
            H, r = V[its] @ V[its].T, root[its] * residuals[its]
            left = factor_matrix(np.eye(len(its)) - H).solve(r)
            mean[its] = rows.y[its] - left / np.maximum(root[its], 1e-150)
        return mean


@dataclass(frozen=True)
class Stacked(CorrectedModel):
    """A model whose means are averaged with those of a line."""

    line: Line
    shares: Annotated[Array, "k"]  # weights of the model, of each output

    @property
    def line_share(self) -> float:
        return 1.0 - float(self.shares.mean())

    def correction(self, X: Array, p: Prediction) -> Correction:
        return self._correction(p, self.line(X))

    def _correction(self, p: Prediction, line: Array) -> Correction:
        apart = line - p.mean
        between = self.shares * (1.0 - self.shares) * apart**2  # the variance of both means
        factor = 1.0 + between / np.maximum(p.function_variance, LEAST_SHARE * p.variance)
        return Correction(factor, (1.0 - self.shares) * apart, np.ones_like(p.mean))

    def mean(self, X: Array) -> Array:
        mean = self.model.mean(X)
        return mean + (1.0 - self.shares) * (self.line(X) - mean)

    def corrected(self, rows: Block, p: Prediction) -> Prediction:
        return self._correction(p, self.line.leave_one_out(self.counted(rows))).of(p)


def stack_with_line(
    model: Model, p: Prediction, scored: Block, known: Block, hidden: float
) -> Stacked | None:
    """The model stacked with a line or a constant, or ``None`` if it does as well alone.

    Args:
        model: what is stacked.
        p: its leave-one-out predictions of scored rows.
        scored: some of the known rows.
        known: the rows to which a line is fitted.
        hidden: the share of squared errors that leave-one-out errors do not show.
    """
    d, weights = known.X.shape[1], scored.weights
    lines = [Line.fit(known, columns) for columns in (0, d) if columns + 2 < len(known)]
    if not lines or not weights.any():
        return None
    found = []
    for line in lines:
        errors = scored.y - line.leave_one_out(scored)
        found.append((float(np.average((errors**2).sum(axis=1), weights=weights)), line, errors))
    _, line, errors = min(found, key=lambda each: each[0])
    own = scored.y - p.mean
    apart, unseen = errors - own, CAUTION * hidden * np.average(own**2, axis=0, weights=weights)
    square = np.average(apart**2, axis=0, weights=weights) + unseen
    product = np.average(errors * apart, axis=0, weights=weights)
    shares = np.clip(product / np.maximum(square, 1e-300), 0.0, 1.0)
    # Errors of groups that were left out are as large as those of new ones.
    alone = ALONE if scored.groups is None else 1.0
    shares = np.where((shares < alone) & (square > 0), shares, 1.0)
    return None if (shares == 1.0).all() else Stacked(model, line, shares)
