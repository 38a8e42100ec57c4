r"""Random wavelet features: one column per atom (two for a complex wavelet).

.. math::
    z_i(x) = \frac{c_i}{\sqrt m}\,\psi\!\left(\frac{x - t_i}{\ell\, s_i}\right),
    \qquad \mathbb{E}\,[z(x)^\top z(x')] = k(x, x')

with c = 1 for unit peak, or :math:`c_i = C_d \prod_k (\ell_k s_i)^{-1/2}` for unit energy, the
paper's :math:`s^{-d/2}`. Radial, oriented and tensor wavelets differ only in the coordinates that ψ
sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.atoms import (
    SQUARED_DISTANCE,
    AtomFamily,
    AtomFeatures,
    AtomGradient,
    Profile,
    by_axes,
    by_distance,
    by_projection,
    hat_profile,
)
from rwf.features.base import memory, row_chunks
from rwf.wavelets import (
    ComplexMorlet,
    Daubechies,
    GaussianDerivative,
    Haar,
    Morlet,
    OrientedWavelet,
    RadialWavelet,
    TensorWavelet,
    Wavelet,
)

LOG_FREQUENCY_BOUNDS = (float(np.log(0.3)), float(np.log(60.0)))
"""For a Morlet's frequency: from a single bump to some twenty waves in its envelope."""

Normalization = Literal["peak", "energy"]


@dataclass(frozen=True)
class WaveletFeatures(AtomFeatures):
    """z(x) of the atoms of one mother wavelet."""

    directions: Annotated[Array, "m d"]  # unit vectors e, shape (m, d); used by oriented wavelets
    normalization: Normalization = "peak"  # ψ as written, or "energy": unit L² norm of every atom

    @property
    def n_atoms(self) -> int:
        return len(self.atoms.draws)

    @property
    def n_features(self) -> int:
        return self.wavelet.columns * self.n_atoms

    @property
    def widths(self) -> Array:
        return self.atoms.scales[:, None] * self.atoms.lengths

    def take(self, which: IntArray) -> Self:
        """Some of the atoms."""
        return replace(self, atoms=self.atoms.take(which), directions=self.directions[which])

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
        return super().with_theta(theta)

    @property
    def factors(self) -> Array:
        """c_i/√m, shape (m,)."""
        m, d = self.atoms.shifts.shape
        if self.normalization == "peak":
            return np.full(m, m**-0.5)
        log_volume = d * np.log(self.atoms.scales) + self.atoms.log_lengths.sum()
        factors: Array = np.exp(-0.5 * log_volume) / np.sqrt(m * self.wavelet.energy(d))
        return factors

    def into(self, X: FloatArray, out: FloatArray) -> None:
        from rwf.features import _fused

        A, T, inverse = self._scaled(X)
        tT, factor, w = np.ascontiguousarray(T.T), self.factors, self.wavelet
        Z, profile = memory(out), hat_profile(w, X.shape[1])
        if profile is not None:
            _fused.radial(A, tT, inverse, factor, profile, *Z)
        elif type(w) is Morlet or type(w) is ComplexMorlet:
            kind = _fused.COMPLEX_MORLET if type(w) is ComplexMorlet else _fused.MORLET
            eT = np.ascontiguousarray(self.directions.T)
            _fused.oriented(A, tT, eT, inverse, factor, kind, w.frequency, *Z)
        elif type(w) is GaussianDerivative:
            eT = np.ascontiguousarray(self.directions.T)
            _fused.oriented(A, tT, eT, inverse, factor, _fused.EDGE, 0.0, *Z)
        elif type(w) is Haar:
            _fused.tensor_haar(A, tT, inverse, factor, *Z)
        elif type(w) is Daubechies:
            _fused.tensor_table(A, tT, inverse, factor, *w.table(), *Z)
        else:
            for rows in row_chunks(len(A), self.n_features):
                profiles = self._profiles(A[rows], T, inverse)
                out[rows] = np.hstack([factor * profile for profile in profiles])

    def _squared_distances(self, A: Array, T: Array, inverse: Array) -> Array:
        from rwf.features import _fused

        Q, profile = np.empty((len(A), len(T))), (SQUARED_DISTANCE, 0.0, 0)
        _fused.radial(A, np.ascontiguousarray(T.T), inverse, inverse, profile, *memory(Q))
        return Q

    def _projections(self, A: Array, T: Array, inverse: Array) -> Array:
        e = self.directions
        P: Array = (A @ e.T - np.einsum("md,md->m", T, e)) * inverse
        return P

    def _profiles(self, A: Array, T: Array, inverse: Array) -> list[Array]:
        """ψ of every row and atom by the wavelet's own formula, one array per column of an atom."""
        w, d = self.wavelet, A.shape[1]
        if isinstance(w, TensorWavelet):
            return [np.prod(w.line((A[:, None, :] - T) * inverse[:, None])[0], axis=-1)]
        Q = self._squared_distances(A, T, inverse)
        if isinstance(w, RadialWavelet):
            return [w.profile(Q, d)]
        if isinstance(w, OrientedWavelet):
            return w.profiles(Q, self._projections(A, T, inverse))
        raise TypeError(f"{type(w).__name__} is neither radial nor oriented nor a tensor product.")

    def pull_back(self, X: Array, R: Array) -> Array:
        A, T, inverse = self._scaled(X)
        profile = hat_profile(self.wavelet, X.shape[1])
        if self.normalization == "peak" and profile is not None:
            return self._fused_pull_back(profile, A, T, inverse, R)
        gradient = np.zeros(len(self.theta))
        for rows in row_chunks(len(A), self.n_features):
            H = [r * self.factors for r in np.split(R[rows], self.wavelet.columns, axis=1)]
            gradient += self._chain(A[rows], T, inverse, H)
        return gradient

    def _fused_pull_back(
        self, profile: Profile, A: Array, T: Array, inverse: Array, R: Array
    ) -> Array:
        from rwf.features import _fused_slopes

        tT = np.ascontiguousarray(T.T)
        squares = np.zeros(tT.shape)  # Σ_n R f′(q) (a_k - t_k)², shape (d, m)
        _fused_slopes.radial_slopes(A, tT, inverse, profile, *memory(R), squares)
        squares *= -2.0 * self.factors * inverse**2
        return self.atoms.gather(squares.sum(axis=1), squares.sum(axis=0))

    def _chain(self, A: Array, T: Array, inverse: Array, H: list[Array]) -> Array:
        """Σ H ∂ψ/∂θ, with one H per column of an atom."""
        w, d = self.wavelet, A.shape[1]
        if isinstance(w, TensorWavelet):
            gradient = by_axes(H[0], w, A, T, inverse)
        elif isinstance(w, RadialWavelet):
            Q = self._squared_distances(A, T, inverse)
            gradient = by_distance(H[0] * w.slope(Q, d), Q, A, T, inverse)
        else:
            assert isinstance(w, OrientedWavelet)
            gradient = self._oriented_chain(w, A, T, inverse, H)
        if self.normalization == "energy":
            profiles = self._profiles(A, T, inverse)
            gradient += by_energy(w, H, profiles, d)
        theta = self.atoms.gather(gradient.log_lengths, gradient.log_scales)
        return np.append(theta, gradient.log_frequency) if isinstance(w, Morlet) else theta

    def _oriented_chain(
        self, w: OrientedWavelet, A: Array, T: Array, inverse: Array, H: list[Array]
    ) -> AtomGradient:
        Q = self._squared_distances(A, T, inverse)
        P = self._projections(A, T, inverse)
        total = AtomGradient(np.zeros(A.shape[1]), np.zeros(len(T)))
        for h, (d_q, d_p) in zip(H, w.partials(Q, P), strict=True):
            total += by_distance(h * d_q, Q, A, T, inverse)
            total += by_projection(h * d_p, P, A, T, self.directions, inverse)
        if isinstance(w, Morlet):
            slopes = zip(H, w.frequency_slopes(Q, P), strict=True)
            return replace(total, log_frequency=sum(float(np.vdot(h, f)) for h, f in slopes))
        return total


