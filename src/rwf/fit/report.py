"""What happened during a fit, and whether it was worth it: the model beside trivial predictors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.inference.optimize import Trial
from rwf.inference.posterior import normal_log_density
from rwf.models.base import Model
from rwf.priors.base import LearnedPrior, LearningTask


@dataclass(frozen=True)
class FitReport:
    """What happened during a fit.

    Args:
        trials: what was tried: evidence per row, iterations, seconds, held-out density.
        seconds: wall-clock seconds by stage.
        n_rows: rows that were fitted.
        n_features: columns of the feature matrix.
        statistics: "gram", or "root" where the noise is below what a Gram matrix resolves;
            "windows" for the spike-and-slab prior, which has a Gram matrix for each window;
            "multifrontal" for that solver.
        at_bounds: parameters that ended on their bounds.
        jitter: largest jitter added to a diagonal.
        nll: leave-one-out negative log density per row, in the units of y, on rows from which
            hyperparameters were learned, plus one nat for every learned parameter.
        constant_nll: the leave-one-out density of a constant predictor.
        linear_nll: the same for a linear predictor; NaN with too few rows for one.
        solver: which solver fitted the rows, and why.
    """

    trials: tuple[Trial, ...]
    seconds: dict[str, float]
    n_rows: int
    n_features: int
    statistics: str
    at_bounds: tuple[str, ...]
    jitter: float
    nll: float
    constant_nll: float
    linear_nll: float
    solver: str = ""

    @property
    def beats_trivial(self) -> bool:
        """Whether the model predicts better than a constant and than a straight line."""
        rivals = [v for v in (self.constant_nll, self.linear_nll) if np.isfinite(v)]
        return not rivals or self.nll < min(rivals)


def report_on(
    model: Model, learned: LearnedPrior, task: LearningTask, n_rows: int, seconds: dict[str, float]
) -> FitReport:
    """Describe a fit, by leave-one-out predictions of some of the rows it learned from."""
    rows, summary = task.scored, model.summary
    ones = np.ones((len(rows), 1))
    own = -model.leave_one_out(rows).log_density(rows.y) + learned.n_learned / len(rows)
    constant = _least_squares_scores(ones, rows)
    linear = _least_squares_scores(np.hstack([ones, rows.X]), rows)
    unit = float(np.log(model.units.y.scale).sum())
    return FitReport(
        trials=learned.trials,
        seconds=seconds,
        n_rows=n_rows,
        n_features=summary.n_features,
        statistics=summary.statistics,
        at_bounds=learned.at_bounds + summary.at_bounds,
        jitter=summary.jitter,
        nll=float(np.average(own, weights=rows.weights)) + unit,
        constant_nll=float(np.average(constant, weights=rows.weights)) + unit,
        linear_nll=float(np.average(linear, weights=rows.weights)) + unit,
        solver=f"{summary.solver}: {learned.why or f'{summary.n_features} columns'}",
    )


def _least_squares_scores(Z: Array, rows: Block) -> Array:
    """The same for ordinary least squares; NaN where it leaves no residual."""
    n, p = Z.shape
    if n <= p + 1:
        return np.full(n, np.nan)
    Q = np.linalg.qr(Z)[0]
    rest = np.maximum(1.0 - np.einsum("np,np->n", Q, Q), 1e-12)
    residual = rows.y - Q @ (Q.T @ rows.y)
    variance = np.einsum("nk,nk->k", residual, residual) / (n - p)
    if (variance <= 1e-24).any():
        return np.full(n, np.nan)
    return sum(
        (-normal_log_density(residual[:, k] / rest, v / rest) for k, v in enumerate(variance)),
        start=np.zeros(n),
    )
