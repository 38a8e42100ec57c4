"""Which recipe suits the data: all compete on some of the rows, and rows held out decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rwf.building import build
from rwf.calibration import ENOUGH_SCORES
from rwf.errors import NotPositiveDefiniteError, NotSparseError
from rwf.models import log_density
from rwf.recipes import ADAPTIVE_ROWS, Learned, Lesson, Recipe, some_rows
from rwf.rows import Block, hold_out
from rwf.starts import Start
from rwf.varying import Source

CHOICE_ROWS, CHOICE_HELD_OUT = 5000, 0.2
"""Rows on which recipes compete, and the share of them that decides."""


@dataclass(frozen=True)
class ChosenRecipe:
    """Whichever of several recipes predicts held-out rows best.

    Args:
        candidates: recipes by name. Those for which there are too many rows stand back; the first
            is taken where there are too few to compete.
    """

    candidates: Mapping[str, Recipe]

    @property
    def enough_rows(self) -> int:
        return min(ADAPTIVE_ROWS, max(r.enough_rows for r in self.candidates.values()))

    def default_components(self, n: int) -> int:
        return max(recipe.default_components(n) for recipe in self.candidates.values())

    def sketch(self) -> Recipe:
        return self

    def learn(self, lesson: Lesson) -> Learned:
        known, rng = lesson.known, lesson.rng
        able = {
            name: recipe
            for name, recipe in self.candidates.items()
            if lesson.everything or recipe.enough_rows <= len(known)
        }

        def learned(recipe: Recipe, rows: Block, stream: np.random.Generator) -> Learned:
            size = lesson.settings.n_components or recipe.default_components(len(known))
            return recipe.learn(replace(lesson, known=rows, size=size, rng=stream))

        kept, held = hold_out(some_rows(known, CHOICE_ROWS, rng), CHOICE_HELD_OUT, rng)
        if len(held) < ENOUGH_SCORES:
            return learned(next(iter(able.values())), known, rng)
        densities = {}
        for (name, recipe), stream in zip(able.items(), rng.spawn(len(able)), strict=True):
            try:
                found = learned(recipe.sketch(), kept, stream)
                own = replace(lesson, known=kept, rng=stream)
                # Each competes with the noise and the error bars that suit it.
                model, scale = build(found.shape, own, Source(None, kept, len(kept)))
            except (NotSparseError, NotPositiveDefiniteError) as reason:
                lesson.progress(f"prior {name!r} stands back: {reason}")
                continue
            X = lesson.scaler.original_inputs(held.X)
            factors = None if scale is None else scale.variances(model, X)
            densities[name] = float(log_density(model, held, factors).mean())
            lesson.progress(f"prior {name!r}: held-out log density {densities[name]:.4f}")
        if not densities:
            return learned(next(iter(able.values())), known, rng)  # which says what is wrong
        best = max(densities, key=lambda name: densities[name])
        found = learned(able[best], known, rng)
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
