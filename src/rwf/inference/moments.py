r"""Sufficient statistics of Bayesian linear regression. They add over rows, so data can stream.

:class:`Moments` holds G = ZᵀZ, b = Zᵀy, yᵀy and n. :class:`RootMoments` holds the triangular factor
R of the same matrix, :math:`[Z\;y]^\top[Z\;y] = R^\top R`: it adds too, costs about three times as
much, and resolves noise far below what a Gram matrix can. Streaming, ``partial_fit``, merging and
distributed fitting are all ``a + b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array
from rwf.data.rows import Block, block_rows
from rwf.features.base import Features
from rwf.inference.posterior import Posterior
from rwf.linalg.dense import (
    EPSILON,
    add_gram,
    factor_gram,
    factor_rows,
    mirror_lower,
    resolvable_identity,
    stack_triangle,
)
from rwf.linalg.downdate import downdated
from rwf.linalg.threads import one_blas_thread

ROUNDED_BITS = 30  # of the matrix of the posterior, whose smallest eigenvalue is one
SMALLEST_RATIO = 2.0**-400  # of prior variance and noise, so that steps stay finite
CHUNK_BYTES = 4 * 2**20  # memory of the rows multiplied at a time, which stays in the cache


class Statistics(Protocol):
    """Moments in either form: all that empirical Bayes and prediction need of the rows."""

    @property
    def n(self) -> float: ...

    @property
    def n_outputs(self) -> int: ...

    def __add__(self, other: Self) -> Self: ...

    def __sub__(self, other: Self) -> Self: ...

    def scaled(self, share: float) -> Self: ...

    def posterior(
        self, output: int, prior_variances: Array, noise_variance: float
    ) -> Posterior: ...

    def resolvable_noise(self, prior_variances: Array) -> float: ...

    @property
    def column_energies(self) -> Array: ...


@dataclass(frozen=True)
class Moments:
    """Gram form."""

    form: ClassVar[str] = "gram"
    ZtZ: Annotated[Array, "p p"]  # G, shape (p, p)
    Zty: Annotated[Array, "p k"]  # b, shape (p, k) for k outputs
    yty: Annotated[Array, "k"]  # yᵀy of each output, shape (k,)
    n: float  # number of rows, or their total weight
    log_volume: float = 0.0  # Σ log v of the rows, where their noise varies

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

    def scaled(self, share: float) -> Moments:
        """Every row counted so many times."""
        return Moments(
            share * self.ZtZ, share * self.Zty, share * self.yty, share * self.n,
            share * self.log_volume,
        )  # fmt: skip

    def __sub__(self, other: Moments) -> Moments:
        """The moments without some of the rows."""
        return self + other.scaled(-1.0)

    def to_arrays(self) -> dict[str, Array]:
        """All of it as plain arrays."""
        totals = np.array([self.n, self.log_volume])
        return {"ZtZ": self.ZtZ, "Zty": self.Zty, "yty": self.yty, "totals": totals}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Moments:
        n, log_volume = arrays["totals"].tolist()
        return cls(arrays["ZtZ"], arrays["Zty"], arrays["yty"], n, log_volume)

    def resolvable_noise(self, prior_variances: Array) -> float:
        """The smallest σ² that stands out of the rounding in G."""
        return resolvable_identity(self.ZtZ.diagonal() * prior_variances)

    @property
    def column_energies(self) -> Array:
        """‖z_j‖² of every column, shape (p,)."""
        return self.ZtZ.diagonal()

    def rounded(self, ratios: Array) -> Moments:
        r"""The same with :math:`\Lambda^{1/2}G\Lambda^{1/2}/\sigma^2` rounded to 2⁻³⁰.

        As the matrix of the posterior is at least I, this changes its variances by less than
        :math:`2^{-30}p` of themselves, typically by :math:`2^{-30}\sqrt p`; and it takes 15 to 25
        bits from every entry of a file. Sums of rounded moments are exact.

        Args:
            ratios: about Λ/σ², shape (p,), of which powers of two are used.
        """
        steps = np.exp2(-np.ceil(np.log2(np.maximum(ratios, SMALLEST_RATIO)) / 2))
        quantum = 2.0**-ROUNDED_BITS * steps[:, None] * steps
        return replace(self, ZtZ=np.round(self.ZtZ / quantum) * quantum)

    def posterior(self, output: int, prior_variances: Array, noise_variance: float) -> Posterior:
        scale = np.sqrt(prior_variances)
        G = scale[:, None] * self.ZtZ
        G *= scale / noise_variance
        factor = factor_gram(G)
        b = scale * self.Zty[:, output] / noise_variance
        mean = factor.solve(b)
        w = scale * mean
        yty = float(self.yty[output])
        rss = yty - 2 * float(w @ self.Zty[:, output]) + float(w @ self.ZtZ @ w)
        rss = max(rss, EPSILON * yty)  # where cancellation leaves nothing, the rounding error
        return Posterior(
            mean, factor, prior_variances, noise_variance, rss, self.n, self.log_volume
        )


@dataclass(frozen=True)
class RootMoments:
    """Square-root form."""

    form: ClassVar[str] = "root"
    R: Annotated[Array, "q q"]  # upper triangle of the QR of [Z y], shape (p + k, p + k)
    n: float  # number of rows, or their total weight
    n_outputs: int  # k
    log_volume: float = 0.0  # Σ log v of the rows, where their noise varies

    def __add__(self, other: RootMoments) -> RootMoments:
        return RootMoments(
            stack_triangle(self.R, other.R, triangular=True),
            self.n + other.n,
            self.n_outputs,
            self.log_volume + other.log_volume,
        )

    def scaled(self, share: float) -> RootMoments:
        """Every row counted so many times."""
        return RootMoments(
            np.sqrt(share) * self.R, share * self.n, self.n_outputs, share * self.log_volume
        )

    def rounded(self, _ratios: Array) -> RootMoments:
        """The same: what a Gram matrix cannot resolve is kept."""
        return self

    def __sub__(self, other: RootMoments) -> RootMoments:
        r"""The moments without some of the rows; refused where digits would be lost.

        Targets are replaced by residuals of W = R⁻¹c of all rows, whose products do not cancel:
        with D = T - SW for the rows [S T], :math:`\tilde R^\top \tilde c = -S^\top D`.
        """
        p = len(self.R) - self.n_outputs
        R, S = self.R[:p, :p], other.R[:, :p]
        left = downdated(R, S)
        if left is None:
            raise ValueError(
                "the square-root statistics of this model, whose noise is very small, do not "
                "determine those of the rows that are left: give these to "
                "empty_copy().partial_fit."
            )
        W = solve_triangular(R, self.R[:p, p:])
        D = other.R[:, p:] - S @ W
        c = solve_triangular(left, -S.T @ D, trans="T")
        values, vectors = np.linalg.eigh(self.R[p:, p:].T @ self.R[p:, p:] - D.T @ D - c.T @ c)
        rest = np.linalg.qr(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, mode="r")
        total = np.block([[left, c + left @ W], [np.zeros((len(rest), p)), rest]])
        log_volume = self.log_volume - other.log_volume
        return RootMoments(total, self.n - other.n, self.n_outputs, log_volume)

    def to_arrays(self) -> dict[str, Array]:
        """All of it as plain arrays."""
        return {"R": self.R, "totals": np.array([self.n, self.n_outputs, self.log_volume])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> RootMoments:
        n, n_outputs, log_volume = arrays["totals"].tolist()
        return cls(arrays["R"], n, int(n_outputs), log_volume)

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

    def posterior(self, output: int, prior_variances: Array, noise_variance: float) -> Posterior:
        p = len(prior_variances)
        # The rows of R stand for all rows: same ZᵀZ and Zᵀy; what of y is not in Z is the residue.
        column = self.R[:, p + output]
        A = self.R[:p, :p] * np.sqrt(prior_variances / noise_variance)
        target = column[:p] / np.sqrt(noise_variance)
        factor = factor_rows(A, triangular=True)
        mean = factor.solve(A.T @ target)
        # One step of refinement gives the seminormal equations the accuracy of QR (Björck 1987).
        mean = mean + factor.solve(A.T @ (target - A @ mean) - mean)
        residual = target - A @ mean
        rss = noise_variance * float(residual @ residual) + float(column[p:] @ column[p:])
        return Posterior(
            mean, factor, prior_variances, noise_variance, rss, self.n, self.log_volume
        )


def accumulate(features: Features, blocks: Iterable[Block], n_outputs: int) -> Moments:
    """One pass over the rows: [Z y]ᵀ[Z y] by ``syrk`` in place, which is nearly the whole cost."""
    size = features.n_features + n_outputs
    G = np.zeros((size, size), order="F")
    buffer, n, log_volume = row_buffer(size), 0.0, 0.0
    for block in blocks:
        for _, W in joint_rows(features, block, buffer):
            add_gram(G, W)
        n += float(block.weights.sum())
        log_volume += block.log_volume
    p = features.n_features
    ZtZ = mirror_lower(np.array(G[:p, :p]).T)
    return Moments(ZtZ, G[:p, p:].copy(), G.diagonal()[p:].copy(), n, log_volume)


def accumulate_root(features: Features, blocks: Iterable[Block], n_outputs: int) -> RootMoments:
    """One pass over the rows in square-root form."""
    size = features.n_features + n_outputs
    R, n, log_volume = np.zeros((size, size)), 0.0, 0.0
    buffer = row_buffer(size)
    with one_blas_thread():  # the many small products of a QR decomposition gain nothing by more
        for block in blocks:
            for _, W in joint_rows(features, block, buffer):
                R = stack_triangle(R, W)
            n += float(block.weights.sum())
            log_volume += block.log_volume
    return RootMoments(R, n, n_outputs, log_volume)


def row_buffer(columns: int) -> Array:
    """A buffer for the rows that are multiplied at a time."""
    return np.empty((block_rows(columns, CHUNK_BYTES), columns))


def joint_rows(features: Features, block: Block, buffer: Array) -> Iterator[tuple[Block, Array]]:
    """Parts of the rows with their [Z y], times the root of w/v, each time in the same buffer.

    One product then gives ZᵀZ, Zᵀy and yᵀy, and no memory is allocated on the way.
    """
    p = features.n_features
    pieces = -(-len(block) // len(buffer))  # of equal size, as a short one is slow for its rows
    for part in block.parts(-(-len(block) // max(pieces, 1)) or 1):
        W = buffer[: len(part)]
        features.into(part.X, W[:, :p])
        W[:, p:] = part.y
        root = part.root_precision
        if (root != 1.0).any():
            W *= root
        yield part, W


def weighted(features: Features, block: Block) -> tuple[Array, Array]:
    """Features and targets of a block, rows times the root of w/v."""
    Z = np.asarray(features(block.X), dtype=np.float64)
    root = block.root_precision
    if (root == 1.0).all():
        return Z, block.y
    return Z * root, block.y * root
