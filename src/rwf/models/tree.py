"""A fitted model on the tree engine: the same posterior as the dense one, for far more atoms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows, RowSum
from rwf.data.scaling import Standardizer
from rwf.errors import IncompatibleModelsError
from rwf.features.base import FeatureMap
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import Variances
from rwf.inference.multifrontal import (
    AtomTree,
    TreeEmpiricalBayes,
    TreeMoments,
    accumulate_tree,
    rows_at_once,
    tree_fixed_point,
)
from rwf.inference.posterior import Marginals
from rwf.models.base import EmpiricalBayesModel, in_units, scores
from rwf.uncertainty.calibration import Calibration
from rwf.uncertainty.extrapolation import PriorReversion
from rwf.uncertainty.variance_function import VarianceFunction

ROWS_AT_ONCE = 2**19
"""Rows that are predicted together: sorting pays with many."""

STEPS = 4
"""Steps of the fixed point when variances are tuned again."""


@dataclass(frozen=True)
class TreeHyperparameters:
    """Atoms on a tree, and the variances of each output where tuning starts."""

    tree: AtomTree
    variances: tuple[Variances, ...]

    @property
    def features(self) -> Stack:
        return self.tree.columns.features

    def collect(
        self, scaler: Standardizer | None, rows: Rows, noise: VarianceFunction | None = None
    ) -> TreeMoments:
        """The moments of all rows, in one pass; without a scaler, of standardised ones."""
        tree, k = self.tree, rows.n_outputs

        def gather(parts: Iterable[Block]) -> TreeMoments:
            return accumulate_tree(tree, in_units(parts, scaler, noise), k)

        name = f"tree of {tree.n_features} columns and {k} outputs"
        return rows.total(
            RowSum(
                name if noise is None else f"{name}, {noise.name}",
                rows_at_once(tree),
                gather,
                TreeMoments.__add__,
                TreeMoments.sums,
                lambda sums: TreeMoments.of_sums(tree, sums),
                workers=1,
            )
        )


@dataclass(frozen=True)
class TreeModel(EmpiricalBayesModel):
    """Atoms, their moments, and the posterior that follows.

    Args:
        scaler: units.
        shape: atoms, and the variances where tuning starts.
        statistics: the moments of all rows seen, in standardised units.
        calibration: leave-one-out errors of some training rows. Where they are too large, all
            variances are enlarged.
        cover: Σz² of every block of columns that counts as full cover, shape (B,); where there is
            less, the variance of f is filled up to that of the prior. ``None`` leaves it.
        noise: how the noise varies with x, if it does.
    """

    scaler: Standardizer
    shape: TreeHyperparameters
    statistics: TreeMoments
    calibration: Calibration | None = None
    levels: Array | None = None
    noise: VarianceFunction | None = None

    def calibration_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are honest: here, all."""
        return known

    def refitted(
        self, scaler: Standardizer | None, rows: Rows, noise: VarianceFunction | None
    ) -> TreeModel:
        """The model of the same shape, for these rows alone, with noise that varies so.

        Rows are in standardised units, or in their own together with a scaler.
        """
        statistics = self.shape.collect(scaler, rows, noise)
        return replace(self, noise=noise, statistics=statistics, calibration=None)

    def calibrated(self, known: Block) -> TreeModel:
        """The model with leave-one-out errors of these rows, in standardised units."""
        return self.keep_fits(replace(self, calibration=Calibration(scores(self, known))))

    @cached_property
    def fits(self) -> tuple[TreeEmpiricalBayes, ...]:
        """Variances and posterior of each output."""
        features = self.shape.features
        return tuple(
            tree_fixed_point(
                self.statistics,
                output,
                features.groups,
                self.shape.variances[output],
                parents=features.parents,
                max_iter=STEPS,
            ).rescaled(factor)
            for output, factor in enumerate(self.inflation)
        )

    @cached_property
    def reversions(self) -> tuple[PriorReversion, ...]:
        """Of each output, the variance that atoms lack where they are few."""
        stack = self.shape.features
        levels = np.zeros(len(stack.maps)) if self.levels is None else self.levels
        means = self.statistics.column_energies / max(self.statistics.n, 1e-300)
        return tuple(
            PriorReversion.learn(stack.blocks, levels, means, t.posterior.prior_variances)
            for t in self.fits
        )

    @property
    def n_features(self) -> int:
        return self.shape.tree.n_features

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return self.shape.features.maps

    @property
    def form(self) -> str:
        return "tree"

    @property
    def filled(self) -> bool:
        return self.levels is not None

    def with_rows(self, rows: Rows) -> TreeModel:
        """The model with further rows."""
        more = self.shape.collect(self.scaler, rows, self.noise)
        return replace(self, statistics=self.statistics + more)

    def without_rows(self) -> TreeModel:
        """The model before its first row."""
        return replace(self, statistics=TreeMoments.empty(self.shape.tree, self.n_outputs))

    def merged(self, other: TreeModel) -> TreeModel:
        """The model of both models' rows; their atoms must be the same."""
        probe = np.random.default_rng(0).normal(size=(8, self.shape.tree.columns.n_inputs))
        if not (
            np.array_equal(self.scaler.y.scale, other.scaler.y.scale)
            and np.array_equal(self.scaler.y.center, other.scaler.y.center)
            and self.shape.tree.dissection.same_as(other.shape.tree.dissection)
            and np.array_equal(self._noise_at(probe), other._noise_at(probe))
        ):
            raise IncompatibleModelsError(
                "the two models have different atoms or units, so their statistics do not add. Fit "
                "one model, give each part of the data a copy of it made by without_rows(), call "
                "partial_fit on each copy, and merge those."
            )
        return replace(self, statistics=self.statistics + other.statistics)

    def _blocks(self, X: Array) -> Iterator[Array]:
        """Rows in standardised units, many at a time."""
        starts = range(0, len(X), ROWS_AT_ONCE)
        return (self.scaler.inputs(X[i : i + ROWS_AT_ONCE]) for i in starts)

    def _noise_at(self, unit: Array) -> Array | float:
        """v at rows in standardised units."""
        return 1.0 if self.noise is None else self.noise(unit)

    def _missing(self, unit: Array, output: int) -> Array | float:
        """Variance of f that the atoms lack at rows."""
        if self.levels is None:
            return 0.0
        return self.reversions[output].missing(self.shape.tree.block_energies(unit))

    def coverage(self, X: Array) -> Array:
        """The share of the prior variance of f that atoms carry at rows, shape (n,)."""
        tree, reversion = self.shape.tree, self.reversions[0]
        return np.concatenate(
            [reversion.coverage(tree.block_energies(part)) for part in self._blocks(X)]
        )

    def times(self, X: Array, W: Array) -> Array:
        """ZW of inputs in their own units, shape (n, q)."""
        return np.concatenate([self.shape.tree.times(part, W) for part in self._blocks(X)])

    def mean(self, X: Array) -> Array:
        W = np.column_stack([t.posterior.mean for t in self.fits])
        return self.scaler.y.inverse(self.times(X, W))

    def predict(self, X: Array, *, noise: bool = True) -> tuple[Array, Array]:
        means, variances = [], []
        for part in self._blocks(X):
            found = [self._predict(part, output, noise) for output in range(self.n_outputs)]
            means.append(np.column_stack([p.mean for p in found]))
            variances.append(np.column_stack([p.variance for p in found]))
        unit = self.scaler.y
        return unit.inverse(np.concatenate(means)), np.sqrt(np.concatenate(variances)) * unit.scale

    def _predict(self, unit: Array, output: int, noise: bool = True) -> Marginals:
        """Prediction of one output in standardised units."""
        posterior = self.fits[output].posterior
        p = posterior.predict(unit, self._noise_at(unit), with_noise=noise)
        return Marginals(p.mean, p.variance + self._missing(unit, output))

    def standardized(self, X: Array, output: int) -> Marginals:
        return self._predict(X, output)

    def leave_one_out(self, rows: Block, output: int) -> Marginals:
        posterior, v = self.fits[output].posterior, self._noise_at(rows.X)
        p = posterior.leave_one_out(rows.X, rows.y[:, output], rows.weights, v)
        return Marginals(p.mean, p.variance + self._missing(rows.X, output))

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        unit, parts = self.scaler.inputs(X), []
        for output, t in enumerate(self.fits):
            C = t.posterior.covariance(unit)
            C[np.diag_indices(len(X))] += self._missing(unit, output)
            if noise:
                C[np.diag_indices(len(X))] += t.posterior.noise_variance * self._noise_at(unit)
            parts.append(C)
        return np.stack(parts, axis=-1) * self.scaler.y.scale**2

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array:
        unit, draws = self.scaler.inputs(X), []
        for output, t in enumerate(self.fits):
            f = self.shape.tree.times(unit, t.posterior.sample_weights(count, rng))
            own = t.posterior.noise_variance * self._noise_at(unit) if noise else 0.0
            spread = np.broadcast_to(own + self._missing(unit, output), len(X))
            draws.append(f + np.sqrt(spread)[:, None] * rng.normal(size=f.shape))
        y = self.scaler.y
        return np.stack(draws, axis=1) * y.scale[:, None] + y.center[:, None]
