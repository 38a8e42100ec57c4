"""The whole fit: learn the shape on a sample of rows, then make one pass over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np

from rwf.adaptation import learn_atoms
from rwf.background import cover_levels
from rwf.cells import learn_cells
from rwf.errors import NotPositiveDefiniteError
from rwf.features.base import Family
from rwf.features.frame import draw_frame
from rwf.features.stack import Stack
from rwf.fit_report import FitReport, leave_one_out_scores, report_on
from rwf.model import ENOUGH_SCORES, FittedModel, collect
from rwf.moments import Moments, RootMoments
from rwf.noise import NoiseShape, learn_noise
from rwf.projection import first_kernel, learn_kernel, project
from rwf.rows import Block, sample
from rwf.scaling import Standardizer
from rwf.starts import Progress, Start
from rwf.training import LOW_DIMENSION, Shape, climb, draw_stack, learn_shape
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

CHOICE_ROWS, CHOICE_HELD_OUT = 1500, 0.2
"""Rows on which recipes compete, and the share of them that decides."""

NOISE_ROUNDS = 2
"""How often varying noise and the rest of the model are fitted in turn."""

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


@dataclass
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self.begun
        self.begun = now


@dataclass(frozen=True)
class Learned:
    """A shape, how it was found, and how many parameters were learned for it."""

    shape: Shape
    starts: tuple[Start, ...]
    at_bounds: tuple[str, ...]
    n_learned: int


def fit(
    rows: Block,
    recipe: Recipe,
    settings: Settings,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[FittedModel, FitReport]:
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
    everything = len(rows) <= ALL_ROWS
    known = sample(rows, max(SAMPLE_ROWS, ALL_ROWS, 2 * n_features), rng)
    scaler = Standardizer.learn(
        known if everything else rows, ard=settings.ard, log_skewed=settings.log_skewed
    )
    known = scaler.rows(known)
    learned = recipe.learn(scaler, known, everything, n_features, settings, rng, progress)
    watch.lap("shape")
    # Few rows are taken in their canonical form, so that not even rounding depends on their order.
    source = (None, known) if everything else (scaler, rows)

    def statistics(root: bool, noise: NoiseShape | None = None) -> Moments | RootMoments:
        return collect(source[0], learned.shape, source[1], root, noise)

    few = known.X.shape[1] <= LOW_DIMENSION
    scored = some_rows(known, SAMPLE_ROWS, rng)
    cover, features = None, learned.shape.features
    if settings.fill and few and features.local:
        cover = cover_levels(np.asarray(features(scored.X)), features.blocks, features.local_blocks)
    model = FittedModel(
        scaler, learned.shape, statistics(False), settings.learn_priors, cover=cover
    )
    if not _resolved(model):
        progress(
            "the noise is below what a Gram matrix resolves: a second pass in square-root form"
        )
        model = replace(model, statistics=statistics(True))
    len(model.tuned)  # tuned here, so that its time is reported
    watch.lap("pass and tuning")
    model = model.calibrated(scored)
    if settings.noise == "varying" or (settings.noise == "auto" and few):
        root = isinstance(model.statistics, RootMoments)
        varying = _with_varying_noise(model, scored, partial(statistics, root), rng)
        model = varying if settings.noise == "varying" else _better(model, varying, scored)
        progress(f"noise {'constant' if model.noise is None else 'varying'}")
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


def _with_varying_noise(
    model: FittedModel,
    scored: Block,
    statistics: Callable[[NoiseShape], Moments | RootMoments],
    rng: np.random.Generator,
) -> FittedModel:
    """The model with noise learned from its own leave-one-out errors, twice over."""
    plain = model
    for _ in range(NOISE_ROUNDS):
        judges = model.judges(scored)
        errors, variances = np.empty_like(judges.y), np.empty_like(judges.y)
        for output, tuned in enumerate(model.tuned):
            sigma2 = tuned.posterior.noise_variance
            own = sigma2 * (1.0 if model.noise is None else model.noise(judges.X))
            p = model.leave_one_out(judges, output)
            errors[:, output] = (judges.y[:, output] - p.mean) / np.sqrt(sigma2)
            variances[:, output] = np.maximum(p.variance - own, 0.0) / sigma2
        noise = learn_noise(judges.X, errors, variances, judges.weights, rng)
        model = replace(plain, noise=noise, statistics=statistics(noise), scores=None)
        model = model.calibrated(scored)
    return model


def _better(plain: FittedModel, varying: FittedModel, scored: Block) -> FittedModel:
    """The varying noise if leave-one-out densities are clearly in its favour."""
    assert varying.noise is not None
    judges = plain.judges(scored)
    gain = leave_one_out_scores(plain, judges) - leave_one_out_scores(varying, judges)
    gain -= len(varying.noise.weights) / len(judges)
    sure = float(gain.std()) / np.sqrt(len(gain))
    return varying if float(gain.mean()) > sure else plain


def _resolved(model: FittedModel) -> bool:
    """Whether the statistics resolve the noise that was found with them."""
    try:
        return model.resolved
    except NotPositiveDefiniteError:
        return False


class Recipe(Protocol):
    """A way to learn the shape of a model."""

    def default_components(self, n: int) -> int:
        """Feature columns for n rows, if nobody asked for a number."""
        ...

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        """The shape, from rows in standardised units, which may be everything there is."""
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

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        families = self.families(scaler)
        few = min(n_features, SAMPLE_FEATURES)
        shape, starts = learn_shape(
            families,
            some_rows(known, SAMPLE_ROWS, rng),
            rng,
            n_features=few,
            n_starts=settings.n_starts,
            max_iter=settings.max_iter,
            learn_priors=settings.learn_priors,
            progress=progress,
        )
        at_bounds = next(start.at_bounds for start in starts if start.chosen)
        if few < n_features:
            drawn = draw_stack(families, n_features, known.X, rng)
            shape = replace(shape, features=drawn.with_theta(shape.features.theta))
            if everything:
                shape, step = climb(
                    shape, known, POLISH_ITERATIONS, learn_priors=settings.learn_priors
                )
                at_bounds = step.at_bounds
                progress(f"polished: log evidence {step.log_evidence_per_row:.4f} per row")
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

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        d, k = known.X.shape[1], known.y.shape[1]
        n_blocks = self.n_blocks or (3 if everything else 1)
        trend = Stack(tuple(f.draw(0, known.X, rng) for f in self.trend)) if self.trend else None
        first = first_kernel(n_blocks, d, self.trend, k, ard=settings.ard)
        shape, starts = learn_kernel(
            first,
            trend,
            some_rows(known, EXACT_ROWS, rng),
            rng,
            n_starts=settings.n_starts,
            max_iter=settings.max_iter,
            progress=progress,
        )
        at_bounds = next(start.at_bounds for start in starts if start.chosen)
        centers = some_rows(known, n_features, rng).X
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

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        octaves = draw_frame(self.wavelet, known.X, n_features, rng)
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_cells(octaves, trend, known, rng, progress)
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

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        trend = [family.draw(0, known.X, rng) for family in self.trend]
        shape, starts = learn_atoms(self.wavelet, trend, known, n_features, rng, progress)
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

    def learn(
        self,
        scaler: Standardizer,
        known: Block,
        everything: bool,
        n_features: int,
        settings: Settings,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Learned:
        known_size = len(known)

        def learned(recipe: Recipe, rows: Block, stream: np.random.Generator) -> Learned:
            size = settings.n_components or recipe.default_components(known_size)
            return recipe.learn(scaler, rows, everything, size, settings, stream, progress)

        few = some_rows(known, CHOICE_ROWS, rng)
        held = np.zeros(len(few), dtype=bool)
        held[rng.permutation(len(few))[: int(CHOICE_HELD_OUT * len(few))]] = True
        if held.sum() < ENOUGH_SCORES:
            return learned(next(iter(self.candidates.values())), known, rng)
        streams = dict(zip(self.candidates, rng.spawn(len(self.candidates)), strict=True))
        densities = {}
        for name, recipe in self.candidates.items():
            shape = learned(recipe, few.part(~held), streams[name]).shape
            statistics = collect(None, shape, few.part(~held), root=False)
            model = FittedModel(scaler, shape, statistics, settings.learn_priors)
            densities[name] = float(model.log_density(few.part(held)).mean())
            progress(f"prior {name!r}: held-out log density {densities[name]:.4f}")
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
