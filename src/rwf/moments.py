r"""Sufficient statistics of Bayesian linear regression. They add over rows, so data can stream.

:class:`Moments` holds G = ZᵀZ, b = Zᵀy, yᵀy and n. :class:`RootMoments` holds the triangular factor
R of the same matrix, :math:`[Z\;y]^\top[Z\;y] = R^\top R`: it adds too, costs about three times as
much, and resolves noise far below what a Gram matrix can. Streaming, ``partial_fit``, merging and
distributed fitting are all ``a + b``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular

from rwf.blas import add_gram
from rwf.factorization import (
    factor_gram,
    gram_resolves_identity,
    resolvable_identity,
    stack_triangle,
)
from rwf.posterior import Posterior, posterior_of_rows
from rwf.rows import Block
from rwf.threads import one_blas_thread
from rwf.types import Array, FloatArray


class Features(Protocol):
    """What accumulation needs of a feature map."""

    @property
    def n_features(self) -> int: ...

    def __call__(self, X: Array) -> FloatArray: ...


class Statistics(Protocol):
    """Moments in either form: all that tuning and prediction need to know about the rows."""

    @property
    def n(self) -> float: ...

    @property
    def n_outputs(self) -> int: ...

    def __add__(self, other: Self) -> Self: ...

    def posterior(
        self, output: int, prior_variances: Array, noise_variance: float
    ) -> Posterior: ...

    def resolves(self, prior_variances: Array, noise_variance: float) -> bool: ...

    def resolvable_noise(self, prior_variances: Array) -> float: ...

    @property
    def column_energies(self) -> Array: ...


@dataclass(frozen=True)
class Moments:
    """Gram form.

    Args:
        ZtZ: G, shape (p, p).
        Zty: b, shape (p, k) for k outputs.
        yty: yᵀy of each output, shape (k,).
        n: number of rows, or their total weight.
        log_volume: Σ log v of the rows, where their noise varies.
    """

    ZtZ: Array
    Zty: Array
    yty: Array
    n: float
    log_volume: float = 0.0

    @property
    def n_outputs(self) -> int:
        return int(self.Zty.shape[1])

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.ZtZ + other.ZtZ,
            self.Zty + other.Zty,
            self.yty + other.yty,
            self.n + other.n,
            self.log_volume + other.log_volume,
        )

    def resolves(self, prior_variances: Array, noise_variance: float) -> bool:
        """Whether rounding in G stays far below the noise, so that the Gram form can be trusted."""
        return gram_resolves_identity(self.ZtZ.diagonal() * prior_variances / noise_variance)

    def resolvable_noise(self, prior_variances: Array) -> float:
        """The smallest σ² that stands out of the rounding in G."""
        return resolvable_identity(self.ZtZ.diagonal() * prior_variances)

    @property
    def column_energies(self) -> Array:
        """‖z_j‖² of every column, shape (p,)."""
        return self.ZtZ.diagonal()

    def squared_norm(self, weights: Array) -> float:
        """‖Zw‖²."""
        return float(weights @ self.ZtZ @ weights)

    def combined(self, C: Array) -> Moments:
        """The moments of the columns ZC, which are combinations of these; C has shape (p, q)."""
        return replace(self, ZtZ=C.T @ self.ZtZ @ C, Zty=C.T @ self.Zty)

    def posterior(self, output: int, prior_variances: Array, noise_variance: float) -> Posterior:
        scale = np.sqrt(prior_variances)
        G = scale[:, None] * self.ZtZ * (scale / noise_variance)
        factor = factor_gram(G)
        b = scale * self.Zty[:, output] / noise_variance
        half = solve_triangular(factor.L, b, lower=True, check_finite=False)
        mean = solve_triangular(factor.L, half, lower=True, trans="T", check_finite=False)
        w = scale * mean
        yty = float(self.yty[output])
        rss = yty - 2 * float(w @ self.Zty[:, output]) + float(w @ self.ZtZ @ w)
        # Where cancellation leaves nothing, the rounding error itself is the best that can be said.
        rss = max(rss, np.finfo(np.float64).eps * yty)
        return Posterior(
            mean, factor, prior_variances, noise_variance, rss, self.n, self.log_volume
        )


@dataclass(frozen=True)
class RootMoments:
    """Square-root form.

    Args:
        R: upper triangle of the QR decomposition of [Z y], shape (p + k, p + k).
        n: number of rows, or their total weight.
        n_outputs: k.
        log_volume: Σ log v of the rows, where their noise varies.
    """

    R: Array
    n: float
    n_outputs: int
    log_volume: float = 0.0

    def __add__(self, other: RootMoments) -> RootMoments:
        return RootMoments(
            stack_triangle(self.R, other.R, triangular=True),
            self.n + other.n,
            self.n_outputs,
            self.log_volume + other.log_volume,
        )

    def resolves(self, prior_variances: Array, noise_variance: float) -> bool:
        return True

    def resolvable_noise(self, prior_variances: Array) -> float:
        return 0.0

    @property
    def column_energies(self) -> Array:
        """‖z_j‖² of every column, shape (p,)."""
        p = len(self.R) - self.n_outputs
        energies: Array = np.sum(self.R[:, :p] ** 2, axis=0)
        return energies

    @property
    def ZtZ(self) -> Array:
        """G, shape (p, p), which resolves less than R does."""
        columns = self.R[:, : len(self.R) - self.n_outputs]
        return columns.T @ columns

    def squared_norm(self, weights: Array) -> float:
        """‖Zw‖²."""
        image = self.R[:, : len(weights)] @ weights
        return float(image @ image)

    def combined(self, C: Array) -> RootMoments:
        """The moments of the columns ZC, which are combinations of these; C has shape (p, q)."""
        columns = np.hstack([self.R[:, : len(C)] @ C, self.R[:, len(C) :]])
        size = columns.shape[1]
        return replace(self, R=stack_triangle(np.zeros((size, size)), columns))

    def posterior(self, output: int, prior_variances: Array, noise_variance: float) -> Posterior:
        p = len(prior_variances)
        column = self.R[:, p + output]
        # The rows of R stand for all rows: same ZᵀZ and Zᵀy; what of y is not in Z is the residue.
        residue = float(column[p:] @ column[p:])
        return posterior_of_rows(
            self.R[:p, :p],
            column[:p],
            prior_variances,
            noise_variance,
            n=self.n,
            residue=residue,
            triangular=True,
            log_volume=self.log_volume,
        )


def accumulate(features: Features, blocks: Iterable[Block], n_outputs: int) -> Moments:
    """One pass over the rows: G by ``syrk`` in place, which is the whole cost."""
    p, k = features.n_features, n_outputs
    G = np.zeros((p, p), order="F")
    b, yty, n, log_volume = np.zeros((p, k)), np.zeros(k), 0.0, 0.0
    for block in blocks:
        Z, y = weighted(features, block)
        add_gram(G, Z)
        b += Z.T @ y
        yty += np.einsum("nk,nk->k", y, y)
        n += float(block.weights.sum())
        log_volume += block.log_volume
    return Moments(np.triu(G) + np.triu(G, 1).T, b, yty, n, log_volume)


def accumulate_root(features: Features, blocks: Iterable[Block], n_outputs: int) -> RootMoments:
    """One pass over the rows in square-root form."""
    size = features.n_features + n_outputs
    R, n, log_volume = np.zeros((size, size)), 0.0, 0.0
    with one_blas_thread():  # the many small products of a QR decomposition gain nothing by more
        for block in blocks:
            Z, y = weighted(features, block)
            R = stack_triangle(R, np.hstack([Z, y]))
            n += float(block.weights.sum())
            log_volume += block.log_volume
    return RootMoments(R, n, n_outputs, log_volume)


def weighted(features: Features, block: Block) -> tuple[Array, Array]:
    """Features and targets of a block in double precision, rows times the root of w/v."""
    Z = np.asarray(features(block.X), dtype=np.float64)
    root = block.root_precision
    if (root == 1.0).all():
        return Z, block.y
    return Z * root, block.y * root
