r"""How a model does on rows that it has not seen, next to a constant and a straight line.

All scores are means over rows, with their weights. The line is ordinary least squares with an
intercept, :math:`N(\hat y(x),\; s^2(1 + h(x)))` with h the leverage, and the constant is the same
without inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from rwf._types import Array
from rwf.data.rows import Block, joined

LEVEL = 0.95
"""The nominal coverage of the intervals that are counted."""

MeanStd = tuple[Array, Array]
"""Means and standard deviations, both of shape (n,)."""


@dataclass(frozen=True)
class Score:
    """What a predictor scores.

    Args:
        rmse: root mean squared error, in the units of y.
        nll: mean negative log density, in nats; NaN if a standard deviation is zero.
        coverage: the share of rows in their central 95 % intervals.
    """

    rmse: float
    nll: float
    coverage: float

    @classmethod
    def of(cls, y: Array, prediction: MeanStd, weights: Array) -> Score:
        mean, std = prediction
        error = y - mean
        density = float("nan")
        if (std > 0).all():
            terms = 0.5 * (error / std) ** 2 + np.log(std) + 0.5 * np.log(2 * np.pi)
            density = float(np.average(terms, weights=weights))
        inside = np.abs(error) <= ndtri((1 + LEVEL) / 2) * std
        return cls(
            float(np.sqrt(np.average(error**2, weights=weights))),
            density,
            float(np.average(inside, weights=weights)),
        )


@dataclass(frozen=True)
class Scores:
    """A model beside trivial predictors, on the same rows.

    Args:
        method: how rows were kept back.
        n_rows: how many were scored.
        model: the score of the model.
        constant: that of a constant.
        linear: that of a straight line; ``None`` with too few rows for one.
    """

    method: str
    n_rows: int
    model: Score
    constant: Score
    linear: Score | None

    @property
    def lines(self) -> list[tuple[str, Score]]:
        """The scores with what they are of."""
        found = [("model", self.model), ("constant", self.constant)]
        return found if self.linear is None else [*found, ("linear", self.linear)]


@dataclass(frozen=True)
class Round:
    """Rows that were kept back once.

    Args:
        known: rows that the trivial predictors learn from.
        held: rows that were kept back.
        prediction: what the model says of them.
    """

    known: Block
    held: Block
    prediction: MeanStd


def compare(method: str, rounds: Iterable[Round]) -> Scores:
    """The scores over the rows of all rounds."""
    rounds = [*rounds]
    rows = joined([replace(r.held, X=r.held.X[:, :0]) for r in rounds])
    if not rows.weights.any():
        raise ValueError("all rows that were kept back have weight zero: give some a weight.")

    def score(predictions: Sequence[MeanStd]) -> Score:
        mean, std = (np.concatenate(parts) for parts in zip(*predictions, strict=True))
        return Score.of(rows.y[:, 0], (mean, std), rows.weights)

    lines = [least_squares(r.known, r.held.X) for r in rounds]
    constants = [
        least_squares(replace(r.known, X=r.known.X[:, :0]), r.held.X[:, :0]) for r in rounds
    ]
    return Scores(
        method,
        len(rows),
        score([r.prediction for r in rounds]),
        score([constant for constant in constants if constant is not None]),
        score([line for line in lines if line is not None]) if None not in lines else None,
    )


def least_squares(known: Block, X: Array) -> MeanStd | None:
    """What rows X, shape (n, d), get from a line through known rows; ``None`` if they are too few.

    Constant and repeated columns are harmless.
    """
    used = known.weights > 0
    A, y, w = known.X[used], known.y[used, 0], known.weights[used]
    if len(y) < 2:
        return None
    w = w / w.mean()
    center, middle = np.average(A, axis=0, weights=w), float(np.average(y, weights=w))
    scale = np.sqrt(np.average((A - center) ** 2, axis=0, weights=w))
    varies = scale > 1e-12 * np.maximum(np.abs(center), 1e-300)
    root = np.sqrt(w)[:, None]
    U, singular, Vt = np.linalg.svd(
        root * (A - center)[:, varies] / scale[varies], full_matrices=False
    )
    r = int(np.sum(singular > 1e-9 * singular.max(initial=0.0)))
    if len(y) <= r + 1:
        return None
    Q = ((X - center)[:, varies] / scale[varies]) @ (Vt[:r].T / singular[:r])
    target = root[:, 0] * (y - middle)
    b = U[:, :r].T @ target
    residual = target - U[:, :r] @ b
    variance = residual @ residual / (len(y) - r - 1)
    leverage = 1 / len(y) + np.einsum("nr,nr->n", Q, Q)
    return middle + Q @ b, np.sqrt(variance * (1 + leverage))
