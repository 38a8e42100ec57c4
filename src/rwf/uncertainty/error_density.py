r"""The density of prediction errors: a Student-t whose scale varies, learned from scores.

A model says y ~ N(m, v). Errors of rows that it had not seen, z = (y - m)/√v, have the density

.. math:: z \sim t_\nu\bigl(0,\, e^{h/2}\bigr), \qquad
    h = b + f_X(x) + f_m(m) + g \log v,

with a Gaussian process f_X in the metric of the model and f_m on the line of predicted means, both
smooth and of low rank. So the scale follows what the model's variance misses: rougher places, or
noise that grows with the signal. Fisher's information about h is the constant ν/(2(ν + 3)), and
Fisher scoring needs one Cholesky factor per candidate. The Laplace evidence selects the amplitudes,
the length of f_X and ν.

What the evidence does not see is corrected: leave-one-out errors are those of hyperparameters that
were learned with these rows, so variances grow by 1 + 3p/n for p parameters learned on n rows; h is
uncertain, so ν falls to where a t with that more variable log variance has it; h stays within what
it is at 98 % of the rows; and v counts as no less than at 99 % of them: no errors tell of smaller
ones, as at a row that repeats the inputs of a known one. Reference: Jylänki, Vanhatalo and Vehtari
(2011), Robust Gaussian process regression with a Student-t likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import digamma, polygamma

from rwf._types import Array, BoolArray, IntArray
from rwf.data.rows import block_rows

HEAVIEST, LIGHTEST = 3.0, 10.0  # ν is within: known errors seem lighter than new ones are
OF_VARIANCES, OF_MEANS, OF_INPUTS = 1, 2, 3  # numbers of parts of h
LEVEL = 4.0  # standard deviation a priori of b
CENTERS, MEAN_CENTERS = 200, 12  # of f_X and f_m
MEAN_LENGTH = 0.7  # of f_m, in standard deviations of the means
JITTER = 1e-6  # of the kernel at its centers
LEAST_SPREAD = 0.05  # standard deviation of log v below which v counts as equal everywhere
LEAST_SIGNAL = 0.5  # standard deviation of means, in that of errors, below which these count less
SMALLEST, TINY = 1e-6, 1e-300  # of squared scores: predictions without error have no logarithm

Amplitudes: TypeAlias = tuple[float, float, float, float]  # of b, g, f_m and f_X


@dataclass(frozen=True)
class SmoothFeatures:
    """z(u)ᵀz(u′) ≈ exp(-‖u - u′‖²/2), whitened at a few centers."""

    centers: Annotated[Array, "c q"]

    @cached_property
    def _root(self) -> Array:
        K = self._kernel(self.centers)
        K[np.diag_indices_from(K)] += JITTER
        return np.asarray(np.linalg.cholesky(K), dtype=np.float64)

    def _kernel(self, U: Array) -> Array:
        C = self.centers
        squares = (U**2).sum(axis=1)[:, None] + (C**2).sum(axis=1) - 2 * U @ C.T
        K: Array = np.exp(-0.5 * np.maximum(squares, 0.0))
        return K

    def __call__(self, U: Array) -> Array:
        Z: Array = solve_triangular(self._root, self._kernel(U).T, lower=True).T
        return Z


@dataclass(frozen=True)
class Scored:
    """Rows, and what a model that had not seen them predicts for one output."""

    X: Array  # inputs in the metric of the model, shape (n, q)
    y: Array  # shape (n,)
    mean: Array
    variance: Array
    function_variance: Array
    support: Array
    weights: Array

    @classmethod
    def of_scores(cls, z: Array) -> Scored:
        """Errors over their standard deviations, of rows wherever; no place is a gap."""
        zeros, ones = np.zeros(len(z)), np.ones(len(z))
        # Of a scale at which no variance is beyond those of the rows.
        y, v, f = np.sqrt(TINY) * z, TINY * ones, ones / TINY
        return cls(zeros[:, None], y, zeros, v, f, ones, ones)

    def part(self, which: BoolArray | IntArray) -> Scored:
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return Scored(*(value[which] for value in values))

    @property
    def squares(self) -> Array:
        """z²."""
        squares: Array = (self.y - self.mean) ** 2 / self.variance
        return np.maximum(squares, SMALLEST)


@dataclass(frozen=True)
class ScaleFeatures:
    """The columns of h, each part times its amplitude; parts of amplitude zero are left out."""

    amplitudes: Amplitudes  # of b, g, f_m and f_X
    mean_unit: tuple[float, float]  # center and scale of m
    variance_unit: tuple[float, float]  # of log v
    of_means: SmoothFeatures
    of_inputs: SmoothFeatures
    per_unit: float  # lengths of f_X per unit of the inputs

    def __call__(self, X: Array, mean: Array, variance: Array) -> Array:
        used = [(i, a) for i, a in enumerate(self.amplitudes) if a > 0]
        return np.hstack([a * self.part(i, X, mean, variance) for i, a in used])

    def part(self, index: int, X: Array, mean: Array, variance: Array) -> Array:
        """The columns of one part, of amplitude one."""
        m = ((mean - self.mean_unit[0]) / self.mean_unit[1])[:, None]
        if index == OF_INPUTS:
            return self.of_inputs(X * self.per_unit)
        if index == OF_MEANS:
            return np.hstack([0.5 * m, self.of_means(m / MEAN_LENGTH)])
        if index == OF_VARIANCES:
            return (np.log(variance)[:, None] - self.variance_unit[0]) / self.variance_unit[1]
        return np.ones((len(mean), 1))

    @classmethod
    def of(cls, rows: Scored, length: float, rng: np.random.Generator) -> Self:
        """With centers among the rows, and all amplitudes but that of b zero."""
        mean, log_v = rows.mean, np.log(rows.variance)
        # Each left-out mean leans away from its own target; means that hardly vary tell nothing.
        errors = float(np.sqrt(np.mean((rows.y - mean) ** 2)))
        unit = float(mean.mean()), max(float(mean.std()), LEAST_SIGNAL * errors) or 1.0
        steps = np.quantile((mean - unit[0]) / unit[1], np.linspace(0, 1, MEAN_CENTERS))
        spread = float(np.sqrt(2 * rows.X.var(axis=0).sum())) or 1.0
        per_unit = 1.0 / (length * spread)
        return cls(
            amplitudes=(LEVEL, 0.0, 0.0, 0.0),
            mean_unit=unit,
            variance_unit=(float(log_v.mean()), max(float(log_v.std()), LEAST_SPREAD)),
            of_means=SmoothFeatures(np.unique(steps)[:, None] / MEAN_LENGTH),
            of_inputs=SmoothFeatures(per_unit * _centers(rows.X, rng)),
            per_unit=per_unit,
        )

    @property
    def n_columns(self) -> int:
        counts = 1, 1, 1 + len(self.of_means.centers), len(self.of_inputs.centers)
        return sum(n for n, a in zip(counts, self.amplitudes, strict=True) if a > 0)

    @property
    def compact(self) -> Self:
        """The same without the centers of parts of amplitude zero."""
        none = slice(0, 0)
        means = self.of_means.centers[slice(None) if self.amplitudes[2] > 0 else none]
        inputs = self.of_inputs.centers[slice(None) if self.amplitudes[3] > 0 else none]
        return replace(self, of_means=SmoothFeatures(means), of_inputs=SmoothFeatures(inputs))


def _centers(X: Array, rng: np.random.Generator) -> Array:
    """Rows at which f_X has features: evenly many along one column, and random ones in several."""
    count = min(len(X), CENTERS)
    if X.shape[1] == 1:
        steps = np.quantile(X[:, 0], np.linspace(0, 1, count))
        return np.unique(steps)[:, None]
    return X[np.sort(rng.permutation(len(X))[:count])]


@dataclass(frozen=True)
class ErrorDensity:
    """The density of the errors of one output."""

    features: ScaleFeatures
    weights: Annotated[Array, "p"]  # β of highest posterior density, of independent N(0, 1)
    precision: Annotated[Array, "p p"]  # the Cholesky factor of that of β
    dof: float  # ν
    span: tuple[float, float]  # h is within, as it is at nearly all rows
    growth: float  # of all variances, for parameters that were learned with the same rows
    usual: tuple[float, float]  # a variance of f and a support that few rows are beyond
    least: float  # a variance of y that few rows are below, and which all others count as having
    evidence: float  # log p of the scores, by Laplace's method

    def __call__(
        self, X: Array, mean: Array, variance: Array, function_variance: Array, support: Array
    ) -> tuple[Array, Array]:
        """The factor of the variance that gives the squared scale of the t, and its ν, at rows.

        In gaps and beyond the data, where no errors support less, the factor is at least one.
        """
        h, unknown = np.empty((2, len(mean)))
        known = np.maximum(variance, self.least)
        size = block_rows(len(self.weights))
        for start in range(0, len(mean), size):
            its = slice(start, start + size)
            Z = self.features(X[its], mean[its], known[its])
            h[its] = np.clip(Z @ self.weights, *self.span)
            V = solve_triangular(self.precision, Z.T, lower=True)
            unknown[its] = np.einsum("pn,pn->n", V, V)
        nu = heavier(self.dof, unknown)
        factor = np.exp(h + _log_level(self.dof) - _log_level(nu))
        most, least = self.usual
        among = np.minimum(most / np.maximum(function_variance, most), support / least)
        among = np.minimum(among, 1.0)
        factor = among * factor + (1.0 - among) * np.maximum(factor, 1.0)
        return self.growth * factor * known / variance, nu


def _log_level(nu: Array | float) -> Array:
    """-E log(χ²/ν): how much larger than s² a squared error is in the geometric mean."""
    level: Array = np.log(np.asarray(nu) / 2) - digamma(np.asarray(nu) / 2)
    return level


_DOF_GRID = np.exp(np.linspace(np.log(HEAVIEST), np.log(2 * LIGHTEST), 200))
_LOG_VARIANCES = polygamma(1, _DOF_GRID / 2)


def heavier(dof: float, unknown: Array) -> Array:
    """ν of a t whose log variance varies more than that of ``dof``, by the variance of h.

    A t is a normal whose variance varies: its logarithm has the variance ψ′(ν/2).
    """
    total = polygamma(1, dof / 2) + unknown
    nu: Array = np.interp(-total, -_LOG_VARIANCES, _DOF_GRID)
    return nu
