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
    """Shifts uniform on the convex hull of the data.

    The hull is cut into simplices, which are drawn by their volumes. Their number grows fast with
    the columns that vary: :data:`HULL_ROWS` limits the rows, and eight columns are the most.
    """

    def __call__(self, X: Array, m: int, rng: np.random.Generator) -> Array:
        low = X.min(axis=0)
        side: Array = X.max(axis=0) - low
        unit = np.unique((X - low) / np.where(side > 0, side, 1.0), axis=0)
        center = unit.mean(axis=0)
        # Rows may lie in a plane, for example where a column does not vary.
        _, sizes, axes = np.linalg.svd(unit - center, full_matrices=False)
        axes = axes[sizes > FLAT * np.sqrt(len(unit))]
        corners = _hull_simplices((unit - center) @ axes.T)
        volumes = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))
        edges = np.cumsum(volumes) / volumes.sum()
        drawn = corners[np.minimum(np.searchsorted(edges, stratified(m, rng)), len(edges) - 1)]
        weights = rng.dirichlet(np.ones(len(axes) + 1), size=m)
        flat = np.einsum("mc,mcr->mr", weights, drawn)
        shifts: Array = np.clip(low + (center + flat @ axes) * side, low, low + side)
        return shifts


FLAT = 1e-10  # deviations of rows in unit columns along an axis below which these lie in a plane
HULL_ROWS = {6: 1000, 7: 200, 8: 60}
"""Distinct rows whose hull is cut into simplices, at most, by the columns that vary."""


def _hull_simplices(U: Array) -> Array:
    """Simplices that share the origin, which is inside, and fill the hull: (s, r + 1, r)."""
    from scipy.spatial import ConvexHull

    n, r = U.shape
    if r > max(HULL_ROWS) or n > HULL_ROWS.get(r, n):
        limits = ", ".join(f"{rows} in {columns}" for columns, rows in HULL_ROWS.items())
        raise ValueError(
            f"the convex hull of {n} rows in {r} columns has too many faces: there may be "
            f"{limits}, and none in more. Use shifts='data' or 'box'."
        )
    if r == 0:
        return np.zeros((1, 1, 0))
    if r == 1:
        faces = np.array([[U.argmin()], [U.argmax()]])
    else:
        faces = ConvexHull(U).simplices
    return np.concatenate([np.zeros((len(faces), 1, r)), U[faces]], axis=1)


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
