"""Scores of a regressor of tables on rows that were kept back, with columns learned anew."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from rwf._types import IntArray
from rwf.data.schema import FOLDS, EncodedReader, Roles, dealt, first_copies, rows_of_fold
from rwf.diagnostics.scores import Round, Scores, compare
from rwf.errors import UnknownCategoryWarning
from rwf.estimators.grouping import read_labels
from rwf.linalg.threads import dispatched, jobs_at_once

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor

SCORED_ROWS = 20_000  # drawn at random: on these, models are scored, and trivial ones learned
FEWEST = 10  # rows below which none are kept back


def held_out_scores(
    model: TableRegressor, reader: EncodedReader, *, cross_validate: bool
) -> Scores:
    """Scores on one fold of the rows of the fit, or on all of them in turn."""
    n_rows = model.fit_report_.n_rows
    if n_rows < FEWEST:
        raise ValueError(
            f"{n_rows} rows are too few to keep some of them back: give at least {FEWEST}, or do "
            "not validate."
        )
    unit = "row" if reader.schema.group is None else "group"
    method = f"hold-out of every fifth {unit}"
    if cross_validate:
        method = f"{FOLDS}-fold cross-validation{' by group' if unit == 'group' else ''}"
    folds = _folds(reader)
    chosen = range(FOLDS if cross_validate else 1)
    with jobs_at_once(model.n_jobs):
        return compare(method, dispatched(partial(_round, model, reader, folds), chosen))


def _folds(reader: EncodedReader) -> IntArray | None:
    """The fold of every row: those of a group in one, and copies of a row; ``None`` for streams."""
    if reader.schema.group is not None:
        labels = read_labels(reader.files, reader.schema.group)
        codes = np.unique(labels.astype(str), return_inverse=True)[1]
        found: IntArray = np.random.default_rng(0).permutation(int(codes.max()) + 1) % FOLDS
        return found[codes]
    rows = reader.read_if_small()
    return None if rows is None else dealt(first_copies(rows))


def _round(
    model: TableRegressor, reader: EncodedReader, folds: IntArray | None, fold: int
) -> Round:
    """A model of the rows of other folds, columns and all, and its predictions of one fold."""
    schema, rng, target = reader.schema, np.random.default_rng(fold), str(reader.schema.target)
    known, held = (
        rows_of_fold(reader.files, target, fold, held=held, folds=folds) for held in (False, True)
    )
    used = tuple(column.name for column in schema.columns)
    roles = Roles(target, schema.weight, schema.group, used, model.categorical, schema.named)
    other: TableRegressor = clone(model).set_params(strict=False)
    other.fit_reader(other.learn_columns(known, roles))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCategoryWarning)
        encoded = [EncodedReader.of(f, other.schema_, targets=True) for f in (known, held)]
        rows, test = (each.sample(SCORED_ROWS, rng)[0] for each in encoded)
    return Round(rows, test, other.predict_rows(test.X))
