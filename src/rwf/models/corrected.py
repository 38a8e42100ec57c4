r"""A model corrected by its leave-one-out errors, and the calibration of its variances.

.. math:: y(x) \sim N\!\left(m(x),\; c(x)\, s^2(x)\right), \qquad \log c(x) = \theta_0 + B(x)\theta,

with m and s² of a model and c from its leave-one-out errors. Means stay as they are. Globally, c
is one number per output, at least one. Locally, where the signal varies more than the model
expects c is larger, and where it varies less, smaller: half of the errors evaluate what is learned
from the other half, and choose how fine B is, or that c is the same everywhere.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.holdout import in_random_order, standard_error
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.features.base import FeatureMap
from rwf.models.base import (
    ENOUGH_SCORES,
    Calibration,
    Model,
    ModelSummary,
    Prediction,
    incompatible,
)
from rwf.uncertainty.variance_function import VarianceFunction, learn_variance

if TYPE_CHECKING:
    from rwf.models.gaussian import GaussianModel

FINENESS = (8, 32, 128, 512)  # local features per input column to choose from
ERRORS_PER_FEATURE = 4  # errors for every feature, at least
USUAL = 0.99  # share of the rows whose variance of f counts as usual
CLEAR = 2.0  # standard errors by which the log density of errors must rise


@dataclass(frozen=True)
class Correction:
    """What changes in a model's predictions."""

    factor: Array  # by which the variance of f is multiplied, shape (n, k)
    shift: Array | float = 0.0  # what is added to means, shape (n, k), or zero
    noise_factor: Array | None = None  # by which that of the noise is; ``None`` if by the same

    def of(self, p: Prediction) -> Prediction:
        """The corrected prediction."""
        noise_factor = self.factor if self.noise_factor is None else self.noise_factor
        return Prediction(
            p.mean + self.shift,
            self.factor * p.function_variance,
            noise_factor * p.noise_variance,
            p.support,
        )


@dataclass(frozen=True)
class CorrectedModel(Model):
    """A model with a correction learned from its leave-one-out errors."""

    model: Model  # what is corrected

    @abstractmethod
    def correction(self, X: Array, p: Prediction) -> Correction:
        """What changes in the model's prediction p at inputs X."""

    @property
    def units(self) -> Standardizer:  # type: ignore[override]
        return self.model.units

    @property
    def base(self) -> Model:
        return self.model.base

    @property
    def gaussian(self) -> GaussianModel | None:
        return self.model.gaussian

    @property
    def needs_all_rows(self) -> bool:
        return self.keeps_rows or self.model.needs_all_rows

    @property
    def n_rows(self) -> float:
        return self.model.n_rows

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return self.model.maps

    @property
    def summary(self) -> ModelSummary:
        return self.model.summary

    def unbiased_rows(self, known: Block) -> Block:
        return self.model.unbiased_rows(known)

    def mean(self, X: Array) -> Array:
        return self.model.mean(X)

    def predict(self, X: Array) -> Prediction:
        p = self.model.predict(X)
        return self.correction(X, p).of(p)

    def leave_one_out(self, rows: Block) -> Prediction:
        p = self.model.leave_one_out(rows)
        return self.correction(rows.X, p).of(p)

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        p = self.model.predict(X)
        change = self.correction(X, p)
        root = np.sqrt(change.factor)
        together = noise and change.noise_factor is None
        C = root[:, None] * root * self.model.covariance(X, noise=together)
        if noise and not together:
            C[np.diag_indices(len(X))] += change.of(p).noise_variance
        return C

    def combination(self, X: Array, A: Array) -> tuple[Array, Array]:
        return A @ self.predict(X).mean, self.covariance_of(X, np.stack([A] * self.n_outputs))

    def covariance_of(self, X: Array, A: Array) -> Array:
        change = self.correction(X, self.model.predict(X))
        return self.model.covariance_of(X, A * np.sqrt(change.factor.T)[:, None])

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        p = self.model.predict(X)
        change = self.correction(X, p)
        together = noise and change.noise_factor is None
        deviations = self.model.sample(X, count, rng, noise=together) - p.mean[..., None]
        scaled = np.sqrt(change.factor)[..., None] * deviations
        if noise and not together:
            own = np.sqrt(change.of(p).noise_variance)[..., None]
            scaled += own * rng.normal(size=scaled.shape)
        drawn: Array = (p.mean + change.shift)[..., None] + scaled
        return drawn

    def update(self, rows: Rows) -> Self:
        return replace(self, model=self.model.update(rows))

    def forget(self, rows: Rows) -> Self:
        return replace(self, model=self.model.forget(rows))

    def decayed(self, share: float) -> Self:
        if self.keeps_rows:
            return super().decayed(share)
        return replace(self, model=self.model.decayed(share))

    def empty(self) -> Self:
        return replace(self, model=self.model.empty())

    def merge(self, other: Self) -> Self:
        if type(self) is not type(other):
            raise incompatible("corrections")
        return replace(self, model=self.model.merge(other.model))


