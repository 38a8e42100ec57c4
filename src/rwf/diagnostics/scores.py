"""Scores of a model on held-out rows, weighted, next to a constant and a line by least squares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.diagnostics.metrics import LEVEL, least_squares
from rwf.uncertainty.student_t import StudentT
from rwf.uncertainty.transformed import Predictive


@dataclass(frozen=True)
class Score:
    """The scores of a predictor."""

    rmse: float  # root mean squared error, in the units of y
    nll: float  # mean negative log density, in nats; NaN if a scale is zero
    coverage: float  # share of rows in their central 95 % intervals

    @classmethod
    def of(cls, rows: Sequence[Block], predictions: Sequence[Predictive]) -> Score:
        """The score over several blocks of rows, of one output."""
        parts = [_by_row(r.y[:, 0], p) for r, p in zip(rows, predictions, strict=True)]
        squares, densities, inside = np.concatenate(parts, axis=1)
        weights = np.concatenate([r.weights for r in rows])
        return cls(
            float(np.sqrt(np.average(squares, weights=weights))),
            float(np.average(densities, weights=weights)),
            float(np.average(inside, weights=weights)),
        )


def _by_row(y: Array, p: Predictive) -> Array:
    """Squared error, negative log density and coverage of every row, shape (3, n)."""
    squares, densities, inside = (y - p.mean) ** 2, np.full_like(y, np.nan), y == p.mean
    if (p.std > 0).all():
        densities, inside = -p.logpdf(y), np.abs(p.cdf(y) - 0.5) <= LEVEL / 2
    return np.stack([squares, densities, inside])


@dataclass(frozen=True)
class Scores:
    """A model beside trivial predictors, on the same held-out rows."""

    method: str  # how rows were held out
    n_rows: int  # how many were scored
    model: Score
    constant: Score
    linear: Score | None  # None with too few rows for a line

    @property
    def lines(self) -> list[tuple[str, Score]]:
        """Names of predictors with their scores."""
        found = [("model", self.model), ("constant", self.constant)]
        return found if self.linear is None else [*found, ("linear", self.linear)]


@dataclass(frozen=True)
class Round:
    """One split: training rows, held-out rows, and the model's prediction of the latter."""

    known: Block
    held: Block
    prediction: Predictive


def compare(method: str, rounds: Iterable[Round]) -> Scores:
    """The scores over the rows of all rounds."""
    rounds = [*rounds]
    rows = [r.held for r in rounds]
    if not any(held.weights.any() for held in rows):
        raise ValueError("all held-out rows have weight zero: give some a positive weight.")

    lines = [linear_prediction(r.known, r.held.X) for r in rounds]
    constants = [linear_prediction(_no_inputs(r.known), r.held.X[:, :0]) for r in rounds]
    return Scores(
        method,
        sum(len(held) for held in rows),
        Score.of(rows, [r.prediction for r in rounds]),
        Score.of(rows, [constant for constant in constants if constant is not None]),
        Score.of(rows, [line for line in lines if line is not None]) if None not in lines else None,
    )


def _no_inputs(rows: Block) -> Block:
    return replace(rows, X=rows.X[:, :0])


def linear_prediction(known: Block, X: Array) -> StudentT | None:
    """Least squares on the rows of positive weight; ``None`` if they are too few."""
    used = known.weights > 0
    if used.sum() < 2:
        return None
    found = least_squares(known.X[used], known.y[used, 0], known.weights[used], X)
    return None if found is None else StudentT.normal(*found)
