r"""Moments by products in single precision, which take two thirds of the time; errors measured.

Features are rounded to single precision and multiplied so, a few thousand rows at a time; sums over
these are in double precision. What that costs is not left to theory: the first rows are multiplied
in double precision as well, and the difference E of the two Gram matrices, relative to their
diagonal D, is

.. math:: \rho = \|D^{-1/2} E D^{-1/2}\|_2 .

Errors of later rows are alike and do not average out, so ρ stands for all of them. Noise that does
not stand out of ρ is not resolved, and calls for products in double precision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from rwf.blas import add_gram
from rwf.factorization import RESOLUTION, resolvable_identity
from rwf.moments import Features, Moments, accumulate, joint_rows, moments_of
from rwf.rows import Block, block_rows
from rwf.types import Array, FloatArray

SINGLE_BYTES = 2 * 2**20
"""Memory for rows that are multiplied at a time."""

TOGETHER = 8
"""So many times, products are added up in single precision, before they are in double."""

SMALL = 64
"""Columns below which a norm is computed at once, and not by iteration."""


@dataclass(frozen=True)
class SingleMoments(Moments):
    """Gram form, by products in single precision.

    Args:
        rounding: ρ, the relative error of ZᵀZ, as measured.
    """

    rounding: float = 0.0

    def __add__(self, other: Moments) -> SingleMoments:
        total = super().__add__(other)
        theirs = other.rounding if isinstance(other, SingleMoments) else 0.0
        # Errors add, and are relative to diagonals that grow with the rows.
        rounding = (self.rounding * self.n + theirs * other.n) / max(total.n, 1e-300)
        return _with_rounding(total, rounding)

    def to_arrays(self) -> dict[str, Array]:
        return {**super().to_arrays(), "rounding": np.array(self.rounding)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SingleMoments:
        return _with_rounding(Moments.from_arrays(arrays), float(arrays["rounding"]))

    def resolves(self, prior_variances: Array, noise_variance: float) -> bool:
        return self.resolvable_noise(prior_variances) < noise_variance

    def resolvable_noise(self, prior_variances: Array) -> float:
        """The smallest σ² that stands out of the rounding in G, and of that in ‖y - Zm‖²."""
        in_residual = self.rounding * float(self.yty.max()) / max(self.n, 1e-300) / RESOLUTION
        in_gram = resolvable_identity(self.ZtZ.diagonal() * prior_variances, self.rounding)
        return max(in_gram, in_residual)


def accumulate_single(features: Features, blocks: Iterable[Block], n_outputs: int) -> SingleMoments:
    """One pass over the rows: [Z y]ᵀ[Z y] by ``ssyrk``, added up in double precision."""
    size = features.n_features + n_outputs
    G, rounding, n, log_volume = np.zeros((size, size), order="F"), None, 0.0, 0.0
    for parts, product in _products(features, blocks, size):
        G += product
        if rounding is None:
            rounding = _error(product, accumulate(features, parts, n_outputs).ZtZ)
        n += sum(float(part.weights.sum()) for part in parts)
        log_volume += sum(part.log_volume for part in parts)
    return _with_rounding(moments_of(G, n_outputs, n, log_volume), rounding or 0.0)


def _products(
    features: Features, blocks: Iterable[Block], size: int
) -> Iterator[tuple[list[Block], NDArray[np.float32]]]:
    """Some rows after others, and the upper triangle of their product in single precision."""
    buffer = np.empty((block_rows(size, 2 * SINGLE_BYTES), size), dtype=np.float32)
    product = np.zeros((size, size), dtype=np.float32, order="F")
    parts: list[Block] = []
    for block in blocks:
        for part, W in joint_rows(features, block, buffer):
            add_gram(product, W, keep=1.0 if parts else 0.0)
            parts.append(part)
            if len(parts) == TOGETHER:
                yield parts, product
                parts = []
    if parts:
        yield parts, product


def _with_rounding(m: Moments, rounding: float) -> SingleMoments:
    return SingleMoments(m.ZtZ, m.Zty, m.yty, m.n, m.log_volume, rounding)


def _error(product: FloatArray, exact: Array) -> float:
    """ρ of a Gram matrix by its upper triangle, beside what it should be."""
    p = len(exact)
    E = np.triu(product[:p, :p] - exact)
    E += np.triu(E, 1).T
    scale = np.sqrt(exact.diagonal())
    scale = np.where(scale > 0, scale, 1.0)
    E /= scale[:, None] * scale
    if p < SMALL or not E.any():
        return float(np.linalg.norm(E, 2))
    # A start that is always the same makes the result so.
    top = eigsh(E, k=1, tol=0.05, v0=np.ones(p), return_eigenvectors=False)
    return float(np.abs(top[0]))
