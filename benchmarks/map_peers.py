"""Maps by other libraries, from the same points on the same templates: PyKrige and verde.

Both compute a template at once, in memory. How large a template they manage is found by doubling
it until a process exceeds a limit of memory or time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol, TypeVar

import numpy as np

NEAREST = 16
FIRST_CELLS = 10_000
MEMORY, SECONDS = 2_000_000_000, 120.0

Points = Any  # a dataframe with columns x, y and z
Raster = Any  # a dataset of xarray


@dataclass(frozen=True)
class Mapper:
    """A model that is fitted, and can predict a template.

    Args:
        predict: the template with predictions as further variables, one of them ``mean``.
        unknowns: how many weights, forces or unknowns of the kriging system it has.
        version: of its library.
    """

    predict: Callable[[Raster], Raster]
    unknowns: int
    version: str


def kriging(points: Points, backend: str, nearest: int | None = None) -> Mapper:
    """PyKrige's ordinary kriging, from all points or from those nearest to each cell."""
    from pykrige.ok import OrdinaryKriging

    columns = (points[name].to_numpy() for name in "xyz")
    model = OrdinaryKriging(*columns, variogram_model="exponential")

    def predict(template: Raster) -> Raster:
        x, y = template.x.to_numpy(), template.y.to_numpy()
        mean, variance = model.execute("grid", x, y, backend=backend, n_closest_points=nearest)
        sd = np.sqrt(np.maximum(variance, 0))
        return template.assign(mean=(("y", "x"), mean), sd=(("y", "x"), sd))

    return Mapper(predict, 1 + (nearest or len(points)), metadata.version("pykrige"))


def spline(points: Points, damping: float = 1e-4) -> Mapper:
    """verde's biharmonic spline, which has means only."""
    import verde

    x, y, z = (points[name].to_numpy() for name in "xyz")
    model = verde.Spline(damping=damping).fit((x, y), z)
    model.predict((x[:2], y[:2]))  # compile

    def predict(template: Raster) -> Raster:
        mean = model.predict(np.meshgrid(template.x.to_numpy(), template.y.to_numpy()))
        return template.assign(mean=(("y", "x"), mean))

    return Mapper(predict, len(points), metadata.version("verde"))


PEERS: dict[str, Callable[[Points], Mapper]] = {
    "PyKrige, vectorized": lambda points: kriging(points, "vectorized"),
    "PyKrige, C": lambda points: kriging(points, "C"),
    f"PyKrige, C, {NEAREST} nearest points": lambda points: kriging(points, "C", NEAREST),
    "verde, Spline": spline,
}


class Measured(Protocol):
    """What a measurement has, and decides whether a template was too large."""

    @property
    def peak_memory(self) -> int: ...


Row = TypeVar("Row", bound=Measured)


def largest(measure: Callable[[int], Row], cells: int = FIRST_CELLS) -> Row:
    """The row of the largest template within the limits.

    Args:
        measure: of a number of cells, in a process of its own; raises TimeoutError if that took
            too long.
        cells: of the first template; each following one has twice as many.
    """
    best: Row | None = None
    while (row := _within(measure, cells)) is not None:
        best, cells = row, 2 * cells
    if best is None:
        raise RuntimeError(f"A template of {cells:,} cells exceeds the limits: begin with fewer.")
    return best


def _within(measure: Callable[[int], Row], cells: int) -> Row | None:
    try:
        row = measure(cells)
    except TimeoutError:
        return None
    return row if row.peak_memory <= MEMORY else None
