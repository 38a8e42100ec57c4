"""What a model makes of the columns of a table: their values, importance and partial dependence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.schema import CategoryColumn, Column, DateColumn, NumberColumn, TargetEncodedColumn
from rwf.data.schema.dates import date_text, phases
from rwf.diagnostics.inspection import EncodedModel, encoded_parts
from rwf.diagnostics.sensitivity import Dependence, feature_importance, partial_dependence

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor

DRAWS = 1024  # pairs of rows from which importance is computed
PLACES = 25  # values of a column at which dependence is computed
SHOWN_CATEGORIES = 12
DEPENDENCES, LEAST_IMPORTANCE = 4, 0.01  # most columns whose dependence is shown, and their index


@dataclass(frozen=True)
class Input:
    """A column of a table, its place among the encoded columns, and its total Sobol index."""

    column: Column
    part: range
    importance: float = 0.0
    error: float = 0.0


def inputs_of(model: TableRegressor) -> list[Input]:
    """The columns of a model, in their order."""
    return [Input(*each) for each in zip(model.schema_.columns, encoded_parts(model), strict=True)]


def ranked_inputs(model: TableRegressor, X: Array) -> list[Input]:
    """The columns with their total Sobol indices, the largest first; none if f is constant."""
    own = inputs_of(model)
    try:
        found = feature_importance(
            EncodedModel(model), X, columns=[each.part for each in own], n_draws=DRAWS
        )
    except ValueError:
        return []
    ranked = [
        Input(each.column, each.part, total, error)
        for each, total, error in zip(
            own, found.total.tolist(), found.total_error.tolist(), strict=True
        )
    ]
    return sorted(ranked, key=lambda each: -each.importance)


def dependences(
    model: TableRegressor, X: Array, ranked: list[Input]
) -> Iterator[tuple[Input, Dependence]]:
    """Partial dependence on the most important columns."""
    for each in ranked[:DEPENDENCES]:
        if each.importance >= LEAST_IMPORTANCE:
            values = _values(each.column, X[:, list(each.part)])
            yield each, partial_dependence(EncodedModel(model), X, each.part, values=values)


def _values(column: Column, own: Array) -> Array:
    """Encoded values of a column between its ends: each category, or even steps."""
    if isinstance(column, CategoryColumn):
        return np.eye(len(column.names))[: min(len(column.categories), SHOWN_CATEGORIES)]
    low, high = np.quantile(own[:, 0], [0.01, 0.99]).tolist()
    steps = np.linspace(low, high, PLACES)
    cycles = column.cycles if isinstance(column, DateColumn) else ()
    parts = np.column_stack([steps, *(phases(steps, cycle) for cycle in cycles)])
    missing = np.zeros((PLACES, own.shape[1] - parts.shape[1]))
    return np.hstack([parts, missing])


def spelled(column: Column, own: Array) -> str:
    """The value of a column in a row, as a table has it, from its encoded columns."""
    if isinstance(column, CategoryColumn):
        count = len(column.categories)
        return column.categories[int(np.argmax(own[:count]))] if own[:count].any() else "–"
    if isinstance(column, TargetEncodedColumn):
        distance = np.abs(column.means[-1, :-1] - own[0])
        nearest = int(np.argmin(distance))
        return column.categories[nearest] if distance[nearest] == 0 else "–"
    if isinstance(column, NumberColumn) and column.indicated and own[-1] == 1:
        return "–"
    if isinstance(column, DateColumn):
        return date_text(float(own[0]))
    return f"{own[0]:.6g}"
