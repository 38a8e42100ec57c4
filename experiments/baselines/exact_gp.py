r"""An exact Gaussian process: the stationary competitor, fitted by marginal likelihood.

.. math::
    k(x, x') = a^2 \kappa(r) + \beta^2 x^\top x' / d + \gamma^2,
    \qquad r^2 = \sum_j (x_j - x'_j)^2 / \ell_j^2,

with :math:`\kappa` squared exponential or Matérn, noise of variance σ², and all parameters found by
L-BFGS on the evidence with its exact gradient. Reference: Rasmussen and Williams (2006), Gaussian
Processes for Machine Learning, sections 2.3, 4.2 and 5.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.optimize import OptimizeResult, minimize

from rwf._types import Array

MAX_ROWS, SUBSET = 2048, 1000
"""Up to so many rows all are used, as the cost is cubic; of more, a sample of so many."""

FEW_STARTS, MANY_STARTS = 3, 6
"""In up to three columns, and in more: on energy, only the last starts find the best noise."""

Profile = Callable[[Array], tuple[Array, Array]]
"""κ and dκ/dq of the squared distances q = r²."""


def squared_exponential(q: Array) -> tuple[Array, Array]:
    """κ = e^(−q/2)."""
    E = np.exp(-0.5 * q)
    return E, -0.5 * E


def matern32(q: Array) -> tuple[Array, Array]:
    """κ = (1 + √3 r) e^(−√3 r)."""
    r = np.sqrt(3 * q)
    E = np.exp(-r)
    return (1 + r) * E, -1.5 * E


def matern52(q: Array) -> tuple[Array, Array]:
    """κ = (1 + √5 r + 5r²/3) e^(−√5 r)."""
    r = np.sqrt(5 * q)
    E = np.exp(-r)
    return (1 + r + r**2 / 3) * E, -5 / 6 * (1 + r) * E


def matern12(q: Array) -> tuple[Array, Array]:
    """κ = e^(−r), whose slope in q has no limit at zero.

    Pairs of rows at one place get slope zero: what it would multiply, (u_n − u_m)², is zero.
    """
    r = np.sqrt(q)
    E = np.exp(-r)
    return E, -0.5 * np.divide(E, r, out=np.zeros_like(E), where=r > 0)


KERNELS: Mapping[str, Profile] = MappingProxyType(
    {"se": squared_exponential, "matern32": matern32, "matern52": matern52}
)

ROUGH_KERNELS: Mapping[str, Profile] = MappingProxyType({"matern12": matern12})


@dataclass(frozen=True)
class Parameters:
    """θ: logarithms of d length-scales, then of a², β², γ² and σ²."""

    lengths: Array
    amplitude: float
    linear: float
    constant: float
    noise: float

    @classmethod
    def from_theta(cls, theta: Array) -> Parameters:
        values = np.exp(theta)
        return cls(values[:-4], *(float(v) for v in values[-4:]))


BOUNDS = ((1e-2, 1e3), (1e-3, 1e4), (1e-6, 1e3), (1e-6, 1e3), (1e-8, 1e1))
"""Of each ℓ, and of a², β², γ², σ², for standardised columns and targets."""

SHORTEST = 1e-4
"""The lower bound of ℓ where there is but one column."""


def squared_distances(U: Array, V: Array) -> Array:
    """‖u − v‖² of all rows, by one product."""
    Q = -2 * U @ V.T
    Q += np.einsum("nd,nd->n", U, U)[:, None]
    Q += np.einsum("nd,nd->n", V, V)
    return np.maximum(Q, 0, out=Q)


def covariance(profile: Profile, p: Parameters, X: Array, V: Array) -> Array:
    """k(x, v) of all rows, shape (n, m), without the noise."""
    kappa, _ = profile(squared_distances(X / p.lengths, V / p.lengths))
    K: Array = p.amplitude * kappa + p.linear / X.shape[1] * (X @ V.T) + p.constant
    return K


def variances(p: Parameters, X: Array) -> Array:
    """k(x, x) of every row, shape (n,)."""
    linear: Array = p.linear / X.shape[1] * np.einsum("nd,nd->n", X, X)
    return p.amplitude + linear + p.constant


def cholesky(K: Array) -> tuple[Array, float]:
    """L with LLᵀ = K + jitter·I: none, or the least power of ten that succeeds; and the jitter."""
    size = float(np.mean(np.diag(K)))
    for jitter in (0.0, *(size * 10.0**k for k in range(-12, 0))):
        A = K.T.copy(order="F")  # K is symmetric
        A[np.diag_indices(len(A))] += jitter
        L, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        if info == 0:
            return L, jitter
    raise np.linalg.LinAlgError(
        f"a covariance of {len(K)} rows has no Cholesky factor with jitter {jitter:.3g}. "
        "Look for non-finite inputs."
    )


def log_evidence(profile: Profile, theta: Array, X: Array, y: Array) -> tuple[float, Array]:
    r"""log p(y | θ) and its gradient.

    .. math::
        \partial L = \operatorname{tr}(W\, \partial K), \quad
        W = \tfrac12 (\alpha\alpha^\top - K^{-1}), \quad
        \sum_{nm} H_{nm} (u_n - u_m)^2 = 2\, h^\top u^2 - 2\, u^\top H u

    for symmetric H of row sums h, so the length-scales need products of n × n by n × d only.
    """
    n, d = X.shape
    p = Parameters.from_theta(theta)
    U = X / p.lengths
    Q = squared_distances(U, U)
    np.fill_diagonal(Q, 0)
    kappa, slope = profile(Q)
    XXt = X @ X.T
    K = p.amplitude * kappa + p.linear / d * XXt + p.constant
    K[np.diag_indices(n)] += p.noise
    L, _ = cholesky(K)
    alpha = lapack.dpotrs(L, y, lower=1)[0]
    value = -0.5 * y @ alpha - np.log(np.diag(L)).sum() - 0.5 * n * np.log(2 * np.pi)

    inverse = lapack.dpotri(L, lower=1, overwrite_c=1)[0]
    inverse += np.tril(inverse, -1).T  # its upper triangle is the factor's, zero
    W = np.outer(alpha, alpha)
    W -= inverse.T
    W *= 0.5
    H = (-2 * p.amplitude) * W
    H *= slope
    lengths = 2 * (H.sum(axis=1) @ U**2 - np.einsum("nd,nd->d", U, H @ U))
    others = (
        p.amplitude * np.vdot(W, kappa),
        p.linear / d * np.vdot(W, XXt),
        p.constant * W.sum(),
        p.noise * np.trace(W),
    )
    return float(value), np.array([*lengths, *others])


class ExactGP:
    """Exact GP regression in standardised units.

    Args:
        kernel: "se", "matern12", "matern32" or "matern52".
        random_state: seed of the starts and of the sample of rows.
        n_starts: short runs of which the best is continued; by default FEW_STARTS or MANY_STARTS.
        short: iterations of each start.
        max_iter: iterations of the best, the short ones included.
        conditioned: rows of the posterior, at most, with parameters learned on at most ``subset``
            of them; without it, one set of rows serves for both.
        subset: rows on which parameters are learned, at most, after starts are compared on SUBSET
            of them; by default SUBSET.
        whole: up to so many rows, all of them take part in the posterior.
    """

    def __init__(
        self,
        kernel: str,
        random_state: int,
        n_starts: int | None = None,
        short: int = 15,
        max_iter: int = 60,
        conditioned: int | None = None,
        subset: int | None = None,
        whole: int = 0,
    ) -> None:
        self.profile = {**KERNELS, **ROUGH_KERNELS}[kernel]
        self.random_state = random_state
        self.n_starts = n_starts
        self.short = short
        self.max_iter = max_iter
        self.conditioned = conditioned
        self.subset = subset
        self.whole = whole

    def fit(self, X: Array, y: Array) -> Self:
        rng = np.random.default_rng(self.random_state)
        self._n_available = len(y)
        n, subset = len(y), self.subset or SUBSET
        if self.conditioned is None:
            used = learned = rng.permutation(n)[:subset] if n > MAX_ROWS else np.arange(n)
        else:
            used = rng.permutation(n)[: n if n <= self.whole else self.conditioned]
            learned = used[:subset]
        theta = self._best_theta(X[learned], y[learned], rng)
        return self.condition(X[used], y[used], theta)

    def _best_theta(self, X: Array, y: Array, rng: np.random.Generator) -> Array:
        d = X.shape[1]
        n_starts = self.n_starts or (FEW_STARTS if d <= 3 else MANY_STARTS)
        starts = [start(d, rng, k) for k in range(n_starts)]
        first = slice(None if self.subset is None else SUBSET)
        runs = [self._ascend(theta, X[first], y[first], self.short) for theta in starts]
        self._evidences = [-float(run.fun) for run in runs]
        best = min(runs, key=lambda run: float(run.fun))
        final = self._ascend(best.x, X, y, self.max_iter - self.short)
        return np.asarray(final.x)

    def _ascend(self, theta: Array, X: Array, y: Array, max_iter: int) -> OptimizeResult:
        def negative(t: Array) -> tuple[float, Array]:
            value, gradient = log_evidence(self.profile, t, X, y)
            return -value / len(y), -gradient / len(y)

        return minimize(
            negative,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=log_bounds(X.shape[1]),
            options={"maxiter": max_iter},
        )

    def condition(self, X: Array, y: Array, theta: Array) -> Self:
        """The posterior given rows, at given parameters."""
        self._X, self._theta = X, theta
        self._parameters = p = Parameters.from_theta(theta)
        K = covariance(self.profile, p, X, X)
        K[np.diag_indices(len(y))] += p.noise
        self._L, self._jitter = cholesky(K)
        self._alpha = lapack.dpotrs(self._L, y, lower=1)[0]
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, latent = self._latent(X)
        return mean, np.sqrt(latent + self._parameters.noise + self._jitter)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        mean, latent = self._latent(X)
        return mean, np.sqrt(latent)

    def _latent(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f."""
        blocks = [self._predict(block) for block in np.array_split(X, 1 + len(X) // 2000)]
        mean, variance = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return mean, variance

    def _predict(self, X: Array) -> tuple[Array, Array]:
        p = self._parameters
        cross = covariance(self.profile, p, self._X, X)
        V = solve_triangular(self._L, cross, lower=True)
        latent = variances(p, X) - np.einsum("nm,nm->m", V, V)
        # A difference of equal numbers where the data pin f down: rounding may leave it below zero.
        return cross.T @ self._alpha, np.maximum(latent, 0)

    def facts(self) -> Mapping[str, object]:
        low, high = np.array(log_bounds(self._X.shape[1])).T
        at_bound = np.flatnonzero((self._theta <= low) | (self._theta >= high))
        return {
            "noise_variance": self._parameters.noise,
            "n_rows": len(self._X),
            "subset": len(self._X) < self._n_available,
            "evidence_by_start": self._evidences,
            "n_at_bounds": len(at_bound),
            "jitter": self._jitter,
        }


def start(d: int, rng: np.random.Generator, index: int) -> Array:
    """θ to start from: ℓ = √d, perturbed but in the first start, and noise 0.1, 0.03, 0.01, …

    Signals over one column may vary a thousand times along it: there ℓ is 1, 0.1, 0.01, …, since
    from too long an ℓ learning ends with all being noise.
    """
    lengths = 0.5 * np.log(d) + 0.3 * rng.normal(size=d) * (index > 0)
    if d == 1:
        lengths -= np.log(10) * index
    return np.array([*lengths, 0.0, np.log(0.1), np.log(0.1), np.log(0.1) - 1.15 * index])


def log_bounds(d: int) -> list[tuple[float, float]]:
    lengths, *others = [(float(np.log(low)), float(np.log(high))) for low, high in BOUNDS]
    if d == 1:
        lengths = (float(np.log(SHORTEST)), lengths[1])
    return [lengths] * d + others
