"""A fitted model: one interface for every prior and solver, its predictions and their errors.

Models work in standardised units, for inputs and for targets; ``units`` converts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.holdout import group_parts
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.errors import IncompatibleModelsError
from rwf.features.base import FeatureMap
from rwf.uncertainty.student_t import StudentT, variance_ratio
from rwf.uncertainty.transformed import Predictive, TransformedT

if TYPE_CHECKING:
    from rwf.models.gaussian import GaussianModel

LOW_DIMENSION = 3  # largest number of input columns that a lattice of local atoms can fill
NOTHING = 1e-12  # share of the rows that is rounding
ENOUGH_SCORES = 30  # held-out errors below which they say too little


@dataclass(frozen=True)
class Prediction:
    """Predictive distribution at n rows for k outputs, in standardised units."""

    mean: Array  # shape (n, k)
    function_variance: Array  # variance of f, shape (n, k)
    noise_variance: Array  # variance of a new observation around f, shape (n, k)
    support: Array  # share of the prior variance of f that the atoms carry, shape (n,)
    dof: Array | None = None  # of a Student-t, shape (n, k); ``None`` is a normal

    @classmethod
    def in_parts(cls, rows: Block, size: int, predict: Callable[[Block], Prediction]) -> Prediction:
        """Normal predictions of rows, ``size`` of them at a time; groups are whole."""
        order = [*group_parts(rows.groups, len(rows), size)]
        parts = [predict(rows.part(which)) for which in order]
        place = np.argsort(np.concatenate(order))

        names = ("mean", "function_variance", "noise_variance", "support")
        return cls(*(np.concatenate([getattr(p, name) for p in parts])[place] for name in names))

    def part(self, which: IntArray) -> Prediction:
        """The predictions of some of the rows."""
        return Prediction(
            self.mean[which],
            self.function_variance[which],
            self.noise_variance[which],
            self.support[which],
            None if self.dof is None else self.dof[which],
        )

    @property
    def variance(self) -> Array:
        """Variance of a new observation, shape (n, k)."""
        return self.function_variance + self.noise_variance

    @property
    def distribution(self) -> StudentT:
        """The distribution of a new observation, in standardised units."""
        if self.dof is None:
            return StudentT.normal(self.mean, np.sqrt(self.variance))
        return StudentT(self.mean, np.sqrt(self.variance / variance_ratio(self.dof)), self.dof)

    @property
    def of_function(self) -> StudentT:
        """The normal distribution of f, without noise."""
        return StudentT.normal(self.mean, np.sqrt(self.function_variance))

    def log_density(self, y: Array) -> Array:
        """log p(y) of targets of shape (n, k), summed over the outputs, shape (n,)."""
        total: Array = self.distribution.logpdf(y).sum(axis=1)
        return total


@dataclass(frozen=True)
class LeftOutRows:
    """Training rows, and what the model inside all corrections predicts of them, left out."""

    rows: Block
    base: Prediction

    @classmethod
    def of(cls, model: Model, rows: Block) -> LeftOutRows:
        return cls(rows, model.base.leave_one_out(rows))


@dataclass(frozen=True)
class ModelSummary:
    """What is known of a fitted model, in the units of y."""

    n_rows: float  # rows seen, by their weights
    n_outputs: int  # columns of y
    n_features: int  # feature columns, trend included
    solver: str  # "dense", "multifrontal", or the sampler of the spike-and-slab prior
    # how the statistics of the rows are stored: "gram", "root", "multifrontal" or "windows"
    statistics: str
    noise_variances: Array  # σ² of each output, shape (k,)
    prior_variances: Array  # of every feature column and output, shape (p, k)
    log_evidence: float | None  # log p(y) of all rows; ``None`` if it is not known
    at_bounds: tuple[str, ...]  # variances that ended on their bounds
    jitter: float  # largest jitter that a factorisation needed
    reverts: bool = False  # whether the variance returns to that of the prior away from the data


class Model(ABC):
    """A fitted model; :class:`~rwf.models.corrected.CorrectedModel` wraps one."""

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
    def metric(self) -> Array:
        """A, shape (d, d): rows are as similar as their xA are close."""
        return np.eye(len(self.units.columns))

    @property
    def line_share(self) -> float:
        """The share of a straight line or a constant in the means, the mean over outputs."""
        return 0.0

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
        """Predictions of training rows, each as if it had not been seen.

        If the rows have groups, all rows of a group are left out together: these must be among
        the rows. Hyperparameters stay as they are.
        """

    def left_out(self, seen: LeftOutRows) -> Prediction:
        """:meth:`leave_one_out` of rows for which the model inside all corrections has it."""
        return seen.base

    @abstractmethod
    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        """Covariance of y, or of f without noise, shape (n, n, k)."""

    def combination(self, X: Array, A: Array) -> tuple[Array, Array]:
        r"""Mean and covariance of Af, shape (q, k) and (q, q, k), for A of shape (q, n)."""
        return A @ self.mean(X), self.covariance_of(X, np.stack([A] * self.n_outputs))

    def covariance_of(self, X: Array, A: Array) -> Array:
        """Covariance of combinations of f, shape (q, q, k), for A of shape (k, q, n)."""
        C = self.covariance(X, noise=False)
        return np.stack([B @ C[..., i] @ B.T for i, B in enumerate(A)], axis=-1)

    @abstractmethod
    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        """Joint draws of y, or of f without noise, shape (n, k, count)."""

    @abstractmethod
    def update(self, rows: Rows) -> Self:
        """The model with further rows, which are in the units of the data."""

    @abstractmethod
    def forget(self, rows: Rows) -> Self:
        """The model without some of the rows that it has seen; features and units stay."""

    def decayed(self, share: float) -> Self:
        """The model with every row counted less, by this share."""
        raise ValueError(
            "this model stores its training rows, which all count as one: use a window, or fit "
            "with neighbors=None."
        )

    @abstractmethod
    def empty(self) -> Self:
        """The model before its first row: the same features and units."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """The model of both models' rows; features and units must be equal."""

    def counted(self, rows: Block) -> Block:
        """Training rows with weights that say how much they count against the others."""
        return rows

    def unbiased_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are unbiased; groups are whole."""
        return known


def in_target_units(units: Standardizer, d: StudentT) -> Predictive:
    """Distributions in the units of the targets, of some in standardised units."""
    scaled = StudentT(units.y.inverse(d.mean), d.scale * units.y.scale, d.dof)
    return scaled if units.transform is None else TransformedT(scaled, units.transform)


def require_seen(left: float, seen: float) -> bool:
    """Whether rows are left after some were forgotten; not fewer than none."""
    if left < -NOTHING * seen:
        raise ValueError(
            f"{seen - left:,g} rows are to be forgotten, and the model has seen {seen:,g}: forget "
            "only rows that were added, with their weights."
        )
    return left > NOTHING * seen


def incompatible(what: str) -> IncompatibleModelsError:
    """What to say of two models that cannot be merged."""
    return IncompatibleModelsError(
        f"the two models have different {what}, so their statistics do not add. Fit one model, "
        "give each part of the data a copy made by empty_copy(), call partial_fit on each copy, "
        "and merge those."
    )
