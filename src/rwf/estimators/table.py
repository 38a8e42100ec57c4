"""A regressor of tables as people have them: columns of all kinds, with gaps, by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.data.readers import Reader
from rwf.data.readers.files import TableFile
from rwf.data.rows import Block, resized
from rwf.data.schema import (
    MAX_ONE_HOT,
    CategoryColumn,
    EncodedReader,
    Preparation,
    Roles,
    TableSchema,
    TargetEncodedColumn,
    first_copies,
    learn_schema,
)
from rwf.data.writers import write_columns
from rwf.diagnostics.scores import Scores
from rwf.errors import IncompatibleModelsError
from rwf.estimators.base import is_count
from rwf.estimators.grouping import Blocks, read_labels
from rwf.estimators.regressor import RWFRegressor
from rwf.estimators.summary import score_lines
from rwf.estimators.table_rows import Table, Values, open_inputs, open_known, open_training
from rwf.estimators.table_scores import SCORED_ROWS, held_out_scores
from rwf.estimators.validation import RandomState
from rwf.fit.cards import Line
from rwf.priors import PRIORS, Prior
from rwf.priors.base import CalibrationMode, Metric, Neighbors, Solver, Trend
from rwf.uncertainty.transformed import Predictive

AT_ONCE = 8192  # rows that are predicted together


class TableRegressor(RWFRegressor):
    """:class:`~rwf.RWFRegressor` for tables: text, dates, categories and missing values.

    It takes dataframes of pandas, polars and pyarrow, arrays, and CSV and Parquet files.

    Numbers and booleans stay. Dates become days since 1970, and cycles of the year, the week and
    the day that the target follows. Few categories are one-hot encoded, and many become the mean
    target of each, which a row of the fit gets from other rows. Missing values become the median or
    the most frequent category; from 1 % on, another column says where they are. Constant columns,
    identifiers, prose and rows without a target are left out: see ``preparation_``.

    Args:
        n_components: as all other parameters, that of :class:`~rwf.RWFRegressor`; but with one-hot
            columns ``prior="auto"`` is "nystrom", as local atoms cannot use them.
        categorical: columns that are categories although they hold numbers, such as postcodes.
        max_one_hot: categories up to which a column is one-hot encoded.
        strict: refuse tables for which anything must be done, with a list of all of it; and refuse
            missing values and new categories at predictions.
    """

    preparation_: Preparation
    scores_: Scores | None = None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        categorical: Sequence[str] = (),
        max_one_hot: int = MAX_ONE_HOT,
        strict: bool = False,
        prior: str | Prior = "auto",
        solver: Solver = "auto",
        metric: Metric = "auto",
        neighbors: Neighbors = "auto",
        trend: Trend = "linear",
        noise: str = "auto",
        calibration: CalibrationMode = "local",
        log_skewed: bool = True,
        target_transform: Literal["auto", "log", "sqrt"] | None = "auto",
        n_restarts: int | None = None,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            prior=prior,
            solver=solver,
            metric=metric,
            neighbors=neighbors,
            trend=trend,
            noise=noise,
            calibration=calibration,
            log_skewed=log_skewed,
            target_transform=target_transform,
            n_restarts=n_restarts,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.categorical = categorical
        self.max_one_hot = max_one_hot
        self.strict = strict

    @property
    def schema_(self) -> TableSchema:
        """The columns, and how they become numbers."""
        check_is_fitted(self)
        return self.preparation_.schema

    def _prior(self) -> Prior:
        one_hot = self.schema_.of_kind(CategoryColumn)
        return PRIORS["nystrom"]() if self.prior == "auto" and one_hot else super()._prior()

    def fit(  # type: ignore[override]
        self,
        X: Table,
        y: Values = None,
        sample_weight: Values = None,
        *,
        target: str | None = None,
        features: Sequence[str] | None = None,
        groups: Values = None,
        blocks: Blocks = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn the columns of a table, and fit the model to it.

        Args:
            X: inputs, as a dataframe or an array; or a whole table, as a dataframe or the path of a
                CSV or Parquet file, of a folder of such, or a pattern.
            y: targets, shape (n,), or the name of their column.
            sample_weight: how many times each row counts, or the name of that column.
            target: the name of the target's column in X.
            features: input columns; ``None`` takes all others.
            groups: labels of rows that belong together, or the name of their column, which is then
                no input; see :meth:`rwf.RWFRegressor.fit`.
            blocks: the same for space and time, in the units of the encoded columns.
            checkpoint: path of a file in which an unfinished fit of more than 256 MiB of rows is
                kept; not with groups. A fit of fewer rows is that of an array, and keeps none.
        """
        self._config()
        reader = self._learn(X, target if y is None else y, sample_weight, groups, features)
        return self.fit_reader(reader, blocks, checkpoint)

    def fit_reader(
        self,
        reader: EncodedReader,
        blocks: Blocks = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the model to the rows of a table whose columns were learned."""
        if reader.schema.group is not None:
            labels = read_labels(reader.files, reader.schema.group)
            return super().fit(reader, groups=labels, blocks=blocks, checkpoint=checkpoint)
        small = blocks is None and reader.read_if_small() is not None
        return super().fit(reader, blocks=blocks, checkpoint=None if small else checkpoint)

    def _learn(
        self,
        X: Table,
        y: Values,
        weight: Values = None,
        groups: Values = None,
        features: Sequence[str] | None = None,
    ) -> EncodedReader:
        """Learn the columns, and return the rows to fit."""
        if isinstance(self.categorical, str) or not is_count(self.max_one_hot):
            raise ValueError(
                f"categorical={self.categorical!r} must be a list of names, and "
                f"max_one_hot={self.max_one_hot!r} an integer of at least 1."
            )
        files, roles = open_training(self, X, (y, weight, groups))
        roles = replace(roles, features=features, categorical=self.categorical)
        reader = self.learn_columns(files, roles)
        by_target = bool(reader.schema.of_kind(TargetEncodedColumn))  # differently in every fold
        plain = (replace(reader, learning=False) if by_target else reader).read_if_small()
        repeated = 0 if plain is None else len(plain) - len(np.unique(first_copies(plain)))
        self.preparation_ = replace(self.preparation_, repeated=repeated)
        return reader

    def learn_columns(self, files: Sequence[TableFile], roles: Roles) -> EncodedReader:
        """Learn the columns of some files, and return their rows."""
        self.scores_ = None
        self.preparation_, files = learn_schema(
            files, roles, strict=self.strict, max_one_hot=self.max_one_hot
        )
        return EncodedReader.of(
            files, self.preparation_.schema, targets=True, strict=self.strict, learning=True
        )

    def _known(
        self, X: Table, y: Values = None, weight: Values = None, groups: Values = None
    ) -> EncodedReader:
        """Rows with targets, of a table with the columns of the fit."""
        files = open_known(self, self.schema_, X, (y, weight, groups))
        return EncodedReader.of(files, self.schema_, targets=True, strict=self.strict)

    def _open(self, X: Table) -> Reader | None:
        schema = self.schema_
        files = open_inputs(self, X, schema.given)
        return super()._open(EncodedReader.of(files, schema, targets=False, strict=self.strict))

    def _table_lines(self) -> Iterator[Line]:
        yield "target", str(self.schema_.target)
        yield from self.preparation_.lines
        if self.scores_ is not None:
            yield from score_lines(self.scores_)

    def partial_fit(  # type: ignore[override]
        self, X: Table, y: Values = None, sample_weight: Values = None
    ) -> Self:
        """Add the rows of a table with the same columns; the first call learns the columns.

        The features and their encoding stay as they are.
        """
        if hasattr(self, "model_"):
            return super().partial_fit(self._known(X, y, sample_weight))
        return super().partial_fit(self._learn(X, y, sample_weight))

    def merge(self, other: Self) -> Self:
        """Add the rows of a model with the same columns and features, as of :meth:`empty_copy`."""
        if self.schema_ != other.schema_:
            raise IncompatibleModelsError(
                "the models differ in columns, categories or imputed values, so their rows cannot "
                "be added: merge models that come from one fit by update, as with "
                "rwf update --fresh."
            )
        return super().merge(other)

    def validate(
        self,
        X: Table,
        y: Values = None,
        sample_weight: Values = None,
        *,
        groups: Values = None,
        method: Literal["hold-out", "cross-validation"] = "hold-out",
    ) -> Self:
        """Score a model of the same parameters on rows that it was not fitted to, as ``scores_``.

        Args:
            X: the table of the fit, and so for y, weights and groups.
            method: "hold-out" keeps a fifth of the rows back, and fits once; "cross-validation"
                keeps every fifth back in turn, and fits five times. Of rows in groups, these are
                fifths of the groups. Exact copies of a row are kept back together.
        """
        reader = self._known(X, y, sample_weight, groups)
        self.scores_ = held_out_scores(self, reader, cross_validate=method == "cross-validation")
        return self

    def predict_to(
        self,
        X: Table,
        out: str | os.PathLike[str],
        level: float = 0.95,
        quantiles: Sequence[float] = (),
    ) -> int:
        """Write predictions to a CSV or Parquet file, block by block, and count them.

        Columns are mean, std, and lower and upper, the ends of the interval of probability
        ``level``; or mean, std, and q0.05 for a quantile of 0.05, and so on.
        """
        if not 0 < level < 1:
            raise ValueError(f"the interval {level!r} must lie between 0 and 1; 0.95 is usual.")
        if not all(0 < q < 1 for q in quantiles):
            raise ValueError(f"quantiles={quantiles!r} must lie between 0 and 1, e.g. (0.05, 0.5).")
        ends = {"lower": 0.5 - level / 2, "upper": 0.5 + level / 2}
        levels, reader = {f"q{q:g}": q for q in quantiles} or ends, self._open(X)

        def blocks() -> Iterator[dict[str, Array]]:
            for block in [] if reader is None else resized(reader.read(), AT_ONCE):
                p = self.predict_rows(block.X)
                columns = {name: p.ppf(q) for name, q in levels.items()}
                yield {"mean": p.mean, "std": p.std, **columns}

        return write_columns(Path(out), blocks())

    def sample_rows(self, X: Table, size: int = SCORED_ROWS) -> tuple[Block, int]:
        """At most so many rows of a table as numbers, drawn at random, and the number of all."""
        return self._known(X).sample(size, np.random.default_rng(0))

    def predict_rows(self, X: Array) -> Predictive:
        """Predictive distributions at the rows of numbers of :meth:`sample_rows`."""
        return self._distributions(X).output(0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
