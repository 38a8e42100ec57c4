"""Which recipe suits the data: all compete on some of the rows, and rows held out decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rwf.data.rows import Block, hold_out
from rwf.errors import NotPositiveDefiniteError, NotSparseError
from rwf.inference.trials import Trial
from rwf.models.base import log_density
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.noise import Source
from rwf.models.spike_slab import SpikeSlabHyperparameters
from rwf.models.tree import TreeHyperparameters
from rwf.priors.base import LearnedPrior, LearningTask, Prior, some_rows
from rwf.priors.building import build
from rwf.priors.recipes import ADAPTIVE_ROWS
from rwf.uncertainty.calibration import ENOUGH_SCORES

CHOICE_ROWS, CHOICE_HELD_OUT = 5000, 0.2
"""Rows on which recipes compete, and the share of them that decides."""

HOPELESS = 0.3
"""Nats a row by which a recipe may be behind the best before it, with noise and error bars that are
the same everywhere. Beyond, it gets no others: they take long, and hardly ever make up for that."""


@dataclass(frozen=True)
class Auto:
    """Whichever of several recipes predicts held-out rows best.

    Args:
        candidates: recipes by name, the dearest first. Those for which there are too many rows
            stand back; the first is taken where there are too few to compete.
    """

    candidates: Mapping[str, Prior]

    @property
    def sample_rows(self) -> int:
        return min(ADAPTIVE_ROWS, max(r.sample_rows for r in self.candidates.values()))

    def default_n_components(self, n: int) -> int:
        return max(recipe.default_n_components(n) for recipe in self.candidates.values())

    def cheap(self) -> Prior:
        return self

    def learn(self, lesson: LearningTask) -> LearnedPrior:
        known, rng = lesson.known, lesson.rng
        able = {
            name: recipe
            for name, recipe in self.candidates.items()
            if lesson.everything or recipe.sample_rows <= len(known)
        }

        def learned(recipe: Prior, rows: Block, stream: np.random.Generator) -> LearnedPrior:
            size = lesson.settings.n_components or recipe.default_n_components(len(known))
            return recipe.learn(replace(lesson, known=rows, size=size, rng=stream))

        kept, held = hold_out(some_rows(known, CHOICE_ROWS, rng), CHOICE_HELD_OUT, rng)
        if len(held) < ENOUGH_SCORES:
            return learned(next(iter(able.values())), known, rng)
        densities: dict[str, float] = {}
        streams = dict(zip(able, rng.spawn(len(able)), strict=True))
        for name in reversed(able):
            own = replace(lesson, known=kept, rng=streams[name])
            try:
                shape = learned(able[name].cheap(), kept, streams[name]).shape
                densities[name] = _held_out(shape, own, held, max(densities.values(), default=None))
            except (NotSparseError, NotPositiveDefiniteError) as reason:
                lesson.progress(f"prior {name!r} stands back: {reason}")
                continue
            lesson.progress(f"prior {name!r}: held-out log density {densities[name]:.4f}")
        if not densities:
            return learned(next(iter(able.values())), known, rng)  # which says what is wrong
        best = max(densities, key=lambda name: densities[name])
        found = learned(able[best], known, rng)
        tried = tuple(
            Trial(np.nan, 0, 0.0, name=f"prior {name!r}", held_out=density)
            for name, density in densities.items()
            if name != best
        )
        chosen = tuple(
            replace(s, name=f"prior {best!r} {s.name}".strip()) if s.chosen else s
            for s in found.trials
        )
        return replace(found, trials=chosen + tried)


def _held_out(
    shape: Hyperparameters | SpikeSlabHyperparameters | TreeHyperparameters,
    lesson: LearningTask,
    held: Block,
    best: float | None,
) -> float:
    """Mean log density of held-out rows, with the noise and the error bars that suit the shape.

    Where these cannot help it to the best so far, they are not learned.
    """

    def density(lesson: LearningTask) -> float:
        model, scale = build(shape, lesson, Source(None, lesson.known, len(lesson.known)))
        X = lesson.scaler.original_inputs(held.X)
        factors = None if scale is None else scale.variances(model, X)
        return float(log_density(model, held, factors).mean())

    if best is not None and lesson.settings.noise == "auto" and isinstance(shape, Hyperparameters):
        settings = replace(lesson.settings, noise="constant", calibrate_locally=False)
        (other,) = lesson.rng.spawn(1)  # so that what follows does not depend on this
        plain = density(replace(lesson, settings=settings, rng=other))
        if plain < best - HOPELESS:
            return plain
    return density(lesson)
