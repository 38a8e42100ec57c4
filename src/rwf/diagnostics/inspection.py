"""The contents of a model of a table in plain numbers, for ``rwf inspect`` and reports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.schema import Column
from rwf.diagnostics.scores import Scores
from rwf.diagnostics.sensitivity import feature_importance
from rwf.inference.optimize import Trial

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor
    from rwf.fit.groups import GroupScores

LISTED = 12  # categories that are listed


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
    noise_deviation: float  # σ, in the units of what is modelled
    noise_of: str  # " of log price" where this is not the target itself
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
    def of(cls, model: TableRegressor, rows: Array | None = None) -> Inspection:
        """Inspect a fitted model, and which columns count among rows of numbers."""
        report, lengths = model.fit_report_, model.length_scales_
        return cls(
            estimator=type(model).__name__,
            parameters=_changed(model),
            target=model.schema_.target,
            columns=tuple(_line(column) for column in model.schema_.columns),
            rows=float(model.model_.n_rows),
            features=model.n_features_out_,
            solver=report.solver,
            noise_deviation=float(np.sqrt(model.noise_variance_)),
            noise_of=_modelled(model),
            nll=report.nll,
            constant_nll=report.constant_nll,
            linear_nll=report.linear_nll,
            scores=model.scores_,
            group_scores=report.group_scores,
            blocks=tuple(f"block {index + 1}" for index in range(len(lengths))),
            length_scales={
                name: [float(value) for value in lengths[:, column]]
                for column, name in enumerate(model.schema_.names)
                if len(lengths)
            },
            trials=report.trials,
            seconds=dict(report.seconds),
            importance=None if rows is None else _importance(model, rows),
        )


def _importance(model: TableRegressor, rows: Array) -> dict[str, dict[str, float]]:
    parts = encoded_parts(model)
    found = feature_importance(EncodedModel(model), rows, columns=parts)
    numbers = [array.tolist() for array in vars(found).values()]
    return {
        column.name: dict(zip(vars(found), own, strict=True))
        for column, own in zip(model.schema_.columns, zip(*numbers, strict=True), strict=True)
    }


def encoded_parts(model: TableRegressor) -> list[range]:
    """Where the columns of a table are among the encoded columns."""
    ends = np.cumsum([0, *(len(column.names) for column in model.schema_.columns)]).tolist()
    return [range(a, b) for a, b in pairwise(ends)]


@dataclass(frozen=True)
class EncodedModel:
    """A model of a table that predicts encoded rows."""

    model: TableRegressor

    def predict(self, X: Array) -> Array:
        return self.model.predict_rows(X).mean

    def predict_combination(self, X: Array, weights: Array) -> tuple[Array, Array]:
        """Means and standard deviations of linear combinations of f."""
        mean, covariance = self.model.combine_rows(X, weights)
        return mean[:, 0], np.sqrt(np.einsum("iik->ik", covariance))[:, 0]


def _modelled(model: TableRegressor) -> str:
    """What the noise is of, unless it is of the target."""
    transform = model.model_.units.transform
    names = () if transform is None else transform.names
    return "".join(f" of {name} {model.schema_.target}" for name in names if name)


def _changed(model: TableRegressor) -> dict[str, str]:
    usual, given = type(model)().get_params(), model.get_params()
    return {name: repr(given[name]) for name in given if repr(given[name]) != repr(usual[name])}


def _line(column: Column) -> ColumnLine:
    known = getattr(column, "categories", ())
    more = [f"and {len(known) - LISTED} more"] if len(known) > LISTED else []
    categories = ", ".join([*known[:LISTED], *more])
    return ColumnLine(column.name, column.dtype, categories, column.imputed)
