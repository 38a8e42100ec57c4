"""The numbers of a report: predictions of a model at rows of a table, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.diagnostics.metrics import METRICS, calibration_curve
from rwf.diagnostics.scores import Round, Scores, compare
from rwf.uncertainty.transformed import Predictive

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor

FOLDS = 5  # folds in which the trivial predictors are fitted to the rows of the report
WORST = 10  # rows that are listed
SURE = 1e-12  # a probability that is drawn as if it were zero
FALSE_ALARMS = 0.05  # rows per table that may look wrong by chance
COVERED = (0.5, 0.8, 0.9, 0.95, 0.99)  # levels of the intervals in the coverage table


@dataclass(frozen=True)
class Evaluation:
    """Encoded rows of a table, how many rows it has, and predictive distributions."""

    rows: Block
    n_rows: int
    prediction: Predictive

    @classmethod
    def of(cls, model: TableRegressor, table: object) -> Evaluation:
        rows, n_rows = model.sample_rows(table)
        return cls(rows, n_rows, model.predict_rows(rows.X))

    @property
    def y(self) -> Array:
        return self.rows.y[:, 0]

    @property
    def mean(self) -> Array:
        return self.prediction.mean

    @property
    def z(self) -> Array:
        """Errors in units of the predictive scale."""
        return self.prediction.standardized(self.y)

    @cached_property
    def pit(self) -> Array:
        """The predicted probability of values up to the observed one."""
        return self.prediction.cdf(self.y)

    @property
    def normal_scores(self) -> Array:
        """What :attr:`pit` is of a standard normal, so that 95 % of them are within two."""
        return np.asarray(ndtri(np.clip(self.pit, SURE, 1.0 - SURE)))

    @property
    def worst(self) -> IntArray:
        """The rows with the largest errors in units of the predictive scale."""
        return np.argsort(-np.abs(self.z), kind="stable")[:WORST]

    @cached_property
    def suspicious(self) -> IntArray:
        """Rows that are too improbable for a table of this length, the largest errors first.

        If predictions are right, one table in twenty has such a row.
        """
        tail = 2.0 * np.minimum(self.pit, 1.0 - self.pit)
        found = np.flatnonzero(tail < FALSE_ALARMS / len(self.rows))
        return found[np.argsort(-np.abs(self.z[found]), kind="stable")]

    @property
    def explained(self) -> float:
        """The share of the variance of y that the mean explains, R²; NaN if y is constant."""
        return self.explained_without(np.array([], dtype=np.intp))

    def explained_without(self, rows: IntArray) -> float:
        """The same without some rows."""
        y, mean = np.delete(self.y, rows), np.delete(self.mean, rows)
        variance = float(y.var()) if len(y) else 0.0
        return 1.0 - float(np.mean((y - mean) ** 2)) / variance if variance else np.nan

    @cached_property
    def scores(self) -> Scores | None:
        """The model beside trivial predictors, which are cross-validated on these rows."""
        if len(self.rows) < 2 * FOLDS:
            return None
        folds = np.random.default_rng(0).permutation(len(self.rows)) % FOLDS
        return compare("on these rows", [self._round(folds, fold) for fold in range(FOLDS)])

    def _round(self, folds: IntArray, fold: int) -> Round:
        held = folds == fold
        return Round(self.rows.part(~held), self.rows.part(held), self.prediction.part(held))

    @cached_property
    def metrics(self) -> dict[str, float]:
        return {name: metric(self.y, self.prediction) for name, metric in METRICS.items()}

    def coverage(self, levels: tuple[float, ...]) -> Array:
        """The share of rows in the central interval of each level."""
        return calibration_curve(self.y, self.prediction, levels=levels)
