"""Joint predictions of many places: linear combinations of f, and draws of whole functions."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.data.readers import Data
from rwf.estimators.predicting import FittedRegressor
from rwf.estimators.validation import RandomState, generator
from rwf.models.base import in_target_units

SMALLEST = 1e-300  # variance of f by which a deviation is divided


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

        Such as the mean over an area, the difference of two places, or a slope. Where targets were
        transformed, the correlations of f are those of its transform.

        Args:
            X: n places, shape (n, d).
            weights: of the places in every combination, shape (q, n), or (n,) for one.
            return_cov: return the covariance of the combinations, shape (q, q) or (q, q, k),
                instead of their standard deviations.
        """
        inputs = self._fitted_inputs(X)
        A = np.asarray(weights, dtype=np.float64)
        if A.ndim not in (1, 2) or A.shape[-1] != len(inputs) or not np.isfinite(A).all():
            raise ValueError(
                f"weights of shape {A.shape} for {len(inputs)} places: give a finite number for "
                "every place, shape (n,), or (q, n) for several combinations."
            )
        mean, covariance = self.combine_rows(inputs, np.atleast_2d(A))
        if not return_cov:
            covariance = np.sqrt(np.einsum("iik->ik", covariance))
        if A.ndim == 1:
            mean, covariance = mean[0], covariance[0] if not return_cov else covariance[0, 0]
        return self._squeeze(mean), self._squeeze(covariance)

    def combine_rows(self, inputs: Array, A: Array) -> tuple[Array, Array]:
        """Means and covariances of combinations of f at rows of numbers, by output."""
        units = self.model_.units
        if units.transform is None:
            mean, covariance = self.model_.combination(units.inputs(inputs), A)
            mean = mean * units.y.scale + A.sum(axis=1)[:, None] * units.y.center
            return mean, covariance * units.y.scale**2
        # Of targets that were transformed, f has their correlations, and deviations of its own.
        p = self._predicted(inputs)
        f = in_target_units(units, p.of_function)
        slope = f.std / np.sqrt(np.maximum(p.function_variance, SMALLEST))
        weights = A * slope.T[:, None]
        return A @ f.mean, self.model_.covariance_of(units.inputs(inputs), weights)

    def sample_y(
        self, X: Data, n_samples: int = 1, random_state: RandomState = None, *, noise: bool = True
    ) -> Array:
        """Draws from the predictive distribution, shape (n, n_samples) or (n, k, n_samples).

        Each draw is one set of weights, so a whole function; ``noise=False`` leaves the noise off.
        """
        inputs, units = self._fitted_inputs(X), self.model_.units
        rng = generator(random_state)
        draws = self.model_.sample(units.inputs(inputs), n_samples, rng, noise=noise)
        draws = np.moveaxis(units.original_targets(np.moveaxis(draws, 1, 2)), 2, 1)
        return draws[:, 0] if self._single_output else draws
