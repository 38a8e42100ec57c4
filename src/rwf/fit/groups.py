"""What leaving groups out says about a fit: predictions of every row, and scores of every group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.models.base import Model, in_target_units
from rwf.uncertainty.transformed import Predictive

LEVEL = 0.95  # probability of the intervals whose coverage is scored


@dataclass(frozen=True)
class GroupScores:
    """Scores of rows that were predicted without their groups, in the units of y.

    Args:
        n_groups: how many groups there are.
        rmse: root-mean-square error.
        nll: negative log density per row, in nats.
        coverage: share of the targets within their 95 % intervals.
    """

    n_groups: int
    rmse: float
    nll: float
    coverage: float


@dataclass(frozen=True)
class GroupPredictions:
    """Training rows, each predicted as if none of the rows of its group had been seen.

    Hyperparameters are those of the fit to all rows. Rows are in the order given to ``fit``;
    arrays have shape (n,), or (n, k) for several outputs.

    Args:
        prediction: predictive distributions, noise included.
        y: the targets.
        groups: the label of every row's group, shape (n,).
        weights: how many times every row counts, shape (n,).
    """

    prediction: Predictive
    y: Array
    groups: NDArray[np.generic]
    weights: Array

    @property
    def mean(self) -> Array:
        """Predictive means."""
        return self.prediction.mean

    @property
    def std(self) -> Array:
        """Predictive standard deviations, noise included."""
        return self.prediction.std

    @property
    def labels(self) -> NDArray[np.generic]:
        """The label of every group, in the order of the scores by group, shape (G,)."""
        return self._coded[0]

    @cached_property
    def _coded(self) -> tuple[NDArray[np.generic], IntArray]:
        labels, codes = np.unique(self.groups, return_inverse=True)
        return labels, codes

    @cached_property
    def scores(self) -> GroupScores:
        """The scores of all rows together."""
        return GroupScores(
            len(self.labels),
            float(np.sqrt(np.average(self._squares, weights=self.weights))),
            float(np.average(self._surprises, weights=self.weights)),
            float(np.average(self._covered, weights=self.weights)),
        )

    @property
    def rmse(self) -> Array:
        """Root-mean-square error of every group, shape (G,)."""
        return np.sqrt(self._by_group(self._squares))

    @property
    def nll(self) -> Array:
        """Negative log density per row of every group, in nats, shape (G,)."""
        return self._by_group(self._surprises)

    @property
    def coverage(self) -> Array:
        """Share of every group's targets within their 95 % intervals, shape (G,)."""
        return self._by_group(self._covered)

    def _by_group(self, values: Array) -> Array:
        codes = self._coded[1]
        total = np.bincount(codes, self.weights)
        with np.errstate(invalid="ignore"):  # a group of no weight has no score
            means: Array = np.bincount(codes, self.weights * values) / total
        return means

    @property
    def _squares(self) -> Array:
        squares: Array = _per_row((self.y - self.mean) ** 2).mean(axis=1)
        return squares

    @property
    def _surprises(self) -> Array:
        surprises: Array = -_per_row(self.prediction.logpdf(self.y)).sum(axis=1)
        return surprises

    @property
    def _covered(self) -> Array:
        inside = np.abs(self.prediction.cdf(self.y) - 0.5) <= LEVEL / 2
        share: Array = _per_row(inside.astype(np.float64)).mean(axis=1)
        return share


def _per_row(values: Array) -> Array:
    return values.reshape(len(values), -1)


def leave_groups_out(model: Model, rows: Block, labels: NDArray[np.generic]) -> GroupPredictions:
    """Predict all rows, which are in the units of the data, without their groups."""
    p = model.leave_one_out(model.units.rows(rows))
    found = in_target_units(model.units, p.distribution)
    return GroupPredictions(found, rows.y, labels, rows.weights)
