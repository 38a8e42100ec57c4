"""Corrections around a model: they shift its mean and multiply its variances, row by row.

A correction says only :meth:`CorrectedModel.correction`; predictions, leave-one-out predictions,
covariances and draws follow from it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.features.base import FeatureMap
from rwf.models.base import Model, ModelSummary, Prediction, incompatible


@dataclass(frozen=True)
class Correction:
    """What changes in a model's predictions."""

    factor: Array  # by which variances are multiplied, shape (n, k)
    shift: Array | float = 0.0  # what is added to means, shape (n, k), or zero

    def of(self, p: Prediction) -> Prediction:
        """The corrected prediction."""
        return Prediction(
            p.mean + self.shift,
            self.factor * p.function_variance,
            self.factor * p.noise_variance,
            p.support,
        )


@dataclass(frozen=True)
class CorrectedModel(Model):
    """A model with a correction learned from its leave-one-out errors."""

    model: Model  # what is corrected

    @abstractmethod
    def correction(self, X: Array, p: Prediction) -> Correction:
        """What changes in the model's prediction p at inputs X."""

    @property
    def units(self) -> Standardizer:  # type: ignore[override]
        return self.model.units

    @property
    def base(self) -> Model:
        return self.model.base

    @property
    def needs_all_rows(self) -> bool:
        return self.model.needs_all_rows

    @property
    def n_rows(self) -> float:
        return self.model.n_rows

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return self.model.maps

    @property
    def summary(self) -> ModelSummary:
        return self.model.summary

    def unbiased_rows(self, known: Block) -> Block:
        return self.model.unbiased_rows(known)

    def mean(self, X: Array) -> Array:
        return self.model.mean(X)

    def predict(self, X: Array) -> Prediction:
        p = self.model.predict(X)
        return self.correction(X, p).of(p)

    def leave_one_out(self, rows: Block) -> Prediction:
        p = self.model.leave_one_out(rows)
        return self.correction(rows.X, p).of(p)

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        root = np.sqrt(self.correction(X, self.model.predict(X)).factor)
        return root[:, None] * root * self.model.covariance(X, noise=noise)

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        p = self.model.predict(X)
        change = self.correction(X, p)
        deviations = self.model.sample(X, count, rng, noise=noise) - p.mean[..., None]
        scaled = np.sqrt(change.factor)[..., None] * deviations
        drawn: Array = (p.mean + change.shift)[..., None] + scaled
        return drawn

    def update(self, rows: Rows) -> Self:
        return replace(self, model=self.model.update(rows))

    def empty(self) -> Self:
        return replace(self, model=self.model.empty())

    def merge(self, other: Self) -> Self:
        if type(self) is not type(other):
            raise incompatible("corrections")
        return replace(self, model=self.model.merge(other.model))
