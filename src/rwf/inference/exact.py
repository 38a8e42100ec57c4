r"""The evidence of an exact Gaussian process on a few rows, with all gradients: O(n³).

.. math:: \log p(y) = \log \mathcal N(y;\, 0,\, K + Z\Lambda Z^\top + \sigma^2 W^{-1}), \qquad
    \frac{\partial \log p}{\partial K} = \tfrac12(\alpha\alpha^\top - C^{-1})

K is a kernel, Z the columns of a trend, W the weights of the rows. A row of weight w stands for w
equal rows, whose evidence differs from that of one row with noise σ²/w by a term in σ² alone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array, FloatArray, IntArray
from rwf.data.rows import Block
from rwf.inference.evidence import Evidence
from rwf.linalg.cholesky import factor_matrix


class DifferentiableKernel(Protocol):
    """What the exact evidence needs of a kernel."""

    def __call__(self, X: FloatArray, T: Array) -> Array: ...

    def pull_back(self, X: Array, G: Array) -> Array: ...


def exact_evidence(
    kernel: DifferentiableKernel,
    rows: Block,
    trend: Array,
    groups: IntArray,
    log_priors: Array,
    log_noise: Array,
) -> Evidence:
    """The evidence of weighted rows, with all gradients; ``groups`` are those of Z's columns."""
    n, weights = len(rows), rows.weights
    scaled = trend * np.exp(0.5 * log_priors)[groups]
    K = kernel(rows.X, rows.X) + scaled @ scaled.T
    G, value = np.zeros((n, n)), -0.5 * float(np.log(weights).sum()) * len(log_noise)
    d_noise = np.zeros(len(log_noise))
    for k, noise in enumerate(np.exp(log_noise)):
        factor = factor_matrix(K + np.diag(noise / weights))
        half = solve_triangular(factor.L, rows.y[:, k], lower=True, check_finite=False)
        alpha = solve_triangular(factor.L, half, lower=True, trans="T", check_finite=False)
        by_K = 0.5 * (np.outer(alpha, alpha) - factor.inverse())
        repeats = float((weights - 1.0).sum())
        value -= 0.5 * (float(half @ half) + factor.log_determinant + n * np.log(2 * np.pi))
        value -= 0.5 * repeats * np.log(2 * np.pi * noise)
        d_noise[k] = float(noise * (by_K.diagonal() @ (1.0 / weights))) - 0.5 * repeats
        G += by_K
    per_column = np.einsum("nq,nq->q", scaled, G @ scaled)
    d_priors = np.bincount(groups, weights=per_column, minlength=len(log_priors))
    return Evidence(value, d_noise, d_priors.astype(np.float64), kernel.pull_back(rows.X, G))
