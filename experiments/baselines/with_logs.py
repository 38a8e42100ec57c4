"""The preprocessing of this library for methods that bring none: logarithms of skewed columns.

They are used where the method itself gains by them: it is fitted twice to nine tenths of the
training rows, and the log density of the last tenth decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.baselines.standardized import Method
from rwf._types import Array
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.uncertainty.student_t import StudentT

MOST_ROWS = 2000
"""Rows with which the choice is made, at most."""


@dataclass(eq=False)
class WithLogs:
    """A method with logarithms of skewed columns, if it predicts held-out rows better with them.

    Args:
        make: makes the method.
        random_state: seed of the held-out rows.
    """

    make: Callable[[], Method]
    random_state: int

    def fit(self, X: Array, y: Array) -> Self:
        units = Standardizer.learn(Block(X, y[:, None], np.ones(len(y))), ard=True, log_skewed=True)
        self._units = units if self._gains(X, y, units) else None
        self._method = self.make()
        self._method.fit(self._inputs(X, self._units), y)
        return self

    def _gains(self, X: Array, y: Array, units: Standardizer) -> bool:
        if units.logarithm is None or not units.logarithm.chosen.any():
            return False
        rows = np.random.default_rng(self.random_state).permutation(len(y))[:MOST_ROWS]
        held, kept = np.split(rows, [max(1, len(rows) // 10)])
        density = []
        for bent in (None, units):
            method = self.make()
            method.fit(self._inputs(X[kept], bent), y[kept])
            unseen = StudentT.normal(*method.predict(self._inputs(X[held], bent)))
            density.append(float(np.mean(unseen.logpdf(y[held]))))
        return density[1] > density[0]

    @staticmethod
    def _inputs(X: Array, units: Standardizer | None) -> Array:
        return X if units is None else units.inputs(X)

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._method.predict(self._inputs(X, self._units))

    def facts(self) -> Mapping[str, object]:
        return {**self._method.facts(), "logs": self._units is not None}
