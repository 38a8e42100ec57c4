"""Predictions of a fitted regressor: means, deviations and quantiles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, overload

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.data.readers import Data, Reader, columns_of, is_collection, is_dataframe
from rwf.errors import NoAtomsNearbyWarning
from rwf.estimators.parameters import LearnedParameters
from rwf.estimators.validation import check_inputs, open_checked
from rwf.fit.groups import GroupPredictions
from rwf.models.base import Prediction, in_target_units
from rwf.uncertainty.student_t import StudentT
from rwf.uncertainty.transformed import Predictive

NO_ATOMS = 1e-3  # support below which a row counts as having no atoms nearby


class FittedRegressor(
    LearnedParameters,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """The methods of a regressor that has a model, however it was learned."""

    _left_out: GroupPredictions | None = None  # of rows in groups
    _by_name: bool = False  # whether columns were given by their names

    def _open(self, X: Data) -> Reader | None:
        """A reader of inputs, unless they are in memory."""
        check_is_fitted(self)
        if not self.model_.n_rows > 0:
            raise ValueError("the model has seen no rows yet: call partial_fit first.")
        return open_checked(self, X)

    def _in_memory(self, X: Data) -> Array:
        """Inputs that need no reader, checked."""
        if self._by_name and is_dataframe(X):
            X = columns_of(X, list(self.feature_names_in_))  # type: ignore[assignment]
        return check_inputs(self, X, reset=False)  # type: ignore[return-value, arg-type]

    def _fitted_inputs(self, X: Data) -> Array:
        """All inputs at once."""
        reader = self._open(X)
        return self._in_memory(X) if reader is None else reader.read_all().X

    def _by_block(
        self, X: Data, function: Callable[[Array], tuple[Array, ...]]
    ) -> tuple[Array, ...]:
        """Results of a function of inputs, block by block, joined; of Dask's, Dask arrays."""
        reader = self._open(X)
        if reader is None:
            return function(self._in_memory(X))
        units = self.model_.units
        return reader.map(function, units.original_inputs(np.zeros((1, len(units.columns)))))

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
                Of targets that were transformed it has the correlations.
        """
        if return_std and return_cov:
            raise ValueError("pass return_std or return_cov, not both.")
        if return_cov:
            inputs, units = self._fitted_inputs(X), self.model_.units
            mean, std, support = self._mean_and_std(inputs)
            self._warn_if_far(support)
            C, unit = self.model_.covariance(units.inputs(inputs)), units.y.scale
            if units.transform is not None:
                unit = std / np.sqrt(np.einsum("iik->ik", C))
                C = unit[:, None] * C * unit
                return self._squeeze(mean), self._squeeze(C)
            return self._squeeze(mean), self._squeeze(C * unit**2)
        if return_std:
            mean, std, support = self._by_block(X, self._mean_and_std)
            self._warn_if_far(support)
            return self._squeeze(mean), self._squeeze(std)
        (mean,) = self._by_block(X, self._mean)
        return self._squeeze(mean)

    def _mean(self, inputs: Array) -> tuple[Array]:
        units = self.model_.units
        if units.transform is not None:  # means depend on the spread
            return self._mean_and_std(inputs)[:1]
        return (units.y.inverse(self.model_.mean(units.inputs(inputs))),)

    def _mean_and_std(self, inputs: Array, *, noise: bool = True) -> tuple[Array, Array, Array]:
        """Mean and standard deviation of y, or of f without noise, and support."""
        p, units = self._predicted(inputs), self.model_.units
        if units.transform is None:
            variance = p.variance if noise else p.function_variance
            return units.y.inverse(p.mean), np.sqrt(variance) * units.y.scale, p.support
        found = in_target_units(units, p.distribution if noise else p.of_function)
        return found.mean, found.std, p.support

    def _predicted(self, inputs: Array) -> Prediction:
        return self.model_.predict(self.model_.units.inputs(inputs))

    def _warn_if_far(self, support: Array) -> None:
        if is_collection(support) or not self.model_.summary.reverts:
            return  # nothing is predicted yet, or the variance stays that of the posterior
        count = int((support < NO_ATOMS).sum())
        if count:
            warnings.warn(
                f"{count} of {len(support)} rows have no atoms nearby: their prediction is the "
                "trend, with the variance of the prior. support(X) says how far each row is.",
                NoAtomsNearbyWarning,
                stacklevel=3,
            )

    def support(self, X: Data) -> Array:
        """The share of the prior variance of f that atoms carry at rows, shape (n,).

        One among the data, and zero where there are no atoms and only the prior is left.
        """
        (share,) = self._by_block(X, lambda inputs: self._mean_and_std(inputs)[2:])
        return share

    def predict_function(self, X: Data) -> tuple[Array, Array]:
        """Mean and standard deviation of f itself, without the noise of a new observation.

        What errors have beyond a normal distribution counts as noise.
        """
        mean, std, _ = self._by_block(X, partial(self._mean_and_std, noise=False))
        return self._squeeze(mean), self._squeeze(std)

    def predict_distribution(self, X: Data) -> Predictive:
        """The predictive distributions of y, noise included, in its units.

        A Student-t for every row and output: its scale and degrees of freedom follow the errors of
        rows that the model had not seen. Without calibration it is a normal. Where targets were
        transformed it is a :class:`~rwf.uncertainty.transformed.TransformedT`, with the same
        methods: exact quantiles, densities and medians, and the mean and deviation of a normal of
        the transformed target with the same 95 % interval.

        Examples:
            >>> import numpy as np
            >>> from rwf import RWFRegressor
            >>> rng = np.random.default_rng(0)
            >>> X = rng.uniform(size=(200, 1))
            >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_t(3, 200)
            >>> p = RWFRegressor(prior="nystrom", random_state=0).fit(X, y).predict_distribution(X)
            >>> bool((p.cdf(p.ppf(0.9)) - 0.9 < 1e-10).all())
            True
            >>> p.crps(y).shape
            (200,)
        """
        mean, scale, dof, support = self._by_block(X, self._distribution)
        self._warn_if_far(support)
        return self._one_of(in_target_units(self.model_.units, StudentT(mean, scale, dof)))

    def _distribution(self, inputs: Array) -> tuple[Array, Array, Array, Array]:
        """Mean, scale and degrees of freedom in standardised units, and support."""
        p = self._predicted(inputs)
        d = p.distribution
        return d.mean, d.scale, d.dof, p.support

    def _distributions(self, inputs: Array, *, noise: bool = True) -> Predictive:
        """The distributions of all outputs at some inputs, in the units of y."""
        p = self._predicted(inputs)
        return in_target_units(self.model_.units, p.distribution if noise else p.of_function)

    def _one_of(self, p: Predictive) -> Predictive:
        """Without the axis of outputs, where y was one-dimensional."""
        return p.output(0) if self._single_output else p

    def predict_quantiles(self, X: Data, q: float | Sequence[float]) -> Array:
        """Quantiles of the predictive distribution of y.

        Args:
            X: inputs, shape (n, d).
            q: probabilities; of several, quantiles are along a last axis.
        """
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q={q!r} must lie between 0 and 1, such as (0.05, 0.5, 0.95).")

        def quantiles(inputs: Array) -> tuple[Array, Array]:
            own = self._predicted(inputs)
            p = in_target_units(self.model_.units, own.distribution)
            return np.stack([p.ppf(level) for level in levels.ravel()], axis=1), own.support

        found, support = self._by_block(X, quantiles)
        self._warn_if_far(support)
        if self._single_output:
            return found[:, 0, 0] if levels.ndim == 0 else found[..., 0]
        return found[:, 0] if levels.ndim == 0 else found.swapaxes(1, 2)

    def predict_interval(self, X: Data, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper end of the central interval that holds y with the given probability."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r} must lie between 0 and 1; 0.95 is usual.")
        ends = self.predict_quantiles(X, (0.5 - coverage / 2, 0.5 + coverage / 2))
        return ends[..., 0], ends[..., 1]

    def leave_group_out(self) -> GroupPredictions:
        """Training rows predicted without their groups, and the scores of every group.

        For a model that was fitted with ``groups`` or ``blocks``: each row is predicted as if none
        of its group had been seen, with the hyperparameters of the fit. This was computed in the
        fit, and takes the memory of four numbers a row. Model files do not hold it, as it has the
        targets; the scores of all groups together, ``fit_report_.group_scores``, are in them.
        """
        check_is_fitted(self)
        if self._left_out is None:
            raise ValueError(
                "there are no predictions without groups: fit with groups= or blocks=. Files do "
                "not hold them, and rows added later are in no group; fit_report_.group_scores "
                "has the scores."
            )
        return self._left_out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
