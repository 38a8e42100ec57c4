r"""Variance functions v(x), whose logarithm is linear in a few local features.

.. math:: e_i \sim N\!\left(0,\; s_i + v(x_i)\right), \qquad \log v(x) = \theta_0 + B(x)\,\theta

from leave-one-out errors e and their function variances s, by penalised maximum likelihood with a
unit Gaussian prior on θ. For heteroscedastic noise, rows are divided by √v(x); all else stays the
same, and moments add.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, block_rows
from rwf.features.base import LinearFeatures, Stack
from rwf.features.lattice import DENSITY, draw_lattice
from rwf.inference.optimize import maximize
from rwf.wavelets import CompactHat

COARSE = 8  # local features per input column: few, as squared errors are noisy data


@dataclass(frozen=True)
class VarianceFunction:
    """v(x), for inputs in standardised units."""

    features: Stack  # B
    weights: Annotated[Array, "q"]  # θ, shape (q,)
    level: float  # θ₀
    # smallest and largest log v at the training rows, at which v is clipped elsewhere
    bounds: tuple[float, float]

    def __call__(self, X: Array) -> Array:
        """v at rows, shape (n,)."""
        size = block_rows(self.features.n_features)
        parts = [
            np.asarray(self.features(X[i : i + size]), dtype=np.float64) @ self.weights
            for i in range(0, max(len(X), 1), size)
        ]
        log_v = self.level + np.concatenate(parts)
        v: Array = np.exp(np.clip(log_v, *self.bounds))
        return v

    @property
    def name(self) -> str:
        """A hash of all parameters: two functions have one name only if they are equal."""
        content = np.array([*self.weights, self.level, *self.bounds]).tobytes()
        return f"variance {hashlib.sha256(content).hexdigest()[:16]}"

    def on(self, rows: Block) -> Block:
        """The rows with their noise."""
        return replace(rows, noise=self(rows.X))

    def times(self, factor: float) -> VarianceFunction:
        """v multiplied by a factor."""
        step, (low, high) = float(np.log(factor)), self.bounds
        return replace(self, level=self.level + step, bounds=(low + step, high + step))

    def relative(self, rows: Block) -> VarianceFunction:
        """v scaled so that the mean of 1/v over rows is one: weighted moments stay means."""
        return self.times(float(np.average(1.0 / self(rows.X), weights=rows.weights)))


def learn_variance(
    rows: Block,
    errors: Array,
    variances: Array | float,
    rng: np.random.Generator,
    *,
    coarse: int = COARSE,
    least: float = 0.0,
) -> VarianceFunction:
    """Fit v ≥ ``least`` to leave-one-out errors, given their function variances, shape (n, k).

    Features are a linear trend and ``coarse`` local ones per input column.
    """
    X, weights, d = rows.X, rows.weights, rows.X.shape[1]
    local = draw_lattice(CompactHat(), X, coarse * d, rng) if d in DENSITY else ()
    features = Stack((LinearFeatures(d), *local))
    B = np.asarray(features(X), dtype=np.float64)
    unit = np.maximum(np.abs(B).max(axis=0), 1e-12)
    B /= unit
    squares = errors**2

    def objective(theta: Array) -> tuple[float, Array]:
        own = np.exp(np.clip(theta[0] + B @ theta[1:], -50.0, 50.0))[:, None]
        total = variances + own
        value = -0.5 * float(weights @ (np.log(total) + squares / total).sum(axis=1))
        slope = weights * (0.5 * own * (squares / total - 1.0) / total).sum(axis=1)
        gradient = np.append(slope.sum(), slope @ B - theta[1:])
        return value - 0.5 * float(theta[1:] @ theta[1:]), gradient

    start = np.zeros(1 + B.shape[1])
    bounds = np.tile([-20.0, 20.0], (len(start), 1))
    top = maximize(objective, start, bounds, max_iter=100, ftol=1e-9, gtol=1e-5, corrections=10)
    log_v = top.x[0] + B @ top.x[1:]
    if least > 0:
        log_v = np.maximum(log_v, np.log(least))
    span = (float(log_v.min()), float(log_v.max()))
    return VarianceFunction(features, top.x[1:] / unit, float(top.x[0]), span)
