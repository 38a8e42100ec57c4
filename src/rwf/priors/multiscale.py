"""Multiscale prior: variances over scale and place, learned on a lattice of local atoms.

Variances are tied within an octave, or within cells of it, a number of scales wide. They are
learned from all rows but a few for every way to tie them, and held-out rows choose (the evidence
cannot: it rises with every further variance).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf.data.holdout import hold_out
from rwf.data.rows import Block
from rwf.features.base import FeatureMap, Stack
from rwf.features.lattice import draw_lattice
from rwf.features.local import LocalAtoms
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances
from rwf.inference.optimize import Progress, Trial
from rwf.linalg.threads import in_parallel
from rwf.models.base import LOW_DIMENSION
from rwf.models.dense import Hyperparameters
from rwf.priors.base import FitConfig, LearnedFeatures, LearningTask, Prior
from rwf.priors.lattice import Lattice, reason_for_multifrontal
from rwf.priors.random_features import LEAST_COMPONENTS, MOST_COMPONENTS, START_NOISE
from rwf.priors.tied_variances import (
    held_out_log_density,
    in_cells,
    in_parents,
    moments_of,
    tied_variances,
    trial_of,
)
from rwf.wavelets import CompactHat

WIDTHS = (None, 16.0, 4.0)  # widths of cells to choose from, in scales; ``None`` ties whole octaves


@dataclass(frozen=True)
class Multiscale(Prior):
    """Local atoms, octave after octave, with prior variances learned over scale and place.

    For more than 8000 feature columns, or 20 000 rows of one or two input columns, they are solved
    by the multifrontal solver.
    """

    name: ClassVar[str] = "multiscale"
    most_inputs: ClassVar[int] = LOW_DIMENSION
    solvers: ClassVar[tuple[str, ...]] = ("auto", "dense", "multifrontal")

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        super().for_rows(n, d, config)
        reason = reason_for_multifrontal(n, d, config)
        return Lattice(d, reason) if reason else self

    def n_components(self, n: int) -> int:
        return int(np.clip(n, LEAST_COMPONENTS, MOST_COMPONENTS))

    def learn(self, task: LearningTask) -> LearnedFeatures:
        known, rng = task.known, task.rng
        octaves = draw_lattice(CompactHat(), known.X, task.n_components, rng)
        parameters, trials = learn_cells(octaves, task.draw_trend(), known, rng, task.progress)
        # The variances of an octave's cells are shrunk towards one another: count octaves.
        n_learned = len(parameters.features.maps) + known.y.shape[1]
        return LearnedFeatures(
            trials=tuple(trials), n_learned=n_learned, hyperparameters=parameters
        )


@dataclass(frozen=True)
class _Choice:
    stack: Stack
    fits: tuple[EmpiricalBayes, ...]
    report: Trial


def learn_cells(
    octaves: Sequence[LocalAtoms],
    trend: Sequence[FeatureMap],
    rows: Block,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Hyperparameters, list[Trial]]:
    """The lattice with the cells that predict held-out rows best, and its variances."""
    k = rows.y.shape[1]
    plain = Stack((*octaves, *trend))
    kept, test = hold_out(rows, rng)
    moments = moments_of(plain, kept)
    flat = Variances(np.zeros(len(plain.maps)), float(np.log(START_NOISE)))
    by_octave = tied_variances(moments, plain, [flat] * k)

    def attempt(width: float | None) -> _Choice:
        begun = time.perf_counter()
        stack = plain if width is None else in_cells(plain, width)
        fits = tied_variances(moments, stack, in_parents(by_octave, stack))
        density = held_out_log_density(fits, stack, test)
        report = trial_of(fits, moments.n, width, begun, density)
        progress(report.line)
        return _Choice(stack, fits, report)

    tried = in_parallel(attempt, WIDTHS if len(test) else WIDTHS[:1])
    best = max(tried, key=lambda choice: choice.report.held_out or 0.0) if len(test) else tried[0]
    everything = moments + moments_of(plain, test) if len(test) else moments
    final = tied_variances(everything, best.stack, [t.variances for t in best.fits])
    found = Hyperparameters(
        best.stack,
        np.mean([t.variances.log_priors for t in final], axis=0),
        np.array([t.variances.log_noise for t in final]),
    )
    return found, [replace(c.report, chosen=c is best) for c in tried]
