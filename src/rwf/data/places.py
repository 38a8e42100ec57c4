"""How the coordinates of a map become input columns: a plane, degrees, or a sphere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from rwf._types import Array, BoolArray

Geometry = Literal["plane", "degrees", "sphere"]

EARTH = 6371.0  # mean radius, in km
HIGH_LATITUDE = 60.0  # beyond, a degree of longitude is less than half of one of latitude
HALF_A_TURN = 180.0  # extent in longitude from which on degrees do not make a plane


@dataclass(frozen=True)
class Places:
    """The coordinates and covariates of a map, and the metric in which places are near.

    "plane" takes x and y as they are. "degrees" is a plane around the middle of the map: longitudes
    are taken from within 180° of it, and shrunk by the cosine of its latitude. "sphere" has three
    columns, the places on a sphere in kilometres, so that distances are chords.
    """

    x: str  # names of the coordinates
    y: str
    geometry: Geometry
    bounds: Annotated[Array, "4"]  # of the data: low x, low y, high x and high y
    time: str | None = None  # of a third coordinate, in days since 1970 if it has dates
    covariates: tuple[str, ...] = ()
    target: str = "y"
    units: str = ""  # of the target
    crs: str = ""  # of the coordinates, as well-known text

    @property
    def names(self) -> tuple[str, ...]:
        """The input columns."""
        own = (self.x, self.y)
        places = {"sphere": ("x_km", "y_km", "z_km"), "degrees": ("x_degrees", "y_degrees")}
        return (*places.get(self.geometry, own), *self.needed[2:])

    @property
    def needed(self) -> tuple[str, ...]:
        """The coordinates and variables that columns are made of."""
        return (self.x, self.y, *((self.time,) if self.time else ()), *self.covariates)

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the bounds."""
        low_x, low_y, high_x, high_y = self.bounds.tolist()
        return (low_x + high_x) / 2, (low_y + high_y) / 2

    @property
    def metric(self) -> str:
        """In which metric places are near, in words."""
        if self.geometry == "sphere":
            return f"chord distances on a sphere of {EARTH:g} km"
        if self.geometry == "plane":
            return f"{self.x} and {self.y} as a plane"
        longitude, latitude = self.middle
        shrunk = np.cos(np.radians([latitude, self.bounds[1], self.bounds[3]]))
        return (
            f"degrees as a plane around {abs(longitude):.4g}° {'W' if longitude < 0 else 'E'}, "
            f"{abs(latitude):.4g}° {'S' if latitude < 0 else 'N'}: a degree of longitude counts as "
            f"{shrunk[0]:.3g} of one of latitude, where it is {shrunk[1:].min():.3g} to "
            f"{shrunk[1:].max():.3g}"
        )

    def columns(self, x: Array, y: Array, *others: Array) -> Array:
        """The input columns of n places, with their time and covariates, shape (n, d)."""
        return np.column_stack([*_PLACED[self.geometry](self, x, y), *others])


def _on_plane(places: Places, x: Array, y: Array) -> tuple[Array, ...]:
    return x, y


def _in_degrees(places: Places, x: Array, y: Array) -> tuple[Array, ...]:
    longitude, latitude = places.middle
    return float(np.cos(np.radians(latitude))) * (near(x, longitude) - longitude), y


def _on_sphere(places: Places, x: Array, y: Array) -> tuple[Array, ...]:
    longitude, latitude = np.radians(x), np.radians(y)
    radius = EARTH * np.cos(latitude)
    return radius * np.cos(longitude), radius * np.sin(longitude), EARTH * np.sin(latitude)


_PLACED: dict[Geometry, Callable[[Places, Array, Array], tuple[Array, ...]]] = {
    "plane": _on_plane,
    "degrees": _in_degrees,
    "sphere": _on_sphere,
}


def near(longitude: Array, center: float) -> Array:
    """Longitudes as those within 180° of a center."""
    shifted: Array = (longitude - center + HALF_A_TURN) % 360.0 - HALF_A_TURN + center
    return shifted


def bounds_of(x: Array, y: Array, *, degrees: bool) -> Array:
    """Low x, low y, high x and high y; in degrees of the shortest arc that has all longitudes."""
    if degrees:
        turned = np.unique(x % 360.0)
        gaps = np.diff(turned, append=turned[0] + 360.0)
        widest = int(gaps.argmax())
        west, extent = float(turned[(widest + 1) % len(turned)]), 360.0 - float(gaps[widest])
        west = west - 360.0 if west + extent / 2 > HALF_A_TURN else west
        return np.array([west, y.min(), west + extent, y.max()])
    return np.array([x.min(), y.min(), x.max(), y.max()])


def suggested_geometry(bounds: Array, *, degrees: bool) -> Geometry:
    """A plane for coordinates of length; degrees unless the map is wide or near a pole."""
    if not degrees:
        return "plane"
    wide = bounds[2] - bounds[0] > HALF_A_TURN
    return "sphere" if wide or highest_latitude(bounds) > HIGH_LATITUDE else "degrees"


def highest_latitude(bounds: Array) -> float:
    """The largest latitude, north or south."""
    return float(np.abs(bounds[[1, 3]]).max())


def inside(x: Array, y: Array, corners: Array) -> BoolArray:
    """Which places are in a polygon of corners of shape (m, 2), by the even-odd rule."""
    found = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        crosses = (y0 > y) != (y1 > y)
        with np.errstate(divide="ignore", invalid="ignore"):
            found ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return found
