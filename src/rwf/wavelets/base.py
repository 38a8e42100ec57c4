"""The base class of mother wavelets, and their constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rwf._types import Array

TAIL = 80.0  # squared radius beyond which a Gaussian is set to zero: e^-40 = 4e-18 of its peak

Geometry = Literal["radial", "oriented", "tensor"]


@dataclass(frozen=True)
class Constants:
    r"""Numbers of a mother wavelet in d dimensions, for the formula as written.

    Args:
        l2_constant: :math:`C_d`, the factor that gives :math:`\|C_d\psi\|_{L^2} = 1`.
        sup: :math:`\sup|\psi|`; exact, or an upper bound.
        lipschitz: bound on :math:`\sup\|\nabla\psi\|`; infinite where ψ jumps or has unbounded
            slope.
        radius: ψ vanishes outside this distance from the origin; infinite for Gaussian envelopes.
        vanishing_moments: M, the largest with :math:`\int x^\alpha\psi = 0` for all
            :math:`|\alpha| < M`.
        mean: :math:`\int\psi`.
    """

    l2_constant: float
    sup: float
    lipschitz: float
    radius: float = np.inf
    vanishing_moments: int = 0
    mean: float = 0.0


class Wavelet(ABC):
    """A mother wavelet; subclass :class:`RadialWavelet` to add one of your own."""

    geometry: ClassVar[Geometry]
    columns: ClassVar[int] = 1
    """Feature columns per atom: two for a complex wavelet, its real and imaginary part."""

    @abstractmethod
    def energy(self, d: int) -> float:
        r"""∫ψ² over R^d, so that C_d = energy^-½."""

    @abstractmethod
    def constants(self, d: int) -> Constants:
        """The constants of ψ on R^d."""

    @abstractmethod
    def line(self, u: Array) -> tuple[Array, Array]:
        """ψ and ψ′ of the one-dimensional wavelet, which ridge features use."""


def gaussian(q: Array) -> Array:
    """e^(-q/2), exactly zero past :data:`TAIL`, so that far atoms make no denormal numbers."""
    return np.where(q > TAIL, 0.0, np.exp(-0.5 * np.minimum(q, TAIL)))
