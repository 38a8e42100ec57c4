r"""Noise of single rows: Student-t errors down-weight the rows that lie far off.

.. math:: \varepsilon \sim t_\nu(0, \sigma^2): \qquad
    \varepsilon_i \mid u_i \sim N(0, \sigma^2 u_i), \qquad
    \frac1{u_i} = \operatorname{E}\Bigl[\frac1{u_i} \Bigm| z_i\Bigr]
    = \frac{\nu + k}{\nu + \sum_j z_{ij}^2}

for the leave-one-out scores z of k outputs: iteratively reweighted least squares (Lange, Little and
Taylor 1989, Robust statistical modeling using the t distribution). Rows count 1/u each, and a new
row has the noise σ² without a factor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from rwf._types import Array
from rwf.data.rows import Block

DOFS = (2.5, 30.0)  # bounds of ν: the variance is finite, and beyond no row counts much less
STEPS, TOLERANCE = 200, 1e-8  # of the fixed point for scales, and its relative change at the end
SMALLEST = 1e-150  # of scales, of which squares do not underflow

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Tails:
    """The t of the scores of rows."""

    dof: float  # ν
    scales: Array  # of each output, shape (k,)

    @classmethod
    def learn(cls, scores: Array, weights: Array) -> Self:
        """ν and scales of highest likelihood for scores of shape (n, k)."""

        def loss(log_dof: float) -> float:
            scales = _scales(scores, weights, np.exp(log_dof))
            return -_log_likelihood(scores / scales, scales, weights, np.exp(log_dof))

        low, high = np.log(DOFS).tolist()
        found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 0.01})
        dof = float(np.exp(found.x))
        return cls(dof, _scales(scores, weights, dof))

    def factors(self, scores: Array) -> Array:
        """u of rows with these scores, shape (n,)."""
        squares = np.square(scores / self.scales).sum(axis=1)
        u: Array = (self.dof + squares) / (self.dof + scores.shape[1])
        return u


def _scales(scores: Array, weights: Array, dof: float) -> Array:
    """Scales of highest likelihood given ν: s² = mean z²/u."""
    squares = np.square(scores)
    scale2 = np.maximum(np.average(squares, axis=0, weights=weights), SMALLEST)
    for _ in range(STEPS):
        u = (dof + (squares / scale2).sum(axis=1)) / (dof + scores.shape[1])
        after = np.maximum(np.average(squares / u[:, None], axis=0, weights=weights), SMALLEST)
        done = (np.abs(after - scale2) <= TOLERANCE * scale2).all()
        scale2 = after
        if done:
            break
    scales: Array = np.sqrt(scale2)
    return scales


def _log_likelihood(t: Array, scales: Array, weights: Array, dof: float) -> float:
    """Σ log p of scores over their scales, under a t of k outputs."""
    k = t.shape[1]
    level = gammaln((dof + k) / 2) - gammaln(dof / 2) - k / 2 * np.log(dof * np.pi)
    heavy = -(dof + k) / 2 * np.log1p(np.square(t).sum(axis=1) / dof)
    return float(weights @ (level - np.log(scales).sum() + heavy))


@dataclass(frozen=True)
class ScoredRows:
    """Rows by their hashes, and their leave-one-out scores."""

    keys: Array  # shape (n,)
    weights: Array  # shape (n,)
    scores: Array  # z, shape (n, k)

    @classmethod
    def of(cls, rows: Block, scores: Array) -> Self:
        return cls(row_keys(rows), rows.weights, scores)

    def __add__(self, other: ScoredRows) -> ScoredRows:
        pairs = ((getattr(self, name), getattr(other, name)) for name in _COLUMNS)
        return ScoredRows(*(np.concatenate(pair) for pair in pairs))

    def to_arrays(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        return cls(*(arrays[name] for name in _COLUMNS))


_COLUMNS = ("keys", "weights", "scores")


@dataclass(frozen=True)
class RowNoise:
    """u by row. Rows are known by a hash of their inputs and targets; u of all others is one."""

    keys: Annotated[Array, "n"]  # hashes, ascending
    factors: Annotated[Array, "n"]  # u

    @classmethod
    def of(cls, rows: ScoredRows, tails: Tails) -> Self:
        """Of rows with their scores; u is scaled so that the mean of 1/u is one."""
        u = tails.factors(rows.scores)
        keys, first = np.unique(rows.keys, return_index=True)
        return cls(keys, u[first] * float(np.average(1.0 / u, weights=rows.weights)))

    def __call__(self, X: Array) -> Array:
        """v of new rows at inputs: one."""
        return np.ones(len(X))

    def on(self, rows: Block) -> Block:
        """The rows with their noise."""
        if not len(self.keys):
            return replace(rows, noise=np.ones(len(rows)))
        keys = row_keys(rows)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        noise = np.where(self.keys[places] == keys, self.factors[places], 1.0)
        return replace(rows, noise=noise)

    @property
    def name(self) -> str:
        """A hash of all of it."""
        content = self.keys.tobytes() + self.factors.tobytes()
        return f"rows {hashlib.sha256(content).hexdigest()[:16]}"


def row_keys(rows: Block) -> Array:
    """A hash of 53 bits of every row, as whole numbers, shape (n,)."""
    table = np.hstack([rows.X, rows.y]) + 0.0  # -0 becomes 0
    words = np.ascontiguousarray(table, dtype=np.float64).view(np.uint64)
    keys = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        keys = _mixed(keys ^ column)
    return (keys >> np.uint64(11)).astype(np.float64)


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
