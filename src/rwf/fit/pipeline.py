"""The whole fit: sample → scale → learn → condition → blend → calibrate → report.

Rows in memory and rows of a stream take the same steps. Hyperparameters are learned on a sample;
the model of all rows follows from one pass over them. The report compares it with trivial
predictors.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from rwf.data.progress import Stage, Stopwatch
from rwf.data.readers import Reader
from rwf.data.rows import Block, Mapped, Rows, copies_among, counted_once, distinct, sample
from rwf.data.stream import Stream
from rwf.fit.checkpoint import Checkpointer, FitState
from rwf.fit.metric import choose_metric
from rwf.fit.report import FitReport, report_on
from rwf.fit.targets import suited
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.blended import blend_neighbors
from rwf.priors.base import (
    FitConfig,
    LearnedPrior,
    LearningTask,
    Prior,
    calibrated,
    left_out_rows,
)
from rwf.uncertainty.noise import NOISE_OF_ROWS
from rwf.uncertainty.vecchia import NEIGHBORS

STREAM_SAMPLE = 2**20
"""Rows of a stream on which priors learn that would use all rows."""

NEIGHBOR_ROWS = 100_000
"""Rows up to which a blend with nearest neighbours is tried by default."""


Fitted = tuple[Model, FitReport]


def fit(
    rows: Block, prior: Prior, config: FitConfig, rng: np.random.Generator, progress: Progress
) -> Fitted:
    """Fit rows that are in memory, in their own units."""
    watch, n, tried = Stopwatch(progress), len(rows), tuple[Trial, ...]()
    config = _with_transform(replace(config, grouped=rows.groups is not None), rows)
    prior = prior.for_rows(n, rows.X.shape[1], config)
    if config.grouped:
        config, tried = choose_metric(rows, prior, config, rng, progress)
    n_components = config.n_components or prior.n_components(n)
    # Leaving a group out takes all of its rows, so that all are known.
    size = n if config.grouped else max(prior.sample_rows, 2 * n_components)
    complete = n <= size
    known = sample(rows, size, rng)
    copies = copies_among(known) if (rows.weights == 1.0).all() else 0
    known = counted_once(known) if copies or not complete else known
    task = _task(prior, known, complete, n_components, config, rng, watch)
    watch(Stage("learning", 0.0))
    learned = prior.learn(task)
    if config.noise in NOISE_OF_ROWS:
        learned = _learned_again(learned, prior, task)
    learned = replace(learned, trials=(*learned.trials, *tried))
    # A complete sample is in canonical order, so that not even rounding depends on that of rows.
    everything = task.known if complete else Mapped(rows, task.units.rows)
    in_memory = None if complete else rows
    model, report = condition(learned, task, everything, n, watch, in_memory)
    return model, replace(report, copies=copies if complete else 0)


def _learned_again(learned: LearnedPrior, prior: Prior, task: LearningTask) -> LearnedPrior:
    """Hyperparameters of rows that count as under a first model, if their evidence is higher.

    Outliers disturb hyperparameters more than weights.
    """
    counted = learned.condition(task, task.known).counted(task.known)
    if counted is task.known:
        return learned
    alike = replace(task, known=counted, config=replace(task.config, noise="constant"))

    def evidence(found: LearnedPrior) -> float:
        value = found.condition(alike, counted).summary.log_evidence
        return -np.inf if value is None else value

    again = prior.learn(replace(task, known=counted))
    return max(again, learned, key=evidence)


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
    watch, given = Stopwatch(progress, stage="first pass"), config
    config = _with_transform(config, None)  # rows that are yet to be read may be negative
    state = None if checkpoint is None else checkpoint.state
    if state is None:
        endless = prior.for_rows(sys.maxsize, reader.n_inputs, config)
        needy = _needs_all_rows(endless, config)
        if needy:
            return fit(reader.read_all(needy), prior, given, rng, progress)
        most = config.n_components or endless.n_components(sys.maxsize)
        size = min(max(endless.sample_rows, 2 * most), STREAM_SAMPLE)
        drawn, n = reader.sample(size, rng, progress)
        if n <= size:
            return fit(drawn, prior, given, rng, progress)
        watch(Stage("learning", 0.0))
        prior = prior.for_rows(n, reader.n_inputs, config)
        n_components = config.n_components or prior.n_components(n)
        task = _task(prior, counted_once(distinct(drawn)), False, n_components, config, rng, watch)
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


def _needs_all_rows(prior: Prior, config: FitConfig) -> str:
    """What needs all rows in memory; empty if nothing does."""
    if prior.needs_all_rows:
        return f"prior={prior.name!r}"
    if isinstance(config.neighbors, int):
        return f"neighbors={config.neighbors!r}"
    return f"noise={config.noise!r}" if config.noise in NOISE_OF_ROWS else ""


def _with_transform(config: FitConfig, rows: Block | None) -> FitConfig:
    """The config with a transform of the targets that is not "auto"; ``None`` for a stream."""
    if config.target_transform != "auto":
        return config
    positive = rows is not None and bool((rows.y > 0).all(axis=0).any())
    return replace(config, target_transform=suited(rows) if rows is not None and positive else None)


def _task(
    prior: Prior,
    known: Block,
    complete: bool,
    n_components: int,
    config: FitConfig,
    rng: np.random.Generator,
    progress: Progress,
) -> LearningTask:
    """What to learn from a sample, whose units are those of the model."""
    units = prior.units(known, config)
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
    seen = left_out_rows(model, learned, task)
    n_neighbors = _n_neighbors(learned, task, n)
    if n_neighbors and (task.complete or in_memory is not None):
        watch(Stage("neighbours", 0.9))
        everything = task.known if in_memory is None else task.units.rows(in_memory)
        model = blend_neighbors(model, everything, n_neighbors, task.rng, seen) or model
    watch(Stage("calibration", 0.9))
    model = calibrated(model, learned, task, seen)
    watch(Stage("report", 0.97))
    report = report_on(model, learned, seen, n, watch.seconds)
    watch.lap()
    task.progress(
        f"fitted {report.n_rows} rows with {report.n_features} features: "
        f"{report.nll:.4f} nats per row"
    )
    return model, replace(report, seconds=watch.seconds)


def _n_neighbors(learned: LearnedPrior, task: LearningTask, n: int) -> int | None:
    """How many neighbours to blend with, if any."""
    wanted = task.config.neighbors
    if learned.finished or task.config.noise in NOISE_OF_ROWS:
        return None
    if wanted != "auto":
        return wanted
    many_inputs = task.known.X.shape[1] > LOW_DIMENSION
    return NEIGHBORS if learned.blends and many_inputs and n <= NEIGHBOR_ROWS else None
