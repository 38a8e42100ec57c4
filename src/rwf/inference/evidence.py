r"""log p(y | θ, λ, σ²) and its gradient.

Variances need the posterior alone; the shape θ needs the rows, through

.. math:: \frac{\partial \log p}{\partial Z} = \frac{1}{\sigma^2}\left[r\, m^\top - Z S\right],
    \qquad r = y - Zm,

which each feature map pulls back to its own parameters. λ is tied within groups of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.features.base import Features
from rwf.inference.moments import accumulate, accumulate_root, joint_rows, row_buffer
from rwf.inference.posterior import Posterior, WeightPosterior
from rwf.linalg.dense import (
    add_outer,
    factor_matrix,
    lower_of_inverse,
    multiply_rows,
    multiply_symmetric,
)

TO_SPARE = 1e-6  # share of the noise that moments resolve, up to which means need no refinement

SINGLE_ROWS = 500
"""Rows from which the inverse in the gradient of the exact evidence is in single precision."""

SINGLE_NOISE = 3e-7
"""Noise, over the largest variance of f, down to which the gradient then has four digits."""


@dataclass(frozen=True)
class VarianceGradient:
    """Gradient of the evidence by log σ² and by the log prior variance of each group."""

    log_noise: float
    log_priors: Array


def variance_gradient(
    posterior: WeightPosterior, groups: IntArray, n_groups: int, shrinkage: Array | None = None
) -> VarianceGradient:
    r"""The gradient from one posterior, and S_jj/λ_j if it is known.

    ∂/∂log λ_g = ½ Σ_g (m_j²/λ_j + S_jj/λ_j - 1) and ∂/∂log σ² = ½(‖r‖²/σ² - n + γ).
    """
    if shrinkage is None:
        shrinkage = posterior.factor.inverse_diagonal()
    per_column = 0.5 * (posterior.whitened_mean**2 + shrinkage - 1.0)
    effective = len(shrinkage) - float(shrinkage.sum())
    per_group = np.bincount(groups, weights=per_column, minlength=n_groups)
    return VarianceGradient(
        0.5 * (posterior.rss / posterior.noise_variance - posterior.n + effective),
        np.asarray(per_group, dtype=np.float64),
    )


class DifferentiableFeatures(Features, Protocol):
    """A feature map that can pull gradients back."""

    def pull_back(self, X: Array, R: Array) -> Array: ...


@dataclass(frozen=True)
class Evidence:
    """log p(y) of all outputs together, and its gradient."""

    value: float  # log p(y)
    log_noise: Array  # gradient by log σ² of each output, shape (k,)
    log_priors: Array  # gradient by the log prior variance of each group of columns
    theta: Array  # gradient by the shape parameters


def evidence(
    features: DifferentiableFeatures,
    rows: Block,
    groups: IntArray,
    log_priors: Array,
    log_noise: Array,
) -> Evidence:
    """The evidence of weighted rows under given features and variances, with all gradients.

    Two passes compute the features, which is faster than reading them from memory.
    """
    p, k = features.n_features, len(log_noise)
    prior_variances, noise = np.exp(log_priors)[groups], np.exp(log_noise)
    buffer = row_buffer(p + k)
    posteriors = _posteriors(features, rows, prior_variances, noise, buffer)
    shrinkage, B = [], np.eye(p + k)  # [∂log p/∂Z  r] = [Z y] B
    B[:p] = 0.0
    scale = np.sqrt(prior_variances)
    for i, posterior in enumerate(posteriors):
        inverse, m = posterior.factor.inverse(), posterior.mean
        shrinkage.append(inverse.diagonal().copy())
        B[:p, :p] -= (scale[:, None] * inverse * scale + np.outer(m, m)) / noise[i]
        B[p + i, :p], B[:p, p + i] = m / noise[i], -m
    rss, thetas, out = np.zeros(k), [], np.empty_like(buffer)
    for part, W in joint_rows(features, rows, buffer):
        V, root = out[: len(part)], part.root_precision
        multiply_rows(W, B, V)
        rss += np.einsum("nk,nk->k", V[:, p:], V[:, p:])
        if (root != 1.0).any():
            V *= root
        thetas.append(features.pull_back(part.X, V[:, :p]))
    value, d_noise, d_priors = 0.0, np.zeros(k), np.zeros(len(log_priors))
    for i, posterior in enumerate(posteriors):
        posterior = replace(posterior, rss=float(rss[i]))
        gradient = variance_gradient(posterior, groups, len(log_priors), shrinkage[i])
        value += posterior.log_evidence
        d_noise[i], d_priors = gradient.log_noise, d_priors + gradient.log_priors
    return Evidence(value, d_noise, d_priors, np.sum(thetas, axis=0))


def _posteriors(
    features: DifferentiableFeatures,
    rows: Block,
    prior_variances: Array,
    noise: Array,
    buffer: Array,
) -> list[Posterior]:
    """p(w | y) of every output, by the cheapest form of the moments that resolves the noise."""
    k, p = len(noise), features.n_features
    moments = accumulate(features, [rows], k)
    floor = moments.resolvable_noise(prior_variances) / float(noise.min())
    if floor >= 1.0:
        root = accumulate_root(features, [rows], k)
        return [root.posterior(i, prior_variances, float(noise[i])) for i in range(k)]
    posteriors = [moments.posterior(i, prior_variances, float(noise[i])) for i in range(k)]
    if floor < TO_SPARE:
        return posteriors
    means = np.column_stack([posterior.mean for posterior in posteriors])
    Ztr = np.zeros((p, k))
    for _, W in joint_rows(features, rows, buffer):
        Ztr += W[:, :p].T @ (W[:, p:] - W[:, :p] @ means)
    return [posterior.refined(Ztr[:, i]) for i, posterior in enumerate(posteriors)]


class DifferentiableKernel(Protocol):
    """What the exact evidence needs of a kernel: lower triangles in Fortran's order."""

    def lower(self, X: Array) -> Array: ...

    def pull_back(self, X: Array, G: Array) -> Array: ...


