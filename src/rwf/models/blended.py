"""A model blended with the nearest-neighbour (Vecchia) GP of its training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from rwf._types import Array
from rwf.data.holdout import held_out_rows
from rwf.data.rows import Block, Rows, row_numbers
from rwf.inference.posterior import Marginals
from rwf.models.base import LeftOutRows, Model, Prediction
from rwf.models.corrected import CorrectedModel, Correction
from rwf.uncertainty.blending import OutputBlend, learn_output_blend


@dataclass(frozen=True)
class NeighborBlend(CorrectedModel):
    """A model blended with its nearest neighbours where that helps. It stores all training rows."""

    # of each output, or ``None`` where the model does as well alone
    blends: tuple[OutputBlend | None, ...]
    levels: Annotated[Array, "k"]  # factors of the variances of the model alone

    @property
    def keeps_rows(self) -> bool:
        return True

    def mean(self, X: Array) -> Array:
        return self.predict(X).mean

    def correction(self, X: Array, p: Prediction) -> Correction:
        return self._correction(p, lambda blend, own: blend.predict(X, own))

    def corrected(self, rows: Block, p: Prediction) -> Prediction:
        groups = rows.groups

        def blended(blend: OutputBlend, own: Marginals) -> Marginals:
            if groups is not None:
                return blend.leave_groups_out(rows.X, groups, own)
            _, stored = blend.gp.nearest(rows.X, 1)
            return blend.leave_one_out(stored[:, 0], own)

        return self._correction(p, blended).of(p)

    def _correction(
        self, p: Prediction, blended: Callable[[OutputBlend, Marginals], Marginals]
    ) -> Correction:
        shift, factor = np.zeros_like(p.mean), np.ones_like(p.mean)
        for output, blend in enumerate(self.blends):
            if blend is not None:
                variance = p.variance[:, output]
                own = Marginals(p.mean[:, output], self.levels[output] * variance)
                both = blended(blend, own)
                shift[:, output] = both.mean - own.mean
                factor[:, output] = both.variance / variance
        return Correction(factor, shift)

    def update(self, rows: Rows) -> NeighborBlend:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        unit = self.units.rows(rows.part(rows.weights > 0))
        blends = tuple(
            None if blend is None else blend.update(_of_output(unit, output))
            for output, blend in enumerate(self.blends)
        )
        return replace(self, model=self.model.update(rows), blends=blends)

    def forget(self, rows: Rows) -> NeighborBlend:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        unit = self.units.rows(rows.part(rows.weights > 0))
        blends = tuple(
            None if blend is None else blend.forget(_of_output(unit, output))
            for output, blend in enumerate(self.blends)
        )
        return replace(self, model=self.model.forget(rows), blends=blends)

    def empty(self) -> NeighborBlend:
        blends = tuple(None if blend is None else blend.empty() for blend in self.blends)
        return replace(self, model=self.model.empty(), blends=blends)

    def merge(self, other: NeighborBlend) -> NeighborBlend:
        merged = super().merge(other)
        blends = tuple(
            None if a is None or b is None else a.merge(b)
            for a, b in zip(self.blends, other.blends, strict=True)
        )
        return replace(merged, blends=blends)


def _of_output(rows: Block, output: int) -> Block:
    return replace(rows, y=rows.y[:, [output]])


def blend_neighbors(
    model: Model,
    rows: Block,
    n_neighbors: int,
    rng: np.random.Generator,
    seen: LeftOutRows | None = None,
) -> NeighborBlend | None:
    """The blend with all rows, if it clearly raises the density of held-out ones, or ``None``.

    Some of the rows ``seen`` are held out; ``None`` takes any of all rows. If rows have groups,
    neighbors of held-out rows are in other groups.
    """
    rows = rows.part(rows.weights > 0)
    seen = seen or LeftOutRows.of(model, rows)
    chosen = held_out_rows(seen.rows, rng, len(rows))
    chosen = chosen[seen.rows.weights[chosen] > 0]
    test, alone = seen.rows.part(chosen), model.left_out(seen).part(chosen)
    held = row_numbers(rows, test)
    squares = (test.y - alone.mean) ** 2 / alone.variance
    levels = np.ones(model.n_outputs)
    blends: list[OutputBlend | None] = []
    for output in range(model.n_outputs) if len(test) else ():
        levels[output] = np.average(squares[:, output], weights=test.weights)
        own = Marginals(alone.mean[:, output], levels[output] * alone.variance[:, output])
        found = learn_output_blend(_of_output(rows, output), held, own, rng, n_neighbors)
        blends.append(None if found is None else found.blend)
    if all(blend is None for blend in blends):
        return None
    return NeighborBlend(model, tuple(blends), levels)
