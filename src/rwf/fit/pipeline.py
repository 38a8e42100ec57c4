"""The whole fit: sample → scale → learn → condition → blend → calibrate → report.

Rows in memory and rows of a stream take the same steps. Hyperparameters are learned on a sample;
the model of all rows follows from one pass over them. The report compares it with trivial
predictors.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.holdout import group_parts
from rwf.data.progress import Stage, Stopwatch
from rwf.data.readers import Reader
from rwf.data.rows import Block, Mapped, Rows, distinct, sample
from rwf.data.stream import Stream
from rwf.fit.cards import report_card
from rwf.fit.checkpoint import Checkpointer, FitState
from rwf.fit.groups import GroupScores
from rwf.fit.metric import choose_metric
from rwf.inference.optimize import Progress, Trial
from rwf.inference.posterior import normal_log_density
from rwf.linalg.dense import factor_matrix
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.blended import blend_neighbors
from rwf.priors.base import FitConfig, LearnedPrior, LearningTask, Prior, calibrated
from rwf.uncertainty.vecchia import NEIGHBORS

STREAM_SAMPLE = 2**20
"""Rows of a stream on which priors learn that would use all rows."""

MOSTLY = 0.75  # share of a line from which on a model counts as no better
NEIGHBOR_ROWS = 100_000
"""Rows up to which a blend with nearest neighbours is tried by default."""


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


Fitted = tuple[Model, FitReport]


def fit(
    rows: Block, prior: Prior, config: FitConfig, rng: np.random.Generator, progress: Progress
) -> Fitted:
    """Fit rows that are in memory, in their own units."""
    watch, n, tried = Stopwatch(progress), len(rows), tuple[Trial, ...]()
    config = replace(config, grouped=rows.groups is not None)
    prior = prior.for_rows(n, rows.X.shape[1], config)
    if config.grouped:
        config, tried = choose_metric(rows, prior, config, rng, progress)
    n_components = config.n_components or prior.n_components(n)
    # Leaving a group out takes all of its rows, so that all are known.
    size = n if config.grouped else max(prior.sample_rows, 2 * n_components)
    complete = n <= size
    known = sample(rows, size, rng)
    task = _task(known, complete, n_components, config, rng, watch)
    watch(Stage("learning", 0.0))
    learned = prior.learn(task)
    learned = replace(learned, trials=(*learned.trials, *tried))
    # A complete sample is in canonical order, so that not even rounding depends on that of rows.
    everything = task.known if complete else Mapped(rows, task.units.rows)
    return condition(learned, task, everything, n, watch, in_memory=None if complete else rows)


def fit_stream(
    reader: Reader,
    prior: Prior,
    config: FitConfig,
    rng: np.random.Generator,
    progress: Progress,
    checkpoint: Checkpointer | None = None,
) -> Fitted:
    """Fit rows that need not fit into memory.

    The first pass checks and counts them, and draws the sample that :func:`fit` would draw. Rows
    that are no more than the sample are fitted in memory.
    """
    watch = Stopwatch(progress, stage="first pass")
    state = None if checkpoint is None else checkpoint.state
    if state is None:
        endless = prior.for_rows(sys.maxsize, reader.n_inputs, config)
        if endless.needs_all_rows or isinstance(config.neighbors, int):
            name = "prior" if endless.needs_all_rows else "neighbors"
            value = endless.name if endless.needs_all_rows else config.neighbors
            return fit(reader.read_all(f"{name}={value!r}"), prior, config, rng, progress)
        most = config.n_components or endless.n_components(sys.maxsize)
        size = min(max(endless.sample_rows, 2 * most), STREAM_SAMPLE)
        drawn, n = reader.sample(size, rng, progress)
        if n <= size:
            return fit(drawn, prior, config, rng, progress)
        watch(Stage("learning", 0.0))
        prior = prior.for_rows(n, reader.n_inputs, config)
        n_components = config.n_components or prior.n_components(n)
        task = _task(distinct(drawn), False, n_components, config, rng, watch)
        learned = prior.learn(task)
        watch.lap()
        seed = int(rng.integers(2**63))
        state = FitState(task.units, task.known, n_components, learned, n, watch.seconds, seed)
        if checkpoint is not None:
            checkpoint.begin(state)
    rng = np.random.default_rng(state.seed)
    task = LearningTask(state.units, state.known, False, state.n_components, config, rng, watch)
    rows = Mapped(Stream(reader, state.n_rows, progress, checkpoint), state.units.rows)
    watch.seconds = dict(state.seconds)
    try:
        small = reader.read_if_small()  # blended with neighbours as the same rows in an array
        found = condition(state.learned, task, rows, state.n_rows, watch, small)
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.flush()
        raise
    if checkpoint is not None:
        checkpoint.finish()
    return found


def _task(
    known: Block,
    complete: bool,
    n_components: int,
    config: FitConfig,
    rng: np.random.Generator,
    progress: Progress,
) -> LearningTask:
    """What to learn from a sample, whose units are those of the model."""
    units = config.units(known)
    return LearningTask(units, units.rows(known), complete, n_components, config, rng, progress)


def condition(
    learned: LearnedPrior,
    task: LearningTask,
    rows: Rows,
    n: int,
    watch: Stopwatch,
    in_memory: Block | None = None,
) -> Fitted:
    """The model of all n rows, in standardised units, and a report on it.

    Args:
        learned: what the prior learned.
        task: what it learned from.
        rows: all rows.
        n: how many these are.
        watch: seconds by stage.
        in_memory: all rows in their own units, if they are in memory and not all in the task.
    """
    watch(Stage("conditioning", 0.8))
    model = learned.condition(task, rows)
    n_neighbors = _n_neighbors(learned, task, n)
    if n_neighbors and (task.complete or in_memory is not None):
        watch(Stage("neighbours", 0.9))
        everything = task.known if in_memory is None else task.units.rows(in_memory)
        model = blend_neighbors(model, everything, n_neighbors, task.rng) or model
    watch(Stage("calibration", 0.9))
    model = calibrated(model, learned, task)
    watch(Stage("report", 0.97))
    report = report_on(model, learned, task, n, watch.seconds)
    watch.lap()
    task.progress(
        f"fitted {report.n_rows} rows with {report.n_features} features: "
        f"{report.nll:.4f} nats per row"
    )
    return model, replace(report, seconds=watch.seconds)


def _n_neighbors(learned: LearnedPrior, task: LearningTask, n: int) -> int | None:
    """How many neighbours to blend with, if any."""
    wanted = task.config.neighbors
    if learned.finished:
        return None
    if wanted != "auto":
        return wanted
    many_inputs = task.known.X.shape[1] > LOW_DIMENSION
    return NEIGHBORS if learned.blends and many_inputs and n <= NEIGHBOR_ROWS else None


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
