"""The metric of rows in groups: by every column's own length-scale, or the same for all.

The evidence takes rows for independent. Rows of a group are not, and what they share is learned as
a function of the inputs that tell the groups apart: with a length-scale for each of many columns
there is one, and it fails in new groups. So held-out groups choose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rwf.data.holdout import hold_out
from rwf.data.rows import Block, distinct
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import ENOUGH_SCORES, LOW_DIMENSION
from rwf.priors.base import FitConfig, LearningTask, Metric, Prior, calibrated_model, some_rows

ROWS = 5000  # on which metrics compete
METRICS: tuple[Metric, ...] = ("auto", "isotropic")


def choose_metric(
    rows: Block, prior: Prior, config: FitConfig, rng: np.random.Generator, progress: Progress
) -> tuple[FitConfig, tuple[Trial, ...]]:
    """The config with the metric that predicts held-out groups best, and what was tried."""
    if config.metric != "auto" or rows.X.shape[1] <= LOW_DIMENSION:
        return config, ()
    kept, held = hold_out(some_rows(distinct(rows), ROWS, rng), rng)
    if len(held) < ENOUGH_SCORES:
        return config, ()
    found = {}
    for metric, own in zip(METRICS, rng.spawn(len(METRICS)), strict=True):
        found[metric] = _density(kept, held, prior, replace(config, metric=metric), own)
        progress(f"metric {metric!r}: log density of held-out groups {found[metric]:.4f}")
    best = max(found, key=lambda metric: found[metric])
    tried = tuple(
        Trial(np.nan, 0, 0.0, name=f"metric {metric!r}", held_out=density)
        for metric, density in found.items()
    )
    return replace(config, metric=best), tried


def _density(
    kept: Block, held: Block, prior: Prior, config: FitConfig, rng: np.random.Generator
) -> float:
    """Mean log density of held-out rows in the units of y, after a cheap fit to the others."""
    config, units = replace(config, n_trials=1), config.units(kept)
    size = config.n_components or prior.n_components(len(kept))
    known, test = units.rows(kept), units.rows(held)
    task = LearningTask(units, known, True, size, config, rng, lambda _: None)
    model = calibrated_model(prior.cheap().learn(task), task, known)
    density = model.predict(test.X).log_density(test.y) - np.log(units.y.scale).sum()
    return float(np.average(density, weights=held.weights))
