r"""Mixtures of normal distributions: what a deep process predicts, one normal for each draw.

.. math::
    p(y) = \frac1K \sum_k N(y; \mu_k, \sigma_k^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, ndtri

from rwf._types import Array

HALVINGS = 60
"""Of the interval that a quantile lies in: more than float64 has bits."""


@dataclass(frozen=True)
class NormalMixture:
    """Mixtures of equally likely normals, one for each row.

    Args:
        means: of the normals, shape (n, K).
        stds: of the same shape.
    """

    means: Array
    stds: Array

    def moved(self, offset: Array | float = 0.0, factor: float = 1.0) -> Self:
        """Of ``offset + factor * y``, with an offset for each row, or for all."""
        return type(self)(np.reshape(offset, (-1, 1)) + factor * self.means, factor * self.stds)

    def blurred(self, variance: Array | float) -> Self:
        """Of y and independent normal noise of a variance for each row, or for all."""
        return type(self)(self.means, np.sqrt(self.stds**2 + np.reshape(variance, (-1, 1))))

    @property
    def mean(self) -> Array:
        """The mean."""
        mean: Array = self.means.mean(axis=1)
        return mean

    @property
    def std(self) -> Array:
        """The standard deviation: the spread of the normals, and between them."""
        std: Array = np.sqrt((self.stds**2).mean(axis=1) + self.means.var(axis=1))
        return std

    def standardized(self, y: ArrayLike) -> Array:
        """(y - mean)/std."""
        z: Array = (np.asarray(y, dtype=np.float64) - self.mean) / self.std
        return z

    def logpdf(self, y: ArrayLike) -> Array:
        """The logarithm of the density at y."""
        logs = -0.5 * self._standardized_each(y) ** 2 - np.log(self.stds * np.sqrt(2 * np.pi))
        density: Array = logsumexp(logs, axis=1) - np.log(self.means.shape[1])
        return density

    def cdf(self, y: ArrayLike) -> Array:
        """The probability of values up to y."""
        probability: Array = ndtr(self._standardized_each(y)).mean(axis=1)
        return probability

    def ppf(self, probability: float) -> Array:
        """The quantile of a probability, by bisection between quantiles of the normals."""
        each = self.means + self.stds * ndtri(probability)
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2
            below = self.cdf(middle) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        quantile: Array = low + (high - low) / 2
        return quantile

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper end of the central interval of this probability."""
        return self.ppf(0.5 - coverage / 2), self.ppf(0.5 + coverage / 2)

    def crps(self, y: ArrayLike) -> Array:
        r"""The continuous ranked probability score, in closed form (Grimit et al. 2006):

        .. math::
            \frac1K \sum_k A(y - \mu_k, \sigma_k^2)
            - \frac1{2 K^2} \sum_{k, l} A(\mu_k - \mu_l, \sigma_k^2 + \sigma_l^2), \qquad
            A(m, s^2) = E |m + s z|, \quad z \sim N(0, 1).
        """
        n_parts = self.means.shape[1]
        near = _mean_distance(np.asarray(y, dtype=np.float64)[:, None] - self.means, self.stds)
        apart = _mean_distance(0.0, np.sqrt(2) * self.stds).sum(axis=1)
        for k in range(1, n_parts):  # each pair twice
            spread = np.hypot(self.stds[:, k:], self.stds[:, :-k])
            between = _mean_distance(self.means[:, k:] - self.means[:, :-k], spread)
            apart += 2 * between.sum(axis=1)
        score: Array = near.mean(axis=1) - 0.5 * apart / n_parts**2
        return score

    def _standardized_each(self, y: ArrayLike) -> Array:
        """Errors in units of each normal, shape (n, K)."""
        z: Array = (np.asarray(y, dtype=np.float64)[:, None] - self.means) / self.stds
        return z


def _mean_distance(m: Array | float, s: Array) -> Array:
    """E|m + sz| of a standard normal z."""
    z = m / s
    distance: Array = m * (2 * ndtr(z) - 1) + s * np.sqrt(2 / np.pi) * np.exp(-0.5 * z**2)
    return distance
