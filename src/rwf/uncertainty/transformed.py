r"""Predictive distributions of y where a transform u = g(y) has a Student-t.

.. math:: P(y \le q) = F_t(g(q)), \qquad p(y) = p_t(g(y))\, g'(y), \qquad q_p = g^{-1}(t_p).

Quantiles, probabilities and densities are exact. The exponential of a t has neither mean nor
variance: those given here are of the normal u with the same median and the same 95 % interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtrit

from rwf._types import Array, BoolArray, IntArray
from rwf.data.target_transform import LARGEST_LOG, TargetTransform
from rwf.uncertainty.student_t import StudentT

TAIL = 0.975  # probability at which the normal and the t agree
UNCLIPPED = -8.0  # deviations of the lower end from the mean below which it does not matter
LEVELS = 200  # equally likely values that stand for a distribution in its CRPS


@dataclass(frozen=True)
class TransformedT:
    """Distributions of y, with the methods of :class:`~rwf.uncertainty.student_t.StudentT`.

    Args:
        base: of u, with arrays of shape (n,), or (n, k) for several outputs.
        transform: g, of each output.
    """

    base: StudentT
    transform: TargetTransform

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The distributions of several blocks of rows under one transform."""
        return cls(StudentT.joined([p.base for p in parts]), parts[0].transform)

    def part(self, which: BoolArray | IntArray | slice) -> Self:
        """The distributions of some rows."""
        return type(self)(self.base.part(which), self.transform)

    def output(self, number: int) -> Self:
        """The distributions of one of several outputs."""
        return type(self)(self.base.output(number), self.transform.output(number))

    @property
    def mean(self) -> Array:
        """The mean, of a normal u with the same median and 95 % interval."""
        return self._moments[0]

    @property
    def std(self) -> Array:
        """The standard deviation of the same; that of the t where y stays as it is."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation."""
        m, powers, c = self.base.mean, self.transform.powers, self.transform.offsets
        s = self.base.scale * stdtrit(self.base.dof, TAIL) / ndtri(TAIL)
        log = np.exp(np.clip(m + s**2 / 2, -LARGEST_LOG, LARGEST_LOG))
        spread = np.sqrt(np.expm1(np.minimum(s**2, LARGEST_LOG)))
        square, deviation = _clipped_square(m, s, c)
        return (
            np.where(powers == 0, log, np.where(powers < 1, square, m)),
            np.where(powers == 0, log * spread, np.where(powers < 1, deviation, self.base.std)),
        )

    @property
    def median(self) -> Array:
        """The median, exactly."""
        return self.transform.inverse(self.base.median)

    def standardized(self, y: ArrayLike) -> Array:
        """Errors of u in units of its scale."""
        return self.base.standardized(self.transform(np.asarray(y, dtype=np.float64)))

    def logpdf(self, y: ArrayLike) -> Array:
        """The logarithm of the density at y."""
        targets = np.asarray(y, dtype=np.float64)
        slope = self.transform.log_slope(targets)
        with np.errstate(invalid="ignore"):  # outside, the density is zero
            found = self.base.logpdf(self.transform(targets)) + slope
        return np.where(np.isfinite(slope), found, -np.inf)

    def pdf(self, y: ArrayLike) -> Array:
        """The density at y."""
        density: Array = np.exp(self.logpdf(y))
        return density

    def cdf(self, y: ArrayLike) -> Array:
        """The probability of values up to y."""
        targets = np.asarray(y, dtype=np.float64)
        below = (self.transform.powers < 1) & (targets < 0)
        return np.where(below, 0.0, self.base.cdf(self.transform(targets)))

    def ppf(self, probability: ArrayLike) -> Array:
        """The quantile of a probability, at which :meth:`cdf` has that value."""
        return self.transform.inverse(self.base.ppf(probability))

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper end of the central interval of this probability."""
        low, high = self.base.interval(coverage)
        return self.transform.inverse(low), self.transform.inverse(high)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent draws, along a last axis of this size."""
        drawn = np.moveaxis(self.base.sample(size, rng), -1, 0)
        return np.moveaxis(self.transform.inverse(drawn), 0, -1)

    def crps(self, y: ArrayLike) -> Array:
        r"""The continuous ranked probability score of 200 equally likely quantiles.

        .. math:: \frac 2K \sum_k (1\{y \le q_k\} - p_k)(q_k - y), \qquad p_k = (k - 1/2)/K.

        That of the exponential of a t itself is infinite.
        """
        targets = np.asarray(y, dtype=np.float64)
        total = np.zeros(np.broadcast_shapes(targets.shape, self.base.mean.shape))
        for p in (np.arange(LEVELS) + 0.5) / LEVELS:
            q = self.ppf(p)
            total += 2.0 * ((targets <= q) - p) * (q - targets)
        return total / LEVELS


def _clipped_square(m: Array, s: Array, c: Array) -> tuple[Array, Array]:
    """Mean and deviation of max(u, √c)² - c for a normal u of mean m and deviation s."""
    unit = np.maximum(np.maximum(np.abs(m), s), np.sqrt(c))  # whose fourth power may overflow
    m, s, c = m / unit, s / unit, c / unit**2
    low = np.sqrt(c)
    a = (low - m) / s
    bell = s * np.exp(-0.5 * np.minimum(a**2, 2 * LARGEST_LOG)) / np.sqrt(2 * np.pi)
    moments = [ndtr(-a), m * ndtr(-a) + bell]  # E[uᵏ; u > √c]
    for k in (2, 3, 4):
        moments.append(m * moments[-1] + (k - 1) * s**2 * moments[-2] + low ** (k - 1) * bell)
    mean = np.maximum(moments[2] - c * moments[0], 0.0)
    second = moments[4] - 2 * c * moments[2] + c**2 * moments[0]
    free = 2.0 * s**4 + 4.0 * m**2 * s**2  # the variance of u², without cancellation
    variance = np.where(a < UNCLIPPED, free, np.maximum(second - mean**2, 0.0))
    return mean * unit**2, np.sqrt(variance) * unit**2


Predictive: TypeAlias = StudentT | TransformedT  # of a target, in its units
