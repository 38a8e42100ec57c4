"""Recipes: ways to learn the shape of a model, its features and their variances, on some rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from rwf.adaptation import learn_atoms
from rwf.cells import learn_cells
from rwf.features.base import Family
from rwf.features.frame import draw_frame
from rwf.features.stack import Stack
from rwf.model import ENOUGH_SCORES, FittedModel, collect
from rwf.projection import first_kernel, learn_kernel, project
from rwf.rows import Block, hold_out
from rwf.scaling import Standardizer
from rwf.starts import Progress, Start
from rwf.training import Shape, climb, draw_stack, learn_shape
from rwf.wavelets import Wavelet

SAMPLE_ROWS = 2000
"""Rows on which the shape is learned."""

SAMPLE_FEATURES = 300
"""Columns with which the shape is learned."""

ALL_ROWS = 3000
"""Up to so many rows, all of them take part in learning: as centres of atoms, and in polishing."""

EXACT_ROWS = 1000
"""Rows whose exact evidence gives the kernel of projected weights."""

PROJECTED_COMPONENTS = 2500
"""Atoms of projected weights for more than ALL_ROWS rows."""

POLISH_ITERATIONS = 20

CHOICE_ROWS, CHOICE_HELD_OUT = 5000, 0.2
"""Rows on which recipes compete, and the share of them that decides."""

Noise = Literal["auto", "constant", "varying"]


@dataclass(frozen=True)
class Settings:
    """How to fit.

    Args:
        n_components: feature columns; ``None`` leaves the choice to the recipe.
        n_starts: starts of the shape.
        max_iter: iterations of the best start.
        learn_priors: whether prior variances are learned.
        ard: whether every input column has its own unit and length-scales.
        log_skewed: whether skewed input columns are replaced by their logarithms.
        fill: whether variance that local atoms lack far from the data is filled up, in low
            dimension.
        noise: whether the noise varies with x; "auto" decides by leave-one-out densities in low
            dimension, and is constant in others.
    """

    n_components: int | None
    n_starts: int
    max_iter: int
    learn_priors: bool
    ard: bool
    log_skewed: bool
    fill: bool
    noise: Noise


@dataclass(frozen=True)
class Learned:
    """A shape, how it was found, and how many parameters were learned for it."""

    shape: Shape
    starts: tuple[Start, ...]
    at_bounds: tuple[str, ...]
    n_learned: int


@dataclass(frozen=True)
class Lesson:
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
    settings: Settings
    rng: np.random.Generator
    progress: Progress


class Recipe(Protocol):
    """A way to learn the shape of a model."""

    def default_components(self, n: int) -> int:
        """Feature columns for n rows, if nobody asked for a number."""
        ...

    def learn(self, lesson: Lesson) -> Learned:
        """The shape, from some rows."""
        ...


@dataclass(frozen=True)
class IndependentRecipe:
    """Random features with independent weights: θ with few atoms, then more atoms with the same θ.

    Args:
        families: the blocks of features, given the units.
    """

    families: Callable[[Standardizer], Sequence[Family]]

    def default_components(self, n: int) -> int:
        return int(np.clip(n, 100, 2000))

    def learn(self, lesson: Lesson) -> Learned:
        known, settings, rng, n_features = lesson.known, lesson.settings, lesson.rng, lesson.size
        families = self.families(lesson.scaler)
        few = min(n_features, SAMPLE_FEATURES)
        shape, starts = learn_shape(
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
            if lesson.everything:
                shape, step = climb(
                    shape, known, POLISH_ITERATIONS, learn_priors=settings.learn_priors
                )
                at_bounds = step.at_bounds
                lesson.progress(f"polished: log evidence {step.log_evidence_per_row:.4f} per row")
        n_learned = len(shape.features.theta) + len(shape.log_noise)
        n_learned += len(shape.log_priors) if settings.learn_priors else 0
        return Learned(shape, tuple(starts), at_bounds, n_learned)


@dataclass(frozen=True)
class ProjectedRecipe:
    """Projected weights: the kernel by the exact evidence of some rows, then atoms at rows.

    Args:
        trend: blocks of trend columns.
        n_blocks: blocks of the kernel; ``None`` takes three for few rows and one for many.
    """

    trend: Sequence[Family]
    n_blocks: int | None = None

    def default_components(self, n: int) -> int:
        return n if n <= ALL_ROWS else PROJECTED_COMPONENTS

    def learn(self, lesson: Lesson) -> Learned:
        known, settings, rng = lesson.known, lesson.settings, lesson.rng
        d, k = known.X.shape[1], known.y.shape[1]
        n_blocks = self.n_blocks or (3 if lesson.everything else 1)
        trend = Stack(tuple(f.draw(0, known.X, rng) for f in self.trend)) if self.trend else None
        first = first_kernel(n_blocks, d, self.trend, k, ard=settings.ard)
        shape, starts = learn_kernel(
            first,
            trend,
            some_rows(known, EXACT_ROWS, rng),
            rng,
            n_starts=settings.n_starts,
            max_iter=settings.max_iter,
            progress=lesson.progress,
        )
        at_bounds = next(start.at_bounds for start in starts if start.chosen)
        centers = some_rows(known, lesson.size, rng).X
        n_learned = len(shape.kernel.theta) + len(shape.log_trend) + k
        return Learned(project(shape, trend, centers), tuple(starts), at_bounds, n_learned)


@dataclass(frozen=True)
class CellsRecipe:
    """A frame with prior variances over scale and place.

    Args:
        wavelet: ψ of the atoms.
        trend: blocks of trend columns.
    """

    wavelet: Wavelet
    trend: Sequence[Family]

    def default_components(self, n: int) -> int:
        return int(np.clip(n, 100, 2000))

    def learn(self, lesson: Lesson) -> Learned:
        known, rng = lesson.known, lesson.rng
        octaves = draw_frame(self.wavelet, known.X, lesson.size, rng)
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_cells(octaves, trend, known, rng, lesson.progress)
        # The variances of an octave's cells are shrunk towards one another: count octaves.
        n_learned = len(shape.features.maps) + known.y.shape[1]
        return Learned(shape, tuple(starts), (), n_learned)


@dataclass(frozen=True)
class AdaptiveRecipe:
    """Atoms of one wavelet, placed by the data in rounds.

    Args:
        wavelet: ψ of the atoms.
        trend: blocks of trend columns.
    """

    wavelet: Wavelet
    trend: Sequence[Family]

    def default_components(self, n: int) -> int:
        return int(np.clip(n // 4, 50, 500))

    def learn(self, lesson: Lesson) -> Learned:
        known, rng = lesson.known, lesson.rng
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_atoms(self.wavelet, trend, known, lesson.size, rng, lesson.progress)
        return Learned(shape, tuple(starts), (), len(shape.log_priors) + known.y.shape[1])


@dataclass(frozen=True)
class ChosenRecipe:
    """Whichever of several recipes predicts held-out rows best.

    Args:
        candidates: recipes by name.
    """

    candidates: Mapping[str, Recipe]

    def default_components(self, n: int) -> int:
        return max(recipe.default_components(n) for recipe in self.candidates.values())

    def learn(self, lesson: Lesson) -> Learned:
        known, settings, rng = lesson.known, lesson.settings, lesson.rng

        def learned(recipe: Recipe, rows: Block, stream: np.random.Generator) -> Learned:
            size = settings.n_components or recipe.default_components(len(known))
            return recipe.learn(replace(lesson, known=rows, size=size, rng=stream))

        kept, held = hold_out(some_rows(known, CHOICE_ROWS, rng), CHOICE_HELD_OUT, rng)
        if len(held) < ENOUGH_SCORES:
            return learned(next(iter(self.candidates.values())), known, rng)
        streams = dict(zip(self.candidates, rng.spawn(len(self.candidates)), strict=True))
        densities = {}
        for name, recipe in self.candidates.items():
            shape = learned(recipe, kept, streams[name]).shape
            statistics = collect(None, shape, kept, root=False)
            model = FittedModel(lesson.scaler, shape, statistics, settings.learn_priors)
            densities[name] = float(model.log_density(held).mean())
            lesson.progress(f"prior {name!r}: held-out log density {densities[name]:.4f}")
        best = max(densities, key=lambda name: densities[name])
        found = learned(self.candidates[best], known, rng)
        tried = tuple(
            Start(np.nan, 0, 0.0, name=f"prior {name!r}", held_out=density)
            for name, density in densities.items()
            if name != best
        )
        chosen = tuple(
            replace(s, name=f"prior {best!r} {s.name}".strip()) if s.chosen else s
            for s in found.starts
        )
        return replace(found, starts=chosen + tried)


def some_rows(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` of the rows, at random."""
    if len(rows) <= size:
        return rows
    keep = np.sort(rng.permutation(len(rows))[:size])
    return rows.part(keep)
