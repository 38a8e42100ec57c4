"""From a learned shape to a model of all rows: one pass, and noise and error bars that suit it."""

from __future__ import annotations

import numpy as np

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.errors import NotPositiveDefiniteError
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.calibrated import LocalCalibration, learn_local_calibration
from rwf.models.dense import DenseModel
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.noise import Source, with_noise
from rwf.models.spike_slab import SpikeSlabHyperparameters, SpikeSlabModel
from rwf.models.statistics import FORMS, collect
from rwf.models.tree import TreeHyperparameters, TreeModel
from rwf.priors.base import SAMPLE_ROWS, FitConfig, LearningTask, some_rows
from rwf.uncertainty.extrapolation import block_energies, support_levels

CALIBRATION_ROWS = 10_000
"""Rows whose leave-one-out errors tell how large errors are in every place, at most."""


def build(
    shape: Hyperparameters | SpikeSlabHyperparameters | TreeHyperparameters,
    lesson: LearningTask,
    source: Source,
) -> tuple[Model, LocalCalibration | None]:
    """The model of all rows, and how its errors vary by place, if they do.

    Args:
        shape: what was learned.
        lesson: what it was learned from; its rows judge the model.
        source: all rows.
    """
    settings, known, rng, progress = lesson.settings, lesson.known, lesson.rng, lesson.progress
    scored = some_rows(known, SAMPLE_ROWS, rng)
    model: Model
    if isinstance(shape, SpikeSlabHyperparameters):
        model = SpikeSlabModel.of(lesson.scaler, shape, known).calibrated(scored)
    elif isinstance(shape, TreeHyperparameters):
        on_tree = _on_tree(lesson.scaler, shape, source, scored, settings).calibrated(scored)
        model = with_noise(on_tree, source, scored, settings.noise, rng, progress)
    else:
        dense = _dense(lesson, shape, source, scored).calibrated(scored)
        model = with_noise(dense, source, scored, settings.noise, rng, progress)
    if not settings.calibrate_locally or known.X.shape[1] > LOW_DIMENSION:
        return model, None
    scale = learn_local_calibration(model, some_rows(known, CALIBRATION_ROWS, rng), rng)
    if scale is not None:
        progress(f"errors vary by place: log density higher by {scale.gain:.4f}")
    return model, scale


def _on_tree(
    scaler: Standardizer,
    shape: TreeHyperparameters,
    source: Source,
    scored: Block,
    settings: FitConfig,
) -> TreeModel:
    """The model of all rows on the tree engine."""
    levels = None
    if settings.fill:
        energies = shape.tree.block_energies(scored.X)
        levels = support_levels(energies, shape.features.local_blocks)
    return TreeModel(scaler, shape, shape.collect(source.scaler, source.rows), levels=levels)


def _dense(
    lesson: LearningTask, shape: Hyperparameters, source: Source, scored: Block
) -> DenseModel:
    """The model of all rows, with noise that is the same everywhere."""
    levels, features, settings = None, shape.features, lesson.settings
    if settings.fill and scored.X.shape[1] <= LOW_DIMENSION and features.local:
        energies = block_energies(np.asarray(features(scored.X)), features.blocks)
        levels = support_levels(energies, features.local_blocks)
    for form in FORMS:
        statistics = collect(source.scaler, shape, source.rows, form)
        model = DenseModel(lesson.scaler, shape, statistics, settings.learn_priors, levels=levels)
        if form == "root" or _resolved(model):
            return model
        lesson.progress(f"{form}: the noise is below what it resolves, so another pass follows")
    raise AssertionError("the last form resolves any noise")


def _resolved(model: DenseModel) -> bool:
    """Whether the statistics resolve the noise that was found with them."""
    try:
        return model.resolved
    except NotPositiveDefiniteError:
        return False
