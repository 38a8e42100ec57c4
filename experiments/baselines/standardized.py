"""Scaling for methods that bring none: learned on the rows of ``fit``, undone in ``predict``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.mixtures import NormalMixture
from rwf._types import Array
from rwf.diagnostics.metrics import Distribution
from rwf.uncertainty.student_t import StudentT


class Method(Protocol):
    """The interface of a method: means and standard deviations, the noise included."""

    def fit(self, X: Array, y: Array) -> object: ...

    def predict(self, X: Array) -> tuple[Array, Array]: ...

    def facts(self) -> Mapping[str, object]: ...


@runtime_checkable
class DistributionMethod(Method, Protocol):
    """A method whose predictive distributions are not all normal; it is scored by these."""

    def predict_distribution(self, X: Array) -> Distribution: ...


@runtime_checkable
class FunctionMethod(Method, Protocol):
    """A method that also knows f, without the noise: its mean and standard deviation."""

    def predict_function(self, X: Array) -> tuple[Array, Array]: ...


@runtime_checkable
class GroupMethod(Method, Protocol):
    """A method that learns from the groups of rows, too."""

    def fit_groups(self, X: Array, y: Array, groups: NDArray[np.generic]) -> Self: ...


@runtime_checkable
class MixtureMethod(Method, Protocol):
    """A method that predicts mixtures of normals."""

    def predict_distribution(self, X: Array) -> NormalMixture: ...


def predicted_by(method: Method, X: Array) -> Distribution:
    """Predictive distributions, which are normal unless the method has its own."""
    if isinstance(method, DistributionMethod):
        return method.predict_distribution(X)
    return StudentT.normal(*method.predict(X))


M = TypeVar("M", bound=Method)


@dataclass(eq=False)
class Scaled(Generic[M]):
    """A method that sees columns and targets of mean 0 and standard deviation 1.

    Args:
        method: works in standardised units; columns that do not vary are taken away from it.
    """

    method: M

    def fit(self, X: Array, y: Array) -> Self:
        self._columns = np.flatnonzero(X.std(axis=0) > 1e-12 * np.abs(X).max(axis=0))
        varying = X[:, self._columns]
        self._center, self._scale = varying.mean(axis=0), varying.std(axis=0)
        self._y_center, self._y_scale = float(y.mean()), float(y.std()) or 1.0
        self.method.fit(self._inputs(X), (y - self._y_center) / self._y_scale)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._in_units(self.method.predict(self._inputs(X)))

    def predict_distribution(self, X: Array) -> NormalMixture | StudentT:
        if not isinstance(self.method, MixtureMethod):
            return StudentT.normal(*self.predict(X))
        mixture = self.method.predict_distribution(self._inputs(X))
        return mixture.moved(self._y_center, self._y_scale)

    def facts(self) -> Mapping[str, object]:
        """Those of the method, a noise variance in squared units of y, and a budget of seconds."""
        facts = dict(self.method.facts())
        if hasattr(self.method, "budget"):
            facts["budget"] = self.method.budget
        noise = facts.get("noise_variance")
        if isinstance(noise, float):
            facts["noise_variance"] = noise * self._y_scale**2
        return facts

    def _inputs(self, X: Array) -> Array:
        scaled: Array = (X[:, self._columns] - self._center) / self._scale
        return scaled

    def _in_units(self, prediction: tuple[Array, Array]) -> tuple[Array, Array]:
        mean, std = prediction
        return self._y_center + self._y_scale * mean, self._y_scale * std


class Standardized(Scaled[FunctionMethod]):
    """The same for a method that also knows f."""

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        return self._in_units(self.method.predict_function(self._inputs(X)))
