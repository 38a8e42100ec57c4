"""How regressors on random features learn: all of it but their blocks of features."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Literal, Self, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rwf.data.readers import (
    ArrayReader,
    Data,
    Targets,
    names_of,
)
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.data.stream import Stream
from rwf.errors import NoImprovementWarning
from rwf.estimators.predicting import FittedRegressor
from rwf.estimators.random_state import RandomState, generator
from rwf.estimators.validation import check_data
from rwf.features import ConstantFamily, Family, LinearFamily
from rwf.fit.pipeline import fit, fit_stream
from rwf.fit.report import FitReport
from rwf.models.base import Model
from rwf.models.blended import NeighborBlend
from rwf.models.noise import Noise
from rwf.models.spike_slab import SpikeSlabModel
from rwf.persistence import save
from rwf.persistence.checkpoint import Checkpoint, fingerprint
from rwf.priors.base import FitConfig, Neighbors, Prior
from rwf.priors.recipes import RandomFeatures

Trend = Literal["linear", "constant", "none"]
Variances = Literal["block", "unit"]
ErrorBars = Literal["local", "global"]


def is_count(value: object, least: int = 1) -> bool:
    """Whether a parameter is a whole number of at least ``least``."""
    return isinstance(value, int | np.integer) and int(value) >= least


class FeatureRegressor(FittedRegressor):
    """Learns, streams, merges and saves; subclasses name the blocks of features."""

    fit_report_: FitReport

    n_components: int | None
    ard: bool
    log_skewed: bool
    mix_columns: bool = False
    trend: Trend
    noise: Noise
    error_bars: ErrorBars
    second_opinion: Neighbors = False
    fill: bool
    variances: Variances
    max_iter: int
    n_restarts: int
    random_state: RandomState
    verbose: int

    @abstractmethod
    def _families(self, scaler: Standardizer) -> list[Family]:
        """The blocks of features, without the trend."""

    def _recipe(self, n: int) -> Prior:
        """How the shape of n rows is learned."""
        return RandomFeatures(lambda scaler: self._families(scaler) + self._trend())

    def _solver(self, n: int, model: Model) -> str:
        """Which solver fitted n rows, and why."""
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

    def _settings(self) -> FitConfig:
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
        if self.second_opinion not in (True, False, "auto"):
            raise ValueError(
                f"second_opinion={self.second_opinion!r} is unknown: use True, False or 'auto'."
            )
        if self.variances not in ("block", "unit"):
            raise ValueError(f"variances={self.variances!r} is unknown: use 'block' or 'unit'.")
        return FitConfig(
            n_components=self.n_components,
            n_starts=1 + self.n_restarts,
            max_iter=self.max_iter,
            learn_priors=self.variances == "block",
            ard=self.ard,
            log_skewed=self.log_skewed,
            mix_columns=self.mix_columns,
            fill=self.fill,
            noise=self.noise,
            calibrate_locally=self.error_bars == "local",
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

        Rows need not fit into memory; see docs/large-data.md. Files and memory maps of up to
        256 MiB give the model of the same rows in an array; larger ones, functions and Dask stream.

        Args:
            X: inputs: an array of shape (n, d), memory map or dataframe; or everything: the path of
                a Parquet or CSV file, of a folder of such, or a pattern; or a function that returns
                a new iterator of blocks (X, y) or (X, y, weights). A Dask array or dataframe is
                fitted on the cluster that is current.
            y: targets, shape (n,) or (n, k); of a dataframe or path the name of a column, or a list
                of names, and all other columns are inputs. Blocks bring their own.
            sample_weight: how many times each row counts, shape (n,); of a dataframe or a path the
                name of a column.
            checkpoint: path of a file in which an unfinished fit is kept. Started again with the
                same rows and parameters, it goes on where it stopped; when it is complete, the
                file is removed. Rows in memory are passed over like those of a file then.
        """
        return self._fit(X, y, sample_weight, self._settings(), checkpoint)

    def _fit(
        self,
        X: Data,
        y: Targets | None,
        sample_weight: Targets | None,
        settings: FitConfig,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        rows, self._single_output = check_data(self, X, y, sample_weight, reset=True)
        self._by_name = names_of(y) is not None
        rng = generator(self.random_state)
        if checkpoint is None and not isinstance(rows, Block):
            # A small file gives the model of the same rows in an array.
            rows = rows.read_if_small() or rows
        if isinstance(rows, Block) and checkpoint is None:
            found = fit(rows, self._recipe(len(rows)), settings, rng, self._progress)
        else:
            reader = ArrayReader(rows.X, rows.y, rows.weights) if isinstance(rows, Block) else rows
            checkpointer = None
            if checkpoint is not None:
                checkpointer = Checkpoint(checkpoint, fingerprint(self, reader), self._progress)
            found = fit_stream(reader, self._recipe, settings, rng, self._progress, checkpointer)
        self.model_, self.correction_, report = found
        self.fit_report_ = replace(report, solver=self._solver(report.n_rows, self.model_))
        self.n_iter_ = max(1, *(s.iterations for s in self.fit_report_.trials if s.chosen))
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
                stacklevel=4,
            )

    def partial_fit(
        self, X: Data, y: Targets | None = None, sample_weight: Targets | None = None
    ) -> Self:
        """Add rows. The first call is ``fit``; later ones keep the shape and add moments.

        A model that begins with this method keeps no rows, unless ``second_opinion=True`` asks for
        it. Noise and prior variances are tuned again from the total, when they are next needed.
        """
        if not hasattr(self, "model_"):
            settings = self._settings()
            asks = settings.second_opinion is True  # else a stream would be kept, row by row
            return self._fit(X, y, sample_weight, replace(settings, second_opinion=asks))
        rows, single = check_data(self, X, y, sample_weight, reset=False)
        if rows.n_outputs != self.model_.n_outputs or single != self._single_output:
            raise ValueError(
                f"y has {rows.n_outputs} output(s), {'one' if single else 'two'}-dimensional, but "
                f"the model was fitted with {self.model_.n_outputs}, "
                f"{'one' if self._single_output else 'two'}-dimensional: give the same outputs."
            )
        keeps_rows = isinstance(self.correction_, NeighborBlend)
        if not isinstance(rows, Block) and (keeps_rows or isinstance(self.model_, SpikeSlabModel)):
            rows = rows.read_all("second_opinion=True" if keeps_rows else "prior='spike_slab'")
        if isinstance(rows, Block):
            self.model_ = self.model_.with_rows(rows)
            if self.correction_ is not None:
                self.correction_ = self.correction_.with_rows(self.model_, rows)
        else:
            # Of corrections, only those that keep rows change with them.
            self.model_ = self.model_.with_rows(Stream(rows, rows.n_rows, self._progress))
        return self

    def without_rows(self) -> Self:
        """A copy with the same features and units and no rows, to be given to ``partial_fit``."""
        check_is_fitted(self)
        blank = copy.copy(self)
        blank.model_ = self.model_.without_rows()
        if blank.correction_ is not None:
            blank.correction_ = blank.correction_.without_rows()
        return blank

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
        self,
        path: str | os.PathLike[str],
        *,
        with_rows: bool | None = None,
    ) -> None:
        """Write the fitted model to a file, for :func:`rwf.load`; an old file is replaced at once.

        Training rows are not in it, but for the inputs where atoms sit. There is one exception: a
        model that asks the nearest rows for a second opinion keeps all of them.

        Args:
            path: of the file.
            with_rows: whether all training rows may be in the file, where the model keeps them;
                ``None`` lets them, with a warning.
        """
        check_is_fitted(self)
        save(self, path, with_rows=with_rows)
