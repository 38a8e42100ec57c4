"""What is said of a fit, and how well a constant and a straight line would predict.

Both are scored as the model: rows, or whole groups of them, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.holdout import group_parts
from rwf.data.rows import Block
from rwf.fit.cards import report_card
from rwf.fit.groups import GroupScores
from rwf.inference.optimize import Trial
from rwf.inference.posterior import normal_log_density
from rwf.linalg.dense import factor_matrix
from rwf.models.base import LeftOutRows, Model
from rwf.priors.base import LearnedPrior

MOSTLY = 0.75  # share of a line from which on a model counts as no better


@dataclass(frozen=True, repr=False)
class FitReport:
    """What happened during a fit. Printed, it is a few lines.

    Args:
        trials: what was tried: evidence per row, iterations, seconds, held-out density.
        seconds: wall-clock seconds by stage, which add up to those of the fit.
        n_rows: rows that were fitted.
        n_features: columns of the feature matrix.
        statistics: "gram", or "root" where the noise is below what a Gram matrix resolves;
            "windows" for the spike-and-slab prior, which has a Gram matrix for each window;
            "multifrontal" for that solver.
        at_bounds: parameters that ended on their bounds.
        jitter: largest jitter added to a diagonal.
        nll: leave-one-out negative log density per row, in the units of y, on rows from which
            hyperparameters were learned, plus one nat for every learned parameter. Rows in groups
            are left out by whole groups.
        constant_nll: the leave-one-out density of a constant predictor.
        linear_nll: the same for a linear predictor; NaN with too few rows for one.
        solver: which solver fitted the rows, and why.
        line_share: share of a straight line or a constant in the means, where leave-one-out errors
            do not favour the model alone; zero where they do.
        group_scores: scores of all rows, each predicted without its group; ``None`` without
            groups.
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
    line_share: float = 0.0
    group_scores: GroupScores | None = None

    @property
    def timing(self) -> str:
        """The seconds in all, and by stage."""
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        return f"{sum(self.seconds.values()):.1f}: {stages}"

    @property
    def beats_trivial(self) -> bool:
        """Whether the model predicts better than a constant and than a straight line.

        A model whose means are mostly those of such a line does not.
        """
        if self.line_share > MOSTLY:
            return False
        rivals = [v for v in (self.constant_nll, self.linear_nll) if np.isfinite(v)]
        return not rivals or self.nll < min(rivals)

    def __repr__(self) -> str:
        return str(report_card(self))

    def _repr_html_(self) -> str:
        return report_card(self).html()


def report_on(
    model: Model, learned: LearnedPrior, seen: LeftOutRows, n_rows: int, seconds: dict[str, float]
) -> FitReport:
    """Describe a fit, by leave-one-out predictions of some of the rows it learned from."""
    rows, summary = seen.rows, model.summary
    ones = np.ones((len(rows), 1))
    own = -model.left_out(seen).log_density(rows.y) + learned.n_learned / len(rows)
    constant = _least_squares_scores(ones, rows)
    linear = _least_squares_scores(np.hstack([ones, rows.X]), rows)
    slope = model.units.log_slope(model.units.original_targets(rows.y))
    unit = -float(np.average(slope, weights=rows.weights))
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
        line_share=model.line_share,
    )


def _least_squares_scores(Z: Array, rows: Block) -> Array:
    """Negative log densities of rows left out of ordinary least squares; NaN without residuals.

    With r and H of all rows, those of a group have errors (I - H)⁻¹r of covariance σ²(I - H)⁻¹.
    """
    n, p = Z.shape
    if n <= p + 1:
        return np.full(n, np.nan)
    Q = np.linalg.qr(Z)[0]
    residual = rows.y - Q @ (Q.T @ rows.y)
    variance = np.einsum("nk,nk->k", residual, residual) / (n - p)
    if (variance <= 1e-24).any():
        return np.full(n, np.nan)
    if rows.groups is None:
        growth = 1.0 / np.maximum(1.0 - np.einsum("np,np->n", Q, Q), 1e-12)
        errors = residual * growth[:, None]
    else:
        growth, errors = _without_groups(Q, residual, rows.groups)
    return sum(
        (-normal_log_density(errors[:, k], v * growth) for k, v in enumerate(variance)),
        start=np.zeros(n),
    )


def _without_groups(Q: Array, residual: Array, groups: IntArray) -> tuple[Array, Array]:
    """The diagonal of (I - H)⁻¹ and (I - H)⁻¹r, group by group, from an orthonormal basis Q."""
    growth, errors = np.empty(len(Q)), np.empty_like(residual)
    for its in group_parts(groups, len(Q), 1):
        rest = factor_matrix(np.eye(Q.shape[1]) - Q[its].T @ Q[its])
        T = rest.solve(Q[its].T)
        growth[its] = 1.0 + np.einsum("np,pn->n", Q[its], T)
        errors[its] = residual[its] + Q[its] @ (T @ residual[its])
    return growth, errors
