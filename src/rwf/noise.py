r"""Noise that varies with x: σ² v(x), with log v on a few coarse features.

.. math:: e_i \sim N\!\left(0,\; s_i + \sigma^2 v(x_i)\right), \qquad \log v(x) = B(x)\,\theta

from leave-one-out errors e and their function variances s, by maximal likelihood with a unit
Gaussian prior on θ. Rows are then divided by √v(x), and everything else stays as it is: moments
add.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rwf.ascent import maximize
from rwf.features.frame import DENSITY, draw_frame
from rwf.features.linear import LinearFeatures
from rwf.features.stack import Stack
from rwf.rows import Block
from rwf.types import Array
from rwf.wavelets import CompactHat

COARSE = 8
"""Coarse atoms per input column that carry log v, beside its linear trend."""


@dataclass(frozen=True)
class NoiseShape:
    """v(x), for inputs in standardised units.

    Args:
        features: B.
        weights: θ, shape (q,).
        level: what makes the mean of 1/v over the rows one, so that weighted moments stay means.
        bounds: smallest and largest log v that rows have shown; beyond the data it stays there.
    """

    features: Stack
    weights: Array
    level: float
    bounds: tuple[float, float]

    def __call__(self, X: Array) -> Array:
        """v at rows, shape (n,)."""
        log_v = np.asarray(self.features(X), dtype=np.float64) @ self.weights - self.level
        v: Array = np.exp(np.clip(log_v, *self.bounds))
        return v

    def on(self, rows: Block) -> Block:
        """The rows with their noise."""
        return replace(rows, noise=self(rows.X))


def learn_noise(
    X: Array, errors: Array, variances: Array, weights: Array, rng: np.random.Generator
) -> NoiseShape:
    """v from leave-one-out errors and function variances, both in units of σ, shape (n, k)."""
    d = X.shape[1]
    local = draw_frame(CompactHat(), X, COARSE * d, rng) if d in DENSITY else ()
    features = Stack((LinearFeatures(d), *local))
    B = np.asarray(features(X), dtype=np.float64)
    unit = np.maximum(np.abs(B).max(axis=0), 1e-12)
    B /= unit
    squares = errors**2

    def objective(v: Array) -> tuple[float, Array]:
        own = np.exp(np.clip(v[0] + B @ v[1:], -50.0, 50.0))[:, None]
        total = variances + own
        value = -0.5 * float(weights @ (np.log(total) + squares / total).sum(axis=1))
        slope = weights * (0.5 * own * (squares / total - 1.0) / total).sum(axis=1)
        gradient = np.append(slope.sum(), slope @ B - v[1:])
        return value - 0.5 * float(v[1:] @ v[1:]), gradient

    start = np.zeros(1 + B.shape[1])
    bounds = np.tile([-20.0, 20.0], (len(start), 1))
    top = maximize(objective, start, bounds, max_iter=100, ftol=1e-9, gtol=1e-5, corrections=10)
    log_v = B @ top.x[1:]
    level = -float(np.log(np.average(np.exp(-log_v), weights=weights)))
    span = (float(log_v.min()) - level, float(log_v.max()) - level)
    return NoiseShape(features, top.x[1:] / unit, level, span)