def by_energy(w: Wavelet, H: list[Array], profiles: list[Array], d: int) -> AtomGradient:
    """Through the factor C_d Π(ℓ_k s)^-½ of unit-energy atoms."""
    per_atom = sum(np.einsum("nm,nm->m", h, f) for h, f in zip(H, profiles, strict=True))
    assert isinstance(per_atom, np.ndarray)
    total = float(per_atom.sum())
    frequency = -0.5 * w.energy_slope(d) / w.energy(d) * total if isinstance(w, Morlet) else 0.0
    return AtomGradient(np.full(d, -0.5 * total), -0.5 * d * per_atom, frequency)


def unit_directions(m: int, d: int, rng: np.random.Generator) -> Array:
    """m directions uniform on the sphere; all +1 in one dimension, as a sign changes no kernel."""
    if d == 1:
        return np.ones((m, 1))
    e = rng.normal(size=(m, d))
    norms: Array = np.linalg.norm(e, axis=1, keepdims=True)
    return e / norms


@dataclass(frozen=True)
class WaveletFamily(AtomFamily):
    """Wavelet features before any atom is drawn."""

    normalization: Normalization = "peak"

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> WaveletFeatures:
        m = max(1, n_features // self.wavelet.columns)
        atoms = self.draw_atoms(m, X, rng)
        directions = unit_directions(m, X.shape[1], rng)
        return WaveletFeatures(self.wavelet, atoms, directions, self.normalization)
