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
were learned with these rows, so variances grow by 1 + 2p/n for p parameters learned on n rows; h is
uncertain, so ν falls to where a t with that more variable log variance has it; and h stays within
what it is at 98 % of the rows. Reference: Jylänki, Vanhatalo and Vehtari (2011), Robust Gaussian
process regression with a Student-t likelihood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import digamma, polygamma

from rwf._types import Array, BoolArray, IntArray
from rwf.uncertainty.student_t import t_log_density

DOFS = (4.0, 3.0, 6.0, 10.0)  # ν to choose from, the first one first
HEAVIEST, LIGHTEST = 3.0, 10.0  # ν is within: known errors seem lighter than new ones are
AMPLITUDES = (0.3, 0.7, 1.4)  # standard deviations a priori of each part of h, if it is there
OF_VARIANCES, OF_MEANS, OF_INPUTS = 1, 2, 3  # numbers of parts
LENGTHS = (0.4, 0.2, 0.8)  # of f_X, in root-mean-square distances of two rows, the usual one first
FINE_LENGTHS = (0.1, 0.03)  # too, in up to three input columns
LEVEL = 4.0  # standard deviation a priori of b
CENTERS, MEAN_CENTERS = 200, 12  # of f_X and f_m
MEAN_LENGTH = 0.7  # of f_m, in standard deviations of the means
JITTER = 1e-6  # of the kernel at its centers
LEAST_SPREAD = 0.05  # standard deviation of log v below which v counts as equal everywhere
LEAST_SIGNAL = 0.5  # standard deviation of means, in that of errors, below which these count less
SMALLEST, TINY = 1e-6, 1e-300  # of squared scores: predictions without error have no logarithm
MOST_STEPS, TOLERANCE = 30, 1e-2  # of Fisher scoring; a hundredth of a nat does not select
MOST_ROWS = 3000  # from which a density is learned
FEW_INPUTS = 3  # up to which f_X may be fine: more inputs cannot be filled by its centers
USUAL = 0.99  # share of the rows whose variance of f and scale count as usual


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
        return cls(zeros[:, None], z, zeros, ones, np.full(len(z), 1.0 / TINY), ones, ones)

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
    evidence: float  # log p of the scores, by Laplace's method

    def __call__(
        self, X: Array, mean: Array, variance: Array, function_variance: Array, support: Array
    ) -> tuple[Array, Array]:
        """The factor of the variance that gives the squared scale of the t, and its ν, at rows.

        In gaps and beyond the data, where no errors support less, the factor is at least one.
        """
        Z = self.features(X, mean, variance)
        h = np.clip(Z @ self.weights, *self.span)
        V = solve_triangular(self.precision, Z.T, lower=True)
        unknown = np.einsum("pn,pn->n", V, V)
        nu = heavier(self.dof, unknown)
        factor = np.exp(h + _log_level(self.dof) - _log_level(nu))
        most, least = self.usual
        among = np.minimum(most / np.maximum(function_variance, most), support / least)
        among = np.minimum(among, 1.0)
        factor = among * factor + (1.0 - among) * np.maximum(factor, 1.0)
        return self.growth * factor, nu


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


@dataclass(frozen=True)
class _Candidate:
    """h of highest posterior density for some amplitudes and ν."""

    features: ScaleFeatures
    dof: float
    weights: Array
    precision: Array
    h: Array
    evidence: float


