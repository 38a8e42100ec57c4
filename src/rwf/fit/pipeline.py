"""The whole fit: learn the shape on a sample of rows, then make one pass over all of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rwf.data.readers import Reader
from rwf.data.rows import Block, distinct, sample
from rwf.data.scaling import Standardizer
from rwf.data.stream import PartialSums, Stream
from rwf.fit.report import FitReport, report_on
from rwf.inference.trials import Progress
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.blended import learn_neighbor_blend
from rwf.models.correction import Correction
from rwf.models.dense import DenseModel
from rwf.models.noise import Source
from rwf.priors.base import SAMPLE_ROWS, FitConfig, LearnedPrior, LearningTask, Prior, some_rows
from rwf.priors.building import build
from rwf.priors.recipes import SpikeSlab

STREAM_SAMPLE = 2**20
"""Rows of a stream on which recipes learn that want all rows, such as the tree's."""


NEIGHBOR_ROWS = 100_000
"""Up to so many rows of a table the nearest ones are asked, unless somebody decides."""


@dataclass
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self.begun
        self.begun = now


@dataclass(frozen=True)
class FitState:
    """What is known before the pass over all rows: with it, a fit can go on in another process.

    Args:
        scaler: units.
        known: the rows that were learned from, in standardised units.
        size: feature columns that were asked for.
        learned: the shape, and how it was found.
        n_rows: how many rows there are.
        seconds: wall-clock seconds by stage, so far.
        seed: of what is drawn after learning.
    """

    scaler: Standardizer
    known: Block
    size: int
    learned: LearnedPrior
    n_rows: int
    seconds: dict[str, float]
    seed: int


class Checkpointer(PartialSums, Protocol):
    """Keeps a fit where it outlives the process."""

    @property
    def state(self) -> FitState | None:
        """What an earlier process had learned, if there was one."""
        ...

    def begin(self, state: FitState) -> None:
        """Keep what was learned."""
        ...

    def finish(self) -> None:
        """The fit is complete, and nothing need be kept."""
        ...


Fitted = tuple[Model, Correction | None, FitReport]


def fit(
    rows: Block, recipe: Prior, settings: FitConfig, rng: np.random.Generator, progress: Progress
) -> Fitted:
    """Learn the shape on a sample of rows, then fit all of them in one pass.

    Args:
        rows: the data, in their own units.
        recipe: how the shape is learned.
        settings: units, starts and iterations.
        rng: draws rows and atoms.
        progress: called with a line of text now and then.
    """
    watch = _Stopwatch()
    n_features = settings.n_components or recipe.default_n_components(len(rows))
    size = max(recipe.sample_rows, 2 * n_features)
    everything = len(rows) <= size
    known = sample(rows, size, rng)
    scaler = Standardizer.learn(
        known if everything else rows, ard=settings.ard, log_skewed=settings.log_skewed
    )
    known = scaler.rows(known)
    lesson = LearningTask(scaler, known, everything, n_features, settings, rng, progress)
    learned = recipe.learn(lesson)
    watch.lap("shape")
    # Rows that are all at hand are taken in their canonical form, so that not even rounding depends
    # on their order.
    n = len(rows)
    source = Source(None, known, n) if everything else Source(scaler, rows, n)
    return _fit_all(lesson, learned, source, watch)


def fit_stream(
    reader: Reader,
    recipe_for: Callable[[int], Prior],
    settings: FitConfig,
    rng: np.random.Generator,
    progress: Progress,
    checkpointer: Checkpointer | None = None,
) -> Fitted:
    """The same for rows that need not fit into memory.

    The first pass checks and counts them, and draws the sample that fit() would draw; units are
    learned on that too. Rows that are no more than the sample are fitted in memory, with the very
    numbers of fit().

    Args:
        reader: the data, in their own units.
        recipe_for: how the shape of so many rows is learned.
        settings: units, starts and iterations.
        rng: draws rows and atoms.
        progress: called with a line of text now and then.
        keeper: keeps the fit, once its shape is learned, and may have one to go on with.
    """
    watch = _Stopwatch()
    state = None if checkpointer is None else checkpointer.state
    if state is None:
        endless = recipe_for(sys.maxsize)
        asks = settings.second_opinion is True
        if asks or isinstance(endless, SpikeSlab):
            why = "second_opinion=True" if asks else "prior='spike_slab'"
            rows = reader.read_all(why)
            return fit(rows, recipe_for(len(rows)), settings, rng, progress)
        most = settings.n_components or endless.default_n_components(sys.maxsize)
        size = min(max(endless.sample_rows, 2 * most), STREAM_SAMPLE)
        drawn, n = reader.sample(size, rng, progress)
        if n <= size:
            return fit(drawn, recipe_for(n), settings, rng, progress)
        watch.lap("first pass")
        recipe, drawn = recipe_for(n), distinct(drawn)
        n_features = settings.n_components or recipe.default_n_components(n)
        scaler = Standardizer.learn(drawn, ard=settings.ard, log_skewed=settings.log_skewed)
        known = scaler.rows(drawn)
        learned = recipe.learn(
            LearningTask(scaler, known, False, n_features, settings, rng, progress)
        )
        watch.lap("shape")
        seed = int(rng.integers(2**63))
        state = FitState(scaler, known, n_features, learned, n, watch.seconds, seed)
        if checkpointer is not None:
            checkpointer.begin(state)
    rng = np.random.default_rng(state.seed)
    lesson = LearningTask(state.scaler, state.known, False, state.size, settings, rng, progress)
    n = state.n_rows
    source = Source(state.scaler, Stream(reader, n, progress, checkpointer), n)
    watch.seconds = dict(state.seconds)
    try:
        found = _fit_all(lesson, state.learned, source, watch)
    except KeyboardInterrupt:
        if checkpointer is not None:
            checkpointer.flush()
        raise
    if checkpointer is not None:
        checkpointer.finish()
    return found


def _fit_all(
    lesson: LearningTask, learned: LearnedPrior, source: Source, watch: _Stopwatch
) -> Fitted:
    """From the learned shape to the model of all rows, and a report on it."""
    scaler, known, rng = lesson.scaler, lesson.known, lesson.rng
    model, scale = build(learned.shape, lesson, source)
    correction: Correction | None = scale
    watch.lap("pass and tuning")
    if isinstance(source.rows, Block) and _blends_neighbors(lesson, model, source.n_rows):
        standardized = source.rows if source.scaler is None else source.scaler.rows(source.rows)
        correction = learn_neighbor_blend(model, scale, standardized, rng) or scale
        watch.lap("second opinion")
    scored = some_rows(known, SAMPLE_ROWS, rng)
    X = scaler.original_inputs(scored.X)
    factors = None if scale is None else scale.variances(model, X)
    report = report_on(
        model,
        factors,
        scored,
        learned.trials,
        learned.at_bounds,
        source.n_rows,
        learned.n_learned,
        watch.seconds,
    )
    watch.lap("calibration")
    lesson.progress(
        f"fitted {report.n_rows} rows with {report.n_features} features: "
        f"{report.nll:.4f} nats per row"
    )
    return model, correction, report


def _blends_neighbors(lesson: LearningTask, model: Model, n: int) -> bool:
    """Whether the nearest of n rows, all in memory, are asked what they say."""
    wanted, d = lesson.settings.second_opinion, lesson.known.X.shape[1]
    if wanted != "auto":
        return wanted
    projected = isinstance(model, DenseModel) and model.projected is not None
    return projected and d > LOW_DIMENSION and n <= NEIGHBOR_ROWS
