r"""Which columns a prediction depends on: Sobol indices, and partial dependence with its error.

With columns drawn independently of each other, f(x) = E[y | x] and V = var f,

.. math:: T_j = \frac{E[\operatorname{var}(f \mid x_{-j})]}{V}, \qquad
    S_j = \frac{\operatorname{var}(E[f \mid x_j])}{V}.

T_j, the total index, is the share of V that is lost if column j is not known; S_j ≤ T_j is the
share of column j alone. They are equal for additive functions. Reference: Saltelli et al. (2010),
Variance based sensitivity analysis of model output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rwf._types import Array

DRAWS = 4096  # pairs of rows
BACKGROUND, PLACES = 100, 25  # rows over which dependence is averaged, and values of the column


class Predictor(Protocol):
    """A fitted regressor of one output."""

    def predict(self, X: Array) -> Array: ...


class CombiningPredictor(Protocol):
    """One whose posterior gives linear combinations of f."""

    def predict_combination(self, X: Array, weights: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class Importance:
    """Sobol indices of every column, and their Monte-Carlo standard errors, shape (d,)."""

    total: Array
    total_error: Array
    first: Array
    first_error: Array


@dataclass(frozen=True)
class Dependence:
    """The mean of f over rows whose column has been set to a value, and its posterior deviation."""

    values: Array
    mean: Array
    std: Array


def feature_importance(
    model: Predictor,
    X: Array,
    *,
    columns: Sequence[Sequence[int]] | None = None,
    n_draws: int = DRAWS,
    random_state: int = 0,
) -> Importance:
    """Total and first-order Sobol indices of the predictive mean.

    Every column is drawn from its values in X, independently of the others: with strongly dependent
    columns f is also asked at places without rows.

    Args:
        model: fitted, with one output.
        X: rows whose columns have the distribution of interest, shape (n, d).
        columns: columns that are drawn together, such as those of one category; each alone if
            ``None``.
        n_draws: pairs of rows; f is computed at (2 + d) times as many.
        random_state: seed of the draws.
    """
    X = np.asarray(X, dtype=np.float64)
    parts = [[j] for j in range(X.shape[1])] if columns is None else columns
    rng = np.random.default_rng(random_state)
    A, B = np.empty((2, n_draws, X.shape[1]))
    for part in parts:
        for draws in (A, B):
            draws[:, part] = X[rng.integers(len(X), size=n_draws)][:, part]
    a, b = model.predict(A), model.predict(B)
    if a.ndim != 1:
        raise ValueError(f"the model has {a.shape[1]} outputs: fit one to each of them.")
    center = np.append(a, b).mean()
    variance = ((a - center) ** 2 + (b - center) ** 2) / 2
    if not variance.mean() > 0:
        raise ValueError("the predictions are constant: no column is of importance.")
    total, first = [], []
    for part in parts:
        mixed = A.copy()
        mixed[:, part] = B[:, part]
        f = model.predict(mixed)
        total.append(_ratio((a - f) ** 2 / 2, variance))
        first.append(_ratio((b - center) * (f - a), variance))
    return Importance(*np.array(total).T, *np.array(first).T)


def _ratio(part: Array, whole: Array) -> tuple[float, float]:
    """The ratio of two means, and its standard error."""
    ratio = float(part.mean() / whole.mean())
    rest = part - ratio * whole
    return ratio, float(rest.std() / whole.mean() / np.sqrt(len(whole)))


def partial_dependence(
    model: CombiningPredictor,
    X: Array,
    column: int | Sequence[int],
    *,
    values: Array | None = None,
    random_state: int = 0,
) -> Dependence:
    """How f depends on one column, averaged over rows, with the posterior deviation of the average.

    Args:
        model: fitted, with one output.
        X: rows over which f is averaged, shape (n, d); some of them are drawn if there are many.
        column: its number; or the numbers of columns that are set together, such as those of one
            category.
        values: that it is set to, shape (m,), or (m, columns) for several; ``None`` for 25 between
            the 1 % and 99 % quantiles of a single column.
        random_state: seed of the draw of rows.
    """
    X = np.asarray(X, dtype=np.float64)
    columns = [column] if isinstance(column, int) else [*column]
    if values is None:
        if len(columns) > 1:
            raise ValueError(
                f"columns {columns} are set together: give values, shape (m, columns)."
            )
        low, high = np.quantile(X[:, columns[0]], [0.01, 0.99]).tolist()
        values = np.linspace(low, high, PLACES)
    values = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(random_state)
    rows = X[rng.permutation(len(X))[:BACKGROUND]]
    places = np.tile(rows, (len(values), 1))
    places[:, columns] = np.repeat(values.reshape(len(values), -1), len(rows), axis=0)
    weights = np.repeat(np.eye(len(values)), len(rows), axis=1) / len(rows)
    mean, std = model.predict_combination(places, weights)
    return Dependence(values, mean, std)
