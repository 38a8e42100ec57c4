"""The whole fit: learn the shape on a sample of rows, then make one pass over all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from rwf.background import block_energies, cover_levels
from rwf.errors import NotPositiveDefiniteError
from rwf.fit_report import FitReport, report_on
from rwf.model import FittedModel
from rwf.models import Model
from rwf.recipes import SAMPLE_ROWS, Lesson, Recipe, Settings, some_rows
from rwf.rows import Block, sample
from rwf.scaling import Standardizer
from rwf.sparse_model import SparseModel, SparseShape
from rwf.starts import Progress
from rwf.training import LOW_DIMENSION, Shape
from rwf.tree_model import TreeModel, TreeShape
from rwf.varying import Source, with_noise


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
) -> tuple[Model, FitReport]:
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
    learned = recipe.learn(Lesson(scaler, known, everything, n_features, settings, rng, progress))
    watch.lap("shape")
    # Rows that are all at hand are taken in their canonical form, so that not even rounding depends
    # on their order.
    source = Source(None, known) if everything else Source(scaler, rows)
    scored = some_rows(known, SAMPLE_ROWS, rng)
    model: Model
    if isinstance(learned.shape, SparseShape):
        model = SparseModel.of(scaler, learned.shape, known)
        watch.lap("pass and tuning")
        model = model.calibrated(scored)
    elif isinstance(learned.shape, TreeShape):
        model = _on_tree(scaler, learned.shape, source, scored, settings)
        watch.lap("pass and tuning")
        model = model.calibrated(scored)
    else:
        model = _gaussian(scaler, learned.shape, source, scored, settings, progress)
        watch.lap("pass and tuning")
        model = model.calibrated(scored)
        model = with_noise(model, source, scored, settings.noise, rng, progress)
    report = report_on(
        model,
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
    return model, report


def _on_tree(
    scaler: Standardizer, shape: TreeShape, source: Source, scored: Block, settings: Settings
) -> TreeModel:
    """The model of all rows on the tree engine."""
    cover = None
    if settings.fill:
        energies = shape.tree.block_energies(scored.X)
        cover = cover_levels(energies, shape.features.local_blocks)
    model = TreeModel(scaler, shape, shape.collect(source.scaler, source.rows), cover=cover)
    len(model.tuned)  # tuned here, so that its time is reported
    return model


def _gaussian(
    scaler: Standardizer,
    shape: Shape,
    source: Source,
    scored: Block,
    settings: Settings,
    progress: Progress,
) -> FittedModel:
    """The model of all rows, with noise that is the same everywhere."""
    cover, features = None, shape.features
    if settings.fill and scored.X.shape[1] <= LOW_DIMENSION and features.local:
        energies = block_energies(np.asarray(features(scored.X)), features.blocks)
        cover = cover_levels(energies, features.local_blocks)
    statistics = source.statistics(shape, root=False)
    model = FittedModel(scaler, shape, statistics, settings.learn_priors, cover=cover)
    if not _resolved(model):
        progress(
            "the noise is below what a Gram matrix resolves: a second pass in square-root form"
        )
        model = replace(model, statistics=source.statistics(shape, root=True))
    len(model.tuned)  # tuned here, so that its time is reported
    return model


def _resolved(model: FittedModel) -> bool:
    """Whether the statistics resolve the noise that was found with them."""
    try:
        return model.resolved
    except NotPositiveDefiniteError:
        return False
