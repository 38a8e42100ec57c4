"""A fitted model: units, features, statistics, and the posterior that follows from them.

Adding rows, or another model's rows, is a sum of statistics; variances are tuned again from the
new total, when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rwf.errors import IncompatibleModelsError
from rwf.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.rows import Block, block_rows, blocks
from rwf.scaling import Standardizer
from rwf.training import Shape
from rwf.tuning import Tuned, tune
from rwf.types import Array


@dataclass(frozen=True)
class FittedModel:
    """Everything that prediction needs.

    Args:
        scaler: units.
        shape: features, and the variances where tuning starts.
        statistics: the moments of all rows seen, in standardised units.
        learn_priors: whether tuning moves the prior variances, or the noise alone.
    """

    scaler: Standardizer
    shape: Shape
    statistics: Moments | RootMoments
    learn_priors: bool = True

    @cached_property
    def tuned(self) -> tuple[Tuned, ...]:
        """Variances and posterior of each output."""
        return tuple(
            tune(
                self.statistics,
                output,
                self.shape.features.groups,
                self.shape.variances(output),
                learn_priors=self.learn_priors,
            )
            for output in range(self.statistics.n_outputs)
        )

    @property
    def resolved(self) -> bool:
        """Whether the statistics resolve the noise that was found."""
        return all(
            self.statistics.resolves(t.posterior.prior_variances, t.posterior.noise_variance)
            for t in self.tuned
        )

    def with_rows(self, rows: Block) -> FittedModel:
        """The model with further rows."""
        if len(rows) == 0:
            return self
        root = isinstance(self.statistics, RootMoments)
        more = collect(self.scaler, self.shape, rows, root)
        return replace(self, statistics=_add(self.statistics, more))

    def without_rows(self) -> FittedModel:
        """The model before its first row: same units and features, empty statistics."""
        p, k = self.shape.features.n_features, self.statistics.n_outputs
        empty = (
            RootMoments(np.zeros((p + k, p + k)), 0.0, k)
            if isinstance(self.statistics, RootMoments)
            else Moments(np.zeros((p, p)), np.zeros((p, k)), np.zeros(k), 0.0)
        )
        return replace(self, statistics=empty)

    def merged(self, other: FittedModel) -> FittedModel:
        """The model of both models' rows; their features must be the same."""
        probe = np.random.default_rng(0).normal(size=(8, len(self.scaler.X.center)))
        if not (
            type(self.statistics) is type(other.statistics)
            and self.statistics.n_outputs == other.statistics.n_outputs
            and len(self.scaler.X.center) == len(other.scaler.X.center)
            and np.array_equal(self.features(probe), other.features(probe))
            and np.array_equal(self.scaler.y.scale, other.scaler.y.scale)
            and np.array_equal(self.scaler.y.center, other.scaler.y.center)
        ):
            raise IncompatibleModelsError(
                "the two models have different features or units, so their statistics do not add. "
                "Fit one model, give each part of the data a copy of it made by without_rows(), "
                "call partial_fit on each copy, and merge those."
            )
        return replace(self, statistics=_add(self.statistics, other.statistics))

    def features(self, X: Array) -> Array:
        """Z of inputs in their own units, shape (n, p)."""
        return np.asarray(self.shape.features(self.scaler.inputs(X)), dtype=np.float64)

    def _per_block(self, X: Array, f: Callable[[Array], Array]) -> Array:
        size = block_rows(self.shape.features.n_features)
        parts = [f(self.features(X[i : i + size])) for i in range(0, len(X), size)]
        return np.concatenate(parts)

    def mean(self, X: Array) -> Array:
        """Predictive means, shape (n, k), in the units of y."""
        W = np.column_stack([t.posterior.mean for t in self.tuned])
        return self.scaler.y.inverse(self._per_block(X, lambda Z: Z @ W))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Predictive means and standard deviations of y, noise included, shapes (n, k)."""

        def both(Z: Array) -> Array:
            parts = [t.posterior.predict(Z) for t in self.tuned]
            return np.stack([np.column_stack([p.mean, p.variance]) for p in parts], axis=-1)

        values = self._per_block(X, both)
        return self.scaler.y.inverse(values[:, 0]), np.sqrt(values[:, 1]) * self.scaler.y.scale

    def covariance(self, X: Array) -> Array:
        """Covariance of y at the rows, noise included, shape (n, n, k)."""
        Z = self.features(X)
        parts = []
        for t, scale in zip(self.tuned, self.scaler.y.scale, strict=True):
            C = t.posterior.covariance(Z)
            C[np.diag_indices_from(C)] += t.posterior.noise_variance
            parts.append(C * scale**2)
        return np.stack(parts, axis=-1)

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array:
        """Draws of functions at the rows, with or without noise, shape (n, k, count)."""
        weights = [t.posterior.sample_weights(count, rng) for t in self.tuned]
        draws = self._per_block(X, lambda Z: np.stack([Z @ W for W in weights], axis=1))
        if noise:
            sd = np.sqrt([t.posterior.noise_variance for t in self.tuned])
            draws = draws + sd[:, None] * rng.normal(size=draws.shape)
        return draws * self.scaler.y.scale[:, None] + self.scaler.y.center[:, None]

    @property
    def log_evidence(self) -> float:
        """log p(y) of all outputs, in the units of y."""
        jacobian = self.statistics.n * float(np.log(self.scaler.y.scale).sum())
        return sum(t.posterior.log_evidence for t in self.tuned) - jacobian


def _add(a: Moments | RootMoments, b: Moments | RootMoments) -> Moments | RootMoments:
    if isinstance(a, Moments) and isinstance(b, Moments):
        return a + b
    assert isinstance(a, RootMoments)
    assert isinstance(b, RootMoments)
    return a + b


def collect(scaler: Standardizer, shape: Shape, rows: Block, root: bool) -> Moments | RootMoments:
    """The statistics of the rows, in one pass."""
    p, k = shape.features.n_features, rows.y.shape[1]
    parts = (scaler.rows(block) for block in blocks(rows, p))
    return (accumulate_root if root else accumulate)(shape.features, parts, k)
