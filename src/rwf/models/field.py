r"""A field: a lattice of atoms for what is coarse, and kriging of what it leaves for what is fine.

Two experts predict every place. One is the kriging of y itself. The other is the lattice plus the
kriging of its residuals; where the kriging weights sum to one, the lattice cancels, so that

.. math:: v(x) = v_\text{kriging} + \left(1 - \textstyle\sum_i w_i\right)^2 v_\text{lattice}.

Held-out rows, alone and in blobs, weigh the two by the distance to data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block, Rows
from rwf.inference.posterior import Marginals
from rwf.models.base import Model, ModelSummary, Prediction
from rwf.models.corrected import CorrectedModel, Correction
from rwf.uncertainty.field_blend import FieldBlend, FieldScores
from rwf.uncertainty.kriging import FieldKernel, Kriging, KrigingPrediction

FEWEST_ROWS = 2  # training rows below which there is no neighbor to leave out
LEAST_SHARE = 1e-3  # of the variance that is f's: rounding may leave a difference below zero
TINY = 1e-300
BLOCK_ROWS = 2**17  # rows whose neighbors are in memory at once


@dataclass(frozen=True)
class FieldOutput:
    """One output: the kernels of its experts, and how these are blended."""

    center: float  # mean of y in the kriging of y
    values: FieldKernel  # of y
    residuals: FieldKernel  # of what the lattice leaves of y
    blend: FieldBlend


@dataclass(frozen=True)
class FieldModel(CorrectedModel):
    """A lattice model blended with the kriging of its rows, which it stores."""

    outputs: tuple[FieldOutput, ...]
    X: Annotated[Array, "n d"]  # training rows, in standardised units
    y: Annotated[Array, "n k"]
    scores: tuple[FieldScores, ...]  # of each output
    n_neighbors: int

    @property
    def keeps_rows(self) -> bool:
        return True

    @property
    def summary(self) -> ModelSummary:
        inner = replace(self.model.summary, log_evidence=None)
        if len(self.X) <= FEWEST_ROWS:
            return inner
        pairs = zip(self.outputs, self._krigings, strict=True)
        noises = [own.blend.weights[:, 0] @ [k.noise for k in both] for own, both in pairs]
        return replace(inner, noise_variances=np.array(noises) * self.units.y.scale**2)

    @cached_property
    def _krigings(self) -> tuple[tuple[Kriging, Kriging], ...]:
        """Of each output, the kriging of y and of the lattice's residuals."""
        rest = self.y - self.model.mean(self.X)
        return tuple(
            (
                Kriging(own.values, self.X, self.y[:, i] - own.center, self.n_neighbors),
                Kriging(own.residuals, self.X, np.ascontiguousarray(rest[:, i]), self.n_neighbors),
            )
            for i, own in enumerate(self.outputs)
        )

    def mean(self, X: Array) -> Array:
        return self.predict(X).mean

    def predict(self, X: Array) -> Prediction:
        parts = [super(FieldModel, self).predict(part) for part in _blocks(X)]
        columns = ("mean", "function_variance", "noise_variance", "support")
        return Prediction(*(np.concatenate([getattr(p, name) for p in parts]) for name in columns))

    def correction(self, X: Array, p: Prediction) -> Correction:
        return self._correction(p, lambda kriging: kriging.predict(X))

    def leave_one_out(self, rows: Block) -> Prediction:
        p, stored = self.model.leave_one_out(rows), self._stored(rows)
        return self._correction(p, lambda kriging: kriging.leave_one_out(stored)).of(p)

    def _stored(self, rows: Block) -> IntArray:
        """The numbers of training rows."""
        both = np.vstack([np.hstack([self.X, self.y]), np.hstack([rows.X, rows.y])])
        _, number = np.unique(both, axis=0, return_inverse=True)
        place = np.zeros(int(number.max()) + 1, dtype=np.intp)
        place[number[: len(self.X)]] = np.arange(len(self.X))
        return place[number[len(self.X) :]]

    def _correction(
        self, p: Prediction, predict: Callable[[Kriging], KrigingPrediction]
    ) -> Correction:
        if len(self.X) <= FEWEST_ROWS:
            return Correction(np.ones_like(p.mean))
        shift, factor, noises = np.empty((3, *p.mean.shape))
        for i, (own, (values, rest)) in enumerate(zip(self.outputs, self._krigings, strict=True)):
            near, left = predict(values), predict(rest)
            both = experts(own.center, near, p.mean[:, i], p.function_variance[:, i], left)
            mixed = own.blend.mixture(both, near.gap)
            shift[:, i] = mixed.mean - p.mean[:, i]
            scale = own.blend.factor(near.gap, near.near, self.scores[i])
            # What the lattice takes for noise is mostly structure that is finer than its atoms.
            noise = own.blend.at(near.gap) @ [values.noise, rest.noise]
            function = np.maximum(mixed.variance - noise, LEAST_SHARE * mixed.variance)
            factor[:, i] = scale * function / np.maximum(p.function_variance[:, i], TINY)
            noises[:, i] = scale * (mixed.variance - function) / p.noise_variance[:, i]
        return Correction(factor, shift, noises)

    def update(self, rows: Rows) -> FieldModel:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        unit = self.units.rows(rows.part(rows.weights > 0))
        return self._with_rows(unit.X, unit.y, self.model.update(rows))

    def empty(self) -> FieldModel:
        return replace(self._with_no_rows(), model=self.model.empty())

    def merge(self, other: FieldModel) -> FieldModel:
        return self._with_rows(other.X, other.y, super().merge(other).model)

    def _with_no_rows(self) -> FieldModel:
        none = FieldScores(np.empty(0), np.empty(0))
        return replace(self, X=self.X[:0], y=self.y[:0], scores=(none,) * len(self.outputs))

    def _with_rows(self, X: Array, y: Array, model: Model) -> FieldModel:
        """The model with further rows, which its lattice has seen; kernels and blends stay."""
        X, y = np.concatenate([self.X, X]), np.concatenate([self.y, y])
        if len(X) <= FEWEST_ROWS:
            return replace(self._with_no_rows(), model=model, X=X, y=y)
        scores = tuple(
            leave_one_out_scores(own.values, X, y[:, i] - own.center, self.n_neighbors)
            for i, own in enumerate(self.outputs)
        )
        return replace(self, model=model, X=X, y=y, scores=scores)


def leave_one_out_scores(
    kernel: FieldKernel, X: Array, values: Array, n_neighbors: int
) -> FieldScores:
    """Scores of all rows, each predicted from the others."""
    unseen = Kriging(kernel, X, values, n_neighbors).leave_one_out(np.arange(len(X)))
    return FieldScores.of(values, unseen)


def experts(
    center: float,
    near: KrigingPrediction,
    lattice: Array,
    lattice_variance: Array,
    left: KrigingPrediction,
) -> tuple[Marginals, Marginals]:
    """The kriging of y, and the lattice with the kriging of its residuals."""
    variance = left.variance + (1.0 - left.total) ** 2 * lattice_variance
    return (
        Marginals(center + near.mean, near.variance),
        Marginals(lattice + left.mean, variance),
    )


def _blocks(X: Array) -> list[Array]:
    return [X[i : i + BLOCK_ROWS] for i in range(0, max(len(X), 1), BLOCK_ROWS)]