def exact_evidence(
    kernel: DifferentiableKernel,
    rows: Block,
    trend: Array,
    groups: IntArray,
    log_priors: Array,
    log_noise: Array,
) -> Evidence:
    r"""The evidence of weighted rows, with all gradients; ``groups`` are those of Z's columns.

    With α = C⁻¹y, ∂log p/∂C = ½(ααᵀ - C⁻¹), summed over outputs. Of symmetric matrices there are
    lower triangles only.
    """
    n, weights, diagonal = len(rows), rows.weights, np.diag_indices(len(rows))
    scaled = trend * np.exp(0.5 * log_priors)[groups]
    K = kernel.lower(rows.X)
    add_outer(K, scaled)
    prior, repeats = K[diagonal], float((weights - 1.0).sum())
    resolved = SINGLE_NOISE * float(prior.max()) if n >= SINGLE_ROWS else np.inf
    value = -0.5 * float(np.log(weights).sum()) * len(log_noise)
    inverses, alphas, d_noise = [], np.empty_like(rows.y), np.zeros(len(log_noise))
    for k, noise in enumerate(np.exp(log_noise)):
        K[diagonal] = prior + noise / weights
        factor = factor_matrix(K)
        half = solve_triangular(factor.L, rows.y[:, k], lower=True, check_finite=False)
        alpha = solve_triangular(factor.L, half, lower=True, trans="T", check_finite=False)
        inverse = lower_of_inverse(factor.L, single=noise > resolved)
        value -= 0.5 * (float(half @ half) + factor.log_determinant + n * np.log(2 * np.pi))
        value -= 0.5 * repeats * np.log(2 * np.pi * noise)
        by_diagonal = 0.5 * (alpha**2 - inverse[diagonal])
        d_noise[k] = float(noise * (by_diagonal @ (1.0 / weights))) - 0.5 * repeats
        alphas[:, k] = alpha
        inverses.append(inverse)
    G = sum(inverses[1:], start=inverses[0])
    add_outer(G, alphas, 0.5, -0.5)
    per_column = np.einsum("nq,nq->q", scaled, multiply_symmetric(G, scaled))
    d_priors = np.bincount(groups, weights=per_column, minlength=len(log_priors))
    return Evidence(value, d_noise, d_priors.astype(np.float64), kernel.pull_back(rows.X, G))
