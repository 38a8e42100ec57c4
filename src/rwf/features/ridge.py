r"""Random ridge features: a one-dimensional wavelet of a random projection.

.. math:: z_i(x) = \frac{1}{\sqrt m}\,\psi\!\left(\frac{w_i^\top ((x - t_i)/\ell)}{s_i}\right),
    \qquad w_i \sim \mathcal N(0, I_d)

A ridge is constant across its direction, so it reaches where radial atoms have vanished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.atoms import Atoms, by_projection
from rwf.features.base import Fills, memory, row_chunks
from rwf.wavelets import CompactHat, MexicanHat, Wavelet
from rwf.wavelets.base import TAIL
from rwf.wavelets.measure import Measure


@dataclass(frozen=True)
class RidgeFeatures(Fills):
    """z(x) of ridge atoms."""

    local: ClassVar[bool] = True

    wavelet: Wavelet  # ψ, used on the line
    atoms: Atoms  # shifts, scales and length-scales
    weights: Array  # w, shape (m, d)

    @property
    def n_atoms(self) -> int:
        return len(self.weights)

    @property
    def n_features(self) -> int:
        return self.n_atoms

    @property
    def shifts(self) -> Array:
        return self.atoms.shifts

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

    @property
    def n_lengths(self) -> int:
        return self.atoms.n_lengths

    @property
    def theta(self) -> Array:
        return self.atoms.theta

    @property
    def bounds(self) -> Array:
        return self.atoms.bounds

    def with_theta(self, theta: Array) -> Self:
        return replace(self, atoms=self.atoms.with_theta(theta))

    def into(self, X: FloatArray, out: FloatArray) -> None:
        from rwf.features import _fused

        psi, factor = self.wavelet, self.factors
        if type(psi) is MexicanHat:
            self._fuse(X, factor, _fused.HAT, psi.curvature(1), 0, out)
        elif type(psi) is CompactHat:
            self._fuse(X, factor, _fused.COMPACT_HAT, psi.curvature(1), psi.order, out)
        else:
            for rows in row_chunks(len(X), self.n_features):
                out[rows] = factor * psi.line(self._projections(X[rows]))[0]

    def _fuse(
        self, X: FloatArray, factor: Array, kind: int, c: float, order: int, out: FloatArray
    ) -> None:
        from rwf.features import _fused

        _fused.ridge(*self._scaled(X), factor, kind, c, order, TAIL, *memory(out))

    def _scaled(self, X: FloatArray) -> tuple[Array, Array, Array, Array]:
        """X/ℓ, the transposes of t/ℓ and of w, and 1/s."""
        lengths = self.atoms.lengths
        return (
            np.ascontiguousarray(X / lengths, dtype=np.float64),
            np.ascontiguousarray((self.atoms.shifts / lengths).T),
            np.ascontiguousarray(self.weights.T),
            1.0 / self.atoms.scales,
        )

    def _projections(self, X: FloatArray) -> Array:
        from rwf.features import _fused

        P = np.empty((len(X), self.n_features))
        self._fuse(X, np.ones(self.n_features), _fused.SQUARED_DISTANCE, 0.0, 0, P)
        return P

    def pull_back(self, X: Array, R: Array) -> Array:
        w = self.wavelet
        if type(w) is MexicanHat or type(w) is CompactHat:
            return self._fused_pull_back(w, X, R)
        lengths, inverse = self.atoms.lengths, 1.0 / self.atoms.scales
        A, T = X / lengths, self.atoms.shifts / lengths
        gradient = np.zeros(len(self.theta))
        for rows in row_chunks(len(X), self.n_features):
            P = self._projections(X[rows])
            H = R[rows] * self.wavelet.line(P)[1] / np.sqrt(self.n_features)
            g = by_projection(H, P, A[rows], T, self.weights, inverse)
            gradient += self.atoms.gather(g.log_lengths, g.log_scales)
        return gradient

    def _fused_pull_back(self, w: MexicanHat | CompactHat, X: Array, R: Array) -> Array:
        from rwf.features import _fused, _fused_slopes

        kind, order = (
            (_fused.HAT, 0) if isinstance(w, MexicanHat) else (_fused.COMPACT_HAT, w.order)
        )
        A, tT, wT, inverse = self._scaled(X)
        moved = np.zeros(tT.shape)  # Σ_n R ψ′(p) (a_k - t_k), shape (d, m)
        _fused_slopes.ridge_slopes(
            A, tT, wT, inverse, kind, w.curvature(1), order, TAIL, *memory(R), moved
        )
        moved *= -self.factors * inverse * wT
        return self.atoms.gather(moved.sum(axis=1), moved.sum(axis=0))


@dataclass(frozen=True)
class RidgeFamily:
    """Ridge features before any atom is drawn."""

    sized: ClassVar[bool] = True
    start_log_prior: ClassVar[float] = 0.0

    wavelet: Wavelet
    measure: Measure
    length_scale: float
    ard: bool = True

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> RidgeFeatures:
        m = max(1, n_features)
        atoms = Atoms.draw(
            m, X, rng, measure=self.measure, length_scale=self.length_scale, ard=self.ard
        )
        return RidgeFeatures(self.wavelet, atoms, rng.normal(size=(m, X.shape[1])))
