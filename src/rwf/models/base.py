"""What every fitted model can do, and what those have in common whose variances are tuned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.features.base import FeatureMap
from rwf.inference.empirical_bayes import EmpiricalBayes
from rwf.inference.moments import Moments, RootMoments
from rwf.inference.multifrontal import TreeEmpiricalBayes, TreeMoments
from rwf.inference.posterior import Marginals, normal_log_density
from rwf.uncertainty.calibration import Calibration
from rwf.uncertainty.variance_function import VarianceFunction

LOW_DIMENSION = 3
"""Input columns up to which atoms can fill the space: there, models are local."""

HARDLY = 0.1
"""Rounding over noise beyond which there is hardly any noise."""

Tuning = TypeVar("Tuning", bound="EmpiricalBayesModel")


class Model(Protocol):
    """What every fitted model can do. All inputs and results are in the units of the data."""

    @property
    def scaler(self) -> Standardizer: ...

    @property
    def calibration(self) -> Calibration | None: ...

    @property
    def n_rows(self) -> float:
        """Rows seen, by their weights."""
        ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def n_features(self) -> int:
        """Feature columns."""
        ...

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        """The blocks of columns."""
        ...

    @property
    def form(self) -> str:
        """How the statistics of the rows are kept."""
        ...

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Variances that ended on their bounds."""
        ...

    @property
    def jitter(self) -> float:
        """The largest jitter that a factorization needed."""
        ...

    @property
    def filled(self) -> bool:
        """Whether variance is filled up where there are no rows."""
        ...

    @property
    def noise_variances(self) -> Array:
        """σ² of every output, shape (k,)."""
        ...

    @property
    def prior_variances(self) -> Array:
        """Of every column and output, shape (p, k)."""
        ...

    @property
    def log_evidence(self) -> float: ...

    def with_rows(self, rows: Rows) -> Self: ...

    def without_rows(self) -> Self: ...

    def merged(self, other: Self) -> Self: ...

    def mean(self, X: Array) -> Array: ...

    def predict(self, X: Array, *, noise: bool = True) -> tuple[Array, Array]: ...

    def covariance(self, X: Array, *, noise: bool = True) -> Array: ...

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array: ...

    def coverage(self, X: Array) -> Array: ...

    def calibration_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are honest."""
        ...

    def standardized(self, X: Array, output: int) -> Marginals:
        """Prediction of one output of y, inputs and results in standardised units."""
        ...

    def leave_one_out(self, rows: Block, output: int) -> Marginals:
        """Predictions of training rows, in standardised units, as if each had not been seen."""
        ...


def in_units(
    parts: Iterable[Block], scaler: Standardizer | None, noise: VarianceFunction | None
) -> Iterable[Block]:
    """Blocks in standardised units, where they are not so yet, and with their noise, if it varies.

    They are changed one at a time, when they are asked for.
    """
    if scaler is not None:
        parts = map(scaler.rows, parts)
    return parts if noise is None else map(noise.on, parts)


def scores(model: Model, known: Block) -> Array:
    """Leave-one-out errors of rows, in standardised units, over their deviations, shape (n, k)."""
    found = np.empty_like(known.y)
    for output in range(model.n_outputs):
        p = model.leave_one_out(known, output)
        found[:, output] = (known.y[:, output] - p.mean) / np.sqrt(p.variance)
    return found


def log_density(model: Model, rows: Block, factors: Array | None = None) -> Array:
    """log p(y) of new rows in standardised units, all outputs together, shape (n,).

    Variances are multiplied by factors, shape (n, k), if there are any.
    """
    total = np.zeros(len(rows))
    for output in range(model.n_outputs):
        p = model.standardized(rows.X, output)
        variance = p.variance if factors is None else factors[:, output] * p.variance
        total += normal_log_density(rows.y[:, output] - p.mean, variance)
    return total


def leave_one_out_scores(model: Model, rows: Block, factors: Array | None = None) -> Array:
    """Leave-one-out negative log densities of rows in standardised units, summed over outputs.

    Variances are multiplied by factors, shape (n, k), if there are any.
    """
    total = np.zeros(len(rows))
    for k in range(model.n_outputs):
        p = model.leave_one_out(rows, k)
        variance = p.variance if factors is None else factors[:, k] * p.variance
        total -= normal_log_density(rows.y[:, k] - p.mean, variance)
    return total


class EmpiricalBayesModel:
    """Models whose variances are tuned from moments, each output by itself."""

    scaler: Standardizer
    statistics: Moments | RootMoments | TreeMoments
    calibration: Calibration | None

    @property
    def n_rows(self) -> float:
        return self.statistics.n

    @property
    def n_outputs(self) -> int:
        return self.statistics.n_outputs

    @property
    def log_evidence(self) -> float:
        """log p(y) of all outputs, in the units of y."""
        jacobian = self.statistics.n * float(np.log(self.scaler.y.scale).sum())
        return sum(t.posterior.log_evidence for t in self.fits) - jacobian

    @property
    @abstractmethod
    def fits(self) -> Sequence[EmpiricalBayes | TreeEmpiricalBayes]:
        """Variances and posterior of each output."""

    @property
    def at_bounds(self) -> tuple[str, ...]:
        return tuple(name for t in self.fits for name in t.at_bounds)

    @property
    def jitter(self) -> float:
        return max(t.posterior.factor.jitter for t in self.fits)

    @property
    def noise_variances(self) -> Array:
        noise = np.array([t.posterior.noise_variance for t in self.fits])
        return noise * self.scaler.y.scale**2

    @property
    def prior_variances(self) -> Array:
        priors = np.column_stack([t.posterior.prior_variances for t in self.fits])
        return priors * self.scaler.y.scale**2

    @property
    def least_noise(self) -> float:
        """The smallest noise that the statistics resolve, relative to the one that was found."""
        posteriors = [t.posterior for t in self.fits]
        return max(
            self.statistics.resolvable_noise(p.prior_variances) / p.noise_variance
            for p in posteriors
        )

    @property
    def noise_free(self) -> bool:
        """Whether the noise is hardly more than rounding leaves of a Gram matrix, or less."""
        return isinstance(self.statistics, RootMoments) or self.least_noise > HARDLY

    @property
    def inflation(self) -> Array:
        """The factor of all variances that honest errors ask for, shape (k,), at least one."""
        return np.ones(self.n_outputs) if self.calibration is None else self.calibration.inflation

    def keep_fits(self, model: Tuning) -> Tuning:
        """Another model of the same statistics with what was tuned here: only its scale changes."""
        factors = model.inflation / self.inflation
        fits = tuple(t.rescaled(f) for t, f in zip(self.fits, factors, strict=True))
        model.__dict__["tuned"] = fits
        return model
