"""Local layers over a model, one for each output: they add what atoms are too coarse for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.inference.posterior import Marginals
from rwf.models.base import Model
from rwf.models.calibrated import LocalCalibration
from rwf.models.correction import Corrected
from rwf.uncertainty.blending import OutputBlend, held_out_rows, learn_output_blend
from rwf.uncertainty.calibration import Calibration


@dataclass(frozen=True)
class NeighborBlend:
    """The nearest rows' word on every output where it helps. It keeps all training rows.

    Args:
        layers: of each output, or ``None`` where the model does as well alone.
        calibration: errors of rows that were held out over their standard deviations.
        scale: how the model's own errors vary by place, if they do.
    """

    layers: tuple[OutputBlend | None, ...]
    calibration: Calibration
    scale: LocalCalibration | None

    def at(self, model: Model, X: Array) -> Corrected:
        unit, found = model.scaler.inputs(X), Corrected.unchanged(len(X), model.n_outputs)
        own = np.ones_like(found.factor) if self.scale is None else self.scale.variances(model, X)
        for output, layer in enumerate(self.layers):
            alone = model.standardized(unit, output)
            scaled = replace(alone, variance=own[:, output] * alone.variance)
            both = scaled if layer is None else layer.predict(unit, scaled)
            found.shift[:, output] = both.mean - alone.mean
            found.factor[:, output] = np.sqrt(both.variance / alone.variance)
        factor = found.factor * np.sqrt(self.calibration.inflation)
        return Corrected(found.shift * model.scaler.y.scale, factor)

    def with_rows(self, model: Model, rows: Block) -> NeighborBlend:
        unit = model.scaler.rows(rows.part(rows.weights > 0))
        layers = tuple(
            None if layer is None else layer.with_rows(unit.X, unit.y[:, output])
            for output, layer in enumerate(self.layers)
        )
        return replace(self, layers=layers)

    def without_rows(self) -> NeighborBlend:
        layers = tuple(None if layer is None else layer.without_rows() for layer in self.layers)
        return replace(self, layers=layers)

    def merged(self, other: NeighborBlend) -> NeighborBlend:
        layers = tuple(
            None if a is None or b is None else a.with_rows(*b.rows)
            for a, b in zip(self.layers, other.layers, strict=True)
        )
        return replace(self, layers=layers)


def learn_neighbor_blend(
    model: Model, scale: LocalCalibration | None, rows: Block, rng: np.random.Generator
) -> NeighborBlend | None:
    """Layers where they clearly raise the density of held-out rows; ``None`` if nowhere.

    Args:
        model: of all rows.
        scale: how its errors vary by place, if they do.
        rows: all of them, in standardised units.
        rng: draws rows that judge.
    """
    rows = rows.part(rows.weights > 0)
    held = held_out_rows(len(rows), rng)
    calibration_rows = rows.part(held)
    X = model.scaler.original_inputs(calibration_rows.X)
    own = np.ones_like(calibration_rows.y) if scale is None else scale.variances(model, X)
    layers, scores = [], np.empty_like(calibration_rows.y)
    for output in range(model.n_outputs):
        y, alone = rows.y[:, output], model.leave_one_out(calibration_rows, output)
        unseen = Marginals(alone.mean, own[:, output] * alone.variance)
        found = learn_output_blend(rows.X, y, held, unseen, rng)
        layers.append(None if found is None else found.layer)
        best = unseen if found is None else found.unseen
        scores[:, output] = (calibration_rows.y[:, output] - best.mean) / np.sqrt(best.variance)
    if all(layer is None for layer in layers):
        return None
    return NeighborBlend(tuple(layers), Calibration(scores), scale)
