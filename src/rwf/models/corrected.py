r"""A model corrected by errors of rows that it had not seen, and the density of these errors.

.. math:: y(x) \sim t_{\nu(x)}\!\left(m(x),\; \sqrt{c(x)\,v(x)}\right)

with the mean m and the variance v of a model, and the factor c and ν from its held-out or
leave-one-out errors, as :mod:`rwf.uncertainty.error_density` learns them. Means stay as they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.features.base import FeatureMap
from rwf.models.base import (
    ENOUGH_SCORES,
    LeftOutRows,
    Model,
    ModelSummary,
    Prediction,
    incompatible,
)
from rwf.uncertainty.density_learning import learn_error_density
from rwf.uncertainty.error_density import ErrorDensity, Scored
from rwf.uncertainty.student_t import draw_roots, mean_root, variance_ratio

if TYPE_CHECKING:
    from rwf.models.gaussian import GaussianModel


@dataclass(frozen=True)
class Correction:
    """What changes in a model's predictions."""

    factor: Array  # by which the variance of f is multiplied, shape (n, k)
    shift: Array | float = 0.0  # what is added to means, shape (n, k), or zero
    noise_factor: Array | None = None  # by which that of the noise is; ``None`` if by the same
    dof: Array | None = None  # of a t with the square root of the variance as scale

    def of(self, p: Prediction) -> Prediction:
        """The corrected prediction; what a t has beyond a normal of its scale counts as noise."""
        noise_factor = self.factor if self.noise_factor is None else self.noise_factor
        f, noise = self.factor * p.function_variance, noise_factor * p.noise_variance
        if self.dof is not None:
            noise = noise + (variance_ratio(self.dof) - 1.0) * (f + noise)
        return Prediction(p.mean + self.shift, f, noise, p.support, self.dof)


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
    def keeps_rows(self) -> bool:
        return self.model.keeps_rows

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

    @property
    def metric(self) -> Array:
        return self.model.metric

    @property
    def line_share(self) -> float:
        return self.model.line_share

    def counted(self, rows: Block) -> Block:
        return self.model.counted(rows)

    def unbiased_rows(self, known: Block) -> Block:
        return self.model.unbiased_rows(known)

    def mean(self, X: Array) -> Array:
        return self.model.mean(X)

    def predict(self, X: Array) -> Prediction:
        p = self.model.predict(X)
        return self.correction(X, p).of(p)

    def leave_one_out(self, rows: Block) -> Prediction:
        return self.left_out(LeftOutRows.of(self, rows))

    def left_out(self, seen: LeftOutRows) -> Prediction:
        return self.corrected(seen.rows, self.model.left_out(seen))

    def corrected(self, rows: Block, p: Prediction) -> Prediction:
        """Leave-one-out predictions of rows, from those of the model that is corrected."""
        return self.correction(rows.X, p).of(p)

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        p = self.model.predict(X)
        change = self.correction(X, p)
        root = np.sqrt(change.factor)
        together = noise and change.noise_factor is None
        C = root[:, None] * root * self.model.covariance(X, noise=together)
        if noise and not together:
            C[np.diag_indices(len(X))] += change.of(p).noise_variance
        if noise and change.dof is not None:
            heavy = mean_root(change.dof)
            C *= heavy[:, None] * heavy
            C[np.diag_indices(len(X))] = change.of(p).variance
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
        if noise and change.dof is not None:
            scaled *= draw_roots(change.dof, count, rng)
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
    """A model whose errors have a learned density."""

    densities: tuple[ErrorDensity, ...]  # of each output

    def correction(self, X: Array, p: Prediction) -> Correction:
        U, factor, dof = X @ self.model.metric, np.empty_like(p.mean), np.empty_like(p.mean)
        for k, density in enumerate(self.densities):
            v, f = p.variance[:, k], p.function_variance[:, k]
            factor[:, k], dof[:, k] = density(U, p.mean[:, k], v, f, p.support)
        return Correction(factor, dof=dof)


def calibrate(
    model: Model,
    rows: Block,
    p: Prediction,
    rng: np.random.Generator,
    *,
    local: bool,
    growth: float = 1.0,
) -> Model:
    """The model with the density of its errors; few rows leave it as it is.

    Args:
        model: what is calibrated.
        rows: rows that it had not seen, or that are left out.
        p: its predictions of these.
        rng: draws centers.
        local: whether the density follows the place, the mean and the variance.
        growth: of all variances, for what errors do not show; see
            :mod:`rwf.uncertainty.error_density`.
    """
    if np.count_nonzero(rows.weights) < ENOUGH_SCORES:
        return model
    U, densities = rows.X @ model.metric, []
    for k in range(model.n_outputs):
        of_y = p.mean[:, k], p.variance[:, k], p.function_variance[:, k]
        scored = Scored(U, rows.y[:, k], *of_y, p.support, rows.weights)
        densities.append(learn_error_density(scored, rng, local=local, growth=growth))
    return Calibrated(model, tuple(densities))


def calibrate_scores(model: Model, scores: Sequence[Array], rng: np.random.Generator) -> Model:
    """A model whose variances suit every place but for one density of its scores, by output."""
    if len(scores[0]) < ENOUGH_SCORES:
        return model
    densities = (learn_error_density(Scored.of_scores(z), rng, local=False) for z in scores)
    return Calibrated(model, tuple(densities))