@dataclass(frozen=True)
class Calibrated(CorrectedModel):
    """A model whose variances are multiplied by one factor per output."""

    errors: Calibration  # leave-one-out errors of some training rows, from which the factor follows

    @property
    def calibration(self) -> Calibration:
        return self.errors

    @property
    def summary(self) -> ModelSummary:
        inner, factor = self.model.summary, self.errors.inflation
        return replace(
            inner,
            noise_variances=factor * inner.noise_variances,
            prior_variances=factor * inner.prior_variances,
        )

    def correction(self, X: Array, p: Prediction) -> Correction:
        return Correction(np.broadcast_to(self.errors.inflation, p.mean.shape))


@dataclass(frozen=True)
class LocallyCalibrated(CorrectedModel):
    """A model whose variances are multiplied by c(x)."""

    variance: VarianceFunction  # c among the rows it was learned from
    errors: Calibration  # errors of rows over √c, where c was learned from others
    gain: float  # how much c raised the mean log density of rows that it was not learned from
    usual: Annotated[Array, "k"]  # a variance of f that few of these rows exceed, shape (k,)

    @property
    def calibration(self) -> Calibration:
        return self.errors

    def correction(self, X: Array, p: Prediction) -> Correction:
        """c at inputs; at least one in gaps and beyond the data, where no errors support less."""
        c = self.variance(X)[:, None]
        among = self.usual / np.maximum(p.function_variance, self.usual)
        among = np.minimum(among, p.support[:, None])
        c = among * c + (1.0 - among) * np.maximum(c, 1.0)
        return Correction(c * self.errors.inflation)


def calibrate(model: Model, known: Block) -> Calibrated:
    """The model calibrated by leave-one-out errors of some of its rows."""
    rows = model.unbiased_rows(known)
    return Calibrated(model, model.leave_one_out(rows).calibration(rows.y))


def calibrate_locally(
    model: Model, known: Block, rng: np.random.Generator
) -> LocallyCalibrated | None:
    """The model calibrated by place, from some of its rows; ``None`` if one factor does as well."""
    rows = model.unbiased_rows(known)
    half = len(rows) // 2
    fineness = [count for count in FINENESS if count * ERRORS_PER_FEATURE <= half]
    if half < ENOUGH_SCORES or not fineness:
        return None
    left_out = model.leave_one_out(rows)
    z = left_out.calibration(rows.y).scores
    order, half = in_random_order(rows, rng)
    halves = (order[:half], order[half:]), (order[half:], order[:half])

    def learn(by: IntArray, count: int) -> VarianceFunction:
        return learn_variance(rows.part(by), z[by], 0.0, rng, coarse=count)

    def cross_fitted(count: int) -> Array:
        """c at every row, learned from the half that it is not in."""
        c = np.empty(len(rows))
        for by, other in halves:
            c[other] = learn(by, count)(rows.X[other])
        return c

    tried = {count: cross_fitted(count) for count in fineness}
    gains = {count: _gains(c, z) for count, c in tried.items()}
    best = max(gains, key=lambda count: float(gains[count].mean()))
    gain = float(gains[best].mean())
    if gain < CLEAR * standard_error(gains[best], rows.groups):
        return None
    errors = Calibration(z / np.sqrt(tried[best])[:, None])
    usual = np.quantile(left_out.function_variance, USUAL, axis=0)
    usual = np.maximum(usual, np.finfo(np.float64).tiny)
    return LocallyCalibrated(model, learn(order, best), errors, gain, usual)


def _gains(c: Array, z: Array) -> Array:
    """By how much c raises the log densities of errors z, over all outputs, shape (n,)."""
    gains: Array = 0.5 * (z**2 * (1.0 - 1.0 / c[:, None]) - np.log(c)[:, None]).sum(axis=1)
    return gains
