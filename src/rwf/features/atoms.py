r"""Atoms: shifts, scales and length-scales, and how θ moves them.

.. math:: u_k = \frac{x_k - t_{ik}}{\ell_k s_i},
    \qquad \log s_i = \log s_\mathrm{mid} + (v_i - \tfrac12) e^{\eta}

θ holds log ℓ (one per column, or one for all) and η, the log of the log-width of the scale range.
Only ℓ·s can be identified, so the middle of the scale range stays fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.base import LOG_LENGTH_BOUNDS, Fills
from rwf.wavelets import CompactHat, MexicanHat, TensorWavelet, Wavelet
from rwf.wavelets.measure import Measure

LOG_WIDTH_BOUNDS = (-7.0, 3.0)  # bounds of η: from one scale in all to scales over 29 octaves


@dataclass(frozen=True)
class Atoms:
    """Placed atoms."""

    draws: Annotated[Array, "m"]  # v, base draws of the scales in (0, 1), shape (m,)
    shifts: Annotated[Array, "m d"]  # t, shape (m, d)
    middle: float  # s_mid, the fixed geometric middle of the scale range
    log_lengths: Annotated[Array, "d"]  # log ℓ, shape (d,)
    log_width: float | None  # η; ``None`` if all atoms have the one scale s_mid
    ard: bool  # whether every column has its own length-scale to learn

    @property
    def scales(self) -> Array:
        """s, shape (m,)."""
        if self.log_width is None:
            return np.full(len(self.draws), self.middle)
        scales: Array = self.middle * np.exp((self.draws - 0.5) * np.exp(self.log_width))
        return scales

    @property
    def lengths(self) -> Array:
        """ℓ, shape (d,)."""
        return np.exp(self.log_lengths)

    @property
    def n_lengths(self) -> int:
        return len(self.log_lengths) if self.ard else 1

    @property
    def theta(self) -> Array:
        width = [] if self.log_width is None else [self.log_width]
        return np.concatenate([self.log_lengths[: self.n_lengths], width])

    @property
    def bounds(self) -> Array:
        width = [] if self.log_width is None else [LOG_WIDTH_BOUNDS]
        return np.array([LOG_LENGTH_BOUNDS] * self.n_lengths + width)

    def with_theta(self, theta: Array) -> Self:
        lengths = np.broadcast_to(theta[: self.n_lengths], self.log_lengths.shape).copy()
        log_width = None if self.log_width is None else float(theta[self.n_lengths])
        return replace(self, log_lengths=lengths, log_width=log_width)

    def take(self, which: IntArray) -> Self:
        """Some of the atoms."""
        return replace(self, draws=self.draws[which], shifts=self.shifts[which])

    def gather(self, d_log_lengths: Array, d_log_scales: Array) -> Array:
        """The gradient by θ from those by log ℓ, shape (d,), and by log s, shape (m,)."""
        lengths = d_log_lengths if self.ard else [d_log_lengths.sum()]
        if self.log_width is None:
            return np.asarray(lengths, dtype=np.float64)
        width = np.exp(self.log_width) * float(d_log_scales @ (self.draws - 0.5))
        return np.concatenate([lengths, [width]])


SQUARED_DISTANCE, HAT, COMPACT_HAT = 0, 1, 2  # formulas of the fused loops: q, or a hat of it
Profile = tuple[int, float, int]  # a formula, and the curvature and the order of its hat


def hat_profile(wavelet: Wavelet, d: int) -> Profile | None:
    """The profile of a hat in d dimensions; ``None`` for any other wavelet."""
    # A fused loop is for the class itself: a subclass may have another formula.
    if type(wavelet) is MexicanHat:
        return HAT, wavelet.curvature(d), 0
    if type(wavelet) is CompactHat:
        return COMPACT_HAT, wavelet.curvature(d), wavelet.order
    return None


@dataclass(frozen=True)
class AtomFeatures(Fills):
    """What maps of random atoms have in common; θ is that of the atoms."""

    local: ClassVar[bool] = True

    wavelet: Wavelet  # ψ
    atoms: Atoms  # where the atoms are and how wide

    @property
    def shifts(self) -> Array:
        return self.atoms.shifts

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

    def _scaled(self, X: FloatArray) -> tuple[Array, Array, Array]:
        """X/ℓ, t/ℓ and 1/s: coordinates in which every atom is isotropic."""
        lengths = self.atoms.lengths
        A = np.ascontiguousarray(X / lengths, dtype=np.float64)
        return A, self.atoms.shifts / lengths, 1.0 / self.atoms.scales


@dataclass(frozen=True)
class AtomFamily:
    """What families of random atoms have in common."""

    sized: ClassVar[bool] = True
    start_log_prior: ClassVar[float] = 0.0

    wavelet: Wavelet
    measure: Measure
    length_scale: float
    ard: bool = True

    def draw_atoms(self, m: int, X: Array, rng: np.random.Generator) -> Atoms:
        """m atoms of the measure over the rows X."""
        draws, shifts = self.measure.draw(m, X, rng)
        log_width = float(np.log(self.measure.width)) if self.measure.width > 0 else None
        log_lengths = np.full(X.shape[1], np.log(self.length_scale))
        return Atoms(draws, shifts, self.measure.middle, log_lengths, log_width, self.ard)


@dataclass(frozen=True)
class AtomGradient:
    """A gradient by log ℓ, shape (d,), by log s, shape (m,), and by a wavelet's log frequency."""

    log_lengths: Array
    log_scales: Array
    log_frequency: float = 0.0

    def __add__(self, other: AtomGradient) -> AtomGradient:
        return AtomGradient(
            self.log_lengths + other.log_lengths,
            self.log_scales + other.log_scales,
            self.log_frequency + other.log_frequency,
        )


