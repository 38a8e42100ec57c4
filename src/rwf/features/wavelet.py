r"""Random wavelet features: one column per atom (two for a complex wavelet).

.. math::
    z_i(x) = \frac{c_i}{\sqrt m}\,\psi\!\left(\frac{x - t_i}{\ell\, s_i}\right),
    \qquad \mathbb{E}\,[z(x)^\top z(x')] = k(x, x')

with c = 1 for unit peak, or :math:`c_i = C_d \prod_k (\ell_k s_i)^{-1/2}` for unit energy, the paper's
:math:`s^{-d/2}`. Radial, oriented and tensor wavelets differ only in the coordinates that ψ sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from rwf.features.atoms import Atoms
from rwf.features.base import row_chunks
from rwf.measures import Measure
from rwf.types import Array, FloatArray
from rwf.wavelets import (
    CompactHat,
    ComplexMorlet,
    Daubechies,
    GaussianDerivative,
    Haar,
    MexicanHat,
    Morlet,
    OrientedWavelet,
    RadialWavelet,
    TensorWavelet,
    Wavelet,
)
from rwf.wavelets.base import TAIL

LOG_FREQUENCY_BOUNDS = (float(np.log(0.3)), float(np.log(60.0)))

Normalization = Literal["peak", "energy"]


@dataclass(frozen=True)
class WaveletFeatures:
    """z(x) of the atoms of one mother wavelet.

    Args:
        wavelet: ψ.
        atoms: where the atoms sit and how wide they are.
        directions: unit vectors e, shape (m, d); used by oriented wavelets.
        normalization: "peak", ψ as written, or "energy", unit L² norm for every atom.
    """

    wavelet: Wavelet
    atoms: Atoms
    directions: Array
    normalization: Normalization = "peak"

    @property
    def n_features(self) -> int:
        return self.wavelet.columns * len(self.atoms.draws)

    @property
    def n_lengths(self) -> int:
        return self.atoms.n_lengths

    @property
    def theta(self) -> Array:
        if isinstance(self.wavelet, Morlet):
            return np.append(self.atoms.theta, np.log(self.wavelet.frequency))
        return self.atoms.theta

    @property
    def bounds(self) -> Array:
        if isinstance(self.wavelet, Morlet):
            return np.vstack([self.atoms.bounds, [LOG_FREQUENCY_BOUNDS]])
        return self.atoms.bounds

    def with_theta(self, theta: Array) -> Self:
        if isinstance(self.wavelet, Morlet):
            wavelet = replace(self.wavelet, frequency=float(np.exp(theta[-1])))
            return replace(self, wavelet=wavelet, atoms=self.atoms.with_theta(theta[:-1]))
        return replace(self, atoms=self.atoms.with_theta(theta))

    @property
    def factors(self) -> Array:
        """c_i/√m, shape (m,)."""
        m, d = self.atoms.shifts.shape
        if self.normalization == "peak":
            return np.full(m, m**-0.5)
        log_volume = d * np.log(self.atoms.scales) + self.atoms.log_lengths.sum()
        return np.exp(-0.5 * log_volume) / np.sqrt(m * self.wavelet.energy(d))

    def _scaled(self, X: FloatArray) -> tuple[Array, Array, Array]:
        """X/ℓ, t/ℓ and 1/s: coordinates in which every atom is isotropic."""
        lengths = self.atoms.lengths
        return (
            np.ascontiguousarray(X / lengths, dtype=np.float64),
            self.atoms.shifts / lengths,
            1.0 / self.atoms.scales,
        )

    def __call__(self, X: FloatArray) -> FloatArray:
        from rwf.features import _fused

        A, T, inverse = self._scaled(X)
        tT, factor, w = np.ascontiguousarray(T.T), self.factors, self.wavelet
        d = X.shape[1]
        Z = np.empty((len(X), self.n_features), dtype=X.dtype)
        if isinstance(w, MexicanHat):
            _fused.radial(A, tT, inverse, factor, _fused.HAT, w.curvature(d), 0, TAIL, Z)
        elif isinstance(w, CompactHat):
            _fused.radial(A, tT, inverse, factor, _fused.COMPACT_HAT, w.curvature(d), w.order, TAIL, Z)
        elif isinstance(w, Morlet):
            kind = _fused.COMPLEX_MORLET if isinstance(w, ComplexMorlet) else _fused.MORLET
            eT = np.ascontiguousarray(self.directions.T)
            _fused.oriented(A, tT, eT, inverse, factor, kind, w.frequency, TAIL, Z)
        elif isinstance(w, GaussianDerivative):
            eT = np.ascontiguousarray(self.directions.T)
            _fused.oriented(A, tT, eT, inverse, factor, _fused.EDGE, 0.0, TAIL, Z)
        elif isinstance(w, Haar):
            _fused.tensor_haar(A, tT, inverse, factor, Z)
        elif isinstance(w, Daubechies):
            _fused.tensor_table(A, tT, inverse, factor, *w.table(), Z)
        else:
            for rows in row_chunks(len(A), self.n_features):
                Z[rows] = self._values(A[rows], T, inverse)
        return Z

    def _squared_distances(self, A: Array, T: Array, inverse: Array) -> Array:
        from rwf.features import _fused

        Q = np.empty((len(A), len(T)))
        tT = np.ascontiguousarray(T.T)
        _fused.radial(A, tT, inverse, inverse, _fused.SQUARED_DISTANCE, 0.0, 0, TAIL, Q)
        return Q

    def _projections(self, A: Array, T: Array, inverse: Array) -> Array:
        e = self.directions
        return (A @ e.T - np.einsum("md,md->m", T, e)) * inverse

    def _values(self, A: Array, T: Array, inverse: Array) -> Array:
        """The features of a wavelet without a fused loop, from its own formulas."""
        w, d = self.wavelet, A.shape[1]
        if isinstance(w, RadialWavelet):
            columns = [w.profile(self._squared_distances(A, T, inverse), d)]
        elif isinstance(w, OrientedWavelet):
            Q = self._squared_distances(A, T, inverse)
            columns = w.profiles(Q, self._projections(A, T, inverse))
        elif isinstance(w, TensorWavelet):
            U = (A[:, None, :] - T) * inverse[:, None]
            columns = [np.prod(w.line(U)[0], axis=-1)]
        else:
            raise TypeError(f"{type(w).__name__} is neither radial nor oriented nor a tensor product.")
        return np.hstack([self.factors * column for column in columns])

    def pull_back(self, X: Array, R: Array) -> Array:
        A, T, inverse = self._scaled(X)
        gradient = np.zeros(len(self.theta))
        for rows in row_chunks(len(A), self.n_features):
            gradient += self._pull_back(A[rows], T, inverse, R[rows])
        return gradient

    def _pull_back(self, A: Array, T: Array, inverse: Array, R: Array) -> Array:
        w, (m, d) = self.wavelet, T.shape
        if isinstance(w, TensorWavelet):
            return self._tensor_pull_back(A, T, inverse, R)
        H = [part * self.factors for part in np.split(R, w.columns, axis=1)]
        Q = self._squared_distances(A, T, inverse)
        d_lengths, d_scales = np.zeros(d), np.zeros(m)
        extra: list[float] = []
        if isinstance(w, RadialWavelet):
            columns, values = [(w.slope(Q, d), None)], lambda: [w.profile(Q, d)]
            P = None
        else:
            assert isinstance(w, OrientedWavelet)
            P = self._projections(A, T, inverse)
            columns, values = w.partials(Q, P), lambda: w.profiles(Q, P)  # type: ignore[assignment]
        for h, (d_q, d_p) in zip(H, columns, strict=True):
            h_q = h * d_q
            d_scales += np.einsum("nm,nm->m", h_q, Q)
            d_lengths += _quadratic(h_q * inverse**2, A, T)
            if d_p is not None and P is not None:
                h_p = h * d_p
                d_scales += 0.5 * np.einsum("nm,nm->m", h_p, P)
                d_lengths += 0.5 * _linear(h_p * inverse, A, T, self.directions)
        d_scales, d_lengths = -2 * d_scales, -2 * d_lengths
        if isinstance(w, Morlet):
            assert P is not None
            slopes = w.frequency_slopes(Q, P)
            extra = [sum(float(np.vdot(h, f)) for h, f in zip(H, slopes, strict=True))]
        if self.normalization == "energy":
            per_atom = sum(np.einsum("nm,nm->m", h, f) for h, f in zip(H, values(), strict=True))
            d_scales -= 0.5 * d * per_atom
            d_lengths -= 0.5 * per_atom.sum()
            if isinstance(w, Morlet):
                extra[0] -= 0.5 * w.energy_slope(d) / w.energy(d) * float(per_atom.sum())
        return np.concatenate([self.atoms.gather(d_lengths, d_scales), extra])

    def _tensor_pull_back(self, A: Array, T: Array, inverse: Array, R: Array) -> Array:
        w, (m, d) = self.wavelet, T.shape
        U = [(A[:, [k]] - T[:, k]) * inverse for k in range(d)]
        values, slopes = zip(*[w.line(u) for u in U], strict=True)
        H = R * self.factors
        d_lengths, d_scales = np.zeros(d), np.zeros(m)
        for k in range(d):
            others = np.prod([values[j] for j in range(d) if j != k], axis=0)
            per_atom = -np.einsum("nm,nm->m", H * others, U[k] * slopes[k])
            d_lengths[k] += per_atom.sum()
            d_scales += per_atom
        if self.normalization == "energy":
            total = np.einsum("nm,nm->m", H, np.prod(values, axis=0))
            d_scales -= 0.5 * d * total
            d_lengths -= 0.5 * total.sum()
        return self.atoms.gather(d_lengths, d_scales)


def _quadratic(H: Array, A: Array, T: Array) -> Array:
    """Σ_nm H_nm (a_nk - t_mk)² for every column k, as two matrix products."""
    return (
        H.sum(axis=1) @ A**2 - 2 * np.einsum("dm,md->d", A.T @ H, T) + H.sum(axis=0) @ T**2
    )


def _linear(H: Array, A: Array, T: Array, E: Array) -> Array:
    """Σ_nm H_nm (a_nk - t_mk) e_mk for every column k."""
    return np.einsum("dm,md->d", A.T @ H, E) - H.sum(axis=0) @ (T * E)


def unit_directions(m: int, d: int, rng: np.random.Generator) -> Array:
    """m directions uniform on the sphere; in one dimension all are +1, for a sign changes no kernel."""
    if d == 1:
        return np.ones((m, 1))
    e = rng.normal(size=(m, d))
    return e / np.linalg.norm(e, axis=1, keepdims=True)


@dataclass(frozen=True)
class WaveletFamily:
    """Wavelet features before any atom is drawn."""

    sized: ClassVar[bool] = True
    start_log_prior: ClassVar[float] = 0.0

    wavelet: Wavelet
    measure: Measure
    length_scale: float
    ard: bool = True
    normalization: Normalization = "peak"

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> WaveletFeatures:
        m = max(1, n_features // self.wavelet.columns)
        atoms = Atoms.draw(
            m, X, rng, measure=self.measure, length_scale=self.length_scale, ard=self.ard
        )
        directions = unit_directions(m, X.shape[1], rng)
        return WaveletFeatures(self.wavelet, atoms, directions, self.normalization)
