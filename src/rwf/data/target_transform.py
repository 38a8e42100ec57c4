r"""Transforms of positive targets, under which their errors are of one size: log y and √(y + c).

Models are fitted to :math:`u = g(y)`. A density of u is one of y after multiplication by

.. math:: g'(y) = \frac1y \quad\text{(logarithm)}, \qquad
    g'(y) = \frac{1}{2\sqrt{y + c}} \quad\text{(square root)}.

The c of a square root is half the smallest positive target, so that the density of zero is finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

import numpy as np

from rwf._types import Array

Bend = Literal["log", "sqrt"] | None
POWERS: dict[Bend, float] = {"log": 0.0, "sqrt": 0.5, None: 1.0}  # those of Box and Cox
BENDS = {power: bend for bend, power in POWERS.items()}
LARGEST_LOG = 345.0  # of u, so that neither exp(u) nor its square overflows


@dataclass(frozen=True)
class TargetTransform:
    """u = g(y), output by output."""

    powers: Annotated[Array, "k"]  # 0 for a logarithm, 1/2 for a square root, 1 for y itself
    offsets: Annotated[Array, "k"]  # c

    @classmethod
    def learn(cls, bends: tuple[Bend, ...], y: Array) -> Self | None:
        """The transforms of targets of shape (n, k); ``None`` if all stay as they are."""
        if not any(bends):
            return None
        positive = np.where(y > 0, y, np.inf).min(axis=0)
        powers = np.array([POWERS[bend] for bend in bends])
        offsets = np.where((powers == POWERS["sqrt"]) & np.isfinite(positive), positive / 2, 0.0)
        return cls(powers, offsets)

    @property
    def names(self) -> tuple[Bend, ...]:
        """What is done to each output."""
        return tuple(BENDS[power] for power in self.powers.tolist())

    def output(self, number: int) -> Self:
        """That of one output."""
        return type(self)(self.powers[[number]], self.offsets[[number]])

    @property
    def lowest(self) -> Array:
        """The lower end of u; -inf where there is none."""
        return np.where(self.powers == POWERS["sqrt"], np.sqrt(self.offsets), -np.inf)

    def require_inside(self, y: Array) -> None:
        """Raise an error if a target has no transform."""
        outside = np.where(self.powers == 0, y <= 0, (self.powers < 1) & (y < 0))
        if not outside.any():
            return
        row, column = np.argwhere(outside)[0]
        log = self.powers[column] == 0
        other = "'sqrt' or None" if log and not (y[:, column] < 0).any() else "None"
        raise ValueError(
            f"the target {y[row, column]:.6g} has no {'logarithm' if log else 'square root'}, nor "
            f"have {outside.sum()} of {len(y)} rows, but the model is one of "
            f"{'log y' if log else 'the square root of y'}: fit with target_transform={other}, or "
            "leave those rows out."
        )

    def __call__(self, y: Array) -> Array:
        """u of targets, shape (…, k); -inf, or the lower end, for those outside."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(y, 0.0))
        roots = np.sqrt(np.maximum(y, 0.0) + self.offsets)
        return np.where(self.powers == 0, logs, np.where(self.powers < 1, roots, y))

    def inverse(self, u: Array) -> Array:
        """The targets of u, of shape (…, k): none is negative, but where y stays as it is."""
        exponentials = np.exp(np.clip(u, -LARGEST_LOG, LARGEST_LOG))
        squares = np.maximum(np.maximum(u, self.lowest) ** 2 - self.offsets, 0.0)
        return np.where(self.powers == 0, exponentials, np.where(self.powers < 1, squares, u))

    def log_slope(self, y: Array) -> Array:
        """log g'(y), shaped as y; -inf for targets that have no transform."""
        with np.errstate(divide="ignore"):
            logs = np.where(y > 0, -np.log(np.maximum(y, 0.0)), -np.inf)
            halves = -0.5 * np.log(np.maximum(y, 0.0) + self.offsets) - np.log(2.0)
        roots = np.where(y >= 0, halves, -np.inf)
        return np.where(self.powers == 0, logs, np.where(self.powers < 1, roots, 0.0))
