r"""Student-t distributions, and the normal as the one of infinitely many degrees of freedom.

.. math:: y = m + s\,t, \qquad t \sim t_\nu, \qquad
    p(t) = \frac{\Gamma(\frac{\nu+1}2)}{\Gamma(\frac\nu2)\sqrt{\pi\nu}}
    \Bigl(1 + \frac{t^2}\nu\Bigr)^{-\frac{\nu+1}2}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, stdtr, stdtrit

from rwf._types import Array, BoolArray, IntArray

NORMAL = 1e8  # degrees of freedom from which on formulas of the normal are exact to rounding


def t_log_density(t: Array, dof: Array | float) -> Array:
    """log p of a t of unit scale, shaped as t."""
    nu = np.minimum(dof, NORMAL)
    # log B is that of gamma functions without cancellation for many degrees of freedom.
    normal = -0.5 * np.log(2 * np.pi) - 0.5 * t**2
    level = -betaln(0.5, 0.5 * nu) - 0.5 * np.log(nu)
    heavy = level - 0.5 * (nu + 1) * np.log1p(t**2 / nu)
    density: Array = np.where(np.asarray(dof) < NORMAL, heavy, normal)
    return density


def variance_ratio(dof: Array | float) -> Array:
    """The variance of a t of unit scale, ν/(ν - 2)."""
    ratio: Array = 1.0 / (1.0 - 2.0 / np.asarray(dof, dtype=np.float64))
    return ratio


def mean_root(dof: Array | float) -> Array:
    """E √(ν/χ²), the mean of what a normal is multiplied by to give a t."""
    nu = np.minimum(np.asarray(dof, dtype=np.float64), NORMAL)
    root: Array = np.exp(0.5 * np.log(nu / 2) + gammaln((nu - 1) / 2) - gammaln(nu / 2))
    return np.where(nu < NORMAL, root, 1.0)


def draw_roots(dof: Array, count: int, rng: np.random.Generator) -> Array:
    """Draws of √(ν/χ²), of each entry of ``dof`` so many, along a last axis."""
    nu = np.minimum(dof, NORMAL)[..., None]
    roots: Array = np.sqrt(nu / rng.chisquare(nu, size=(*np.shape(dof), count)))
    return roots


@dataclass(frozen=True)
class StudentT:
    """Predictive distributions of y, one for each row and output.

    Methods take numbers or arrays that broadcast with ``mean``.

    Args:
        mean: shape (n,), or (n, k) for several outputs.
        scale: s, of the same shape.
        dof: ν > 2, of the same shape; infinity is a normal.
    """

    mean: Array
    scale: Array
    dof: Array

    @classmethod
    def normal(cls, mean: Array, std: Array) -> Self:
        """Normal distributions."""
        return cls(mean, std, np.full_like(mean, np.inf))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The distributions of several blocks of rows."""
        columns = ([getattr(p, name) for p in parts] for name in ("mean", "scale", "dof"))
        return cls(*(np.concatenate(column) for column in columns))

    def part(self, which: BoolArray | IntArray | slice) -> Self:
        """The distributions of some rows."""
        return type(self)(self.mean[which], self.scale[which], self.dof[which])

    def output(self, number: int) -> Self:
        """The distributions of one of several outputs."""
        columns = (getattr(self, name)[..., number] for name in ("mean", "scale", "dof"))
        return type(self)(*columns)

    @property
    def std(self) -> Array:
        """The standard deviation, s √(ν/(ν - 2))."""
        std: Array = self.scale * np.sqrt(variance_ratio(self.dof))
        return std

    @property
    def median(self) -> Array:
        """The median, which is the mean."""
        return self.mean

    def standardized(self, y: ArrayLike) -> Array:
        """(y - m)/s."""
        t: Array = (np.asarray(y, dtype=np.float64) - self.mean) / self.scale
        return t

    def logpdf(self, y: ArrayLike) -> Array:
        """The logarithm of the density at y."""
        return t_log_density(self.standardized(y), self.dof) - np.log(self.scale)

    def pdf(self, y: ArrayLike) -> Array:
        """The density at y."""
        density: Array = np.exp(self.logpdf(y))
        return density

    def cdf(self, y: ArrayLike) -> Array:
        """The probability of values up to y."""
        probability: Array = stdtr(self.dof, self.standardized(y))
        return probability

    def ppf(self, probability: ArrayLike) -> Array:
        """The quantile of a probability, at which :meth:`cdf` has that value."""
        p = np.asarray(probability, dtype=np.float64)
        if not ((p > 0) & (p < 1)).all():
            raise ValueError(f"probability={probability!r} must lie between 0 and 1, e.g. 0.5.")
        quantile: Array = self.mean + self.scale * stdtrit(self.dof, p)
        return quantile

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper end of the central interval of this probability."""
        return self.ppf(0.5 - coverage / 2), self.ppf(0.5 + coverage / 2)

    def sample(self, size: int, rng: np.random.Generator) -> Array:
        """Independent draws, along a last axis of this size; ``sample_y`` draws jointly."""
        normal = rng.normal(size=(*self.mean.shape, size))
        spread = draw_roots(self.dof, size, rng) * normal
        return self.mean[..., None] + self.scale[..., None] * spread

    def crps(self, y: ArrayLike) -> Array:
        r"""The continuous ranked probability score :math:`\int (F(x) - 1\{y \le x\})^2 dx`.

        In closed form (Jordan, Krüger and Lerch 2019, appendix A):

        .. math:: s\Bigl[t\,(2F_\nu(t) - 1) + 2 f_\nu(t) \frac{\nu + t^2}{\nu - 1}
            - \frac{2\sqrt\nu\, B(\frac12, \nu - \frac12)}{(\nu - 1)\, B(\frac12, \frac\nu2)^2}
            \Bigr].
        """
        t, nu = self.standardized(y), np.minimum(self.dof, NORMAL)
        density = np.exp(t_log_density(t, self.dof))
        apart = 2 / (1 - 1 / nu) / np.sqrt(nu)
        apart = apart * np.exp(betaln(0.5, nu - 0.5) - 2 * betaln(0.5, nu / 2))
        apart = np.where(nu < NORMAL, apart, 1 / np.sqrt(np.pi))
        near = 2 * density * (1 + t**2 / self.dof) / (1 - 1 / self.dof)
        score: Array = self.scale * (t * (2 * stdtr(self.dof, t) - 1) + near - apart)
        return score
