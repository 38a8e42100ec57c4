"""Triangular factors of M = I + AᵀA, by Cholesky of a Gram matrix, or by QR where it is too coarse.

A Gram matrix holds AᵀA only to about ε·tr(AᵀA). While that is far below one, the identity that the
prior adds stands out of the rounding, and Cholesky is safe and fast. Otherwise a QR decomposition
of the rows is used, which never squares them. Jitter is added in one place, bounded, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.linalg import lapack, solve_triangular

from rwf._types import Array
from rwf.errors import NotPositiveDefiniteError
from rwf.linalg.blas import (
    cholesky_inverse,
    lower_cholesky,
    lower_inverse,
    multiply_lower,
    whiten_rows,
)
from rwf.linalg.threads import one_blas_thread

EPSILON = float(np.finfo(np.float64).eps)

RESOLUTION = 1e-2  # rounding of a Gram matrix, over the identity, up to which Cholesky is accurate
JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # in turn, over the largest diagonal entry
MANY_ROWS = 128  # from so many rows on, inverting a triangle once is faster than substitution


@dataclass(frozen=True)
class Factor:
    """M = LLᵀ."""

    L: Annotated[Array, "p p"]  # lower triangle in Fortran's order, shape (p, p)
    jitter: float = 0.0  # what was added to the diagonal of M to make it positive definite

    @property
    def log_determinant(self) -> float:
        """log |M|."""
        return 2.0 * float(np.log(np.abs(np.diag(self.L))).sum())

    @cached_property
    def _lower_inverse(self) -> Array:
        # Its last bits depend on the number of threads, and what was computed within a fit, which
        # may hold BLAS to one, must equal what a saved model computes when it is loaded.
        with one_blas_thread():
            return lower_inverse(self.L)

    def whiten(self, Z: Array) -> None:
        """Replace every row z of Z, which may stand apart, by L⁻¹z.

        Many rows are multiplied by the inverse, which BLAS does twice as fast as it substitutes.
        The inverse of a triangle, unlike that of a full matrix, is as accurate as substitution.
        """
        if len(Z) < MANY_ROWS:
            whiten_rows(self.L, Z)
        else:
            multiply_lower(self._lower_inverse, Z)

    def solve(self, v: Array) -> Array:
        """M⁻¹v."""
        half = solve_triangular(self.L, v, lower=True, check_finite=False)
        return solve_triangular(self.L, half, lower=True, trans="T", check_finite=False)

    def inverse_diagonal(self) -> Array:
        """The diagonal of M⁻¹, shape (p,)."""
        inverse = self._lower_inverse
        diagonal: Array = np.einsum("ij,ij->j", inverse, inverse)
        return diagonal

    def inverse(self) -> Array:
        """M⁻¹, shape (p, p)."""
        return cholesky_inverse(self.L)


def resolvable_identity(diagonal: Array) -> float:
    """The smallest multiple of the identity that stands out of a Gram matrix with this diagonal.

    The median stands for the diagonal: a few large entries, such as a constant column with a wide
    prior, do no harm, because Cholesky's errors scale with rows and columns.
    """
    return EPSILON * len(diagonal) * float(np.median(diagonal)) / RESOLUTION


def factor_gram(G: Array) -> Factor:
    """The factor of I + G for a positive semi-definite G, which becomes I + G."""
    G[np.diag_indices_from(G)] += 1.0
    return factor_matrix(G)


def factor_matrix(M: Array) -> Factor:
    """The Cholesky factor of M, or of M with as little jitter on its diagonal as will do."""
    largest = float(M.diagonal().max(initial=0.0))
    for jitter in JITTERS:
        added = jitter * largest
        L = lower_cholesky(M + added * np.eye(len(M)) if added else M)
        if L is not None and np.isfinite(L.diagonal()).all():
            return Factor(L, added)
    raise NotPositiveDefiniteError(
        f"a {len(M)}×{len(M)} matrix (largest diagonal entry {largest:.3g}) has no Cholesky factor "
        f"even with jitter {JITTERS[-1] * largest:.3g}. Raise the noise variance, or draw fewer "
        "atoms."
    )


def factor_rows(A: Array, *, triangular: bool = False) -> Factor:
    """The factor of I + AᵀA, for rows A of shape (n, p), which may form an upper triangle."""
    if resolvable_identity(np.einsum("ij,ij->j", A, A)) < 1.0:
        return factor_gram(A.T @ A)
    R = stack_triangle(np.eye(A.shape[1]), A, triangular=triangular)
    return Factor(np.asfortranarray((R * np.sign(np.diag(R))[:, None]).T))


def stack_triangle(top: Array, rows: Array, *, triangular: bool = False) -> Array:
    """The triangle R of a QR decomposition of [top; rows], where ``top`` is an upper triangle.

    ``triangular`` says that ``rows`` is one too, which saves two thirds of the work.
    """
    p = len(top)
    R, *_ = lapack.dtpqrt(
        p if triangular else 0,
        min(64, p),
        np.array(top, order="F"),
        np.array(rows, order="F"),
        overwrite_a=1,
        overwrite_b=1,
    )
    return np.triu(R)
