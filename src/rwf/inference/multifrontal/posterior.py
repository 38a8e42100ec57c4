"""The Gaussian over the weights of a tree's columns, and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, IntArray
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.cells import SortedRows
from rwf.inference.multifrontal.elimination import factor_tree
from rwf.inference.multifrontal.factor import TreeFactor
from rwf.inference.posterior import LeftOut, Marginals, WeightPosterior
from rwf.linalg.dense import EPSILON, call
from rwf.linalg.threads import in_parallel

if TYPE_CHECKING:
    from rwf.inference.multifrontal.moments import TreeMoments


@dataclass(frozen=True)
class TreePosterior(WeightPosterior):
    """p(w | y) for one output, on a tree; arrays by column are in the original order."""

    factor: TreeFactor
    tree: AtomTree = field(kw_only=True)  # the columns and their dissection

    @classmethod
    def of(
        cls, moments: TreeMoments, output: int, prior_variances: Array, noise_variance: float
    ) -> TreePosterior:
        """The posterior of one output from its moments."""
        check_variances(moments, prior_variances, noise_variance)
        factor = factor_tree(moments, prior_variances, noise_variance)
        scale, b = np.sqrt(prior_variances), moments.Zty[:, output]
        tree = moments.tree.dissection
        v = tree.in_tree_order(scale * b / noise_variance)[:, None]
        factor.forward(v)
        factor.backward(v)
        mean = tree.in_original_order(v[:, 0])
        w, yty = scale * mean, float(moments.yty[output])
        rss = yty - 2 * float(w @ b) + moments.quadratic_form(w)
        rss = max(rss, EPSILON * yty)  # where cancellation leaves nothing, the rounding error
        return cls(
            mean, factor, prior_variances, noise_variance, rss, moments.n, moments.log_volume,
            tree=moments.tree,
        )  # fmt: skip

    def predict(
        self, X: Array, noise: Array | float = 1.0, *, with_noise: bool = True
    ) -> Marginals:
        """Marginals of y at rows X with noise σ² times ``noise``, or of f without it."""
        rows = self.tree.sorted_rows(X)
        mean, variance = np.empty((2, len(X)))
        work = partial(self._predict_cells, rows, self.factor.inverse.leaves, mean, variance)
        in_parallel(work, rows.batches())
        placed = np.empty((2, len(X)))
        placed[:, rows.order] = mean, variance
        # This is no sum of squares: rounding may leave what is zero a little below it.
        variance_of_f = np.maximum(placed[1], 0.0)
        own = self.noise_variance * noise if with_noise else 0.0
        return Marginals(placed[0], variance_of_f + own)

    def _predict_cells(
        self, rows: SortedRows, inverses: Array, mean: Array, variance: Array, cells: IntArray
    ) -> None:
        from rwf.inference.multifrontal import _fronts, _rows

        tree, starts = self.tree.dissection, self.tree.dissection.packed_starts
        scale, weights = tree.in_tree_order(self.scale), tree.in_tree_order(self.mean)
        work = self.tree.workspace()
        triangle = np.empty(len(work.places) ** 2)
        product = np.empty_like(work.values)
        for leaf, begin, end in cells.tolist():
            places, Z = self.tree.features_of(rows, leaf, begin, end, work)
            a, n = Z.shape
            active = tree.columns(leaf)[places]
            T, V = triangle[: a * a].reshape(a, a), product[: a * n].reshape(a, n)
            S = inverses[starts[leaf] : starts[leaf + 1]]
            _fronts.take_packed(S, places, int(tree.fronts[leaf]), scale[active], T)
            V[:] = Z
            # zᵀSz = 2zᵀTz for S = T + Tᵀ, and a triangle costs half as much.
            call("dtrmm", "R", "L", "N", "N", n, a, 1.0, T, a, V, n)
            its = slice(begin, end)
            _rows.moments_of_rows(Z, V, weights[active], mean[its], variance[its])

    def covariance(self, X: Array) -> Array:
        """Covariance of f at the rows of X, without noise, shape (n, n)."""
        return self._covariance(self.tree.in_columns(X))

    def covariance_of(self, Z: Array) -> Array:
        return self._covariance(self.tree.dissection.in_tree_order(Z.T))

    def _covariance(self, columns: Array) -> Array:
        V = columns * self.tree.dissection.in_tree_order(self.scale)[:, None]
        self.factor.forward(V)
        return V.T @ V

    def leave_one_out(
        self, X: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> Marginals:
        """Marginals of training rows as if each were unseen, without a refit."""
        return self.unseen(self.predict(X, with_noise=False), y, weights, noise)

    def leave_group_out(
        self, X: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> LeftOut:
        """All rows of a group as if none of them were seen, without a refit."""
        mean = self.tree.times(X, self.mean[:, None])[:, 0]
        return self.unseen_group(mean, self.covariance(X), y, weights, noise)

    def sample_weights(self, count: int, rng: np.random.Generator) -> Array:
        """Draws of w, shape (p, count); each is a whole function z(·)ᵀw."""
        drawn = rng.normal(size=(len(self.whitened_mean), count))
        self.factor.backward(drawn)
        whitened = self.tree.dissection.in_original_order(drawn) + self.whitened_mean[:, None]
        return self.scale[:, None] * whitened


def check_variances(moments: TreeMoments, prior_variances: Array, noise_variance: float) -> None:
    """Variances must be positive, one for every column."""
    p = moments.tree.n_features
    if prior_variances.shape != (p,):
        raise ValueError(
            f"prior_variances has shape {prior_variances.shape}, but there are {p} columns."
        )
    if not (np.isfinite(prior_variances).all() and (prior_variances >= 0).all()):
        raise ValueError("prior_variances must be finite and not negative.")
    if not (np.isfinite(noise_variance) and noise_variance > 0):
        raise ValueError(f"noise_variance={noise_variance} must be positive and finite.")
