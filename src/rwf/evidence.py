r"""log p(y | θ, λ, σ²) and its gradient.

Variances need the posterior alone; the shape θ needs the rows, through

.. math:: \frac{\partial \log p}{\partial Z} = \frac{1}{\sigma^2}\left[r\, m^\top - Z S\right],
    \qquad r = y - Zm,

which each feature map pulls back to its own parameters. λ is tied within groups of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rwf.posterior import Posterior, posterior_of_rows
from rwf.rows import Block
from rwf.types import Array, FloatArray, IntArray


@dataclass(frozen=True)
class VarianceGradient:
    """Gradient of the evidence by log σ² and by the log prior variance of each group."""

    log_noise: float
    log_priors: Array


def variance_gradient(posterior: Posterior, groups: IntArray, n_groups: int) -> VarianceGradient:
    r"""The gradient from one posterior.

    ∂/∂log λ_g = ½ Σ_g (m_j²/λ_j + S_jj/λ_j - 1) and ∂/∂log σ² = ½(‖r‖²/σ² - n + γ).
    """
    shrinkage = posterior.factor.inverse_diagonal()  # S_jj/λ_j
    return _variance_gradient(posterior, shrinkage, groups, n_groups)


def _variance_gradient(
    posterior: Posterior, shrinkage: Array, groups: IntArray, n_groups: int
) -> VarianceGradient:
    per_column = 0.5 * (posterior.whitened_mean**2 + shrinkage - 1.0)
    effective = len(shrinkage) - float(shrinkage.sum())
    per_group = np.bincount(groups, weights=per_column, minlength=n_groups)
    return VarianceGradient(
        0.5 * (posterior.rss / posterior.noise_variance - posterior.n + effective),
        np.asarray(per_group, dtype=np.float64),
    )


class Shaped(Protocol):
    """What the gradient needs of a feature map."""

    def __call__(self, X: Array) -> FloatArray: ...

    def pull_back(self, X: Array, R: Array) -> Array: ...


@dataclass(frozen=True)
class Evidence:
    """log p(y) of all outputs together, and its gradient.

    Args:
        value: log p(y).
        log_noise: gradient by log σ² of each output, shape (k,).
        log_priors: gradient by the log prior variance of each group, which the outputs share.
        theta: gradient by the shape parameters.
    """

    value: float
    log_noise: Array
    log_priors: Array
    theta: Array


def evidence(
    features: Shaped, rows: Block, groups: IntArray, log_priors: Array, log_noise: Array
) -> Evidence:
    """The evidence of weighted rows under given features and variances, with all gradients."""
    root = np.sqrt(rows.weights)[:, None]
    Z = np.asarray(features(rows.X), dtype=np.float64) * root
    Y = rows.y * root
    prior_variances, n = np.exp(log_priors)[groups], float(rows.weights.sum())
    scale = np.sqrt(prior_variances)
    value, R = 0.0, np.zeros_like(Z)
    d_noise, d_priors = np.zeros(len(log_noise)), np.zeros(len(log_priors))
    for k, noise in enumerate(np.exp(log_noise)):
        posterior = posterior_of_rows(Z, Y[:, k], prior_variances, float(noise), n=n)
        inverse = posterior.factor.inverse()
        gradient = _variance_gradient(posterior, inverse.diagonal(), groups, len(log_priors))
        value += posterior.log_evidence
        d_noise[k], d_priors = gradient.log_noise, d_priors + gradient.log_priors
        residual = Y[:, k] - Z @ posterior.mean
        R += (np.outer(residual, posterior.mean) - Z @ (scale[:, None] * inverse * scale)) / noise
    return Evidence(value, d_noise, d_priors, features.pull_back(rows.X, R * root))
