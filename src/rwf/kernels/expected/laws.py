r"""The laws of scale and shift of a measure, in coordinates divided by ℓ.

Every law of t here is a mixture of *points* and of uniform laws on *boxes*. The convex hull of rows
on the line is a box without padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.kernels.expected.quadrature import gauss
from rwf.wavelets.measure import Box, Hull, Rows, ShiftSampler


@dataclass(frozen=True)
class ScaleLaw:
    r"""s ~ LogUniform(low, high), with the factor c(s)² = height · s^-power of the atoms."""

    low: float
    high: float
    height: float
    power: int

    @property
    def width(self) -> float:
        """ρ = log(high/low)."""
        return float(np.log(self.high) - np.log(self.low))

    def factor(self, s: Array) -> Array:
        """c(s)²."""
        return self.height * s ** (-float(self.power))

    def nodes(self, order: int) -> tuple[Array, Array]:
        """Scales, and weights of an average that include c(s)²."""
        if self.width == 0:
            s, weights = np.array([self.low]), np.ones(1)
        else:
            v, weights = gauss(order)
            s = self.low * np.exp(v * self.width)
        return s, weights * self.factor(s)

    def average(self, order: int, at: Callable[[float], Array]) -> Array:
        """E[c(s)² f(s)]."""
        s, weights = self.nodes(order)
        parts = (p * at(one) for one, p in zip(s.tolist(), weights, strict=True))
        total: Array = sum(parts, np.zeros(()))
        return total

    def above(self, least: Array) -> Array:
        """E[c(s)²; s > least], for ρ > 0."""
        start = np.clip(least, self.low, self.high)
        if self.power == 0:
            rest = np.log(self.high / start)
        else:
            powers = start ** (-float(self.power)) - self.high ** (-float(self.power))
            rest = powers / self.power
        return np.asarray(self.height * rest / self.width)


@dataclass(frozen=True)
class Points:
    """Places t, shape (r, d), with their probabilities, shape (r,)."""

    places: Array
    weights: Array


@dataclass(frozen=True)
class Boxes:
    """Uniform laws on boxes: corners, shape (b, d), and their probabilities, shape (b,)."""

    low: Array
    high: Array
    weights: Array

    def average(self, over: Callable[[Array, Array], Array]) -> Array:
        """The mean of averages over single boxes, given their corners."""
        boxes = zip(self.low, self.high, self.weights.tolist(), strict=True)
        total: Array = sum((p * over(low, high) for low, high, p in boxes), np.zeros(()))
        return total

    def points(self, order: int) -> Points:
        """A product rule of quadrature with ``order`` nodes along each side."""
        v, weights = gauss(order)
        d = self.low.shape[1]
        grid = np.stack(np.meshgrid(*[v] * d, indexing="ij"), axis=-1).reshape(-1, d)
        product = np.prod(np.meshgrid(*[weights] * d, indexing="ij"), axis=0).ravel()
        places = self.low[:, None] + (self.high - self.low)[:, None] * grid
        return Points(places.reshape(-1, d), np.outer(self.weights, product).ravel())


ShiftLaw = list[Points | Boxes]


def shift_law(shifts: ShiftSampler, rows: Array, lengths: Array, least: float) -> ShiftLaw:
    """The law of t/ℓ. Sides shorter than a millionth of the least scale are widened to it.

    This changes averages by about 1e-13, and avoids a special case for constant columns.
    """

    def boxes(low: Array, high: Array, weights: Array) -> Boxes:
        gap = np.maximum(1e-6 * least - (high - low), 0.0) / 2
        return Boxes(low - gap, high + gap, weights)

    n, d = rows.shape
    if type(shifts) is Rows:
        return [Points(rows / lengths, np.full(n, 1 / n))]
    if type(shifts) is Hull and d == 1:
        shifts = Box(pad=0.0)
    if type(shifts) is Box and d <= 3:
        low, high = shifts.corners(rows)
        return [boxes(low[None] / lengths, high[None] / lengths, np.ones(1))]
    raise ValueError(
        f"shifts={shifts!r} in {d} dimensions have no exact kernel: there is one for Rows() in any "
        "number of dimensions, for Box() in at most three and for Hull() in one. Draw many shifts, "
        "and give them as the rows of a measure with shifts=Rows()."
    )
