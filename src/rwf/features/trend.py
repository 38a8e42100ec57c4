"""A trend: a constant column, and the inputs themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from rwf._types import Array, FloatArray
from rwf.features.base import Fills


class Shapeless(Fills):
    """What feature maps without shape parameters have in common."""

    n_lengths: ClassVar[int] = 0
    local: ClassVar[bool] = False

    @property
    def theta(self) -> Array:
        return np.empty(0)

    @property
    def bounds(self) -> Array:
        return np.empty((0, 2))

    def with_theta(self, theta: Array) -> Self:
        return self

    def pull_back(self, X: Array, R: Array) -> Array:
        return np.empty(0)


@dataclass(frozen=True)
class ConstantFeatures(Shapeless):
    """z(x) = 1."""

    n_features: int = 1

    def into(self, X: FloatArray, out: FloatArray) -> None:
        out[:] = 1.0


@dataclass(frozen=True)
class LinearFeatures(Shapeless):
    """z(x) = x/√d, so that E‖z‖² = 1 for standardised columns."""

    n_features: int

    def into(self, X: FloatArray, out: FloatArray) -> None:
        out[:] = X / np.sqrt(self.n_features)


@dataclass(frozen=True)
class ConstantFamily:
    """The constant column."""

    sized: ClassVar[bool] = False
    start_log_prior: ClassVar[float] = 0.0

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> ConstantFeatures:
        return ConstantFeatures()


@dataclass(frozen=True)
class LinearFamily:
    """One column per input."""

    sized: ClassVar[bool] = False
    start_log_prior: ClassVar[float] = -2.0

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> LinearFeatures:
        return LinearFeatures(X.shape[1])
