r"""The Gaussian over the weights, and what it predicts.

With prior w ~ N(0, Λ), y = Zw + ε and ε ~ N(0, σ²), the whitened weights Λ^{-½}w have precision

.. math:: M = I + \Lambda^{1/2} Z^\top Z \Lambda^{1/2} / \sigma^2 = LL^\top,

and everything follows from L: the mean, the predictive variance
:math:`\|L^{-1}\Lambda^{1/2}z\|^2 + \sigma^2`, a sum of squares that cannot be negative, samples of
whole functions, and the evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array, IntArray
from rwf.linalg.dense import Factor, factor_matrix


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
class LeftOut:
    """The rows of a group, predicted from all other groups."""

    y: Marginals  # noise included
    log_density: float  # log p of all of them together


def runs(groups: IntArray) -> Iterator[slice]:
    """The rows of one group after the other, where those of a group are next to each other."""
    ends = np.flatnonzero(np.diff(groups, append=groups.max(initial=0) + 1)) + 1
    start = 0
    for end in ends.tolist():
        yield slice(start, end)
        start = end


@dataclass(frozen=True)
class WeightPosterior(ABC):
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

    def leave_out(
        self, rows: Array, y: Array, weights: Array, noise: Array, groups: IntArray | None
    ) -> Marginals:
        """Marginals of training rows, each left out, or each group, whose rows are consecutive."""
        if groups is None:
            return self.leave_one_out(rows, y, weights, noise)
        mean, variance = np.empty((2, len(y)))
        for its in runs(groups):
            p = self.leave_group_out(rows[its], y[its], weights[its], noise[its]).y
            mean[its], variance[its] = p.mean, p.variance
        return Marginals(mean, variance)

    @abstractmethod
    def covariance_of(self, Z: Array) -> Array:
        """Covariance of Zw for any rows Z over the columns, shape (n, n)."""

    @abstractmethod
    def leave_one_out(self, rows: Array, y: Array, weights: Array, noise: Array) -> Marginals:
        """Marginals of training rows as if each were unseen, without a refit."""

    @abstractmethod
    def leave_group_out(self, rows: Array, y: Array, weights: Array, noise: Array) -> LeftOut:
        """All rows of a group as if none of them were seen, without a refit."""

    def unseen_group(
        self, mean: Array, C: Array, y: Array, weights: Array, noise: Array | float
    ) -> LeftOut:
        r"""Training rows predicted from all others, from the mean and covariance of f at them.

        With residuals r and precisions P = diag(w/σ²v), the covariance and residuals of f without
        these rows are

        .. math:: C_- = C + CP^{1/2} B^{-1} P^{1/2} C, \quad r_- = r + C P^{1/2} B^{-1} P^{1/2} r,
            \quad B = I - P^{1/2} C P^{1/2},

        of which :meth:`unseen` is the case of one row.
        """
        own = np.broadcast_to(self.noise_variance * noise, y.shape)
        root, residual = np.sqrt(weights / own), y - mean
        factor = factor_matrix(np.eye(len(y)) - root[:, None] * C * root)
        T = solve_triangular(factor.L, root[:, None] * np.column_stack([C, residual]), lower=True)
        left = residual + T[:, :-1].T @ T[:, -1]
        variance = C.diagonal() + np.einsum("ij,ij->j", T[:, :-1], T[:, :-1])
        density = _joint_log_density(residual, left, weights, own, factor.log_determinant)
        return LeftOut(Marginals(y - left, variance + own), density)


def _joint_log_density(
    residual: Array, left: Array, weights: Array, own: Array, log_determinant: float
) -> float:
    """log p of the rows of a group given all others, from both residuals, and log|B|."""
    seen = weights > 0
    volume = float(weights[seen] @ np.log(2 * np.pi * own[seen])) - float(
        np.log(weights[seen]).sum()
    )
    return -0.5 * (float(residual @ (weights * left / own)) - log_determinant + volume)


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

    def covariance_of(self, Z: Array) -> Array:
        V = self._whiten(Z)
        return V @ V.T

    def leave_one_out(
        self, Z: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> Marginals:
        """Marginals of training rows as if each were unseen, without a refit."""
        V = self._whiten(Z)
        return self.unseen(Marginals(Z @ self.mean, np.einsum("np,np->n", V, V)), y, weights, noise)

    def leave_group_out(
        self, Z: Array, y: Array, weights: Array, noise: Array | float = 1.0
    ) -> LeftOut:
        """All rows of a group as if none of them were seen, without a refit.

        By a matrix over the rows, or over the columns if these are fewer.
        """
        if len(Z) <= Z.shape[1]:
            return self.unseen_group(Z @ self.mean, self.covariance_of(Z), y, weights, noise)
        rest = self.without([(Z, y, weights, noise)])
        p, own = rest.predict(Z, noise), np.broadcast_to(self.noise_variance * noise, y.shape)
        determinant = rest.factor.log_determinant - self.factor.log_determinant
        residual = y - Z @ self.mean
        return LeftOut(p, _joint_log_density(residual, y - p.mean, weights, own, determinant))

    def without(self, parts: Iterable[tuple[Array, Array, Array, Array | float]]) -> Posterior:
        r"""The posterior of all rows but some, given in parts: their Z, y, weights and noise.

        .. math:: M_- = M - A^\top A = L(I - VᵀV)L^\top, \qquad
            \mu_- = \mu - M_-^{-1} A^\top r,

        with rows A = P^½ZΛ^½ and V = AL⁻ᵀ, and their residuals r times P^½. Evidence and residuals
        are not those of the rows that are left.
        """
        p = len(self.whitened_mean)
        D, b, n = np.eye(p), np.zeros(p), self.n
        for Z, y, weights, noise in parts:
            root = np.sqrt(weights / (self.noise_variance * noise))
            V = self._whiten(Z) * root[:, None]
            D -= V.T @ V
            b += V.T @ (root * (y - Z @ self.mean))
            n -= float(weights.sum())
        rest = factor_matrix(D)
        step = solve_triangular(self.factor.L, rest.solve(b), lower=True, trans="T")
        L = np.asfortranarray(self.factor.L @ rest.L)
        factor = Factor(L, self.factor.jitter)
        return replace(self, whitened_mean=self.whitened_mean - step, factor=factor, n=n)

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
