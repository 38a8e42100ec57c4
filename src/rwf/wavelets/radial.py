"""Radial wavelets: functions of the distance alone."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.integrate import quad
from scipy.special import beta, gamma

from rwf._types import Array
from rwf.wavelets.base import Constants, Geometry, Wavelet, gaussian


def _sphere_area(d: int) -> float:
    return float(2.0 * np.pi ** (d / 2) / gamma(d / 2))


class RadialWavelet(Wavelet):
    r"""ψ(u) = f(‖u‖²). A wavelet of your own is f and its derivative, in ten lines::

        class Sombrero(RadialWavelet):
            def profile(self, q, d):
                return (1 - (d + 2) * q / d) / (1 + q) ** (d + 2)
            def slope(self, q, d):
                tail = (1 - (d + 2) * q / d) / (1 + q) ** (d + 3)
                return -(d + 2) * (1 / d / (1 + q) ** (d + 2) + tail)

    Its constants are found numerically; override :meth:`constants` where they are known.
    """

    geometry: ClassVar[Geometry] = "radial"

    @abstractmethod
    def profile(self, q: Array, d: int) -> Array:
        """f(q), elementwise, q = ‖u‖²."""

    @abstractmethod
    def slope(self, q: Array, d: int) -> Array:
        """f′(q), elementwise."""

    def line(self, u: Array) -> tuple[Array, Array]:
        return self.profile(u * u, 1), 2 * u * self.slope(u * u, 1)

    def radius(self, d: int) -> float:
        """Distance beyond which ψ is zero."""
        return float("inf")

    def _integral(self, d: int, r_power: int, psi_power: int) -> float:
        """∫ ‖u‖^r_power ψ(u)^psi_power over R^d."""

        def integrand(r: float) -> float:
            psi = float(self.profile(np.array(r * r), d))
            return r ** (d - 1 + r_power) * psi**psi_power

        value, _ = quad(integrand, 0.0, self.radius(d), limit=500, epsabs=1e-12, epsrel=1e-10)
        return _sphere_area(d) * float(value)

    def energy(self, d: int) -> float:
        return self._integral(d, 0, 2)

    def _vanishing_moments(self, d: int) -> int:
        """Odd moments vanish by symmetry; an even one of order M is a multiple of ∫ ‖u‖^M ψ."""
        for order in range(0, 12, 2):
            if abs(self._integral(d, order, 1)) > 1e-7:
                return order
        return 12

    def _grid(self, d: int) -> Array:
        """Distances on which maxima are found; 40 is beyond the tail of a Gaussian."""
        return np.linspace(0.0, min(self.radius(d), 40.0), 200_001)

    def _steepest(self, d: int) -> float:
        """The largest slope, on the grid."""
        r = self._grid(d)
        return float(np.abs(2 * r * self.slope(r * r, d)).max())

    def constants(self, d: int) -> Constants:
        return Constants(
            l2_constant=self.energy(d) ** -0.5,
            sup=float(np.abs(self.profile(self._grid(d) ** 2, d)).max()),
            lipschitz=self._steepest(d),
            radius=self.radius(d),
            vanishing_moments=self._vanishing_moments(d),
            mean=self._integral(d, 0, 1),
        )


@dataclass(frozen=True)
class MexicanHat(RadialWavelet):
    r"""The negative Laplacian of a Gaussian, of unit peak.

    .. math:: \psi(u) = (1 - \|u\|^2/d)\, e^{-\|u\|^2/2}

    ``form="paper"`` is :math:`(1 - \|u\|^2)e^{-\|u\|^2/2}` as printed, whose mean
    :math:`(2\pi)^{d/2}(1-d)` is zero for d = 1 only.
    """

    form: Literal["laplacian", "paper"] = "laplacian"

    def __post_init__(self) -> None:
        if self.form not in ("laplacian", "paper"):
            raise ValueError(f"form={self.form!r} is unknown: use 'laplacian' or 'paper'.")

    def curvature(self, d: int) -> float:
        """The coefficient c of (1 - c q)."""
        return 1.0 / d if self.form == "laplacian" else 1.0

    def profile(self, q: Array, d: int) -> Array:
        return (1 - self.curvature(d) * q) * gaussian(q)

    def slope(self, q: Array, d: int) -> Array:
        c = self.curvature(d)
        return -(c + 0.5 * (1 - c * q)) * gaussian(q)

    def energy(self, d: int) -> float:
        c = self.curvature(d)
        return float(np.pi ** (d / 2) * (1 - c * d + c * c * d * (d + 2) / 4))

    def constants(self, d: int) -> Constants:
        c = self.curvature(d)
        # |∇ψ| = r (1 + 2c - c r²) e^(-r²/2) has its maximum at the smaller root of
        # c q² - (1+5c) q + (1+2c).
        b = 1 + 5 * c
        q = (b - np.sqrt(b * b - 4 * c * (1 + 2 * c))) / (2 * c)
        lipschitz = np.sqrt(q) * (1 + 2 * c - c * q) * np.exp(-q / 2)
        zero_mean = self.form == "laplacian" or d == 1
        return Constants(
            l2_constant=self.energy(d) ** -0.5,
            sup=1.0,
            lipschitz=float(lipschitz),
            vanishing_moments=2 if zero_mean else 0,
            mean=0.0 if zero_mean else float((2 * np.pi) ** (d / 2) * (1 - c * d)),
        )


@dataclass(frozen=True)
class CompactHat(RadialWavelet):
    r"""The negative Laplacian of :math:`(1 - \|u\|^2/2p)_+^p`, of unit peak.

    .. math:: \psi(u) = h_+^{p-2}\left(1 - \tfrac{d + 2p - 2}{2pd}\|u\|^2\right),
        \qquad h = 1 - \|u\|^2/2p

    It is exactly zero outside the radius √(2p), has two vanishing moments in every d and tends to
    the Mexican hat as the order p grows.
    """

    order: int = 4

    def __post_init__(self) -> None:
        if self.order != int(self.order) or self.order < 3:
            raise ValueError(
                f"order={self.order} gives no continuous wavelet: use an integer of at least 3."
            )

    def curvature(self, d: int) -> float:
        """The coefficient c of (1 - c q)."""
        return (d + 2 * self.order - 2) / (2 * self.order * d)

    def profile(self, q: Array, d: int) -> Array:
        h = np.maximum(1 - q / (2 * self.order), 0.0)
        return h ** (self.order - 2) * (1 - self.curvature(d) * q)

    def slope(self, q: Array, d: int) -> Array:
        p, c = self.order, self.curvature(d)
        h = np.maximum(1 - q / (2 * p), 0.0)
        inner = -(p - 2) / (2 * p) * h ** (p - 3) * (1 - c * q) - c * h ** (p - 2)
        return np.where(h > 0, inner, 0.0)

    def radius(self, d: int) -> float:
        return float(np.sqrt(2 * self.order))

    def energy(self, d: int) -> float:
        p, c = self.order, self.curvature(d)

        def ball(power: int) -> float:  # ∫ ‖u‖^power h^(2p-4) over the ball of radius √(2p)
            half = (d + power) / 2
            return float(_sphere_area(d) * 0.5 * (2.0 * p) ** half * beta(half, 2 * p - 3))

        return ball(0) - 2 * c * ball(2) + c * c * ball(4)

    def constants(self, d: int) -> Constants:
        return Constants(self.energy(d) ** -0.5, 1.0, self._steepest(d), self.radius(d), 2)


@dataclass(frozen=True)
class Bump(RadialWavelet):
    r"""Wendland's C² function: a compactly supported bump, whose mean is not zero.

    .. math:: \psi(u) = (1 - r)_+^4 (4r + 1), \qquad r = \|u\|/2

    In a lattice with all coarser octaves vanishing moments are not needed, and a smaller overlap
    of neighbors suffices (Wendland 1995; positive definite for d ≤ 3).
    """

    def profile(self, q: Array, d: int) -> Array:
        r = 0.5 * np.sqrt(q)
        return np.maximum(1 - r, 0.0) ** 4 * (4 * r + 1)

    def slope(self, q: Array, d: int) -> Array:
        return -2.5 * np.maximum(1 - 0.5 * np.sqrt(q), 0.0) ** 3

    def radius(self, d: int) -> float:
        return 2.0
