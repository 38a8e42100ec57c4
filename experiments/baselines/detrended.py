r"""A straight line under methods that have none, where a line explains most of the target.

A neural or deep process spends its parameters on a plane before it finds what is left of it, and
may end behind least squares. Where leave-one-out errors of least squares are below 15 % of the
variance of y, the line is taken off and the method sees its residuals. The line has been
learned from those rows too, so at a new row its variance :math:`\sigma^2 x^\top (X^\top X)^{-1} x`
is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.baselines.mixtures import NormalMixture
from experiments.baselines.standardized import FunctionMethod, predicted_by
from rwf._types import Array
from rwf.diagnostics.metrics import Distribution
from rwf.uncertainty.student_t import StudentT

SMALL = 0.15
"""The part of the variance of y that leave-one-out errors of a line may be at most."""


@dataclass(eq=False)
class Detrended:
    """A method that sees what a line leaves, if that is little, and else y itself.

    Args:
        method: in any units.
    """

    method: FunctionMethod

    def fit(self, X: Array, y: Array) -> Self:
        columns = _with_constant(X)
        Q, R = np.linalg.qr(columns)
        diagonal = np.abs(R.diagonal())
        free, self._line = len(y) - len(R), None
        if free > 0 and diagonal.min() > 1e-10 * diagonal.max():
            residuals = y - Q @ (Q.T @ y)
            left_out = residuals / (1 - np.einsum("ij,ij->i", Q, Q))
            if np.mean(left_out**2) < SMALL * y.var():
                self._line, self._R = np.linalg.solve(R, Q.T @ y), R
                self._variance = float(residuals @ residuals) / free
        self.method.fit(X, y if self._line is None else y - columns @ self._line)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._on_line(X, self.method.predict(X))

    def predict_distribution(self, X: Array) -> Distribution:
        p = predicted_by(self.method, X)
        if self._line is None:
            return p
        if isinstance(p, NormalMixture):
            on_line, variance = self._of_line(X)
            return p.moved(on_line).blurred(variance)
        return StudentT.normal(*self._on_line(X, (p.mean, p.std)))

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        return self._on_line(X, self.method.predict_function(X))

    def facts(self) -> Mapping[str, object]:
        return {**self.method.facts(), "line_first": self._line is not None}

    def _on_line(self, X: Array, prediction: tuple[Array, Array]) -> tuple[Array, Array]:
        if self._line is None:
            return prediction
        mean, std = prediction
        on_line, variance = self._of_line(X)
        return mean + on_line, np.sqrt(std**2 + variance)

    def _of_line(self, X: Array) -> tuple[Array, Array]:
        """The line and its variance."""
        assert self._line is not None
        columns = _with_constant(X)
        leverage = np.sum(np.linalg.solve(self._R.T, columns.T) ** 2, axis=0)
        return columns @ self._line, self._variance * leverage


def _with_constant(X: Array) -> Array:
    return np.column_stack([np.ones(len(X)), X])
