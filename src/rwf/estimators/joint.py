"""Joint predictions of many places: linear combinations of f, and draws of whole functions."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.data.readers import Data
from rwf.estimators.predicting import FittedRegressor
from rwf.estimators.validation import RandomState, generator


class JointRegressor(FittedRegressor):
    """A fitted regressor that predicts places together, with their covariance."""

    @overload
    def predict_combination(
        self, X: Data, weights: ArrayLike, return_cov: Literal[False] = False
    ) -> tuple[Array, Array]: ...

    @overload
    def predict_combination(
        self, X: Data, weights: ArrayLike, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict_combination(
        self, X: Data, weights: ArrayLike, return_cov: bool = False
    ) -> tuple[Array, Array]:
        """Mean and standard deviation of linear combinations of f, without noise.

        Such as the mean over an area, the difference of two places, or a slope.

        Args:
            X: n places, shape (n, d).
            weights: of the places in every combination, shape (q, n), or (n,) for one.
            return_cov: return the covariance of the combinations, shape (q, q) or (q, q, k),
                instead of their standard deviations.
        """
        inputs, units = self._fitted_inputs(X), self.model_.units
        A = np.asarray(weights, dtype=np.float64)
        if A.ndim not in (1, 2) or A.shape[-1] != len(inputs) or not np.isfinite(A).all():
            raise ValueError(
                f"weights of shape {A.shape} for {len(inputs)} places: give a finite number for "
                "every place, shape (n,), or (q, n) for several combinations."
            )
        rows = np.atleast_2d(A)
        mean, covariance = self.model_.combination(units.inputs(inputs), rows)
        mean = mean * units.y.scale + rows.sum(axis=1)[:, None] * units.y.center
        covariance = covariance * units.y.scale**2
        if not return_cov:
            covariance = np.sqrt(np.einsum("iik->ik", covariance))
        if A.ndim == 1:
            mean, covariance = mean[0], covariance[0] if not return_cov else covariance[0, 0]
        return self._squeeze(mean), self._squeeze(covariance)

    def sample_y(
        self, X: Data, n_samples: int = 1, random_state: RandomState = None, *, noise: bool = True
    ) -> Array:
        """Draws from the predictive distribution, shape (n, n_samples) or (n, k, n_samples).

        Each draw is one set of weights, so a whole function; ``noise=False`` leaves the noise off.
        """
        inputs, units = self._fitted_inputs(X), self.model_.units
        rng = generator(random_state)
        draws = self.model_.sample(units.inputs(inputs), n_samples, rng, noise=noise)
        draws = draws * units.y.scale[:, None] + units.y.center[:, None]
        return draws[:, 0] if self._single_output else draws
