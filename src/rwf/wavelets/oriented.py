"""Wavelets with a direction, which every atom draws for itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf.types import Array
from rwf.wavelets.base import Constants, Geometry, Wavelet, gaussian


class OrientedWavelet(Wavelet):
    """ψ(u) = f(‖u‖², e·u) with a unit direction e drawn for each atom (in one dimension, e = 1)."""

    geometry: ClassVar[Geometry] = "oriented"

    @abstractmethod
    def profiles(self, q: Array, p: Array) -> list[Array]:
        """f(q, p), one array per feature column of an atom."""

    @abstractmethod
    def partials(self, q: Array, p: Array) -> list[tuple[Array, Array]]:
        """(∂f/∂q, ∂f/∂p), one pair per feature column of an atom."""

    def line(self, u: Array) -> tuple[Array, Array]:
        value = self.profiles(u * u, u)[0]
        d_q, d_p = self.partials(u * u, u)[0]
        return value, 2 * u * d_q + d_p


@dataclass(frozen=True)
class Morlet(OrientedWavelet):
    r"""A Gaussian window on a cosine along the atom's direction, with the mean taken out.

    .. math:: \psi(u) = e^{-\|u\|^2/2}\left[\cos(\omega\, e\cdot u) - e^{-\omega^2/2}\right]

    The frequency ω is where learning starts; it is a parameter of the features.
    """

    frequency: float = 5.0

    def __post_init__(self) -> None:
        if not self.frequency > 0:
            raise ValueError(f"frequency={self.frequency} must be positive; 5 is the usual choice.")

    @property
    def offset(self) -> float:
        """κ = e^(-ω²/2), which makes the mean zero."""
        return float(np.exp(-0.5 * self.frequency**2))

    def profiles(self, q: Array, p: Array) -> list[Array]:
        return [gaussian(q) * (np.cos(self.frequency * p) - self.offset)]

    def partials(self, q: Array, p: Array) -> list[tuple[Array, Array]]:
        w = self.frequency
        return [(-0.5 * self.profiles(q, p)[0], -w * gaussian(q) * np.sin(w * p))]

    def frequency_slopes(self, q: Array, p: Array) -> list[Array]:
        """∂f/∂log ω per feature column."""
        w = self.frequency
        return [gaussian(q) * (-w * p * np.sin(w * p) + w * w * self.offset)]

    def energy(self, d: int) -> float:
        w2 = self.frequency**2
        return float(np.pi ** (d / 2) * (0.5 + 1.5 * np.exp(-w2) - 2 * np.exp(-0.75 * w2)))

    def energy_slope(self, d: int) -> float:
        """d energy / d log ω."""
        w2 = self.frequency**2
        return float(np.pi ** (d / 2) * 3 * w2 * (np.exp(-0.75 * w2) - np.exp(-w2)))

    def _bounds(self, d: int) -> tuple[float, float]:
        """Largest |ψ| and |∇ψ| on a fine grid of (along e, across e).

        Complex wavelets are measured by their modulus.
        """
        step = 0.1 / max(1.0, self.frequency)
        p = np.arange(0.0, 6.0, step / 4)[:, None]
        across = np.arange(0.0, 2.0, 0.02)[None, :] if d > 1 else np.zeros((1, 1))
        q = p**2 + across**2
        p = np.broadcast_to(p, q.shape)
        size = sum(f**2 for f in self.profiles(q, p))
        # ∇f = 2u ∂f/∂q + e ∂f/∂p, split along and across e.
        steepness = sum(
            (2 * p * d_q + d_p) ** 2 + (2 * across * d_q) ** 2 for d_q, d_p in self.partials(q, p)
        )
        return float(np.sqrt(np.max(size))), float(np.sqrt(np.max(steepness)))

    def constants(self, d: int) -> Constants:
        sup, lipschitz = self._bounds(d)
        return Constants(self.energy(d) ** -0.5, sup, lipschitz, float("inf"), 2, 0.0)


@dataclass(frozen=True)
class ComplexMorlet(Morlet):
    r"""The Morlet wavelet as a cosine and sine pair: two feature columns, one phase-free atom.

    .. math:: \psi(u) = e^{-\|u\|^2/2}\left[e^{i\omega\, e\cdot u} - e^{-\omega^2/2}\right]
    """

    columns: ClassVar[int] = 2

    def profiles(self, q: Array, p: Array) -> list[Array]:
        return [*super().profiles(q, p), gaussian(q) * np.sin(self.frequency * p)]

    def partials(self, q: Array, p: Array) -> list[tuple[Array, Array]]:
        w = self.frequency
        sine = gaussian(q) * np.sin(w * p)
        return [*super().partials(q, p), (-0.5 * sine, w * gaussian(q) * np.cos(w * p))]

    def frequency_slopes(self, q: Array, p: Array) -> list[Array]:
        w = self.frequency
        return [*super().frequency_slopes(q, p), gaussian(q) * w * p * np.cos(w * p)]

    def energy(self, d: int) -> float:
        # ∫ e^(-q) |e^(iωp) - κ|²: the energies of the two columns together.
        w2 = self.frequency**2
        return float(np.pi ** (d / 2) * (1 + np.exp(-w2) - 2 * np.exp(-0.75 * w2)))

    def energy_slope(self, d: int) -> float:
        w2 = self.frequency**2
        return float(np.pi ** (d / 2) * w2 * (3 * np.exp(-0.75 * w2) - 2 * np.exp(-w2)))

    def constants(self, d: int) -> Constants:
        return replace(super().constants(d), vanishing_moments=1)


@dataclass(frozen=True)
class GaussianDerivative(OrientedWavelet):
    r"""The first derivative of a Gaussian along the atom's direction: an edge.

    .. math:: \psi(u) = (e\cdot u)\, e^{-\|u\|^2/2}
    """

    def profiles(self, q: Array, p: Array) -> list[Array]:
        return [p * gaussian(q)]

    def partials(self, q: Array, p: Array) -> list[tuple[Array, Array]]:
        return [(-0.5 * p * gaussian(q), gaussian(q))]

    def energy(self, d: int) -> float:
        return float(0.5 * np.pi ** (d / 2))

    def constants(self, d: int) -> Constants:
        return Constants(
            l2_constant=self.energy(d) ** -0.5,
            sup=float(np.exp(-0.5)),
            lipschitz=1.0,
            radius=float("inf"),
            vanishing_moments=1,
            mean=0.0,
        )
