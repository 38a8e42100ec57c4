r"""Variances calibrated by leave-one-out errors, everywhere alike or by place.

.. math:: y(x) \sim N\!\left(m(x),\; c(x)\, s^2(x)\right), \qquad \log c(x) = \theta_0 + B(x)\theta,

with m and s² of a model and c from its leave-one-out errors. Means stay as they are. Globally, c
is one number per output, at least one. Locally, where the signal varies more than the model
expects c is larger, and where it varies less, smaller: half of the errors evaluate what is learned
from the other half, and choose how fine B is, or that c is the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.models.base import CorrectedModel, Correction, Model, ModelSummary, Prediction, scores
from rwf.uncertainty.calibration import ENOUGH_SCORES, Calibration
from rwf.uncertainty.variance_function import VarianceFunction, learn_variance

FINENESS = (8, 32, 128, 512)  # local features per input column to choose from
ERRORS_PER_FEATURE = 4  # errors for every feature, at least
USUAL = 0.99  # share of the rows whose variance of f counts as usual
CLEAR = 2.0  # standard errors by which the log density of errors must rise


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
    return Calibrated(model, Calibration(scores(model, model.unbiased_rows(known))))


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
    z = (rows.y - left_out.mean) / np.sqrt(left_out.variance)
    order = rng.permutation(len(rows))
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
    gain, error = float(gains[best].mean()), float(gains[best].std()) / np.sqrt(len(rows))
    if gain < CLEAR * error:
        return None
    errors = Calibration(z / np.sqrt(tried[best])[:, None])
    usual = np.quantile(left_out.function_variance, USUAL, axis=0)
    usual = np.maximum(usual, np.finfo(np.float64).tiny)
    return LocallyCalibrated(model, learn(order, best), errors, gain, usual)


def _gains(c: Array, z: Array) -> Array:
    """By how much c raises the log densities of errors z, over all outputs, shape (n,)."""
    gains: Array = 0.5 * (z**2 * (1.0 - 1.0 / c[:, None]) - np.log(c)[:, None]).sum(axis=1)
    return gains
