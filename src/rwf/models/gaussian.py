"""What dense and multifrontal models share: a Gaussian over weights, from statistics that add.

Adding rows, or another model's rows, is a sum of statistics. The variances of highest evidence are
found again from the new total, when they are first needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Mapped, Rows, slices
from rwf.data.scaling import Standardizer
from rwf.errors import NotPositiveDefiniteError
from rwf.features.base import FeatureMap, Stack
from rwf.inference.empirical_bayes import EmpiricalBayes
from rwf.inference.moments import Moments, RootMoments
from rwf.inference.multifrontal import TreeEmpiricalBayes, TreeMoments
from rwf.models.base import Model, ModelSummary, incompatible, require_seen
from rwf.uncertainty.extrapolation import PriorReversion
from rwf.uncertainty.row_noise import RowNoise
from rwf.uncertainty.variance_function import VarianceFunction

UNSEEN = 1e-9  # of the squares of a feature, how much below zero is more than rounding
HARDLY = 0.1  # rounding error over noise beyond which a model counts as free of noise


Statistics: TypeAlias = Moments | RootMoments | TreeMoments  # sums over rows, by solver
NoiseFunction: TypeAlias = VarianceFunction | RowNoise


@dataclass(frozen=True, kw_only=True)
class GaussianModel(Model):
    """A Gaussian over the weights of a stack of features."""

    units: Standardizer  # of inputs and targets
    statistics: Any  # sums over all rows seen, in standardised units
    # v, the noise variance relative to σ², by place or by training row; ``None`` if constant
    noise: NoiseFunction | None = None
    # Σz² of every block of columns among the data, shape (B,); where there is less, the variance of
    # f returns to that of the prior. ``None`` leaves the posterior as it is
    levels: Annotated[Array, "b"] | None = None
    solver: ClassVar[str]

    @property
    @abstractmethod
    def features(self) -> Stack:
        """The blocks of feature columns."""

    @property
    @abstractmethod
    def fits(self) -> Sequence[EmpiricalBayes | TreeEmpiricalBayes]:
        """Variances and posterior of each output."""

    @abstractmethod
    def collect(self, rows: Rows, noise: NoiseFunction | None) -> Statistics:
        """The statistics of rows in standardised units, in one pass."""

    @abstractmethod
    def no_statistics(self) -> Statistics:
        """The statistics of no rows."""

    @abstractmethod
    def times(self, X: Array, W: Array) -> Array:
        """ZW at inputs X, shape (n, q)."""

    @abstractmethod
    def features_at(self, X: Array) -> Array:
        """Z at a few inputs, shape (n, p)."""

    @abstractmethod
    def lacking_at(self, X: Array) -> Array:
        """Variance of f that the features lack, shape (n, k)."""

    def lacking_of(self, X: Array, A: Array) -> Array:
        """Covariance that the features lack of Af, shape (k, q, q), for A of shape (k, q, n)."""
        lacking: Array = (A * self.lacking_at(X).T[:, None]) @ A.swapaxes(1, 2)
        return lacking

    def covariance_of(self, X: Array, A: Array) -> Array:
        rows = np.zeros((*A.shape[:2], self.features.n_features))
        for its in slices(len(X), self.features.n_features):
            rows += A[..., its] @ self.features_at(X[its])
        lacking = self.lacking_of(X, A)
        parts = [t.posterior.covariance_of(AZ) for t, AZ in zip(self.fits, rows, strict=True)]
        return np.stack(parts, axis=-1) + np.moveaxis(lacking, 0, -1)

    @property
    def gaussian(self) -> GaussianModel:
        return self

    @property
    def n_rows(self) -> float:
        return float(self.statistics.n)

    @property
    def n_outputs(self) -> int:
        return int(self.statistics.n_outputs)

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return self.features.maps

    @property
    def noise_levels(self) -> Array:
        """σ² of each output, in standardised units, shape (k,)."""
        return np.array([t.posterior.noise_variance for t in self.fits])

    @property
    def least_noise(self) -> float:
        """The smallest noise that the statistics resolve, relative to the one that was found."""
        posteriors = [t.posterior for t in self.fits]
        return max(
            float(self.statistics.resolvable_noise(p.prior_variances)) / p.noise_variance
            for p in posteriors
        )

    @property
    def noise_free(self) -> bool:
        """Whether the noise is of the size of the rounding error of a Gram matrix, or smaller."""
        return self.statistics.form == "root" or self.least_noise > HARDLY

    def counted(self, rows: Block) -> Block:
        if not isinstance(self.noise, RowNoise):
            return rows
        return replace(rows, weights=rows.weights / self.noise_of(rows))

    @property
    def resolved(self) -> bool:
        """Whether the statistics resolve the noise that was found with them."""
        try:
            return self.least_noise < 1.0
        except NotPositiveDefiniteError:
            return False

    def mean(self, X: Array) -> Array:
        return self.times(X, np.column_stack([t.posterior.mean for t in self.fits]))

    def relative_noise(self, X: Array) -> Array:
        """v of new rows at inputs, shape (n,)."""
        return np.ones(len(X)) if self.noise is None else self.noise(X)

    def noise_of(self, rows: Block) -> Array:
        """v of training rows, with which they were fitted, shape (n,)."""
        noise = None if self.noise is None else self.noise.on(rows).noise
        return np.ones(len(rows)) if noise is None else noise

    @cached_property
    def reversions(self) -> tuple[PriorReversion, ...]:
        """Of each output, the prior variance that local atoms lack away from the data."""
        levels = np.zeros(len(self.features.maps)) if self.levels is None else self.levels
        means = self.statistics.column_energies / max(self.statistics.n, 1e-300)
        return tuple(
            PriorReversion.learn(self.features.blocks, levels, means, t.posterior.prior_variances)
            for t in self.fits
        )

    @property
    def summary(self) -> ModelSummary:
        unit, fits = self.units.y.scale, self.fits
        jacobian = self.n_rows * float(np.log(unit).sum())
        return ModelSummary(
            n_rows=self.n_rows,
            n_outputs=self.n_outputs,
            n_features=self.features.n_features,
            solver=self.solver,
            statistics=self.statistics.form,
            noise_variances=self.noise_levels * unit**2,
            prior_variances=np.column_stack([t.posterior.prior_variances for t in fits]) * unit**2,
            log_evidence=sum(t.posterior.log_evidence for t in fits) - jacobian,
            at_bounds=tuple(name for t in fits for name in t.at_bounds),
            jitter=max(t.posterior.factor.jitter for t in fits),
            reverts=self.levels is not None,
        )

    def refit(self, rows: Rows, noise: NoiseFunction | None) -> Self:
        """The same features for these rows alone, in standardised units, with another noise."""
        return replace(self, noise=noise, statistics=self.collect(rows, noise))

    def update(self, rows: Rows) -> Self:
        if isinstance(rows, Block) and len(rows) == 0:
            return self
        more = self.collect(Mapped(rows, self.units.rows), self.noise)
        return replace(self, statistics=self.statistics + more)

    def forget(self, rows: Rows) -> Self:
        if isinstance(rows, Block) and len(rows) == 0:
            return self
        gone = self.collect(Mapped(rows, self.units.rows), self.noise)
        if not require_seen(self.n_rows - gone.n, self.n_rows):
            return self.empty()
        left = self.statistics - gone
        if (left.column_energies < -UNSEEN * self.statistics.column_energies).any():
            raise ValueError(
                "some of these rows were not seen: without them, squares of features add up to "
                "less than zero. Forget only rows that were added, with their weights."
            )
        return replace(self, statistics=left)

    def decayed(self, share: float) -> Self:
        return replace(self, statistics=self.statistics.scaled(share))

    def empty(self) -> Self:
        return replace(self, statistics=self.no_statistics())

    def merge(self, other: Self) -> Self:
        if not self._same_features(other):
            raise incompatible("features or units")
        return replace(self, statistics=self.statistics + other.statistics)

    def _same_features(self, other: Self) -> bool:
        if (
            type(self) is not type(other)
            or self.statistics.form != other.statistics.form
            or self.n_outputs != other.n_outputs
            or len(self.units.columns) != len(other.units.columns)
            or self.features.n_features != other.features.n_features
        ):
            return False
        own, others = self.units, other.units
        probe = np.random.default_rng(0).normal(size=(8, len(own.columns)))
        basis = np.random.default_rng(1).normal(size=(self.features.n_features, 2))
        raw = own.original_inputs(probe)
        return all(
            np.array_equal(a, b)
            for a, b in (
                (own.y.scale, others.y.scale),
                (own.y.center, others.y.center),
                (own.inputs(raw), others.inputs(raw)),
                (self.times(probe, basis), other.times(probe, basis)),
                (self.relative_noise(probe), other.relative_noise(probe)),
            )
        )
