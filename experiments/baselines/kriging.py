"""Kriging by the nearest rows: what a geostatistician would pick for a map of many rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf._types import Array
from rwf.inference.posterior import Marginals
from rwf.uncertainty.kriging import FieldKernel, KrigingPrediction
from rwf.uncertainty.kriging import Kriging as FieldKriging
from rwf.uncertainty.vecchia import NEIGHBORS, learn_vecchia_gp


class GaussianProcess(ABC):
    """Predictions of a Gaussian process, from its marginals with noise."""

    @property
    @abstractmethod
    def _noise(self) -> float:
        """The variance of the noise."""

    @abstractmethod
    def _marginals(self, X: Array) -> Marginals | KrigingPrediction:
        """Means and variances of new values, noise included."""

    def predict(self, X: Array) -> tuple[Array, Array]:
        found = self._marginals(X)
        return found.mean, np.sqrt(found.variance)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        found = self._marginals(X)
        # A difference of equal numbers where the data pin f down: rounding may leave it below zero.
        return found.mean, np.sqrt(np.maximum(found.variance - self._noise, 0.0))


@dataclass(eq=False)
class Kriging(GaussianProcess):
    """A nearest-neighbour (Vecchia) Gaussian process, in standardised units.

    Args:
        random_state: seed of the sample of rows on which parameters are learned.
        n_neighbors: how many training rows each prediction uses.
    """

    random_state: int
    n_neighbors: int = NEIGHBORS

    def fit(self, X: Array, y: Array) -> Self:
        rng = np.random.default_rng(self.random_state)
        self._gp = learn_vecchia_gp(X, y, rng, self.n_neighbors)
        return self

    def _marginals(self, X: Array) -> Marginals:
        return self._gp.predict(X)

    @property
    def _noise(self) -> float:
        return self._gp.kernel.amplitude * self._gp.kernel.nugget

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "order": self._gp.kernel.twice_order / 2,
            "lengths": self._gp.kernel.lengths.tolist(),
        }


@dataclass(eq=False)
class TrueKriging(GaussianProcess):
    """Kriging of a field whose exponential covariance is known, from rows near and far.

    Args:
        deviation: standard deviation of the field.
        length: its length, in the units of X.
        noise: standard deviation of the noise.
        n_neighbors: how many training rows each prediction uses.
    """

    deviation: float
    length: float
    noise: float
    n_neighbors: int = 64

    def fit(self, X: Array, y: Array) -> Self:
        metric = np.eye(X.shape[1]) / self.length
        kernel = FieldKernel(metric, 1, self.deviation**2, 0.0, 1.0, self.noise**2)
        self._gp = FieldKriging(kernel, X, y, self.n_neighbors)
        return self

    def _marginals(self, X: Array) -> KrigingPrediction:
        return self._gp.predict(X)

    @property
    def _noise(self) -> float:
        return self.noise**2

    def facts(self) -> Mapping[str, object]:
        return {"noise_variance": self._noise}
