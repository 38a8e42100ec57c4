"""What a fitted regressor tells: means, error bars, intervals, draws, and what was learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Literal, overload

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.data.cluster import lazily
from rwf.data.readers import Data, PartitionReader, Reader, columns_of, is_collection, is_dataframe
from rwf.data.rows import block_rows, resized
from rwf.errors import NoAtomsNearbyWarning
from rwf.estimators.random_state import RandomState, generator
from rwf.estimators.validation import check_inputs, open_checked
from rwf.features.inducing import NystromFeatures
from rwf.models.base import Model
from rwf.models.blended import NeighborBlend
from rwf.models.correction import Corrected, Correction
from rwf.uncertainty.calibration import Calibration

NO_ATOMS = 1e-3
"""Coverage below which a row counts as having no atoms nearby."""


class FittedRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """All that can be asked of a regressor that has a model, however it was learned."""

    model_: Model
    correction_: Correction | None
    _single_output: bool
    _by_name: bool = False  # whether columns were given by their names

    def _open(self, X: Data) -> Reader | None:
        """A reader of inputs, unless they are in memory."""
        check_is_fitted(self)
        if not self.model_.n_rows > 0:
            raise ValueError("the model has seen no rows yet: call partial_fit first.")
        return open_checked(self, X)

    def _input_blocks(self, X: Data, reader: Reader | None) -> Iterator[Array]:
        """Inputs in blocks; those in memory are one."""
        if reader is None:
            if self._by_name and is_dataframe(X):
                X = columns_of(X, list(self.feature_names_in_))  # type: ignore[assignment]
            yield check_inputs(self, X, reset=False)  # type: ignore[misc, arg-type]
            return
        empty = True
        for block in resized(reader.read(), block_rows(reader.n_inputs)):
            yield block.X
            empty = False
        if empty:
            raise ValueError("there are no rows to predict.")

    def _fitted_inputs(self, X: Data) -> Array:
        """All inputs at once."""
        return np.concatenate([*self._input_blocks(X, self._open(X))])

    def _by_block(
        self, X: Data, function: Callable[[Array], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Results of a function of inputs, block by block, joined; of Dask's, Dask arrays."""
        reader = self._open(X)
        if isinstance(reader, PartitionReader):
            scaler = self.model_.scaler
            # One row tells shapes, and makes here what predictions of all rows have in common.
            some = scaler.original_inputs(np.zeros((1, len(scaler.columns))))
            return lazily(reader, function, function(some))
        found = [function(inputs) for inputs in self._input_blocks(X, reader)]
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def _squeeze(self, values: Array) -> Array:
        """Drop the axis of outputs, the last, where y was one-dimensional."""
        return values[..., 0] if self._single_output else values

    @overload
    def predict(
        self, X: Data, return_std: Literal[False] = False, return_cov: Literal[False] = False
    ) -> Array: ...

    @overload
    def predict(
        self, X: Data, return_std: Literal[True], return_cov: Literal[False] = False
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: Data, return_std: Literal[False] = False, *, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: Data, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predictive mean of y, and its standard deviation or covariance, noise included.

        Args:
            X: inputs, shape (n, d); or a path or a function, as for :meth:`fit`. Columns with names
                are taken by their names, and others, such as the target's, are left out. For a Dask
                array or dataframe, results are Dask arrays that are yet to be computed.
            return_std: also return the standard deviation, shaped as the mean.
            return_cov: also return the covariance, shape (n, n), or (n, n, k) for several outputs.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both.")
        if return_cov:
            inputs = self._fitted_inputs(X)
            self._warn_if_far(self._coverage(inputs))
            c, mean = self._corrected(inputs), self.model_.mean(inputs)
            covariance = c.factor[:, None] * c.factor * self.model_.covariance(inputs)
            return self._squeeze(mean + c.shift), self._squeeze(covariance)
        if return_std:
            mean, std, coverage = self._by_block(X, self._mean_and_std)
            self._warn_if_far(coverage)
            return self._squeeze(mean), self._squeeze(std)
        (mean,) = self._by_block(X, self._mean)
        return self._squeeze(mean)

    def _mean(self, inputs: Array) -> tuple[Array]:
        mean = self.model_.mean(inputs)
        if isinstance(self.correction_, NeighborBlend):
            mean = mean + self._corrected(inputs).shift
        return (mean,)

    def _mean_and_std(self, inputs: Array) -> tuple[Array, Array, Array]:
        """Mean, standard deviation, and coverage."""
        c, (mean, std) = self._corrected(inputs), self.model_.predict(inputs)
        return mean + c.shift, c.factor * std, self._coverage(inputs)

    def _corrected(self, inputs: Array) -> Corrected:
        """By what the model's predictions change."""
        if self.correction_ is None:
            return Corrected.unchanged(len(inputs), self.model_.n_outputs)
        return self.correction_.at(self.model_, inputs)

    def _coverage(self, inputs: Array) -> Array:
        """Coverage, shape (n,), where it matters for error bars; else ones."""
        return self.model_.coverage(inputs) if self.model_.filled else np.ones(len(inputs))

    def _warn_if_far(self, coverage: Array) -> None:
        if is_collection(coverage):
            return  # nothing is predicted yet
        count = int((coverage < NO_ATOMS).sum())
        if count:
            warnings.warn(
                f"{count} of {len(coverage)} rows have no atoms nearby: what is predicted there is "
                "the trend and the prior's variance. coverage(X) says how far each row is.",
                NoAtomsNearbyWarning,
                stacklevel=3,
            )

    def coverage(self, X: Data) -> Array:
        """The share of the prior variance of f that atoms carry at rows, shape (n,).

        One among the data, falling to zero where the model has no atoms and knows only its prior.
        """
        (share,) = self._by_block(X, lambda inputs: (self.model_.coverage(inputs),))
        return share

    def predict_function(self, X: Data) -> tuple[Array, Array]:
        """Mean and standard deviation of f itself, without the noise of a new observation."""

        def found(inputs: Array) -> tuple[Array, Array]:
            c, (mean, std) = self._corrected(inputs), self.model_.predict(inputs, noise=False)
            return mean + c.shift, c.factor * std

        mean, std = self._by_block(X, found)
        return self._squeeze(mean), self._squeeze(std)

    def predict_interval(
        self,
        X: Data,
        coverage: float = 0.95,
        calibration: Literal["gaussian", "loo"] = "gaussian",
    ) -> tuple[Array, Array]:
        """Lower and upper end of the central interval that holds y with the given probability.

        Args:
            X: inputs, shape (n, d).
            coverage: the probability.
            calibration: "gaussian" takes quantiles of the predictive normal distribution; "loo"
                those of leave-one-out errors of training rows, relative to their standard
                deviations, for errors that are not normal.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r} must lie between 0 and 1; 0.95 is usual.")
        if calibration not in ("gaussian", "loo"):
            raise ValueError(f"calibration={calibration!r} is unknown: use 'gaussian' or 'loo'.")
        mean, std = self.predict(X, return_std=True)
        if calibration == "gaussian":
            reach = np.full(self.model_.n_outputs, ndtri(0.5 + coverage / 2))
        elif self._calibration is None:
            raise ValueError("the model has no leave-one-out errors: use calibration='gaussian'.")
        else:
            reach = self._calibration.reach(coverage)
        half = self._squeeze(reach) * std
        return mean - half, mean + half

    @property
    def _calibration(self) -> Calibration | None:
        """Leave-one-out errors over the standard deviations of predictions."""
        found = self.model_ if self.correction_ is None else self.correction_
        return found.calibration

    def sample_y(
        self,
        X: Data,
        n_samples: int = 1,
        random_state: RandomState = None,
        *,
        noise: bool = True,
    ) -> Array:
        """Draws from the predictive distribution, shape (n, n_samples) or (n, k, n_samples).

        Each draw is one set of weights, so a whole function; ``noise=False`` leaves the noise off.
        """
        inputs = self._fitted_inputs(X)
        draws = self.model_.sample(inputs, n_samples, noise, generator(random_state))
        if self.correction_ is not None:
            c, mean = self._corrected(inputs), self.model_.mean(inputs)
            deviations = c.factor[..., None] * (draws - mean[..., None])
            draws = (mean + c.shift)[..., None] + deviations
        return draws[:, 0] if self._single_output else draws

    def log_marginal_likelihood(self) -> float:
        """log p(y) of all rows seen, in the units of y, at the fitted parameters."""
        check_is_fitted(self)
        return self.model_.log_evidence

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The same, under scikit-learn's name."""
        return self.log_marginal_likelihood()

    @property
    def noise_variance_(self) -> float | Array:
        """σ² in squared units of y; one per output if there are several.

        It includes what atoms miss on average, and the enlargement by leave-one-out errors.
        """
        noise = self.model_.noise_variances
        return float(noise[0]) if self._single_output else noise

    @property
    def prior_variances_(self) -> Array:
        """The diagonal of Λ in squared units of y, shape (p,), or (p, k) for several outputs."""
        return self._squeeze(self.model_.prior_variances)

    @property
    def n_features_out_(self) -> int:
        """Columns of the feature matrix, trend included."""
        return self.model_.n_features

    @property
    def length_scales_(self) -> Array:
        """ℓ of each block in the units of X, shape (blocks, d); NaN for constant columns.

        Where columns are mixed, it is how far a column must move alone.
        """
        scaler, lengths = self.model_.scaler, []
        for part in self.model_.maps:
            if isinstance(part, NystromFeatures):
                lengths += list(part.kernel.lengths)
            elif part.n_lengths:
                lengths.append(np.exp(part.theta[: part.n_lengths]))
        table = np.full((len(lengths), len(scaler.X.center)), np.nan)
        for row, length in zip(table, lengths, strict=True):
            row[scaler.columns] = length
        return table * scaler.X.scale

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
