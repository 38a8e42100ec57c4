"""The contents of a model of a table in plain numbers, for ``rwf inspect`` and reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.schema import CategoryColumn, NumberColumn
from rwf.diagnostics.scores import Scores
from rwf.diagnostics.sensitivity import feature_importance
from rwf.inference.optimize import Trial

if TYPE_CHECKING:
    from rwf.estimators.table import TableModel
    from rwf.fit.groups import GroupScores


@dataclass(frozen=True)
class ColumnLine:
    """One input column, as strings."""

    name: str
    dtype: str
    categories: str
    fill: str


@dataclass(frozen=True)
class Inspection:
    """A fitted model in numbers."""

    estimator: str
    parameters: dict[str, str]  # those that differ from their defaults
    target: str | None
    columns: tuple[ColumnLine, ...]
    rows: float  # sum of the weights of training rows
    features: int  # columns of the feature matrix
    solver: str  # and why it was chosen
    noise_deviation: float  # σ, in the units of y
    nll: float  # leave-one-out, on the training rows
    constant_nll: float
    linear_nll: float
    scores: Scores | None  # on rows held out at the fit
    group_scores: GroupScores | None  # of training rows that were predicted without their groups
    blocks: tuple[str, ...]  # those that have length-scales
    length_scales: dict[str, list[float]]  # by column, one for each block
    trials: tuple[Trial, ...]
    seconds: dict[str, float]  # by stage of the fit
    # by column, total and first-order Sobol index with their standard errors, if there were rows
    importance: dict[str, dict[str, float]] | None = None

    @classmethod
    def of(cls, model: TableModel, rows: Array | None = None) -> Inspection:
        """Inspect a fitted model, and which columns count among rows of numbers."""
        regressor, report = model.regressor, model.regressor.fit_report_
        lengths = regressor.length_scales_
        return cls(
            estimator=type(regressor).__name__,
            parameters=_changed(model),
            target=model.schema.target,
            columns=tuple(_line(column) for column in model.schema.columns),
            rows=float(regressor.model_.n_rows),
            features=regressor.n_features_out_,
            solver=report.solver,
            noise_deviation=float(np.sqrt(regressor.noise_variance_)),
            nll=report.nll,
            constant_nll=report.constant_nll,
            linear_nll=report.linear_nll,
            scores=model.scores,
            group_scores=report.group_scores,
            blocks=tuple(f"block {index + 1}" for index in range(len(lengths))),
            length_scales={
                name: [float(value) for value in lengths[:, column]]
                for column, name in enumerate(model.schema.names)
                if len(lengths)
            },
            trials=report.trials,
            seconds=dict(report.seconds),
            importance=None if rows is None else _importance(model, rows),
        )


def _importance(model: TableModel, rows: Array) -> dict[str, dict[str, float]]:
    ends = np.cumsum([0, *(len(column.names) for column in model.schema.columns)]).tolist()
    parts = [range(a, b) for a, b in pairwise(ends)]
    found = feature_importance(_Rows(model), rows, columns=parts)
    numbers = [array.tolist() for array in vars(found).values()]
    return {
        column.name: dict(zip(vars(found), own, strict=True))
        for column, own in zip(model.schema.columns, zip(*numbers, strict=True), strict=True)
    }


@dataclass(frozen=True)
class _Rows:
    """A model of a table that predicts rows of numbers."""

    model: TableModel

    def predict(self, X: Array) -> Array:
        return self.model.predict_rows(X)[0]


def _changed(model: TableModel) -> dict[str, str]:
    usual = type(model.regressor)().get_params()
    given = model.regressor.get_params()
    return {name: repr(given[name]) for name in given if repr(given[name]) != repr(usual[name])}


def _line(column: NumberColumn | CategoryColumn) -> ColumnLine:
    categories = ", ".join(column.categories) if isinstance(column, CategoryColumn) else ""
    fill = f"{column.fill:.6g}" if isinstance(column.fill, float) else column.fill or "error"
    return ColumnLine(column.name, column.dtype, categories, fill)
