"""The whole fit: learn the shape on a sample of rows, then make one pass over all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from rwf.building import build
from rwf.corrections import Correction
from rwf.fit_report import FitReport, report_on
from rwf.models import Model
from rwf.recipes import SAMPLE_ROWS, Lesson, Recipe, Settings, some_rows
from rwf.rows import Block, sample
from rwf.scaling import Standardizer
from rwf.second_opinion import learn_second_opinion
from rwf.starts import Progress
from rwf.varying import Source


@dataclass
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self.begun
        self.begun = now


def fit(
    rows: Block,
    recipe: Recipe,
    settings: Settings,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Model, Correction | None, FitReport]:
    """Learn the shape on a sample of rows, then fit all of them in one pass.

    Args:
        rows: the data, in their own units.
        recipe: how the shape is learned.
        settings: units, starts and iterations.
        rng: draws rows and atoms.
        progress: called with a line of text now and then.
    """
    watch = _Stopwatch()
    n_features = settings.n_components or recipe.default_components(len(rows))
    size = max(recipe.enough_rows, 2 * n_features)
    everything = len(rows) <= size
    known = sample(rows, size, rng)
    scaler = Standardizer.learn(
        known if everything else rows, ard=settings.ard, log_skewed=settings.log_skewed
    )
    known = scaler.rows(known)
    lesson = Lesson(scaler, known, everything, n_features, settings, rng, progress)
    learned = recipe.learn(lesson)
    watch.lap("shape")
    # Rows that are all at hand are taken in their canonical form, so that not even rounding depends
    # on their order.
    source = Source(None, known) if everything else Source(scaler, rows)
    model, scale = build(learned.shape, lesson, source)
    correction: Correction | None = scale
    watch.lap("pass and tuning")
    if settings.second_opinion:
        standardized = source.rows if source.scaler is None else source.scaler.rows(source.rows)
        correction = learn_second_opinion(model, scale, standardized, rng) or scale
        watch.lap("second opinion")
    scored = some_rows(known, SAMPLE_ROWS, rng)
    X = scaler.original_inputs(scored.X)
    factors = None if scale is None else scale.variances(model, X)
    report = report_on(
        model,
        factors,
        scored,
        learned.starts,
        learned.at_bounds,
        len(rows),
        learned.n_learned,
        watch.seconds,
    )
    watch.lap("calibration")
    progress(
        f"fitted {len(rows)} rows with {report.n_features} features: {report.nll:.4f} nats per row"
    )
    return model, correction, report
