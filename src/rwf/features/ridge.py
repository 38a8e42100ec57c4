r"""Random ridge features: a one-dimensional wavelet of a random projection.

.. math:: z_i(x) = \frac{1}{\sqrt m}\,\psi\!\left(\frac{w_i^\top ((x - t_i)/\ell)}{s_i}\right),
    \qquad w_i \sim \mathcal N(0, I_d)

A ridge is constant across its direction, so it reaches where radial atoms have vanished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.atoms import (
    SQUARED_DISTANCE,
    AtomFamily,
    AtomFeatures,
    Profile,
    by_projection,
    hat_profile,
)
from rwf.features.base import memory, row_chunks


@dataclass(frozen=True)
class RidgeFeatures(AtomFeatures):
    """z(x) of ridge atoms; ψ is used on the line."""

    weights: Annotated[Array, "m d"]  # w, shape (m, d)

    @property
    def n_atoms(self) -> int:
        return len(self.weights)

    @property
    def n_features(self) -> int:
        return self.n_atoms

    @property
    def widths(self) -> Array:
        """Across the ridge; along it there is no end."""
        across: Array = self.atoms.scales / np.linalg.norm(self.weights, axis=1)
        return across[:, None] * self.atoms.lengths

    @property
    def factors(self) -> Array:
        return np.full(self.n_atoms, self.n_atoms**-0.5)

    def take(self, which: IntArray) -> Self:
        """Some of the atoms."""
        return replace(self, atoms=self.atoms.take(which), weights=self.weights[which])

    def into(self, X: FloatArray, out: FloatArray) -> None:
        profile = hat_profile(self.wavelet, 1)
        if profile is not None:
            self._fuse(X, profile, out)
            return
        for rows in row_chunks(len(X), self.n_features):
            out[rows] = self.factors * self.wavelet.line(self._projections(X[rows]))[0]

    def _fuse(self, X: FloatArray, profile: Profile, out: FloatArray) -> None:
        from rwf.features import _fused

        A, T, inverse = self._scaled(X)
        tT, wT = np.ascontiguousarray(T.T), np.ascontiguousarray(self.weights.T)
        _fused.ridge(A, tT, wT, inverse, self.factors, profile, *memory(out))

    def _projections(self, X: FloatArray) -> Array:
        P = np.empty((len(X), self.n_features))
        self._fuse(X, (SQUARED_DISTANCE, 0.0, 0), P)
        return P

    def pull_back(self, X: Array, R: Array) -> Array:
        A, T, inverse = self._scaled(X)
        profile = hat_profile(self.wavelet, 1)
        if profile is not None:
            return self._fused_pull_back(profile, A, T, inverse, R)
        gradient = np.zeros(len(self.theta))
        for rows in row_chunks(len(X), self.n_features):
            P = self._projections(X[rows])
            H = R[rows] * self.wavelet.line(P)[1] / np.sqrt(self.n_features)
            g = by_projection(H, P, A[rows], T, self.weights, inverse)
            gradient += self.atoms.gather(g.log_lengths, g.log_scales)
        return gradient

    def _fused_pull_back(
        self, profile: Profile, A: Array, T: Array, inverse: Array, R: Array
    ) -> Array:
        from rwf.features import _fused_slopes

        tT, wT = np.ascontiguousarray(T.T), np.ascontiguousarray(self.weights.T)
        moved = np.zeros(tT.shape)  # Σ_n R ψ′(p) (a_k - t_k), shape (d, m)
        _fused_slopes.ridge_slopes(A, tT, wT, inverse, profile, *memory(R), moved)
        moved *= -self.factors * inverse * wT
        return self.atoms.gather(moved.sum(axis=1), moved.sum(axis=0))


class RidgeFamily(AtomFamily):
    """Ridge features before any atom is drawn."""

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> RidgeFeatures:
        m = max(1, n_features)
        atoms = self.draw_atoms(m, X, rng)
        return RidgeFeatures(self.wavelet, atoms, rng.normal(size=(m, X.shape[1])))
