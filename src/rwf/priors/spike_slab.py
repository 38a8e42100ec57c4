"""Spike-and-slab prior on one input column: most weights are zero, and which are not is sampled."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf.data.rows import Block, Rows
from rwf.features.base import ConstantFamily, Stack
from rwf.features.lattice import draw_lattice
from rwf.inference.optimize import Trial
from rwf.inference.spike_slab import Schedule, Smooth, fit_windows
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.models.base import Model
from rwf.models.spike_slab import SpikeSlabHyperparameters, SpikeSlabModel
from rwf.priors.base import FitConfig, LearnedPrior, LearningTask, Prior
from rwf.wavelets import CompactHat

SMOOTH_COMPONENTS, SMOOTH_START = 40, 0.1  # columns of the smooth part, and their initial variance
MOST_ACTIVE = 1 / 12  # atoms per row beyond which model selection does not consider the prior
SCHEDULE = Schedule()  # how long weights are sampled

CHEAP_SCHEDULE = replace(SCHEDULE, burn_in=4, keeping=2, attempts=1, most_active=MOST_ACTIVE)
"""The same in model selection."""


@dataclass(frozen=True)
class SpikeSlab(Prior):
    """Spike and slab over steps, cusps, hats and Gabor atoms on one input, above a smooth part.

    Args:
        schedule: how long to sample.
    """

    schedule: Schedule = SCHEDULE
    name: ClassVar[str] = "spike_slab"
    most_inputs: ClassVar[int] = 1
    sample_rows: ClassVar[int] = sys.maxsize
    needs_all_rows: ClassVar[bool] = True
    for_edges: ClassVar[bool] = True

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        super().for_rows(n, d, config)
        if not can_be_sampled(config):
            raise ValueError(
                "prior='spike_slab' finds the number of its atoms and has constant noise: leave "
                f"out n_components={config.n_components!r} and noise={config.noise!r}."
            )
        return self

    def n_components(self, n: int) -> int:
        return n

    def cheap(self) -> Prior:
        return replace(self, schedule=CHEAP_SCHEDULE)

    def learn(self, task: LearningTask) -> LearnedSpikeSlab:
        known, rng = task.known, task.rng
        families = [family for family in task.trend if family != ConstantFamily()]

        def smooth(rows: Block) -> Smooth:
            octaves = draw_lattice(CompactHat(), rows.X, SMOOTH_COMPONENTS, rng)
            trend = [family.draw(0, rows.X, rng) for family in families]
            stack = Stack((*octaves, *trend))
            return Smooth(stack, np.full(stack.n_features, SMOOTH_START), stack.blocks)

        fits = []
        for output in range(known.y.shape[1]):
            rows = replace(known, y=known.y[:, output : output + 1])
            start = None
            if task.start is not None:
                assert isinstance(task.start, LearnedSpikeSlab)
                start = task.start.hyperparameters.fits[output]
            fits.append(fit_windows(rows, rng, smooth, self.schedule, start))
        gaps = None if task.config.calibration is None else GapReversion.between(known.X[:, 0])
        trials = [
            Trial(np.nan, w.fit.report.sweeps, 0.0, True, name=f"chain {i + 1}", held_out=score)
            for fit in fits
            for w in fit.windows
            for i, score in enumerate(w.fit.report.scores)
        ]
        return LearnedSpikeSlab(
            trials=tuple(trials),
            n_learned=len(fits),
            hyperparameters=SpikeSlabHyperparameters(tuple(fits), gaps),
        )


def can_be_sampled(config: FitConfig) -> bool:
    """Whether the config asks for nothing that sampled weights cannot give."""
    return config.n_components is None and config.noise in ("auto", "constant")


@dataclass(frozen=True, kw_only=True)
class LearnedSpikeSlab(LearnedPrior):
    """Atoms and states that were sampled."""

    hyperparameters: SpikeSlabHyperparameters

    def condition(self, task: LearningTask, rows: Rows) -> Model:
        return SpikeSlabModel.of(task.units, self.hyperparameters, task.known)
