"""A model of a table, as ``rwf fit`` writes it: its columns, and the regressor of their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rwf._types import Array
from rwf.data.readers import ArrayReader, Reader, open_table
from rwf.data.rows import Block, resized
from rwf.data.schema import (
    EncodedReader,
    Fold,
    Missing,
    NumberColumn,
    TableSchema,
    Unknown,
    learn_schema,
)
from rwf.data.writers import write_columns
from rwf.diagnostics.scores import Round, Scores, compare
from rwf.errors import IncompatibleModelsError
from rwf.estimators.fourier import RFFRegressor
from rwf.estimators.grouping import read_labels
from rwf.estimators.regressor import RWFRegressor
from rwf.persistence import save
from rwf.uncertainty.student_t import StudentT

Regressor: TypeAlias = RWFRegressor | RFFRegressor

SCORED_ROWS = 20_000  # drawn at random: on these, models are scored, and trivial ones learned
AT_ONCE = 8192  # rows that are predicted together
FEWEST = 10  # rows below which none are kept back
FOLDS = 5


@dataclass
class TableModel:
    """A fitted regressor with the columns of its table.

    Args:
        schema: the columns.
        regressor: fitted to their numbers.
        scores: on rows that were kept back, if any were.
    """

    schema: TableSchema
    regressor: Regressor
    scores: Scores | None = None

    @classmethod
    def fit(
        cls,
        table: object,
        target: str,
        *,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        groups: str | None = None,
        missing: Missing = "error",
        regressor: Regressor | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit a regressor to a table.

        Args:
            table: the path of a CSV or Parquet file, a folder or pattern of such, or a dataframe.
            target: the column of y.
            features: input columns; ``None`` takes all others. Categorical columns are one-hot
                encoded.
            weight: the column that says how many times a row counts.
            groups: the column of groups, which are held out together; see
                :meth:`rwf.RWFRegressor.fit`. It is no input.
            missing: "error", or "impute" for the median of numbers and the most frequent category.
            regressor: not fitted; ``None`` takes :class:`~rwf.RWFRegressor`. With
                categorical columns its ``prior="auto"`` is "nystrom", whose atoms are at rows.
            checkpoint: path of a file in which an unfinished fit is kept; not with groups.
        """
        schema = learn_schema(open_table(table), target, features, weight, missing, groups)
        regressor = clone(regressor) if regressor is not None else RWFRegressor()
        if schema.categorical and regressor.get_params().get("prior") == "auto":
            regressor.set_params(prior="nystrom")
        reader = EncodedReader.of(table, schema, targets=True)
        if groups is None:
            return cls(schema, regressor.fit(reader, checkpoint=checkpoint))
        return cls(schema, regressor.fit(reader, groups=read_labels(table, groups)))

    @classmethod
    def of(cls, regressor: object, where: str) -> Self:
        """A regressor that was saved without a table, if it knows its columns by name."""
        if not isinstance(regressor, RWFRegressor | RFFRegressor):
            raise ValueError(f"{where} holds a {type(regressor).__name__}: give a model of rwf.")
        names = getattr(regressor, "feature_names_in_", None)
        if names is None or not regressor._single_output:
            raise ValueError(
                f"{where} was fitted to arrays without names, or to several targets: load it in "
                "Python with rwf.load, or fit a table by rwf fit."
            )
        columns = tuple(NumberColumn(str(name), "double") for name in names)
        return cls(TableSchema(columns, None), regressor)

    def validate(
        self, table: object, method: Literal["hold-out", "cross-validation"] = "hold-out"
    ) -> Self:
        """Score a regressor of the same parameters on rows that it was not fitted to.

        Args:
            table: what the model was fitted to.
            method: "hold-out" keeps a fifth of the rows back, and fits once; "cross-validation"
                keeps every fifth back in turn, and fits five times. Of rows in groups, these are
                fifths of the groups.
        """
        reader = EncodedReader.of(table, self.schema, targets=True)
        if self.regressor.fit_report_.n_rows < FEWEST:
            raise ValueError(
                f"{self.regressor.fit_report_.n_rows} rows are too few to keep some of them back: "
                f"give at least {FEWEST}, or do not validate."
            )
        folds = range(FOLDS if method == "cross-validation" else 1)
        kind = f"{FOLDS}-fold cross-validation" if len(folds) > 1 else "hold-out of every fifth"
        if self.schema.group is None:
            rounds = (self._round(reader, fold) for fold in folds)
            self.scores = compare(kind if len(folds) > 1 else f"{kind} row", rounds)
            return self
        labels = read_labels(table, self.schema.group)
        rows = reader.read_all("validation by groups")
        rounds = (self._group_round(rows, labels, fold) for fold in folds)
        self.scores = compare(f"{kind} {'by ' if len(folds) > 1 else ''}group", rounds)
        return self

    def _group_round(self, rows: Block, labels: NDArray[np.generic], fold: int) -> Round:
        """A round in which whole groups are held out."""
        codes = np.unique(labels.astype(str), return_inverse=True)[1]
        folds = np.random.default_rng(0).permutation(int(codes.max()) + 1) % FOLDS
        held = folds[codes] == fold
        known, test = rows.part(~held), rows.part(held)
        reader = ArrayReader(known.X, known.y[:, 0], known.weights)
        regressor = clone(self.regressor).fit(reader, groups=labels[~held])
        return Round(known, test, _predicted(regressor, test.X))

    def _round(self, reader: Reader, fold: int) -> Round:
        rng = np.random.default_rng(fold)
        known, _ = Fold(reader, fold, held=False).sample(SCORED_ROWS, rng)
        held, _ = Fold(reader, fold, held=True).sample(SCORED_ROWS, rng)
        regressor = clone(self.regressor).fit(Fold(reader, fold, held=False))
        return Round(known, held, _predicted(regressor, held.X))

    def partial_fit(self, table: object) -> Self:
        """Add the rows of another table with the same columns; the features stay."""
        self._require_target()
        self.regressor.partial_fit(EncodedReader.of(table, self.schema, targets=True))
        return self

    def empty_copy(self) -> Self:
        """The same columns and features, and no rows, to be given to ``partial_fit``."""
        return type(self)(self.schema, self.regressor.empty_copy(), self.scores)

    def merge(self, other: Self) -> Self:
        """Add the rows that another model has seen, of the same columns and features."""
        if self.schema != other.schema:
            raise IncompatibleModelsError(
                "the models differ in columns, categories or fillings, so their rows cannot be "
                "added: merge models that come from one fit by update, as with "
                "rwf update --fresh."
            )
        self.regressor.merge(other.regressor)
        return self

    @overload
    def predict(
        self, table: object, return_std: Literal[False] = False, *, unknown: Unknown = "error"
    ) -> Array: ...

    @overload
    def predict(
        self, table: object, return_std: Literal[True], *, unknown: Unknown = "error"
    ) -> tuple[Array, Array]: ...

    def predict(
        self, table: object, return_std: bool = False, *, unknown: Unknown = "error"
    ) -> Array | tuple[Array, Array]:
        """Predictive mean of the target, and its standard deviation, noise included.

        Args:
            table: a path or a dataframe; columns are taken by name, in any order.
            return_std: also return the standard deviation.
            unknown: a category that was not seen in the fit: "error", or "zeros" to encode it so.
        """
        p = StudentT.joined([*self._predictions(table, unknown)])
        return (p.mean, p.std) if return_std else p.mean

    def predict_to(
        self,
        table: object,
        out: str | os.PathLike[str],
        level: float = 0.95,
        unknown: Unknown = "error",
        quantiles: Sequence[float] = (),
    ) -> int:
        """Write predictions to a CSV or Parquet file, block by block, and count them.

        Columns are mean, std, and lower and upper, the ends of the interval of probability
        ``level``; or mean, std, and q0.05 for a quantile of 0.05, and so on. The rest is as for
        :meth:`predict`.
        """
        if not 0 < level < 1:
            raise ValueError(f"the interval {level!r} must lie between 0 and 1; 0.95 is usual.")
        if not all(0 < q < 1 for q in quantiles):
            raise ValueError(f"quantiles={quantiles!r} must lie between 0 and 1, e.g. (0.05, 0.5).")
        ends = {"lower": 0.5 - level / 2, "upper": 0.5 + level / 2}
        levels = {f"q{q:g}": q for q in quantiles} or ends

        def blocks() -> Iterator[dict[str, Array]]:
            for p in self._predictions(table, unknown):
                columns = {name: p.ppf(q) for name, q in levels.items()}
                yield {"mean": p.mean, "std": p.std, **columns}

        return write_columns(Path(out), blocks())

    def _predictions(self, table: object, unknown: Unknown) -> Iterator[StudentT]:
        if unknown not in ("error", "zeros"):
            raise ValueError(f"unknown={unknown!r}: use 'error' or 'zeros'.")
        reader = EncodedReader.of(table, self.schema, targets=False, unknown=unknown)
        empty = True
        for block in resized(reader.read(), AT_ONCE):
            empty = False
            yield _predicted(self.regressor, block.X)
        if empty:
            raise ValueError("there are no rows to predict.")

    def sample(self, table: object, rows: int = SCORED_ROWS) -> tuple[Block, int]:
        """At most so many rows of a table as numbers, drawn at random, and the number of all."""
        self._require_target()
        reader = EncodedReader.of(table, self.schema, targets=True)
        return reader.sample(rows, np.random.default_rng(0))

    def predict_rows(self, X: Array) -> StudentT:
        """Predictive distributions at rows of numbers, as :meth:`sample` has them."""
        return _predicted(self.regressor, X)

    @property
    def keeps_rows(self) -> bool:
        """Whether the model, and so its file, holds all training rows."""
        return self.regressor.model_.keeps_rows

    def save(self, path: str | os.PathLike[str], *, include_rows: bool | None = None) -> None:
        """Write the model to a file, for :func:`rwf.load`, as :meth:`RWFRegressor.save` does."""
        save(
            self.regressor, path, include_rows=include_rows, schema=self.schema, scores=self.scores
        )

    def _require_target(self) -> None:
        if self.schema.target is None:
            raise ValueError(
                "the model was saved in Python, without the name of its target: load it with "
                "rwf.load, or fit a table by rwf fit."
            )


def _predicted(regressor: Regressor, X: Array) -> StudentT:
    return regressor.predict_distribution(ArrayReader(X, np.empty((len(X), 0))))
