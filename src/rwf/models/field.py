r"""A field: a lattice of atoms for what is coarse, and kriging of what it leaves for what is fine.

Two or three experts predict every place: the kriging of y itself; the lattice plus the kriging of
its residuals; and for many rows a lattice of more atoms, for which every row counts. Where the
weights of kriging sum to one, the lattice below it cancels, so that the second has

.. math:: v(x) = v_\text{kriging} + \left(1 - \textstyle\sum_i w_i\right)^2 v_\text{lattice}.

Held-out rows, alone and in blobs, weigh them by the distance to data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block, Rows, distinct, joined, without
from rwf.inference.posterior import Marginals
from rwf.models.base import ModelSummary, Prediction, incompatible
from rwf.models.corrected import CorrectedModel, Correction
from rwf.models.tree import TreeModel
from rwf.uncertainty.conditional import ConditionalField
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
class _Joint:
    """Independent parts of a field at n places."""

    fine: tuple[tuple[ConditionalField, Array], ...]  # of both experts, and their deviations
    coarse: tuple[Array, ...]  # by which deviations of every lattice are multiplied


@dataclass(frozen=True)
class FieldModel(CorrectedModel):
    """A lattice model blended with the kriging of its rows, which it stores.

    The statistics of its lattices are those of these rows, so that files need not hold them.
    """

    model: TreeModel
    larger: tuple[TreeModel, ...]  # a lattice of more atoms, or none
    outputs: tuple[FieldOutput, ...]
    X: Annotated[Array, "n d"]  # training rows, in standardised units
    y: Annotated[Array, "n k"]
    weights: Annotated[Array, "n"]  # how often each row counts
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
        noises = [own.blend.weights[:, 0] @ self._noises(both) for own, both in pairs]
        return replace(inner, noise_variances=np.array(noises) * self.units.y.scale**2)

    @property
    def lattices(self) -> tuple[TreeModel, ...]:
        """The lattice below the kriging of residuals, and the larger one."""
        return (self.model, *self.larger)

    @property
    def rows(self) -> Block:
        """All training rows, in standardised units."""
        return Block(self.X, self.y, self.weights)

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
        larger = [model.predict(X) for model in self.larger]
        return self._correction(p, larger, lambda kriging: kriging.predict(X))

    def corrected(self, rows: Block, p: Prediction) -> Prediction:
        stored = self._stored(rows)
        larger = [model.leave_one_out(rows) for model in self.larger]
        return self._correction(p, larger, lambda kriging: kriging.leave_one_out(stored)).of(p)

    def _stored(self, rows: Block) -> IntArray:
        """The numbers of training rows."""
        both = np.vstack([np.hstack([self.X, self.y]), np.hstack([rows.X, rows.y])])
        _, number = np.unique(both, axis=0, return_inverse=True)
        place = np.zeros(int(number.max()) + 1, dtype=np.intp)
        place[number[: len(self.X)]] = np.arange(len(self.X))
        return place[number[len(self.X) :]]

    def _correction(
        self,
        p: Prediction,
        larger: Sequence[Prediction],
        predict: Callable[[Kriging], KrigingPrediction],
    ) -> Correction:
        if len(self.X) <= FEWEST_ROWS:
            return Correction(np.ones_like(p.mean))
        shift, factor, noises = np.empty((3, *p.mean.shape))
        for i, (own, (values, rest)) in enumerate(zip(self.outputs, self._krigings, strict=True)):
            near, left = predict(values), predict(rest)
            mixed = own.blend.mixture(experts(own.center, near, p, left, larger, i), near.gap)
            shift[:, i] = mixed.mean - p.mean[:, i]
            scale = own.blend.factor(near.gap, near.near, self.scores[i])
            noise = own.blend.at(near.gap) @ self._noises((values, rest))
            function = np.maximum(mixed.variance - noise, LEAST_SHARE * mixed.variance)
            factor[:, i] = scale * function / np.maximum(p.function_variance[:, i], TINY)
            noises[:, i] = scale * (mixed.variance - function) / p.noise_variance[:, i]
        return Correction(factor, shift, noises)

    def _noises(self, both: tuple[Kriging, Kriging]) -> list[float]:
        """The noise of every expert: what a lattice takes for noise is mostly finer structure."""
        return [both[0].noise, both[1].noise, *(both[1].noise for _ in self.larger)]

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        if len(self.X) <= FEWEST_ROWS:
            return super().sample(X, count, rng, noise=noise)
        p = self.predict(X)
        coarse = [
            lattice.sample(X, count, rng, noise=False) - lattice.mean(X)[..., None]
            for lattice in self.lattices
        ]
        drawn = np.repeat(p.mean[..., None], count, axis=2)
        for i, joint in enumerate(self._joints(X, p)):
            for deviations, scale in zip(coarse, joint.coarse, strict=True):
                drawn[:, i] += scale[:, None] * deviations[:, i]
            for field, scale in joint.fine:
                drawn[:, i] += scale[:, None] * field.draw(count, rng)
        if noise:
            drawn += np.sqrt(p.noise_variance)[..., None] * rng.normal(size=drawn.shape)
        return drawn

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        if len(self.X) <= FEWEST_ROWS:
            return super().covariance(X, noise=noise)
        C = self.covariance_of(X, np.stack([np.eye(len(X))] * self.n_outputs))
        if noise:
            C[np.diag_indices(len(X))] += self.predict(X).noise_variance
        return C

    def covariance_of(self, X: Array, A: Array) -> Array:
        if len(self.X) <= FEWEST_ROWS:
            return super().covariance_of(X, A)
        joints = [*self._joints(X, self.predict(X))]
        C = np.zeros((A.shape[1], A.shape[1], self.n_outputs))
        for number, lattice in enumerate(self.lattices):
            scale = np.array([joint.coarse[number] for joint in joints])
            C += lattice.covariance_of(X, A * scale[:, None])
        for i, joint in enumerate(joints):
            for field, scale in joint.fine:
                AL = field.transposed(A[i] * scale)
                C[..., i] += AL @ AL.T
        return C

    def _joints(self, X: Array, p: Prediction) -> Iterator[_Joint]:
        """The parts of every output whose variances add up to those of a prediction."""
        lattice, *larger = (model.predict(X).function_variance for model in self.lattices)
        for i, (own, krigings) in enumerate(zip(self.outputs, self._krigings, strict=True)):
            near, left = (kriging.predict(X) for kriging in krigings)
            values, rest = (
                ConditionalField.at(kriging, X, k.chosen)
                for kriging, k in zip(krigings, (near, left), strict=True)
            )
            share = np.sqrt(own.blend.at(near.gap).T * p.function_variance[:, i])
            free = np.abs(1.0 - left.total)
            both = np.maximum(rest.variances + free**2 * lattice[:, i], TINY)
            fine = np.sqrt(np.maximum(1.0 - free**2 * lattice[:, i] / both, 0.0))
            coarse = [share[1] * free / np.sqrt(both)]
            for part, v in zip(share[2:], larger, strict=True):
                coarse.append(part / np.sqrt(np.maximum(v[:, i], TINY)))
            yield _Joint(((values, share[0]), (rest, share[1] * fine)), tuple(coarse))

    def update(self, rows: Rows) -> FieldModel:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        return self._with_rows(distinct(joined([self.rows, self._own(rows)])))

    def forget(self, rows: Rows) -> FieldModel:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        return self._with_rows(without(self.rows, self._own(rows)))

    def empty(self) -> FieldModel:
        return self._with_rows(self.rows.part(slice(0)))

    def merge(self, other: FieldModel) -> FieldModel:
        if len(self.larger) != len(other.larger):
            raise incompatible("lattices")
        for own, others in zip(self.lattices, other.lattices, strict=True):
            own.merge(others)  # raises an error if they differ
        return self._with_rows(distinct(joined([self.rows, other.rows])))

    def _own(self, rows: Block) -> Block:
        """Further rows as this model stores them."""
        return self.units.rows(rows.part(rows.weights > 0))

    def _with_rows(self, rows: Block) -> FieldModel:
        """The model of other rows; kernels, atoms and blends stay."""
        model, *larger = (
            own.empty() if len(rows) == 0 else own.refit(rows, own.noise) for own in self.lattices
        )
        scores = tuple(
            leave_one_out_scores(own.values, rows.X, rows.y[:, i] - own.center, self.n_neighbors)
            if len(rows) > FEWEST_ROWS
            else FieldScores(np.empty(0), np.empty(0))
            for i, own in enumerate(self.outputs)
        )
        return replace(
            self, model=model, larger=tuple(larger), scores=scores, X=rows.X, y=rows.y,
            weights=rows.weights,
        )  # fmt: skip


def leave_one_out_scores(
    kernel: FieldKernel, X: Array, values: Array, n_neighbors: int
) -> FieldScores:
    """Scores of all rows, each predicted from the others."""
    unseen = Kriging(kernel, X, values, n_neighbors).leave_one_out(np.arange(len(X)))
    return FieldScores.of(values, unseen)


def experts(
    center: float,
    near: KrigingPrediction,
    lattice: Prediction,
    left: KrigingPrediction,
    larger: Sequence[Prediction],
    output: int,
) -> list[Marginals]:
    """The kriging of y, the lattice with the kriging of its residuals, and the larger lattice."""
    variance = left.variance + (1.0 - left.total) ** 2 * lattice.function_variance[:, output]
    return [
        Marginals(center + near.mean, near.variance),
        Marginals(lattice.mean[:, output] + left.mean, variance),
        *(Marginals(p.mean[:, output], p.variance[:, output]) for p in larger),
    ]


def _blocks(X: Array) -> list[Array]:
    return [X[i : i + BLOCK_ROWS] for i in range(0, max(len(X), 1), BLOCK_ROWS)]
