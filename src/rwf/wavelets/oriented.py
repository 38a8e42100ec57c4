"""Oriented wavelets, with a direction that is drawn for every atom."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from rwf._types import Array
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


def _maximum(f: Callable[[float], float], step: float) -> float:
    """The largest value of an even function on [0, 6]: a grid, then a search around its maximum."""
    grid = np.arange(0.0, 6.0, min(step, 0.02))
    values = np.array([f(p) for p in grid])
    best = int(np.argmax(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(
        lambda p: -f(p), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    # The refined maximum is good to rounding; the last factor makes it a bound.
    return max(float(values[best]), -float(refined.fun)) * (1 + 1e-12)


@dataclass(frozen=True)
class Morlet(OrientedWavelet):
    r"""A Gaussian window on a cosine along the atom's direction, with the mean taken out.

    .. math:: \psi(u) = e^{-\|u\|^2/2}\left[\cos(\omega\, e\cdot u) - e^{-\omega^2/2}\right]

    The frequency ω is an initial value: the features learn it.
    """

    frequency: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.frequency < float("inf"):
            raise ValueError(
                f"frequency={self.frequency} must be positive and finite; 5 is the usual choice."
            )

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

    def _bounds(self) -> tuple[float, float]:
        """Bounds on |ψ| and |∇ψ|, for complex wavelets on the modulus.

        At distance ρ from the axis of e, |∇ψ|² = e^(-ρ²)(A + ρ²ψ²) with A and ψ as on the axis: the
        largest over ρ is A, or less than ψ².
        """

        def size(p: float) -> float:
            u = np.array(p)
            return float(np.sqrt(sum(float(f) ** 2 for f in self.profiles(u * u, u))))

        def steepness(p: float) -> float:
            u = np.array(p)
            slopes = [2 * u * d_q + d_p for d_q, d_p in self.partials(u * u, u)]
            return float(np.sqrt(sum(float(f) ** 2 for f in slopes)))

        step = 0.05 / self.frequency
        sup = _maximum(size, step)
        return sup, max(sup, _maximum(steepness, step))

    def constants(self, d: int) -> Constants:
        sup, lipschitz = self._bounds()
        return Constants(self.energy(d) ** -0.5, sup, lipschitz, vanishing_moments=2)


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
        return Constants(self.energy(d) ** -0.5, float(np.exp(-0.5)), 1.0, vanishing_moments=1)


@dataclass(frozen=True)
class Cliff(OrientedWavelet):
    r"""An edge that is longer across its direction e than along it, as cliffs and faults are.

    .. math:: \psi(u) = p\, e^{-\left[p^2 + (\|u\|^2 - p^2)/a^2\right]/2}, \qquad p = e\cdot u

    Args:
        aspect: a, how much longer. One gives :class:`GaussianDerivative`.
    """

    aspect: float = 4.0

    def __post_init__(self) -> None:
        if not 1 <= self.aspect < float("inf"):
            raise ValueError(f"aspect={self.aspect} must be at least 1; 4 suits cliffs and faults.")

    def _window(self, q: Array, p: Array) -> Array:
        along, all_of_it = np.minimum(np.abs(p), 1e150) ** 2, np.minimum(q, 1e300)
        return gaussian(along + (all_of_it - along) / self.aspect**2)

    def profiles(self, q: Array, p: Array) -> list[Array]:
        return [p * self._window(q, p)]

    def partials(self, q: Array, p: Array) -> list[tuple[Array, Array]]:
        window, across = self._window(q, p), self.aspect**-2
        return [(-0.5 * across * p * window, window * (1.0 - (1.0 - across) * p * p))]

    def energy(self, d: int) -> float:
        return float(0.5 * np.pi ** (d / 2) * self.aspect ** (d - 1))

    def constants(self, d: int) -> Constants:
        return Constants(self.energy(d) ** -0.5, float(np.exp(-0.5)), 1.0, vanishing_moments=1)
