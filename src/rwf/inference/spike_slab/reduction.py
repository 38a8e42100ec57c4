r"""Moments of the atoms with the dense part integrated out.

Beside the dictionary a few columns Z_d are always in: a constant, and a smooth part if there is
one. Their weights are N(0, σ²R) with a diagonal R of ratios to the noise. Given the atoms' weights,
y has covariance :math:`\sigma^2 C`, :math:`C = I + Z_d R Z_d^\top`, and the sampler uses

.. math:: \tilde G = Z^\top C^{-1} Z = G - G_{sd}(G_{dd} + R^{-1})^{-1}G_{ds}

in the place of G, and likewise b̃ and ỹᵀy: a Schur complement of moments, which are sums over rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array
from rwf.data.rows import Block
from rwf.features.base import Features
from rwf.inference.moments import Moments, accumulate, weighted
from rwf.inference.spike_slab.columns import CompressedColumns
from rwf.linalg.dense import factor_matrix


@dataclass(frozen=True)
class EffectiveMoments:
    """Moments of y and of the atoms, in the metric C⁻¹: G̃ = ZᵀZ - HᵀH, row by row."""

    columns: CompressedColumns  # Z
    H: Array  # L⁻¹G_ds with LLᵀ = G_dd + R⁻¹, shape (p, m)
    b: Array  # shape (m,)
    yty: float  # a number
    n: float  # total weight of the rows

    @property
    def diagonal(self) -> Array:
        """Of G̃, shape (m,)."""
        diagonal: Array = self.columns.energies - np.einsum("pm,pm->m", self.H, self.H)
        return diagonal


@dataclass(frozen=True)
class DenseRows:
    """The dense columns at the rows."""

    Zy: Array  # √v[Z_d y], shape (n, p + 1)
    moments: Moments  # of the dense columns

    @classmethod
    def of(cls, features: Features, rows: Block) -> Self:
        return cls(np.hstack(weighted(features, rows)), accumulate(features, [rows], 1))


def reduced(columns: CompressedColumns, dense: DenseRows, ratios: Array) -> EffectiveMoments:
    """Effective moments of one output, for m atoms and ratios of shape (p,)."""
    cross, inside = columns.products(dense.Zy), dense.moments
    L = factor_matrix(inside.ZtZ + np.diag(1.0 / ratios)).L
    H = np.ascontiguousarray(solve_triangular(L, cross[:, :-1].T, lower=True))
    part = solve_triangular(L, inside.Zty[:, 0], lower=True)
    b = cross[:, -1] - part @ H
    return EffectiveMoments(columns, H, b, float(inside.yty[0] - part @ part), inside.n)
