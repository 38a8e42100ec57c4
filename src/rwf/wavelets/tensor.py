"""Wavelets with compact support on the line, and their tensor products."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from rwf._types import Array
from rwf.wavelets.base import Constants, Geometry, Wavelet


class TensorWavelet(Wavelet):
    """ψ(u) = ψ₁(u_1)…ψ₁(u_d), centred so that its support is symmetric about the origin."""

    geometry: ClassVar[Geometry] = "tensor"

    @abstractmethod
    def line_constants(self) -> Constants:
        """The constants of ψ₁."""

    def energy(self, d: int) -> float:
        return self.line_constants().l2_constant ** (-2 * d)

    def constants(self, d: int) -> Constants:
        one = self.line_constants()
        return Constants(
            l2_constant=one.l2_constant**d,
            sup=one.sup**d,
            lipschitz=float(np.sqrt(d) * one.lipschitz * one.sup ** (d - 1)),
            radius=float(np.sqrt(d) * one.radius),
            vanishing_moments=d * one.vanishing_moments,
            mean=one.mean**d,
        )


@dataclass(frozen=True)
class Haar(TensorWavelet):
    """+1 on [-½, 0), -1 on [0, ½): the sharpest edge, without a slope to learn from."""

    def line(self, u: Array) -> tuple[Array, Array]:
        left, right = (u >= -0.5) & (u < 0.0), (u >= 0.0) & (u < 0.5)
        return np.where(left, 1.0, 0.0) - np.where(right, 1.0, 0.0), np.zeros_like(u)

    def line_constants(self) -> Constants:
        return Constants(1.0, 1.0, float("inf"), 0.5, 1)


@lru_cache(maxsize=40)
def cascade_table(order: int, level: int = 12) -> tuple[Array, float]:
    """Values of dbN on an even grid over its support, of unit energy, and the grid's step."""
    import pywt

    _, psi, x = pywt.Wavelet(f"db{order}").wavefun(level=level)
    step = float(x[1] - x[0])
    psi = psi / np.sqrt(np.sum(psi**2) * step)
    psi[[0, -1]] = 0.0
    psi.setflags(write=False)
    return psi, step


@dataclass(frozen=True)
class Daubechies(TensorWavelet):
    """Daubechies' dbN with N vanishing moments on a support of width 2N - 1, centred at the origin.

    A cascade table, linearly interpolated; its derivative is the slope of the interpolant. In d > 1
    it is the tensor product. db2, four taps and two moments, is what some call "D4".
    """

    order: int = 4

    def __post_init__(self) -> None:
        if self.order != int(self.order) or not 2 <= self.order <= 38:
            raise ValueError(
                f"order={self.order!r}: there are db2 to db38, and db1 is the Haar wavelet, Haar()."
            )

    def table(self) -> tuple[Array, float, float]:
        """Values, grid step and left end of the support."""
        values, step = cascade_table(self.order)
        return values, step, -0.5 * step * (len(values) - 1)

    def line(self, u: Array) -> tuple[Array, Array]:
        values, step, left = self.table()
        position = (u - left) / step
        inside = (position >= 0) & (position < len(values) - 1)
        cell = np.where(inside, position, 0.0).astype(np.intp)
        rise = values[cell + 1] - values[cell]
        value = values[cell] + (position - cell) * rise
        return np.where(inside, value, 0.0), np.where(inside, rise / step, 0.0)

    def line_constants(self) -> Constants:
        values, step, _ = self.table()
        # db2 has Hölder exponent 0.55: its slopes are unbounded.
        smooth = self.order > 2
        return Constants(
            l2_constant=1.0,
            sup=float(np.abs(values).max()),
            lipschitz=float(np.abs(np.diff(values)).max() / step) if smooth else float("inf"),
            radius=(2 * self.order - 1) / 2,
            vanishing_moments=self.order,
        )
