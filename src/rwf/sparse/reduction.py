r"""Moments of the sparse part with the dense part integrated out.

Beside the dictionary a few columns Z_d are always in: a constant, and a smooth part if there is
one. Their weights are N(0, σ²R) with a diagonal R of ratios to the noise. Given the sparse weights,
y has covariance :math:`\sigma^2 C`, :math:`C = I + Z_d R Z_d^\top`, and the sampler sees

.. math:: \tilde G = Z^\top C^{-1} Z = G - G_{sd}(G_{dd} + R^{-1})^{-1}G_{ds}

in the place of G, and likewise b̃ and ỹᵀy: a Schur complement of moments, which are sums over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import blas, solve_triangular

from rwf.blas import whiten_rows
from rwf.factorization import factor_matrix
from rwf.moments import Features, Moments, accumulate, weighted
from rwf.rows import Block
from rwf.sparse.columns import Columns
from rwf.types import Array, FloatArray

STABLE = np.float32(1.0 + 16 * np.finfo(np.float32).eps)
"""In single precision the diagonal of G gets so much larger, lest rounding make G indefinite."""


@dataclass(frozen=True)
class Effective:
    """Moments of y and of sparse columns, in the metric C⁻¹.

    Args:
        G: shape (m, m).
        b: shape (m,).
        yty: a number.
        n: total weight of the rows.
    """

    G: FloatArray
    b: Array
    yty: float
    n: float


@dataclass(frozen=True)
class DenseRows:
    """The dense columns at the rows.

    Args:
        Zy: √v[Z_d y], shape (n, p + 1).
        moments: of the dense columns.
    """

    Zy: Array
    moments: Moments

    @classmethod
    def of(cls, features: Features, rows: Block) -> Self:
        return cls(np.hstack(weighted(features, rows)), accumulate(features, [rows], 1))


def reduced(columns: Columns, dense: DenseRows, ratios: Array, G: FloatArray) -> Effective:
    """Effective moments of one output.

    Args:
        columns: the dictionary at the rows, m atoms.
        dense: the columns that are always in, at the same rows.
        ratios: the diagonal of R, shape (p,).
        G: an m×m matrix to put the result in, of either precision.
    """
    columns.gram(G)
    if G.dtype == np.float32:
        G[np.diag_indices_from(G)] *= STABLE
    cross = columns.products(dense.Zy)
    return eliminate(G, cross[:, :-1], cross[:, -1], dense.moments, ratios)


def eliminate(G: FloatArray, cross: Array, b: Array, inside: Moments, ratios: Array) -> Effective:
    """The Schur complement, in the place of G.

    Args:
        G: the upper triangle of the sparse columns' Gram matrix, in C's order, shape (m, m).
        cross: G_sd, shape (m, p).
        b: shape (m,).
        inside: moments of the dense columns.
        ratios: the diagonal of R, shape (p,).
    """
    from rwf.sparse._atoms import mirror

    L = factor_matrix(inside.ZtZ + np.diag(1.0 / ratios)).L
    H = np.array(cross, order="C")
    whiten_rows(L, H)
    part = solve_triangular(L, inside.Zty[:, 0], lower=True)
    if len(G):
        syrk = blas.dsyrk if G.dtype == np.float64 else blas.ssyrk
        syrk(-1.0, H.T.astype(G.dtype), beta=1.0, c=G.T, trans=1, lower=1, overwrite_c=1)
        mirror(G)
    return Effective(G, b - H @ part, float(inside.yty[0] - part @ part), inside.n)
