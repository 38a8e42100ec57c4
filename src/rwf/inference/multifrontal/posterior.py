"""The Gaussian over the weights of a tree's columns, and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, IntArray
from rwf.inference.evidence import VarianceGradient
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.cells import SortedRows
from rwf.inference.multifrontal.elimination import factor_tree
from rwf.inference.multifrontal.factor import TreeFactor
from rwf.inference.multifrontal.inverse import SelectedInverse, selected_inverse
from rwf.inference.posterior import Marginals
from rwf.linalg.blas import call
from rwf.linalg.threads import in_parallel

if TYPE_CHECKING:
    from rwf.inference.multifrontal.moments import TreeMoments


@dataclass(frozen=True)
class TreePosterior:
    """p(w | y) for one output; arrays by column are in the original order."""

    tree: AtomTree  # the columns and their dissection
    whitened_mean: Array  # Λ^{-½}m, shape (p,)
    factor: TreeFactor  # the factor of M on the tree
    prior_variances: Array  # the diagonal of Λ, shape (p,)
    noise_variance: float  # σ²
    rss: float  # ‖y - Zm‖²
    n: float  # number of rows, or their total weight
    log_volume: float = 0.0  # Σ log v of the rows, where their noise varies

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
        # Where cancellation leaves nothing, the rounding error itself is the best that can be said.
        rss = max(rss, np.finfo(np.float64).eps * yty)
        return cls(
            moments.tree,
            mean,
            factor,
            prior_variances,
            noise_variance,
            rss,
            moments.n,
            moments.log_volume,
        )

    @property
    def _scale(self) -> Array:
        return np.sqrt(self.prior_variances)

    @property
    def mean(self) -> Array:
        """m, shape (p,)."""
        return self._scale * self.whitened_mean

    @property
    def log_evidence(self) -> float:
        r"""log p(y) = -½[‖r‖²/σ² + mᵀΛ⁻¹m + log|M| + n log 2πσ² + Σ log v]."""
        return -0.5 * (
            self.rss / self.noise_variance
            + float(self.whitened_mean @ self.whitened_mean)
            + self.factor.log_determinant
            + self.n * float(np.log(2 * np.pi * self.noise_variance))
            + self.log_volume
        )

    @cached_property
    def inverse(self) -> SelectedInverse:
        """M⁻¹ where columns meet; found when it is first needed, and kept."""
        return selected_inverse(self.factor)

    def gradient(self, groups: IntArray, n_groups: int) -> VarianceGradient:
        """Gradient of the evidence by log σ² and by the log prior variance of each group."""
        shrinkage = self.factor.inverse_diagonal()  # S_jj/λ_j
        per_column = 0.5 * (self.whitened_mean**2 + shrinkage - 1.0)
        effective = len(shrinkage) - float(shrinkage.sum())
        return VarianceGradient(
            0.5 * (self.rss / self.noise_variance - self.n + effective),
            np.bincount(groups, weights=per_column, minlength=n_groups).astype(np.float64),
        )

    def predict(
        self, X: Array, noise: Array | float = 1.0, *, with_noise: bool = True
    ) -> Marginals:
        """Prediction at rows X, whose noise variance is σ² times ``noise``.

        Without noise, the variance is that of f.
        """
        rows = self.tree.sorted_rows(X)
        mean, variance = np.empty((2, len(X)))
        work = partial(self._predict_cells, rows, self.inverse.leaves, mean, variance)
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
        scale, weights = tree.in_tree_order(self._scale), tree.in_tree_order(self.mean)
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

    def predict_mean(self, X: Array) -> Array:
        """The mean alone, which needs no inverse."""
        rows = self.tree.sorted_rows(X)
        out = np.empty(len(X))
        in_parallel(partial(self._mean_of_cells, rows, out), rows.batches())
        return out

    def _mean_of_cells(self, rows: SortedRows, out: Array, cells: IntArray) -> None:
        tree = self.tree.dissection
        weights, work = tree.in_tree_order(self.mean), self.tree.workspace()
        for leaf, begin, end in cells.tolist():
            places, Z = self.tree.features_of(rows, leaf, begin, end, work)
            out[rows.order[begin:end]] = weights[tree.columns(leaf)[places]] @ Z

    def covariance(self, X: Array) -> Array:
        """Covariance of f at the rows of X, without noise, shape (n, n)."""
        V = self.tree.in_columns(X) * self.tree.dissection.in_tree_order(self._scale)[:, None]
        self.factor.forward(V)
        return V.T @ V

    def leave_one_out(
        self, X: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> Marginals:
        """Predictions of training rows as if each were unseen, by their leverages; no refit."""
        p = self.predict(X, with_noise=False)
        own = self.noise_variance * noise
        rest = np.maximum(1.0 - weights * p.variance / own, 1e-12)
        return Marginals(y - (y - p.mean) / rest, p.variance / rest + own)

    def rescaled(self, factor: float) -> TreePosterior:
        """The posterior for prior and noise variances larger by a factor: the same mean, wider."""
        wider = replace(
            self,
            whitened_mean=self.whitened_mean / np.sqrt(factor),
            prior_variances=self.prior_variances * factor,
            noise_variance=self.noise_variance * factor,
        )
        if "inverse" in self.__dict__:  # M stays what it was
            wider.__dict__["inverse"] = self.inverse
        return wider

    def sample_weights(self, count: int, rng: np.random.Generator) -> Array:
        """Draws of w, shape (p, count); each is a whole function z(·)ᵀw."""
        drawn = rng.normal(size=(len(self.whitened_mean), count))
        self.factor.backward(drawn)
        whitened = self.tree.dissection.in_original_order(drawn) + self.whitened_mean[:, None]
        return self._scale[:, None] * whitened


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
