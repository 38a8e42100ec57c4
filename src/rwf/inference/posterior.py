r"""The Gaussian over the weights, and what it predicts.

With prior w ~ N(0, Λ), y = Zw + ε and ε ~ N(0, σ²), the whitened weights Λ^{-½}w have precision

.. math:: M = I + \Lambda^{1/2} Z^\top Z \Lambda^{1/2} / \sigma^2 = LL^\top,

and everything follows from L: the mean, the predictive variance
:math:`\|L^{-1}\Lambda^{1/2}z\|^2 + \sigma^2`, a sum of squares that cannot be negative, samples of
whole functions, and the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array
from rwf.linalg.dense import Factor


@dataclass(frozen=True)
class Marginals:
    """Mean and variance at n rows, one output."""

    mean: Array
    variance: Array


def normal_log_density(error: Array, variance: Array) -> Array:
    """log N(error; 0, variance)."""
    return -0.5 * (np.log(2 * np.pi * variance) + error**2 / variance)


class AnyFactor(Protocol):
    """The triangular factor of M, dense or multifrontal."""

    @property
    def jitter(self) -> float: ...

    @property
    def log_determinant(self) -> float: ...

    def inverse_diagonal(self) -> Array: ...


@dataclass(frozen=True)
class WeightPosterior:
    """p(w | y) for one output, by either solver."""

    whitened_mean: Annotated[Array, "p"]  # Λ^{-½}m, shape (p,)
    factor: AnyFactor  # the triangular factor of M
    prior_variances: Annotated[Array, "p"]  # the diagonal of Λ, shape (p,)
    noise_variance: float  # σ²
    rss: float  # ‖y - Zm‖²
    n: float  # number of rows, or their total weight
    log_volume: float = 0.0  # Σ log v of the rows, if their noise is heteroscedastic

    @property
    def scale(self) -> Array:
        """The diagonal of Λ^½, shape (p,)."""
        return np.sqrt(self.prior_variances)

    @property
    def mean(self) -> Array:
        """m, shape (p,)."""
        return self.scale * self.whitened_mean

    @property
    def log_evidence(self) -> float:
        r"""log p(y) = -½[‖r‖²/σ² + mᵀΛ⁻¹m + log|M| + n log 2πσ² + Σ log v]: nothing cancels."""
        return -0.5 * (
            self.rss / self.noise_variance
            + float(self.whitened_mean @ self.whitened_mean)
            + self.factor.log_determinant
            + self.n * float(np.log(2 * np.pi * self.noise_variance))
            + self.log_volume
        )

    def unseen(self, f: Marginals, y: Array, weights: Array, noise: Array | float) -> Marginals:
        """Each training row predicted from the others, by its leverage, from the marginals of f."""
        own = self.noise_variance * noise
        rest = np.maximum(1.0 - weights * f.variance / own, 1e-12)
        return Marginals(y - (y - f.mean) / rest, f.variance / rest + own)


@dataclass(frozen=True)
class Posterior(WeightPosterior):
    """p(w | y) for one output, from one dense factor."""

    factor: Factor

    def _whiten(self, Z: Array, room: Array | None = None) -> Array:
        """Rows L⁻¹Λ^½z, shape (n, p): their squared norms are the variances of f."""
        V = np.empty(Z.shape) if room is None else room[: len(Z)]
        np.multiply(Z, self.scale, out=V)
        self.factor.whiten(V)
        return V

    def predict(self, Z: Array, noise: Array | float = 1.0, room: Array | None = None) -> Marginals:
        """Marginals of y at rows with noise σ² times ``noise``, computed in ``room`` if given."""
        V = self._whiten(Z, room)
        variance = np.einsum("np,np->n", V, V) + self.noise_variance * noise
        return Marginals(Z @ self.mean, variance)

    def covariance(self, Z: Array) -> Array:
        """Covariance of f at the rows of Z, without noise, shape (n, n)."""
        V = self._whiten(Z)
        return V @ V.T

    def leave_one_out(
        self, Z: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> Marginals:
        """Marginals of training rows as if each were unseen, without a refit."""
        V = self._whiten(Z)
        return self.unseen(Marginals(Z @ self.mean, np.einsum("np,np->n", V, V)), y, weights, noise)

    def refined(self, Ztr: Array) -> Posterior:
        """The same with one step of refinement of its mean, from Zᵀ(y - Zm) of the rows."""
        defect = self.scale * Ztr / self.noise_variance - self.whitened_mean
        return replace(self, whitened_mean=self.whitened_mean + self.factor.solve(defect))

    def weight_covariance(self) -> Array:
        """S = Λ^½M⁻¹Λ^½, shape (p, p)."""
        return self.scale[:, None] * self.factor.inverse() * self.scale

    def sample_weights(self, count: int, rng: np.random.Generator) -> Array:
        """Draws of w, shape (p, count); each is a whole function z(·)ᵀw."""
        noise = rng.normal(size=(len(self.whitened_mean), count))
        drawn = solve_triangular(self.factor.L, noise, lower=True, trans="T", check_finite=False)
        return self.scale[:, None] * (self.whitened_mean[:, None] + drawn)
