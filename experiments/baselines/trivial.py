"""The two predictors that everything must beat: a constant, and a straight line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from rwf._types import Array
from rwf.diagnostics.metrics import constant_reference, linear_reference


class Constant:
    """The mean and the standard deviation of the training targets."""

    def fit(self, X: Array, y: Array) -> Self:
        self._y = y
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return constant_reference(self._y, len(X))

    def facts(self) -> Mapping[str, object]:
        return {}


class Linear:
    """Ordinary least squares with an intercept."""

    def fit(self, X: Array, y: Array) -> Self:
        self._X, self._y = X, y
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return linear_reference(self._X, self._y, X)

    def facts(self) -> Mapping[str, object]:
        return {}
