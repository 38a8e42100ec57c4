"""A model on the multifrontal solver: the posterior of the dense one, for far more atoms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Mapped, Rows, RowSum
from rwf.features.base import Stack
from rwf.inference.empirical_bayes import Variances
from rwf.inference.multifrontal import (
    AtomTree,
    TreeEmpiricalBayes,
    TreeMoments,
    TreePosterior,
    accumulate_tree,
    rows_at_once,
    tree_fixed_point,
)
from rwf.models.base import Prediction
from rwf.models.gaussian import GaussianModel, NoiseFunction

ROWS_AT_ONCE = 2**19  # rows that are predicted together: sorting them by place pays for many
GROUP_BYTES = 2**28  # memory for the features of groups that are left out together
STEPS = 4  # steps of the fixed point when variances are found again


@dataclass(frozen=True)
class TreeHyperparameters:
    """Atoms on a tree, and the variances of each output from which empirical Bayes starts."""

    tree: AtomTree
    variances: tuple[Variances, ...]
    # Rows that all rows count as, at most. What the atoms cannot resolve is correlated from row to
    # row; as white noise it would raise the variances of coarse atoms, which swing in gaps
    effective_rows: float = np.inf
    learn_variances: bool = True  # whether the variances are found again from all rows

    def weight(self, n: float) -> float:
        """How much each of n rows counts."""
        return min(1.0, self.effective_rows / max(n, 1e-300))

    @property
    def features(self) -> Stack:
        return self.tree.columns.features

    def collect(self, rows: Rows, noise: NoiseFunction | None = None) -> TreeMoments:
        """The moments of rows in standardised units, in one pass."""
        tree, k = self.tree, rows.n_outputs
        name = f"tree of {tree.n_features} columns and {k} outputs"
        seen = rows if noise is None else Mapped(rows, noise.on)
        return seen.total(
            RowSum(
                name if noise is None else f"{name}, {noise.name}",
                rows_at_once(tree),
                lambda parts: accumulate_tree(tree, parts, k),
                TreeMoments.__add__,
                TreeMoments.sums,
                lambda sums: TreeMoments.of_sums(tree, sums),
                workers=1,
            )
        )


@dataclass(frozen=True, kw_only=True)
class TreeModel(GaussianModel):
    """Atoms on a tree, the moments of all rows, and the Gaussian over weights that follows."""

    # atoms, and the variances from which empirical Bayes starts
    hyperparameters: TreeHyperparameters
    statistics: TreeMoments
    solver: ClassVar[str] = "multifrontal"

    @property
    def tree(self) -> AtomTree:
        return self.hyperparameters.tree

    @property
    def features(self) -> Stack:
        return self.hyperparameters.features

    @cached_property
    def fits(self) -> tuple[TreeEmpiricalBayes, ...]:
        own = self.hyperparameters
        moments = self.statistics.tempered(own.effective_rows)
        steps = STEPS if own.learn_variances else 0
        groups, parents = self.features.groups, self.features.parents
        return tuple(
            tree_fixed_point(moments, output, groups, start, parents=parents, max_iter=steps)
            for output, start in enumerate(own.variances)
        )

    def collect(self, rows: Rows, noise: NoiseFunction | None) -> TreeMoments:
        return self.hyperparameters.collect(rows, noise)

    def no_statistics(self) -> TreeMoments:
        return TreeMoments.empty(self.tree, self.n_outputs)

    def _same_features(self, other: TreeModel) -> bool:
        return super()._same_features(other) and self.tree.dissection.same_as(other.tree.dissection)

    def times(self, X: Array, W: Array) -> Array:
        return np.concatenate([self.tree.times(part, W) for part in _blocks(X)])

    def predict(self, X: Array) -> Prediction:
        parts = [self._predict(part) for part in _blocks(X)]
        return Prediction(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _predict(self, X: Array) -> tuple[Array, Array, Array, Array]:
        lacking, support = self._lacking(X)
        mean, function = np.empty((2, len(X), self.n_outputs))
        for output, t in enumerate(self.fits):
            p = t.posterior.predict(X, with_noise=False)
            mean[:, output], function[:, output] = p.mean, p.variance
        return mean, function + lacking, self._noise_at(X), support

    def leave_one_out(self, rows: Block) -> Prediction:
        if rows.groups is None:
            return self._leave_one_out(rows)
        size = max(GROUP_BYTES // (8 * self.tree.n_features), 1)
        return Prediction.in_parts(rows, size, self._leave_one_out)

    def _leave_one_out(self, rows: Block) -> Prediction:
        """Of rows in any number, or of groups whose features fit into memory, or of one group."""
        lacking, support = self._lacking(rows.X)
        noise, v = self._noise_at(rows.X), self.noise_of(rows)
        weights = rows.weights * self.hyperparameters.weight(self.n_rows)
        mean, variance = np.empty((2, len(rows), self.n_outputs))
        large = rows.groups is not None and 8 * self.tree.n_features * len(rows) > GROUP_BYTES
        for output, t in enumerate(self.fits):
            if large:
                p = self._without(rows, output).predict(rows.X, v)
            else:
                y = rows.y[:, output]
                p = t.posterior.leave_out(rows.X, y, weights, v, rows.groups)
            mean[:, output], variance[:, output] = p.mean, p.variance
        function = np.maximum(variance - v[:, None] * self.noise_levels, 0.0) + lacking
        return Prediction(mean, function, noise, support)

    def _without(self, rows: Block, output: int) -> TreePosterior:
        """The posterior of all other rows: one more factorisation."""
        w, posterior = self.hyperparameters.weight(self.n_rows), self.fits[output].posterior
        others = self.statistics - self.collect(replace(rows, groups=None), self.noise)
        moments = others.tempered(w * others.n)
        return moments.posterior(output, posterior.prior_variances, posterior.noise_variance)

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        own = self._lacking(X)[0] + (self._noise_at(X) if noise else 0.0)
        parts = []
        for output, t in enumerate(self.fits):
            C = t.posterior.covariance(X)
            C[np.diag_indices(len(X))] += own[:, output]
            parts.append(C)
        return np.stack(parts, axis=-1)

    def features_at(self, X: Array) -> Array:
        return self.tree.dissection.in_original_order(self.tree.in_columns(X)).T

    def lacking_at(self, X: Array) -> Array:
        return self._lacking(X)[0]

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        own = self._lacking(X)[0] + (self._noise_at(X) if noise else 0.0)
        draws = []
        for output, t in enumerate(self.fits):
            f = self.tree.times(X, t.posterior.sample_weights(count, rng))
            draws.append(f + np.sqrt(own[:, output])[:, None] * rng.normal(size=f.shape))
        return np.stack(draws, axis=1)

    def _noise_at(self, X: Array) -> Array:
        """Noise variances at inputs, shape (n, k)."""
        return self.relative_noise(X)[:, None] * self.noise_levels

    def _lacking(self, X: Array) -> tuple[Array, Array]:
        """Variance of f that the atoms lack at inputs, shape (n, k), and the support, (n,)."""
        if self.levels is None:
            return np.zeros((len(X), self.n_outputs)), np.ones(len(X))
        energies = self.tree.block_energies(X)
        lacking = np.column_stack([r.missing(energies) for r in self.reversions])
        return lacking, self.reversions[0].support(energies)


def _blocks(X: Array) -> Iterator[Array]:
    return (X[i : i + ROWS_AT_ONCE] for i in range(0, max(len(X), 1), ROWS_AT_ONCE))
