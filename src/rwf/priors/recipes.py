"""Recipes: ways to learn the shape of a model, its features and their variances, on some rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features.base import Family
from rwf.features.lattice import draw_lattice
from rwf.features.stack import Stack
from rwf.features.trend import ConstantFamily
from rwf.inference.multifrontal import AtomTree, draw_multifrontal_lattice, draw_within
from rwf.inference.spike_slab import Schedule, Smooth, fit_windows
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.inference.trials import Trial
from rwf.models.base import LOW_DIMENSION
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.spike_slab import SpikeSlabHyperparameters
from rwf.priors.adaptive import learn_atoms
from rwf.priors.base import SAMPLE_ROWS, LearnedPrior, LearningTask, Prior, some_rows
from rwf.priors.multifrontal import learn_tree
from rwf.priors.multiscale import learn_cells
from rwf.priors.nystrom import (
    MANY_LENGTHS,
    KernelParameters,
    first_kernel,
    learn_kernel,
    missing_variance,
    project,
)
from rwf.priors.random_features import draw_stack, learn_hyperparameters, maximize_evidence
from rwf.wavelets import CompactHat, Wavelet
from rwf.wavelets.radial import Bump

SAMPLE_FEATURES = 300
"""Columns with which the shape is learned."""

ALL_ROWS = 3000
"""Up to so many rows, all of them take part in learning: as centres of atoms, and in polishing."""

EXACT_ROWS, CHEAP_ROWS = 1000, 500
"""Rows whose exact evidence gives the kernel of projected weights, finally and in a sketch."""

PROJECTED_COMPONENTS = 2500
"""Atoms of projected weights for more than ALL_ROWS rows."""

MORE_COMPONENTS, MORE_ROWS = 5000, 20_000
"""Atoms where PROJECTED_COMPONENTS miss more variance than the noise has, for up to so many rows:
for more of them, a pass would take too long."""

PROBES = 500
"""Rows at which it is seen how much variance atoms miss."""

ADAPTIVE_ROWS = 20_000
"""Rows by which atoms are placed."""

SMOOTH_COMPONENTS, SMOOTH_START = 40, 0.1
"""Columns under the atoms of sparse weights, in each window, and their prior variances to start."""

ROWS_PER_ATOM, TREE_COMPONENTS = {1: 1, 2: 2, 3: 4}, {1: 250_000, 2: 100_000, 3: 20_000}
"""Rows for every atom of a tree, and most atoms, by the number of columns of the input, if nobody
asked for a number: atoms in more columns overlap more, and cost more."""

FREE_SHARE, UNKNOWN_MEMORY = 0.6, 4 * 2**30
"""Share of the free memory that a tree may take, and what is taken for free if nobody knows."""

SPARSE_SCHEDULE = Schedule()
"""How long sparse weights are sampled."""

MOST_ACTIVE = 1 / 12
"""Active atoms per row beyond which sparse weights do not compete."""

POLISH_ITERATIONS = 20


@dataclass(frozen=True)
class RandomFeatures:
    """Random features with independent weights: θ with few atoms, then more atoms with the same θ.

    Args:
        families: the blocks of features, given the units.
    """

    families: Callable[[Standardizer], Sequence[Family]]
    sample_rows: ClassVar[int] = ALL_ROWS

    def default_n_components(self, n: int) -> int:
        return int(np.clip(n, 100, 2000))

    def cheap(self) -> Prior:
        return self

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, settings, rng, n_features = lesson.known, lesson.settings, lesson.rng, lesson.size
        families = self.families(lesson.scaler)
        few = min(n_features, SAMPLE_FEATURES)
        shape, starts = learn_hyperparameters(
            families,
            some_rows(known, SAMPLE_ROWS, rng),
            rng,
            n_features=few,
            n_starts=settings.n_starts,
            max_iter=settings.max_iter,
            learn_priors=settings.learn_priors,
            progress=lesson.progress,
        )
        at_bounds = next(start.at_bounds for start in starts if start.chosen)
        if few < n_features:
            drawn = draw_stack(families, n_features, known.X, rng)
            shape = replace(shape, features=drawn.with_theta(shape.features.theta))
            if lesson.everything and len(known) <= ALL_ROWS:
                shape, step = maximize_evidence(
                    shape, known, POLISH_ITERATIONS, learn_priors=settings.learn_priors
                )
                at_bounds = step.at_bounds
                lesson.progress(f"polished: log evidence {step.log_evidence_per_row:.4f} per row")
        n_learned = len(shape.features.theta) + len(shape.log_noise)
        n_learned += len(shape.log_priors) if settings.learn_priors else 0
        return LearnedPrior(shape, tuple(starts), at_bounds, n_learned)


@dataclass(frozen=True)
class Nystrom:
    """Projected weights: the kernel by the exact evidence of some rows, then atoms at rows.

    Args:
        trend: blocks of trend columns.
        n_blocks: blocks of the kernel; ``None`` takes three for few rows and one for many.
        exact_rows: rows whose exact evidence gives the kernel.
        most: atoms where there is hardly any noise, if nobody asked for a number.
    """

    trend: Sequence[Family]
    n_blocks: int | None = None
    exact_rows: int = EXACT_ROWS
    most: int = MORE_COMPONENTS
    sample_rows: ClassVar[int] = 2 * MORE_COMPONENTS  # half of them without atoms, to be judged by

    def default_n_components(self, n: int) -> int:
        if n <= ALL_ROWS:
            return n
        return min(n, self.most) if n <= MORE_ROWS else PROJECTED_COMPONENTS

    def cheap(self) -> Prior:
        return replace(self, exact_rows=CHEAP_ROWS, most=PROJECTED_COMPONENTS)

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, settings, rng = lesson.known, lesson.settings, lesson.rng
        d, k = known.X.shape[1], known.y.shape[1]
        n_blocks = self.n_blocks or (3 if len(known) <= ALL_ROWS else 1)
        trend = Stack(tuple(f.draw(0, known.X, rng) for f in self.trend)) if self.trend else None
        # Few rows have several blocks, and mixing those would follow the noise.
        mix = settings.mix_columns and settings.ard and n_blocks == 1
        mix = mix and LOW_DIMENSION < d <= MANY_LENGTHS
        first = first_kernel(n_blocks, d, self.trend, k, ard=settings.ard, mix=mix)
        shape, starts = learn_kernel(
            first,
            trend,
            some_rows(known, self.exact_rows, rng),
            rng,
            n_starts=settings.n_starts,
            max_iter=settings.max_iter,
            progress=lesson.progress,
        )
        at_bounds = next(start.at_bounds for start in starts if start.chosen)
        n_learned = len(shape.kernel.theta) + len(shape.log_trend) + k
        projected = self._project(shape, trend, lesson)
        return LearnedPrior(projected, tuple(starts), at_bounds, n_learned)

    def _project(
        self, shape: KernelParameters, trend: Stack | None, lesson: LearningTask
    ) -> Hyperparameters:
        """Atoms at as many rows as were asked for, or at fewer that do as well."""
        known, rng = lesson.known, lesson.rng
        if lesson.settings.n_components is None and lesson.size > ALL_ROWS:
            few = project(shape, trend, some_rows(known, PROJECTED_COMPONENTS, rng).X)
            missing = missing_variance(few, some_rows(known, PROBES, rng))
            noise = float(np.exp(shape.log_noise.min()))
            lesson.progress(
                f"{PROJECTED_COMPONENTS} atoms miss a variance of {missing:.2g}; noise {noise:.2g}"
            )
            if missing <= noise:
                return few
        return project(shape, trend, some_rows(known, lesson.size, rng).X)


@dataclass(frozen=True)
class Multiscale:
    """A frame with prior variances over scale and place.

    Args:
        wavelet: ψ of the atoms.
        trend: blocks of trend columns.
    """

    wavelet: Wavelet
    trend: Sequence[Family]
    sample_rows: ClassVar[int] = ALL_ROWS

    def default_n_components(self, n: int) -> int:
        return int(np.clip(n, 100, 2000))

    def cheap(self) -> Prior:
        return self

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, rng = lesson.known, lesson.rng
        octaves = draw_lattice(self.wavelet, known.X, lesson.size, rng)
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_cells(octaves, trend, known, rng, lesson.progress)
        # The variances of an octave's cells are shrunk towards one another: count octaves.
        n_learned = len(shape.features.maps) + known.y.shape[1]
        return LearnedPrior(shape, tuple(starts), (), n_learned)


@dataclass(frozen=True)
class Adaptive:
    """Atoms of one wavelet, placed by the data in rounds.

    Args:
        wavelet: ψ of the atoms.
        trend: blocks of trend columns.
    """

    wavelet: Wavelet
    trend: Sequence[Family]
    sample_rows: ClassVar[int] = ADAPTIVE_ROWS

    def default_n_components(self, n: int) -> int:
        return int(np.clip(n // 4, 50, 500))

    def cheap(self) -> Prior:
        return self

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, rng = lesson.known, lesson.rng
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_atoms(self.wavelet, trend, known, lesson.size, rng, lesson.progress)
        return LearnedPrior(shape, tuple(starts), (), len(shape.log_priors) + known.y.shape[1])


@dataclass(frozen=True)
class SpikeSlab:
    """Spike and slab over steps, cusps, hats and Gabor atoms on one input, over a smooth part.

    Args:
        trend: blocks of trend columns; the constant is in anyway.
        schedule: how long to sample, if not as long as usual.
    """

    trend: Sequence[Family]
    schedule: Schedule | None = None
    sample_rows: ClassVar[int] = sys.maxsize

    def default_n_components(self, n: int) -> int:
        return n

    def cheap(self) -> Prior:
        short = replace(
            SPARSE_SCHEDULE, chains=2, burn_in=5, keeping=4, attempts=1, most_active=MOST_ACTIVE
        )
        return replace(self, schedule=short)

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, rng = lesson.known, lesson.rng

        def smooth(rows: Block) -> Smooth:
            octaves = draw_lattice(CompactHat(), rows.X, SMOOTH_COMPONENTS, rng)
            trend = [f.draw(0, rows.X, rng) for f in self.trend if f != ConstantFamily()]
            stack = Stack((*octaves, *trend))
            return Smooth(stack, np.full(stack.n_features, SMOOTH_START), stack.blocks)

        fits = []
        for output in range(known.y.shape[1]):
            rows = replace(known, y=known.y[:, output : output + 1])
            fits.append(fit_windows(rows, rng, smooth, self.schedule or SPARSE_SCHEDULE))
        gaps = GapReversion.between(known.X[:, 0]) if lesson.settings.fill else None
        starts = [
            Trial(np.nan, w.fit.report.sweeps, 0.0, True, name=f"chain {i + 1}", held_out=score)
            for fit in fits
            for w in fit.windows
            for i, score in enumerate(w.fit.report.scores)
        ]
        return LearnedPrior(
            SpikeSlabHyperparameters(tuple(fits), gaps), tuple(starts), (), len(fits)
        )


@dataclass(frozen=True)
class MultifrontalMultiscale:
    """A frame of tens of thousands of local atoms on a tree, with variances over scale and place.

    Args:
        n_inputs: columns of X.
        trend: blocks of trend columns.
        memory: bytes that it may take; ``None`` for most of what the machine has free.
    """

    n_inputs: int
    trend: Sequence[Family]
    memory: int | None = None
    sample_rows: ClassVar[int] = sys.maxsize

    def default_n_components(self, n: int) -> int:
        wanted = n // ROWS_PER_ATOM[self.n_inputs]
        return int(np.clip(wanted, 100, TREE_COMPONENTS[self.n_inputs]))

    def cheap(self) -> Prior:
        return self

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, rng = lesson.known, lesson.rng
        d, k = known.X.shape[1], known.y.shape[1]
        wavelet: Wavelet = CompactHat() if d == 1 else Bump()
        trend = [family.draw(0, known.X, rng) for family in self.trend]

        def draw(size: int) -> AtomTree:
            return AtomTree.of(
                Stack((*draw_multifrontal_lattice(wavelet, known.X, size, rng), *trend)), d
            )

        tree = draw_within(draw, lesson.size, self.memory or int(FREE_SHARE * free_memory()))
        lesson.progress(f"a tree of {tree.n_features} columns")
        shape, starts = learn_tree(tree, known, rng, lesson.progress)
        return LearnedPrior(shape, tuple(starts), (), len(shape.features.maps) + k)


def free_memory() -> int:
    """Bytes that are free, or can be made so."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024 * int(free.split()[1])
    except (OSError, StopIteration):
        return UNKNOWN_MEMORY
