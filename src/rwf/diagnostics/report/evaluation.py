"""The numbers of a report: predictions of a model at rows of a table, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.diagnostics.metrics import METRICS, calibration_curve
from rwf.diagnostics.scores import Round, Scores, compare

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor

FOLDS = 5  # folds in which the trivial predictors are fitted to the rows of the report
COVERED = (0.5, 0.8, 0.9, 0.95, 0.99)  # levels of the intervals in the coverage table


@dataclass(frozen=True)
class Evaluation:
    """Encoded rows of a table, how many rows it has, and predictive means and deviations."""

    rows: Block
    n_rows: int
    mean: Array
    std: Array

    @classmethod
    def of(cls, model: TableRegressor, table: object) -> Evaluation:
        rows, n_rows = model.sample_rows(table)
        return cls(rows, n_rows, *model.predict_rows(rows.X))

    @property
    def y(self) -> Array:
        return self.rows.y[:, 0]

    @property
    def z(self) -> Array:
        """Errors in standard deviations."""
        return (self.y - self.mean) / self.std

    @cached_property
    def scores(self) -> Scores | None:
        """The model beside trivial predictors, which are cross-validated on these rows."""
        if len(self.rows) < 2 * FOLDS:
            return None
        folds = np.random.default_rng(0).permutation(len(self.rows)) % FOLDS
        return compare("on these rows", [self._round(folds, fold) for fold in range(FOLDS)])

    def _round(self, folds: IntArray, fold: int) -> Round:
        held = folds == fold
        prediction = self.mean[held], self.std[held]
        return Round(self.rows.part(~held), self.rows.part(held), prediction)

    @property
    def metrics(self) -> dict[str, float]:
        return {name: metric(self.y, self.mean, self.std) for name, metric in METRICS.items()}

    def coverage(self, levels: tuple[float, ...]) -> Array:
        """The share of rows in the central interval of each level."""
        return calibration_curve(self.y, self.mean, self.std, levels)