def by_distance(H: Array, Q: Array, A: Array, T: Array, inverse: Array) -> AtomGradient:
    """Through q = Σ_k ((a_k - t_k)/s)², with A = X/ℓ, T = t/ℓ, 1/s, and H the gradient by q.

    Its derivatives are ∂q/∂log s = -2q and ∂q/∂log ℓ_k = -2u_k².
    """
    log_scales = -2 * np.einsum("nm,nm->m", H, Q)
    H = H * inverse**2
    # Σ H (a_k - t_k)² for every column k, as matrix products.
    squares = H.sum(axis=1) @ A**2 + H.sum(axis=0) @ T**2
    return AtomGradient(-2 * (squares - 2 * np.einsum("dm,md->d", A.T @ H, T)), log_scales)


def by_projection(H: Array, P: Array, A: Array, T: Array, E: Array, inverse: Array) -> AtomGradient:
    """Through p = e·(a - t)/s, with directions E, shape (m, d); else as :func:`by_distance`."""
    log_scales = -np.einsum("nm,nm->m", H, P)
    H = H * inverse
    moved = A.T @ H - T.T * H.sum(axis=0)  # Σ_n H (a_k - t_k), shape (d, m)
    return AtomGradient(-np.einsum("dm,md->d", moved, E), log_scales)


def by_axes(H: Array, wavelet: TensorWavelet, A: Array, T: Array, inverse: Array) -> AtomGradient:
    """Through every factor of ψ₁(u_1)…ψ₁(u_d), with H the gradient by the product."""
    d = A.shape[1]
    U = [(A[:, [k]] - T[:, k]) * inverse for k in range(d)]
    values, slopes = zip(*[wavelet.line(u) for u in U], strict=True)
    total = AtomGradient(np.zeros(d), np.zeros(len(T)))
    for k in range(d):
        others = np.prod([values[j] for j in range(d) if j != k], axis=0)
        per_atom = -np.einsum("nm,nm->m", H * others, U[k] * slopes[k])
        total += AtomGradient(np.where(np.arange(d) == k, per_atom.sum(), 0.0), per_atom)
    return total
