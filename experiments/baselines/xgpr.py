r"""A Gaussian process by very many random Fourier features, as the library xGPR fits it.

Hyperparameters are selected by xGPR's own Bayesian search with few features; the weights of many
follow by conjugate gradients, and error bars from fewer again, as its guide recommends. Reference:
Parkinson and Wang (2024), Linear-scaling kernels for protein sequences and small molecules
outperform deep learning while providing uncertainty quantitation and improved interpretability.

Its directions are rows of products of Hadamard matrices and signs, as long as the next power of two
of the columns. Of two columns there are just a few such directions, and it fails to fit a sum of
two waves; columns of zeros, which change no distance, bring it more of them.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from rwf._types import Array

LEAST_COLUMNS = 16
"""Columns, zeros among them, so that there are enough directions."""


def padded(X: Array) -> Array:
    """X beside columns of zeros."""
    missing = max(0, LEAST_COLUMNS - X.shape[1])
    return np.ascontiguousarray(np.pad(X, ((0, 0), (0, missing))))


@dataclass(eq=False)
class XGPR:
    """xGPR's regression, in standardised units.

    Args:
        random_state: seed of its features.
        n_components: features of the fit.
        n_tuning: features with which hyperparameters are selected.
        n_variance: features of the error bars.
        kernel: one of xGPR's names.
    """

    random_state: int
    n_components: int = 4096
    n_tuning: int = 1024
    n_variance: int = 512
    kernel: str = "RBF"

    def fit(self, X: Array, y: Array) -> Self:
        xgpr = _library()
        rows = xgpr.build_regression_dataset(padded(X), y)
        self._model = xgpr.xGPRegression(
            num_rffs=self.n_tuning,
            variance_rffs=self.n_variance,
            kernel_choice=self.kernel,
            verbose=False,
            random_seed=self.random_state,
        )
        self._parameters, self._evaluations, _ = self._model.tune_hyperparams_crude(rows)
        self._model.num_rffs = self.n_components
        self._model.fit(rows, mode="cg")
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self._model.predict(padded(X), get_var=True)
        return np.asarray(mean, dtype=np.float64), np.sqrt(np.asarray(variance, dtype=np.float64))

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict(X)
        return mean, np.sqrt(np.maximum(std**2 - self._noise, 0))

    @property
    def _noise(self) -> float:
        """The variance of the noise; λ² of the parameters is relative to that of y."""
        return float(np.exp(self._parameters[0]) * self._model.trainy_std) ** 2

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "n_components": self.n_components,
            "evaluations": int(self._evaluations),
            "xgpr": version("xGPR"),
        }


def _library() -> Any:  # noqa: ANN401 - xGPR has no types
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the devices that it found
            return import_module("xGPR")
    except ImportError as error:
        raise ImportError("xgpr needs xGPR: pip install xGPR, or the extra bench.") from error
