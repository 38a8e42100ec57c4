r"""The measure p(s, t) that atoms are drawn from: scales s and shifts t.

Base draws are made once, with a generator; the scale range then moves the atoms smoothly,

.. math:: \log s_i = \log s_\mathrm{mid} + (u_i - \tfrac12)\,\rho, \qquad u_i \in (0, 1),

so that the evidence is a smooth function of ρ = log(s_max/s_min), with the random draws fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rwf._types import Array


class ShiftSampler(Protocol):
    """Draws shifts t for m atoms. A plain function with this signature will do."""

    def __call__(self, X: Array, m: int, rng: np.random.Generator) -> Array:
        """Shifts, shape (m, d), in the units of X."""


def stratified(m: int, rng: np.random.Generator) -> Array:
    """m numbers in (0, 1), one in each of m equal strata, in random order; each is uniform."""
    return (rng.permutation(m) + rng.uniform(size=m)) / m


@dataclass(frozen=True)
class Rows:
    """Shifts at training rows: the empirical measure of the data."""

    def __call__(self, X: Array, m: int, rng: np.random.Generator) -> Array:
        index = (stratified(m, rng) * len(X)).astype(np.intp)
        return X[np.minimum(index, len(X) - 1)]


@dataclass(frozen=True)
class Box:
    """Shifts uniform in the data's bounding box, each side extended by ``pad`` of its length."""

    pad: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.pad < float("inf"):
            raise ValueError(f"pad={self.pad}: give a fraction of the side, zero or more.")

    def __call__(self, X: Array, m: int, rng: np.random.Generator) -> Array:
        low, high = self.corners(X)
        return low + rng.uniform(size=(m, X.shape[1])) * (high - low)

    def corners(self, X: Array) -> tuple[Array, Array]:
        """The box's lower and upper corner."""
        low, high = X.min(axis=0), X.max(axis=0)
        margin = self.pad * (high - low)
        return low - margin, high + margin


@dataclass(frozen=True)
class Hull:
    """Shifts in the convex hull of the data: random convex combinations of d + 1 rows."""

    def __call__(self, X: Array, m: int, rng: np.random.Generator) -> Array:
        n, d = X.shape
        corners = X[rng.integers(n, size=(m, d + 1))]
        weights = rng.dirichlet(np.ones(d + 1), size=m)
        shifts: Array = np.einsum("mc,mcd->md", weights, corners)
        return shifts


SHIFTS: dict[str, ShiftSampler] = {"data": Rows(), "box": Box(), "hull": Hull()}


def as_shifts(shifts: str | ShiftSampler) -> ShiftSampler:
    """A shift sampler from its name, or the sampler itself."""
    if isinstance(shifts, str) and shifts in SHIFTS:
        return SHIFTS[shifts]
    if isinstance(shifts, Callable):  # type: ignore[arg-type]
        return shifts  # type: ignore[return-value]
    raise ValueError(
        f"shifts={shifts!r} is unknown: "
        "use 'data', 'box', 'hull', or a function (X, m, rng) -> (m, d) array."
    )


@dataclass(frozen=True)
class Measure:
    r"""p(s, t) = LogUniform(s; low, high) · p(t).

    Args:
        low: smallest scale, positive.
        high: largest scale, at least ``low``.
        shifts: where the atoms sit.
        stratify: draw one scale from each of m equal strata instead of m independent ones.
    """

    low: float
    high: float
    shifts: ShiftSampler
    stratify: bool = True

    def __post_init__(self) -> None:
        if not (0 < self.low <= self.high < np.inf):
            raise ValueError(
                f"scales=({self.low}, {self.high}) is no range of scales: "
                "give (low, high) with 0 < low <= high < inf."
            )

    def draw(self, m: int, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Base draws u, shape (m,), and shifts t, shape (m, d)."""
        u = stratified(m, rng) if self.stratify else rng.uniform(size=m)
        t = np.asarray(self.shifts(X, m, rng), dtype=np.float64)
        if t.shape != (m, X.shape[1]) or not np.isfinite(t).all():
            raise ValueError(
                f"the shift sampler returned an array of shape {t.shape}"
                f"{'' if np.isfinite(t).all() else ' with NaN or infinite entries'}: "
                f"it must return finite shifts of shape ({m}, {X.shape[1]})."
            )
        return u, t

    @property
    def middle(self) -> float:
        """Geometric middle of the scale range."""
        return float(np.sqrt(self.low) * np.sqrt(self.high))

    @property
    def width(self) -> float:
        """ρ = log(high/low)."""
        return float(np.log(self.high) - np.log(self.low))