class _Search:
    """Coordinate ascent of the Laplace evidence over amplitudes, the length of f_X and ν."""

    def __init__(self, rows: Scored, rng: np.random.Generator, *, local: bool) -> None:
        self.rows, self.squares = rows, rows.squares
        fine = FINE_LENGTHS if rows.X.shape[1] <= FEW_INPUTS else ()
        self.lengths = (*LENGTHS, *fine) if local else LENGTHS[:1]
        self.first = {length: ScaleFeatures.of(rows, length, rng) for length in self.lengths}
        self.columns: dict[tuple[int, float], Array] = {}
        self.length = self.lengths[0]
        self.best = self._fit(self.length, (LEVEL, 0.0, 0.0, 0.0), DOFS[0])
        for part in (OF_INPUTS, OF_MEANS, OF_VARIANCES) if local else ():
            lengths = self.lengths if part == OF_INPUTS else (self.length,)
            self._try(
                (length, self._with(part, a), self.best.dof)
                for a in AMPLITUDES
                for length in lengths
            )
        self._try((self.length, self.best.features.amplitudes, dof) for dof in DOFS[1:])

    def _with(self, part: int, amplitude: float) -> Amplitudes:
        b, g, m, x = (
            amplitude if i == part else a for i, a in enumerate(self.best.features.amplitudes)
        )
        return b, g, m, x

    def _try(self, choices: Iterable[tuple[float, Amplitudes, float]]) -> None:
        for length, amplitudes, dof in choices:
            found = self._fit(length, amplitudes, dof)
            if found.evidence > self.best.evidence + TOLERANCE:
                self.best, self.length = found, length

    def _fit(self, length: float, amplitudes: Amplitudes, dof: float) -> _Candidate:
        features, rows, parts = self.first[length], self.rows, []
        for part, a in enumerate(amplitudes):
            key = part, length if part == OF_INPUTS else 0.0
            if a > 0 and key not in self.columns:
                self.columns[key] = features.part(part, rows.X, rows.mean, rows.variance)
            if a > 0:
                parts.append(a * self.columns[key])
        features = replace(features, amplitudes=amplitudes)
        return _mode(features, np.hstack(parts), self.squares, rows.weights, dof)


def _mode(
    features: ScaleFeatures, Z: Array, squares: Array, counts: Array, dof: float
) -> _Candidate:
    """β of highest posterior density by Fisher scoring, and its evidence.

    log p = Σ c_i (log t_ν(z_i e^{-h_i/2}) - h_i/2) - β²/2, of constant information ν/(2ν + 6).
    """
    information = dof / (2 * (dof + 3))
    P = information * (Z * counts[:, None]).T @ Z
    P[np.diag_indices_from(P)] += 1.0
    L = np.asarray(np.linalg.cholesky(P), dtype=np.float64)

    def density(h: Array, w: Array) -> float:
        terms = t_log_density(np.sqrt(squares * np.exp(-h)), dof) - 0.5 * h
        return float(counts @ terms) - 0.5 * float(w @ w)

    w, h = np.zeros(Z.shape[1]), np.zeros(len(Z))
    value = density(h, w)
    for _ in range(MOST_STEPS):
        ratio = squares * np.exp(-h)
        slope = 0.5 * counts * ((dof + 1) * ratio / (dof + ratio) - 1.0)
        gradient = slope @ Z - w
        step = solve_triangular(L, gradient, lower=True)
        step = solve_triangular(L, step, lower=True, trans="T")
        along, size = Z @ step, 1.0
        after = density(h + along, w + step)
        while after < value and size > 1e-3:
            size *= 0.5
            after = density(h + size * along, w + size * step)
        if after <= value:
            break
        w, h, gain, value = w + size * step, h + size * along, after - value, after
        if gain < TOLERANCE:
            break
    evidence = value - float(np.log(np.diag(L)).sum())
    return _Candidate(features, dof, w, L, h, evidence)


def learn_error_density(
    rows: Scored, rng: np.random.Generator, *, local: bool, growth: float = 1.0
) -> ErrorDensity:
    """The density of errors that suits scored rows; without ``local``, the same for all rows."""
    rows = rows.part(rows.weights > 0)
    if len(rows.y) > MOST_ROWS:
        rows = rows.part(np.sort(rng.permutation(len(rows.y))[:MOST_ROWS]))
    best = _Search(rows, rng, local=local).best
    most = float(np.quantile(rows.function_variance, USUAL))
    least = float(np.quantile(rows.support, 1.0 - USUAL))
    low, high = np.quantile(best.h, [1.0 - USUAL, USUAL])
    return ErrorDensity(
        features=best.features.compact,
        weights=best.weights,
        precision=best.precision,
        dof=best.dof,
        span=(float(low), float(high)),
        growth=growth,
        usual=(max(most, TINY), max(least, TINY)),
        evidence=best.evidence,
    )
