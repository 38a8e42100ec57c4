"""The metric of rows in groups: by every column's own length-scale, or the same for all.

The evidence takes rows for independent. Rows of a group are not, and what they share is learned as
a function of the inputs that tell the groups apart: with a length-scale for each of many columns
there is one, and it fails in new groups. So held-out groups choose, by the rule of one standard
error: the simpler metric, unless the other is clearly better.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rwf._types import Array
from rwf.data.holdout import hold_out, standard_error
from rwf.data.rows import Block, distinct
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import ENOUGH_SCORES, LOW_DIMENSION
from rwf.priors.base import FitConfig, LearningTask, Metric, Prior, calibrated_model, some_rows

ROWS = 5000  # on which metrics compete
METRICS: tuple[Metric, ...] = ("isotropic", "auto")  # the simpler first
CLEAR = 1.0  # standard errors by which the other must raise the log density of held-out groups


def choose_metric(
    rows: Block, prior: Prior, config: FitConfig, rng: np.random.Generator, progress: Progress
) -> tuple[FitConfig, tuple[Trial, ...]]:
    """The config with the metric that suits held-out groups, and what was tried."""
    if config.metric != "auto" or rows.X.shape[1] <= LOW_DIMENSION:
        return config, ()
    kept, held = hold_out(some_rows(distinct(rows), ROWS, rng), rng)
    if len(held) < ENOUGH_SCORES:
        return config, ()
    found = {}
    for metric, own in zip(METRICS, rng.spawn(len(METRICS)), strict=True):
        found[metric] = _densities(kept, held, prior, replace(config, metric=metric), own)
        progress(f"metric {metric!r}: log density of held-out groups {found[metric].mean():.4f}")
    simple, other = METRICS
    gain = found[other] - found[simple]
    clear = gain.mean() > CLEAR * standard_error(gain, held.groups)
    best = other if clear else simple
    tried = tuple(
        Trial(np.nan, 0, 0.0, metric == best, name=f"metric {metric!r}", held_out=float(d.mean()))
        for metric, d in found.items()
    )
    return replace(config, metric=best), tried


def _densities(
    kept: Block, held: Block, prior: Prior, config: FitConfig, rng: np.random.Generator
) -> Array:
    """Log densities of held-out rows in the units of y, after a cheap fit to the others."""
    config, units = replace(config, n_restarts=0), prior.units(kept, config)
    size = config.n_components or prior.n_components(len(kept))
    known, test = units.rows(kept), units.rows(held)
    task = LearningTask(units, known, True, size, config, rng, lambda _: None)
    model = calibrated_model(prior.cheap().learn(task), task, known)
    densities: Array = model.predict(test.X).log_density(test.y) + units.log_slope(held.y)
    return densities
