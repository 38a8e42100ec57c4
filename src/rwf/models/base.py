"""A fitted model: one interface for every prior and solver, and the prediction it returns.

Models work in standardised units, for inputs and for targets; ``units`` converts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.errors import IncompatibleModelsError
from rwf.features.base import FeatureMap
from rwf.inference.posterior import normal_log_density
from rwf.uncertainty.calibration import Calibration

if TYPE_CHECKING:
    from rwf.models.gaussian import GaussianModel

LOW_DIMENSION = 3  # largest number of input columns that a lattice of local atoms can fill


@dataclass(frozen=True)
class Prediction:
    """Predictive distribution at n rows for k outputs, in standardised units."""

    mean: Array  # shape (n, k)
    function_variance: Array  # variance of f, shape (n, k)
    noise_variance: Array  # variance of a new observation around f, shape (n, k)
    support: Array  # share of the prior variance of f that the atoms carry, shape (n,)

    @property
    def variance(self) -> Array:
        """Variance of a new observation, shape (n, k)."""
        return self.function_variance + self.noise_variance

    def log_density(self, y: Array) -> Array:
        """log p(y) of targets of shape (n, k), summed over the outputs, shape (n,)."""
        total: Array = normal_log_density(y - self.mean, self.variance).sum(axis=1)
        return total


@dataclass(frozen=True)
class ModelSummary:
    """What is known of a fitted model, in the units of y."""

    n_rows: float  # rows seen, by their weights
    n_outputs: int  # columns of y
    n_features: int  # feature columns, trend included
    solver: str  # "dense", "multifrontal" or "windows"
    # how the statistics of the rows are stored: "gram", "root", "multifrontal" or "windows"
    statistics: str
    noise_variances: Array  # σ² of each output, shape (k,)
    prior_variances: Array  # of every feature column and output, shape (p, k)
    log_evidence: float | None  # log p(y) of all rows; ``None`` if the weights were sampled
    at_bounds: tuple[str, ...]  # variances that ended on their bounds
    jitter: float  # largest jitter that a factorisation needed
    reverts: bool = False  # whether the variance returns to that of the prior away from the data


class Model(ABC):
    """A fitted model; :class:`~rwf.models.base.CorrectedModel` wraps one."""

    units: Standardizer

    @property
    def base(self) -> Model:
        """The model inside all corrections."""
        return self

    @property
    def gaussian(self) -> GaussianModel | None:
        """The model inside all corrections, if its weights have a Gaussian posterior."""
        return None

    @property
    def calibration(self) -> Calibration | None:
        """Leave-one-out errors over predictive standard deviations, if they were computed."""
        return None

    @property
    def needs_all_rows(self) -> bool:
        """Whether rows for :meth:`update` must be in memory."""
        return self.keeps_rows

    @property
    def keeps_rows(self) -> bool:
        """Whether the model stores all training rows."""
        return False

    @property
    @abstractmethod
    def n_rows(self) -> float:
        """Rows seen, by their weights."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Columns of y."""

    @property
    @abstractmethod
    def maps(self) -> tuple[FeatureMap, ...]:
        """The blocks of feature columns."""

    @property
    @abstractmethod
    def summary(self) -> ModelSummary:
        """What is known of the model."""

    @abstractmethod
    def mean(self, X: Array) -> Array:
        """Predictive mean, shape (n, k); cheaper than :meth:`predict`."""

    @abstractmethod
    def predict(self, X: Array) -> Prediction:
        """Prediction at inputs X, in blocks: memory does not grow with feature columns times n."""

    @abstractmethod
    def leave_one_out(self, rows: Block) -> Prediction:
        """Predictions of training rows, each as if it had not been seen."""

    @abstractmethod
    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        """Covariance of y, or of f without noise, shape (n, n, k)."""

    @abstractmethod
    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        """Joint draws of y, or of f without noise, shape (n, k, count)."""

    @abstractmethod
    def update(self, rows: Rows) -> Self:
        """The model with further rows, which are in the units of the data."""

    @abstractmethod
    def empty(self) -> Self:
        """The model before its first row: the same features and units."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """The model of both models' rows; features and units must be equal."""

    def unbiased_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are unbiased."""
        return known


def scores(model: Model, rows: Block) -> Array:
    """Leave-one-out errors of rows over their predictive standard deviations, shape (n, k)."""
    p = model.leave_one_out(rows)
    return np.asarray((rows.y - p.mean) / np.sqrt(p.variance))


def incompatible(what: str) -> IncompatibleModelsError:
    """What to say of two models that cannot be merged."""
    return IncompatibleModelsError(
        f"the two models have different {what}, so their statistics do not add. Fit one model, "
        "give each part of the data a copy made by empty_copy(), call partial_fit on each copy, "
        "and merge those."
    )


@dataclass(frozen=True)
class Correction:
    """What changes in a model's predictions."""

    factor: Array  # by which variances are multiplied, shape (n, k)
    shift: Array | float = 0.0  # what is added to means, shape (n, k), or zero

    def of(self, p: Prediction) -> Prediction:
        """The corrected prediction."""
        return Prediction(
            p.mean + self.shift,
            self.factor * p.function_variance,
            self.factor * p.noise_variance,
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
        return self.model.needs_all_rows

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
        root = np.sqrt(self.correction(X, self.model.predict(X)).factor)
        return root[:, None] * root * self.model.covariance(X, noise=noise)

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        p = self.model.predict(X)
        change = self.correction(X, p)
        deviations = self.model.sample(X, count, rng, noise=noise) - p.mean[..., None]
        scaled = np.sqrt(change.factor)[..., None] * deviations
        drawn: Array = (p.mean + change.shift)[..., None] + scaled
        return drawn

    def update(self, rows: Rows) -> Self:
        return replace(self, model=self.model.update(rows))

    def empty(self) -> Self:
        return replace(self, model=self.model.empty())

    def merge(self, other: Self) -> Self:
        if type(self) is not type(other):
            raise incompatible("corrections")
        return replace(self, model=self.model.merge(other.model))
