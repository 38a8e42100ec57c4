"""What a recipe for the shape of a model is given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.inference.trials import Progress, Trial
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.noise import Noise
from rwf.models.spike_slab import SpikeSlabHyperparameters
from rwf.models.tree import TreeHyperparameters

Neighbors = bool | Literal["auto"]

SAMPLE_ROWS = 2000
"""Rows on which the shape is learned."""


@dataclass(frozen=True)
class FitConfig:
    """How to fit.

    Args:
        n_components: feature columns; ``None`` leaves the choice to the recipe.
        n_starts: starts of the shape.
        max_iter: iterations of the best start.
        learn_priors: whether prior variances are learned.
        ard: whether every input column has its own unit and length-scales.
        log_skewed: whether skewed input columns are replaced by their logarithms.
        mix_columns: whether kernels of many rows of a few to MANY_LENGTHS columns learn which of
            them act together.
        fill: whether variance that local atoms lack far from the data is filled up, in low
            dimension.
        noise: whether the noise varies with x; "auto" decides by leave-one-out densities in low
            dimension, and is constant in others.
        local_errors: whether error bars follow the size of errors by place, in low dimension.
        second_opinion: whether the nearest rows are asked too; "auto" decides by the weights, the
            number of columns and of rows, and whether these are in memory.
    """

    n_components: int | None
    n_starts: int
    max_iter: int
    learn_priors: bool
    ard: bool
    log_skewed: bool
    mix_columns: bool
    fill: bool
    noise: Noise
    calibrate_locally: bool
    second_opinion: Neighbors


@dataclass(frozen=True)
class LearnedPrior:
    """A shape, how it was found, and how many parameters were learned for it."""

    shape: Hyperparameters | SpikeSlabHyperparameters | TreeHyperparameters
    trials: tuple[Trial, ...]
    at_bounds: tuple[str, ...]
    n_learned: int


@dataclass(frozen=True)
class LearningTask:
    """What a recipe learns from.

    Args:
        scaler: units.
        known: some rows, in standardised units.
        everything: whether they are all there are.
        size: feature columns.
        settings: starts and iterations.
        rng: draws rows and atoms.
        progress: called with a line of text now and then.
    """

    scaler: Standardizer
    known: Block
    everything: bool
    size: int
    settings: FitConfig
    rng: np.random.Generator
    progress: Progress


class Prior(Protocol):
    """A way to learn the shape of a model."""

    @property
    def sample_rows(self) -> int:
        """Rows beyond which a larger sample teaches it nothing."""
        ...

    def default_n_components(self, n: int) -> int:
        """Feature columns for n rows, if nobody asked for a number."""
        ...

    def cheap(self) -> Prior:
        """A cheaper recipe by which to judge this one."""
        ...

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        """The shape, from some rows."""
        ...


def some_rows(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` of the rows, at random."""
    if len(rows) <= size:
        return rows
    keep = np.sort(rng.permutation(len(rows))[:size])
    return rows.part(keep)
