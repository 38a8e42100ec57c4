"""How regressors on random features learn: all of it but their blocks of features."""

from __future__ import annotations

import copy
import os
import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rwf.data.progress import Progress, progress_of
from rwf.data.readers import ArrayReader, Data, Reader, Targets, names_of
from rwf.data.rows import Block
from rwf.estimators.grouping import Blocks, Grouping, Groups
from rwf.estimators.plotting import Plotted
from rwf.estimators.summary import Summarized
from rwf.estimators.unlearning import UnlearningRegressor
from rwf.estimators.validation import (
    RandomState,
    check_data,
    generator,
    warn_if_no_better,
    warn_if_repeated,
)
from rwf.fit.groups import leave_groups_out
from rwf.fit.pipeline import Fitted, fit, fit_stream
from rwf.fit.report import FitReport
from rwf.linalg.threads import jobs_at_once
from rwf.persistence import save
from rwf.persistence.checkpoint import Checkpoint, fingerprint
from rwf.priors.base import CalibrationMode, FitConfig, Metric, Neighbors, Prior, Solver, Trend
from rwf.uncertainty.noise import NOISE_MODELS

Constraint = tuple[Callable[[Any], bool], str]


def is_count(value: object, least: int = 1) -> bool:
    """Whether a parameter is a whole number of at least ``least``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and int(value) >= least  # type: ignore[call-overload]


def one_of(*words: str | None) -> Constraint:
    """A parameter that is one of a few words."""
    listed = ", ".join(repr(word) for word in words[:-1])
    return (lambda value: value in words), f"{listed} or {words[-1]!r}"


CONSTRAINTS: dict[str, Constraint] = {
    "n_components": (
        lambda value: value is None or is_count(value),
        "a positive integer, or None to choose by the number of rows",
    ),
    "solver": one_of("auto", "dense", "multifrontal"),
    "metric": one_of("auto", "isotropic", "ard", "full"),
    "neighbors": (
        lambda value: value is None or value == "auto" or is_count(value, 2),
        "'auto', None, or an integer of at least 2",
    ),
    "trend": one_of("linear", "constant", "none"),
    "noise": (lambda value: value in NOISE_MODELS, f"one of {', '.join(map(repr, NOISE_MODELS))}"),
    "calibration": one_of("local", "global", None),
    "log_skewed": (lambda value: value in (True, False), "True or False"),
    "target_transform": one_of("auto", "log", "sqrt", None),
    "n_restarts": (
        lambda value: value is None or is_count(value, 0),
        "an integer of at least 0, or None for the prior's default",
    ),
    "max_iter": (
        lambda value: value is None or is_count(value),
        "an integer of at least 1, or None for the prior's default",
    ),
    "n_jobs": (
        lambda value: value is None or (is_count(value, -sys.maxsize) and value != 0),
        "None or an integer other than 0, such as 2, or -1 for all cores",
    ),
}
"""What parameters may be; priors check their own."""


class FeatureRegressor(Summarized, Plotted, UnlearningRegressor):
    """Learns, streams, merges and saves; subclasses name the prior."""

    fit_report_: FitReport

    n_components: int | None
    solver: Solver = "auto"
    metric: Metric = "auto"
    neighbors: Neighbors = None
    trend: Trend
    noise: str
    calibration: CalibrationMode
    log_skewed: bool
    target_transform: Literal["auto", "log", "sqrt"] | None = None
    max_iter: int | None
    n_restarts: int | None
    n_jobs: int | None
    random_state: RandomState
    verbose: int

    @abstractmethod
    def _prior(self) -> Prior:
        """What is assumed of the weights."""

    def _config(self) -> FitConfig:
        values = {name: getattr(self, name) for name in CONSTRAINTS}
        for name, (holds, meaning) in CONSTRAINTS.items():
            if not holds(values[name]):
                raise ValueError(f"{name}={values[name]!r} must be {meaning}.")
        del values["n_jobs"]  # changes no number
        return FitConfig(iterations=values.pop("max_iter"), **values)

    def fit(
        self,
        X: Data,
        y: Targets | None = None,
        sample_weight: Targets | None = None,
        *,
        groups: Groups = None,
        blocks: Blocks = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn hyperparameters on a sample of rows, then fit all rows in one pass.

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
                name of a column. Without weights, exact copies of a row count once if all rows are
                learned from; see ``fit_report_.copies``.
            groups: labels of rows that belong together, such as speakers or sites, shape (n,); of
                a dataframe or a path the name of a column, which is then no input. Every choice
                that is made by held-out rows is made by held-out groups, and
                :meth:`leave_group_out` says how well new groups are predicted. All rows are read
                into memory.
            blocks: the same for space and time: rows within a block of this length, in the units
                of X, are a group. One number, or one for each column, infinity for those that are
                not divided; "auto" divides each of up to three columns into ten.
            checkpoint: path of a file in which an unfinished fit is kept. Started again with the
                same rows and parameters, it goes on where it stopped; when it is complete, the
                file is removed. Rows in memory are passed over like those of a file then. Not for
                groups and blocks.

        Examples:
            >>> import numpy as np
            >>> from rwf import RWFRegressor
            >>> rng = np.random.default_rng(0)
            >>> speaker = np.repeat(np.arange(20), 10)
            >>> X = rng.normal(size=(20, 1))[speaker] + 0.1 * rng.normal(size=(200, 1))
            >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=20)[speaker]
            >>> model = RWFRegressor(prior="nystrom", random_state=0).fit(X, y, groups=speaker)
            >>> model.fit_report_.group_scores.n_groups
            20
            >>> model.leave_group_out().rmse.shape
            (20,)
        """
        grouped = groups is not None or blocks is not None
        grouping = Grouping.of(X, y, groups, blocks) if grouped else None
        if grouped and checkpoint is not None:
            raise ValueError(
                "a fit with groups or blocks keeps all rows in memory and has no checkpoint: leave "
                "out checkpoint."
            )
        return self._fit(X, y, sample_weight, self._config(), checkpoint, grouping)

    def _fit(
        self,
        X: Data,
        y: Targets | None,
        sample_weight: Targets | None,
        config: FitConfig,
        checkpoint: str | os.PathLike[str] | None = None,
        grouping: Grouping | None = None,
    ) -> Self:
        inputs = None if grouping is None else grouping.inputs_of(X, y, sample_weight)
        rows, self._single_output = check_data(self, X, y, sample_weight, reset=True, inputs=inputs)
        self._by_name = names_of(y) is not None or inputs is not None
        self.__dict__.pop("_left_out", None)  # predictions without groups, of another fit
        rng, prior = generator(self.random_state), self._prior()
        if checkpoint is None and grouping is None and not isinstance(rows, Block):
            # A small file gives the model of the same rows in an array.
            rows = rows.read_if_small() or rows
        with progress_of(type(self).__name__, self.verbose) as progress, jobs_at_once(self.n_jobs):
            if grouping is not None:
                found = self._fit_groups(rows, grouping, prior, config, rng, progress)
            elif isinstance(rows, Block) and checkpoint is None:
                warn_if_repeated(rows)
                found = fit(rows, prior, config, rng, progress)
            else:
                if isinstance(rows, Block):
                    rows = ArrayReader(rows.X, rows.y, rows.weights)
                checkpointer = None
                if checkpoint is not None:
                    checkpointer = Checkpoint(checkpoint, fingerprint(self, rows), progress)
                found = fit_stream(rows, prior, config, rng, progress, checkpointer)
        self.model_, self.fit_report_ = found
        self.n_iter_ = max([1, *(t.iterations for t in self.fit_report_.trials if t.chosen)])
        warn_if_no_better(self.fit_report_)
        return self

    def _fit_groups(
        self,
        rows: Block | Reader,
        grouping: Grouping,
        prior: Prior,
        config: FitConfig,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Fitted:
        """Fit rows in groups, and predict every group from the others."""
        block = rows if isinstance(rows, Block) else rows.read_all("a fit with groups or blocks")
        block, labels = grouping.on(block)
        model, report = fit(block, prior, config, rng, progress)
        found = leave_groups_out(model, block, labels)
        self._left_out = replace(
            found, prediction=self._one_of(found.prediction), y=self._squeeze(found.y)
        )
        return model, replace(report, group_scores=found.scores)

    def partial_fit(
        self, X: Data, y: Targets | None = None, sample_weight: Targets | None = None
    ) -> Self:
        """Add rows. The first call is ``fit``; later ones keep the features and add statistics.

        A model that begins with this method stores no rows, unless ``neighbors`` is a number or
        the prior a field.
        Noise and prior variances are learned again from the total, when they are next needed.
        """
        if not hasattr(self, "model_"):
            config = self._config()
            neighbors = None if config.neighbors == "auto" else config.neighbors
            return self._fit(X, y, sample_weight, replace(config, neighbors=neighbors))
        with progress_of(type(self).__name__, self.verbose) as progress:
            self.model_ = self.model_.update(self._further_rows(X, y, sample_weight, progress))
        return self

    def empty_copy(self) -> Self:
        """A copy with the same features and units and no rows, for ``partial_fit``."""
        check_is_fitted(self)
        blank = copy.copy(self)
        blank.model_ = self.model_.empty()
        blank._forget_groups()
        return blank

    def merge(self, other: Self) -> Self:
        """Add the rows of a model with the same features, such as :meth:`empty_copy` makes."""
        check_is_fitted(self)
        check_is_fitted(other)
        self.model_ = self.model_.merge(other.model_)
        self._forget_groups()
        return self

    def save(self, path: str | os.PathLike[str], *, include_rows: bool | None = None) -> None:
        """Write the fitted model to a file, for :func:`rwf.load`; an old file is replaced at once.

        Training rows are not in it, but for the inputs where atoms sit. There is one exception: a
        model blended with nearest neighbours stores all of them. With ``noise="student"`` the file
        has a hash of each, by which a row can be recognised but not read.

        Args:
            path: of the file.
            include_rows: whether all training rows may be in the file, where the model keeps them;
                ``None`` lets them, with a warning.
        """
        check_is_fitted(self)
        save(self, path, include_rows=include_rows)
