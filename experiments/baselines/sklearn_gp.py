"""scikit-learn's exact Gaussian process, as its guide shows it: the one that people try first.

Matérn-3/2 with a length for every column, parameters by the evidence from one start. Its cost is
cubic, so that it takes a random subset of rows where there are many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from rwf._types import Array


@dataclass(eq=False)
class SklearnGP:
    """``GaussianProcessRegressor``, in standardised units.

    Args:
        random_state: seed of the rows that are drawn.
        n_rows: how many, at most.
    """

    random_state: int
    n_rows: int = 1000

    def fit(self, X: Array, y: Array) -> Self:
        rows = np.random.default_rng(self.random_state).permutation(len(y))[: self.n_rows]
        lengths = np.full(X.shape[1], np.sqrt(X.shape[1]))
        kernel = ConstantKernel() * Matern(lengths, (1e-3, 1e4), nu=1.5) + WhiteKernel(0.1)
        self._model = GaussianProcessRegressor(kernel, random_state=self.random_state)
        self._model.fit(X[rows], y[rows])
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self._model.predict(X, return_std=True)
        return mean, std

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict(X)
        return mean, np.sqrt(np.maximum(std**2 - self._noise, 0))

    @property
    def _noise(self) -> float:
        return float(self._model.kernel_.k2.noise_level)

    def facts(self) -> Mapping[str, object]:
        return {"noise_variance": self._noise, "n_rows": len(self._model.X_train_)}
