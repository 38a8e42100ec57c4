"""What regressors on random features have in common: everything but their blocks of features."""

from __future__ import annotations

import copy
import sys
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Literal, Self, get_args, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf.calibration import Calibration
from rwf.corrections import Corrected, Correction
from rwf.errors import NoAtomsNearbyWarning, NoImprovementWarning
from rwf.features import ConstantFamily, Family, LinearFamily
from rwf.features.mixture import ProjectedFeatures
from rwf.fit_report import FitReport
from rwf.fitting import fit
from rwf.model import FittedModel
from rwf.models import Model
from rwf.pruning import Pruning, prune
from rwf.recipes import IndependentRecipe, Recipe, Settings
from rwf.scaling import Standardizer
from rwf.second_opinion import SecondOpinion
from rwf.types import Array
from rwf.validation import check_inputs, check_rows
from rwf.varying import Noise

Trend = Literal["linear", "constant", "none"]
Variances = Literal["block", "unit"]
ErrorBars = Literal["local", "global"]
NO_ATOMS = 1e-3
"""Coverage below which a row counts as having no atoms nearby."""

RandomState = int | np.random.RandomState | np.random.Generator | None


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state.

    An integer seeds a stream of our own: users make data with ``default_rng(0)`` too, and rows
    sampled with the very numbers that became X would all lie at one end of it.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(0x727766,)))


def is_count(value: object, least: int = 1) -> bool:
    """Whether a parameter is a whole number of at least ``least``."""
    return isinstance(value, int | np.integer) and int(value) >= least


class FeatureRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Learns, streams, merges, predicts and samples; subclasses name the blocks of features."""

    model_: Model
    correction_: Correction | None
    fit_report_: FitReport
    pruning_: Pruning

    n_components: int | None
    ard: bool
    log_skewed: bool
    trend: Trend
    noise: Noise
    error_bars: ErrorBars
    second_opinion: bool = False
    fill: bool
    variances: Variances
    max_iter: int
    n_restarts: int
    random_state: RandomState
    verbose: int

    @abstractmethod
    def _families(self, scaler: Standardizer) -> list[Family]:
        """The blocks of features, without the trend."""

    def _recipe(self, n: int) -> Recipe:
        """How the shape of n rows is learned."""
        return IndependentRecipe(lambda scaler: self._families(scaler) + self._trend())

    def _engine(self, n: int, model: Model) -> str:
        """Which engine fitted n rows, and why."""
        return f"dense: {model.n_features} columns"

    def _trend(self) -> list[Family]:
        trends: dict[str, list[Family]] = {
            "linear": [ConstantFamily(), LinearFamily()],
            "constant": [ConstantFamily()],
            "none": [],
        }
        if self.trend not in trends:
            raise ValueError(f"trend={self.trend!r} is unknown: use one of {', '.join(trends)}.")
        return trends[self.trend]

    def _settings(self) -> Settings:
        for name, least in (("max_iter", 1), ("n_restarts", 0)):
            value = getattr(self, name)
            if not is_count(value, least):
                raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
        if self.n_components is not None and not is_count(self.n_components):
            raise ValueError(
                f"n_components={self.n_components!r} must be a positive integer, or None to "
                "choose by the number of rows."
            )
        if self.noise not in get_args(Noise):
            raise ValueError(
                f"noise={self.noise!r} is unknown: use 'auto', 'constant' or 'varying'."
            )
        if self.error_bars not in get_args(ErrorBars):
            raise ValueError(f"error_bars={self.error_bars!r} is unknown: use 'local' or 'global'.")
        if self.variances not in ("block", "unit"):
            raise ValueError(f"variances={self.variances!r} is unknown: use 'block' or 'unit'.")
        return Settings(
            n_components=self.n_components,
            n_starts=1 + self.n_restarts,
            max_iter=self.max_iter,
            learn_priors=self.variances == "block",
            ard=self.ard,
            log_skewed=self.log_skewed,
            fill=self.fill,
            noise=self.noise,
            local_errors=self.error_bars == "local",
            second_opinion=self.second_opinion,
        )

    def _progress(self, message: str) -> None:
        if self.verbose:
            sys.stderr.write(f"[{type(self).__name__}] {message}\n")

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the features' shape on a sample of rows, then fit all rows in one pass.

        Args:
            X: inputs, shape (n, d).
            y: targets, shape (n,) or (n, k).
            sample_weight: how many times each row counts, shape (n,).
        """
        rows, self._single_output = check_rows(self, X, y, sample_weight, reset=True)
        self.model_, self.correction_, report = fit(
            rows,
            self._recipe(len(rows)),
            self._settings(),
            generator(self.random_state),
            self._progress,
        )
        self.fit_report_ = replace(report, engine=self._engine(len(rows), self.model_))
        self.n_iter_ = max(1, *(s.iterations for s in self.fit_report_.starts if s.chosen))
        self._warn_if_no_better()
        return self

    def _warn_if_no_better(self) -> None:
        r = self.fit_report_
        if not r.beats_trivial:
            warnings.warn(
                "the model predicts no better than a trivial one: leave-one-out NLL "
                f"{r.nll:.4g} nats per row, a constant has {r.constant_nll:.4g} and a straight "
                f"line {r.linear_nll:.4g}. Either the inputs say no more about y, or learning "
                "failed: try more n_restarts, and see fit_report_.",
                NoImprovementWarning,
                stacklevel=3,
            )

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add rows. The first call is ``fit``; later ones keep the shape and add moments.

        Noise and prior variances are tuned again from the total, when they are next needed.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight)
        rows, single = check_rows(self, X, y, sample_weight, reset=False)
        if rows.y.shape[1] != self.model_.n_outputs or single != self._single_output:
            raise ValueError(
                f"y has shape {np.shape(y)}, but the model was fitted with "
                f"{self.model_.n_outputs} output(s): give the same outputs."
            )
        self.model_ = self.model_.with_rows(rows)
        if self.correction_ is not None:
            self.correction_ = self.correction_.with_rows(self.model_, rows)
        return self

    def without_rows(self) -> Self:
        """A copy with the same features and units and no rows, to be given to ``partial_fit``."""
        check_is_fitted(self)
        blank = copy.copy(self)
        blank.model_ = self.model_.without_rows()
        if blank.correction_ is not None:
            blank.correction_ = blank.correction_.without_rows()
        return blank

    def prune(self, n_components: int | None = None, *, tolerance: float = 0.1) -> Self:
        """A copy with the columns that matter, for cheaper predictions; no rows are needed.

        ``pruning_`` of the copy says what was dropped. Error bars keep the variance of dropped
        columns, as it was. The copy takes further rows by ``partial_fit``, which tunes its
        variances again.

        Args:
            n_components: columns to keep beside the trend. ``None`` keeps as few as the tolerance
                allows.
            tolerance: how much f may change: its mean square change over the rows seen, relative to
                its mean posterior variance over them. A change by a tenth of the variance makes the
                expected error of f larger by a twentieth, if they are independent.
        """
        check_is_fitted(self)
        if n_components is not None and not is_count(n_components):
            raise ValueError(f"n_components={n_components!r} must be a positive integer, or None.")
        if not tolerance > 0:
            raise ValueError(f"tolerance={tolerance!r} must be positive; 0.1 is usual.")
        if not isinstance(self.model_, FittedModel):
            raise ValueError(
                "the weights of this model are sparse already: to choose how many columns there "
                "are, fit with prior='cells' or 'adaptive', and prune that."
            )
        if not self.model_.n_rows > 0:
            raise ValueError("the model has seen no rows yet: call partial_fit first.")
        smaller = copy.copy(self)
        smaller.model_, smaller.pruning_ = prune(self.model_, n_components, tolerance)
        return smaller

    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen; both must have the same features.

        See :meth:`without_rows` for a way to make such models.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        self.model_ = self.model_.merged(other.model_)
        if self.correction_ is not None and other.correction_ is not None:
            self.correction_ = self.correction_.merged(other.correction_)
        return self

    def _fitted_inputs(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        if not self.model_.n_rows > 0:
            raise ValueError("the model has seen no rows yet: call partial_fit first.")
        return check_inputs(self, X, reset=False)  # type: ignore[return-value]

    def _squeeze(self, values: Array) -> Array:
        """Drop the axis of outputs, the last, where y was one-dimensional."""
        return values[..., 0] if self._single_output else values

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, return_cov: Literal[False] = False
    ) -> Array: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], return_cov: Literal[False] = False
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, *, return_cov: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predictive mean of y, and its standard deviation or covariance, noise included.

        Args:
            X: inputs, shape (n, d).
            return_std: also return the standard deviation, shaped as the mean.
            return_cov: also return the covariance, shape (n, n), or (n, n, k) for several outputs.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both.")
        inputs = self._fitted_inputs(X)
        if return_cov or return_std:
            self._warn_if_far(inputs)
        if return_cov:
            c, mean = self._corrected(inputs), self.model_.mean(inputs)
            covariance = c.factor[:, None] * c.factor * self.model_.covariance(inputs)
            return self._squeeze(mean + c.shift), self._squeeze(covariance)
        if return_std:
            c, (mean, std) = self._corrected(inputs), self.model_.predict(inputs)
            return self._squeeze(mean + c.shift), self._squeeze(c.factor * std)
        mean = self.model_.mean(inputs)
        if isinstance(self.correction_, SecondOpinion):
            mean = mean + self._corrected(inputs).shift
        return self._squeeze(mean)

    def _corrected(self, inputs: Array) -> Corrected:
        """By what the model's predictions change."""
        if self.correction_ is None:
            return Corrected.unchanged(len(inputs), self.model_.n_outputs)
        return self.correction_.at(self.model_, inputs)

    def _warn_if_far(self, inputs: Array) -> None:
        if not self.model_.filled:
            return
        count = int((self.model_.coverage(inputs) < NO_ATOMS).sum())
        if count:
            warnings.warn(
                f"{count} of {len(inputs)} rows have no atoms nearby: what is predicted there is "
                "the trend and the prior's variance. coverage(X) says how far each row is.",
                NoAtomsNearbyWarning,
                stacklevel=3,
            )

    def coverage(self, X: ArrayLike) -> Array:
        """The share of the prior variance of f that atoms carry at rows, shape (n,).

        One among the data, falling to zero where the model has no atoms and knows only its prior.
        """
        return self.model_.coverage(self._fitted_inputs(X))

    def predict_function(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and standard deviation of f itself, without the noise of a new observation."""
        inputs = self._fitted_inputs(X)
        c, (mean, std) = self._corrected(inputs), self.model_.predict(inputs, noise=False)
        return self._squeeze(mean + c.shift), self._squeeze(c.factor * std)

    def predict_interval(
        self,
        X: ArrayLike,
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
        X: ArrayLike,
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
        """ℓ of each block in the units of X, shape (blocks, d); NaN for constant columns."""
        scaler, lengths = self.model_.scaler, []
        for part in self.model_.maps:
            if isinstance(part, ProjectedFeatures):
                lengths += list(np.exp(part.kernel.log_lengths))
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
