"""A noise model: log σ² is linear in one input column (Harvey 1976)."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from rwf.features import LinearFeatures, Stack
from rwf.uncertainty.variance_function import VarianceFunction

STEEPEST = 5.0
"""Largest |slope| of log σ² per standard deviation of the column."""


@dataclass(frozen=True)
class LogLinearNoise:
    """σ²(x) = σ² exp(slope · x_j), for column j of the standardised inputs.

    The slope maximises the likelihood of leave-one-out errors e, of which the level is eliminated:
    n log mean(e² exp(-slope · x)) + slope · Σx is least.
    """

    column: int = 0

    def fit(self, task):
        rows, d = task.scored, task.scored.X.shape[1]
        errors = rows.y - task.model.leave_one_out(rows).mean
        squares, x = np.square(errors).mean(axis=1), rows.X[:, self.column]

        def loss(slope):
            return np.log(np.mean(squares * np.exp(-slope * x))) + slope * x.mean()

        slope = minimize_scalar(loss, bounds=(-STEEPEST, STEEPEST), method="bounded").x
        task.progress(f"log noise variance has the slope {slope:.3f}")
        weights = np.zeros(d)
        weights[self.column] = slope * np.sqrt(d)  # linear features are x/√d
        span = (slope * x).min(), (slope * x).max()
        noise = VarianceFunction(Stack((LinearFeatures(d),)), weights, 0.0, span)
        # Weighted by 1/v, the rows are fitted again; mean 1/v = 1 keeps σ² their noise variance.
        return task.model.refit(task.rows, noise.relative(rows))
