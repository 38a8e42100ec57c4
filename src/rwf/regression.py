"""What regressors on random features have in common: everything but their blocks of features."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, Self, get_args, overload

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf.calibration import Calibration
from rwf.checkpoints import Checkpoint, fingerprint
from rwf.clusters import lazily, rows_of
from rwf.corrections import Corrected, Correction
from rwf.errors import NoAtomsNearbyWarning, NoImprovementWarning
from rwf.features import ConstantFamily, Family, LinearFamily
from rwf.features.mixture import ProjectedFeatures
from rwf.fit_report import FitReport
from rwf.fitting import fit, fit_stream
from rwf.model import FittedModel
from rwf.models import Model
from rwf.pruning import Pruning, prune
from rwf.recipes import IndependentRecipe, Recipe, Settings
from rwf.rows import Block, block_rows, resized
from rwf.saving import save
from rwf.scaling import Standardizer
from rwf.second_opinion import SecondOpinion
from rwf.sources import (
    ArrayReader,
    Data,
    PartitionReader,
    Reader,
    Targets,
    columns_of,
    is_collection,
    is_frame,
    names_of,
)
from rwf.sparse_model import SparseModel
from rwf.streams import read_all
from rwf.types import Array
from rwf.validation import check_data, check_inputs, open_checked
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
    _by_name: bool = False  # whether columns were given by their names

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

    def fit(
        self,
        X: Data,
        y: Targets | None = None,
        sample_weight: Targets | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn the features' shape on a sample of rows, then fit all rows in one pass.

        Rows need not fit into memory; see docs/large-data.md.

        Args:
            X: inputs: an array of shape (n, d), a memory map or a frame; or everything: the path of
                a Parquet or CSV file, of a folder of such, or a pattern; or a function that returns
                a new iterator of blocks (X, y) or (X, y, weights). A Dask array or dataframe is
                fitted on the cluster that is current.
            y: targets, shape (n,) or (n, k); of a frame or a path the name of the column, or a list
                of names, and all other columns are inputs. Blocks bring their own.
            sample_weight: how many times each row counts, shape (n,); of a frame or a path the
                name of a column.
            checkpoint: path of a file in which an unfinished fit is kept. Started again with the
                same rows and parameters, it goes on where it stopped; when it is complete, the
                file is removed. Rows in memory are passed over like those of a file then.
        """
        rows, self._single_output = check_data(self, X, y, sample_weight, reset=True)
        self._by_name = names_of(y) is not None
        settings, rng = self._settings(), generator(self.random_state)
        if isinstance(rows, Block) and checkpoint is None:
            found = fit(rows, self._recipe(len(rows)), settings, rng, self._progress)
        else:
            reader = ArrayReader(rows.X, rows.y, rows.weights) if isinstance(rows, Block) else rows
            keeper = None
            if checkpoint is not None:
                keeper = Checkpoint(checkpoint, fingerprint(self, reader), self._progress)
            found = fit_stream(reader, self._recipe, settings, rng, self._progress, keeper)
        self.model_, self.correction_, report = found
        self.fit_report_ = replace(report, engine=self._engine(report.n_rows, self.model_))
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
        self, X: Data, y: Targets | None = None, sample_weight: Targets | None = None
    ) -> Self:
        """Add rows. The first call is ``fit``; later ones keep the shape and add moments.

        Noise and prior variances are tuned again from the total, when they are next needed.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight)
        rows, single = check_data(self, X, y, sample_weight, reset=False)
        if rows.n_outputs != self.model_.n_outputs or single != self._single_output:
            raise ValueError(
                f"y has {rows.n_outputs} output(s), {'one' if single else 'two'}-dimensional, but "
                f"the model was fitted with {self.model_.n_outputs}, "
                f"{'one' if self._single_output else 'two'}-dimensional: give the same outputs."
            )
        keeps_rows = isinstance(self.correction_, SecondOpinion)
        if not isinstance(rows, Block) and (keeps_rows or isinstance(self.model_, SparseModel)):
            rows = read_all(rows, "second_opinion=True" if keeps_rows else "prior='sparse'")
        if isinstance(rows, Block):
            self.model_ = self.model_.with_rows(rows)
            if self.correction_ is not None:
                self.correction_ = self.correction_.with_rows(self.model_, rows)
        else:
            # Of corrections, only those that keep rows change with them.
            self.model_ = self.model_.with_rows(rows_of(rows, rows.n_rows, self._progress))
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

    def save(
        self, path: str | os.PathLike[str], *, mean_only: bool = False, with_rows: bool = False
    ) -> None:
        """Write the fitted model to a file, for :func:`rwf.load`; an old file is replaced at once.

        Training rows are not in it, but for the inputs where atoms sit. There is one exception: a
        model with ``second_opinion=True`` is made of its rows, so it is saved only if
        ``with_rows=True`` says that they may be in the file.

        Args:
            path: of the file.
            mean_only: keep what means need, O(D) numbers and not O(D²): what is loaded has
                ``predict(X)``, and neither error bars nor statistics.
            with_rows: whether all training rows may be in the file, where the model keeps them.
        """
        check_is_fitted(self)
        save(self, path, mean_only=mean_only, with_rows=with_rows)

    def _open(self, X: Data) -> Reader | None:
        """A reader of inputs, unless they are in memory."""
        check_is_fitted(self)
        if not self.model_.n_rows > 0:
            raise ValueError("the model has seen no rows yet: call partial_fit first.")
        return open_checked(self, X)

    def _input_blocks(self, X: Data, reader: Reader | None) -> Iterator[Array]:
        """Inputs in blocks; those in memory are one."""
        if reader is None:
            if self._by_name and is_frame(X):
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
        if isinstance(self.correction_, SecondOpinion):
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
