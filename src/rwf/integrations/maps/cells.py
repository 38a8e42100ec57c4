"""Coordinates of rasters: which they are, whether they are degrees, and the inputs of cells."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rwf._types import Array, BoolArray, IntArray
from rwf.data.places import Places

if TYPE_CHECKING:
    import xarray

Raster: TypeAlias = "xarray.DataArray | xarray.Dataset"

X_NAMES = ("x", "lon", "longitude", "easting", "east", "projection_x_coordinate")
Y_NAMES = ("y", "lat", "latitude", "northing", "north", "projection_y_coordinate")
TIME_NAMES = ("time", "date")
DEGREES = {"degrees_east", "degrees_north", "degree_east", "degree_north", "degrees", "degree"}
DAY = np.timedelta64(1, "D")


def needed(name: str) -> Any:  # noqa: ANN401 - a module, which may have no types
    """A module of the extra ``maps``, or an error that says what to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'maps need {error.name}: pip install "rwf[maps]"', name=error.name
        ) from None


def as_dataset(raster: Raster, name: str = "y") -> xarray.Dataset:
    """A raster as a dataset, without dimensions of one band."""
    if hasattr(raster, "data_vars"):
        found = raster
    elif hasattr(raster, "to_dataset"):
        found = raster.to_dataset(name=raster.name or name)
    else:
        raise TypeError(
            f"{type(raster).__name__} is no raster: give an xarray Dataset or DataArray; "
            "rwf.maps.open_map reads one from a .nc or .tif file."
        )
    bands = [d for d in ("band",) if found.sizes.get(d) == 1]
    return found.squeeze(bands, drop=True)


@dataclass(frozen=True)
class Axes:
    """The names of the coordinates of a raster."""

    x: str
    y: str
    time: str | None

    @classmethod
    def of(cls, raster: Raster, given: Sequence[str | None] = (None, None, None)) -> Axes:
        """Those given, or those that names, standard names or axes tell."""
        x, y, time = given
        for name in given:
            if name is not None and name not in raster.coords:
                raise ValueError(
                    f"there is no coordinate {name!r}: the raster has {_listed(raster.coords)}."
                )
        x = x or _named(raster, X_NAMES, "X")
        y = y or _named(raster, Y_NAMES, "Y")
        if x is None or y is None:
            raise ValueError(
                f"which coordinates are x and y is unclear among {_listed(raster.coords)}: name "
                "them, as in x='lon', y='lat'."
            )
        time = time or _named(raster, TIME_NAMES, "T")
        return cls(x, y, time if time and raster[time].size > 1 else None)

    def are_degrees(self, raster: Raster) -> bool:
        """Whether x and y are longitudes and latitudes."""
        return is_geographic(self.x, self.y, raster[self.x].attrs.get("units", ""), crs_of(raster))


def is_geographic(x: str, y: str, units: str = "", crs: str = "") -> bool:
    """Whether coordinates of these names are degrees, as far as their units or the CRS say."""
    if crs:
        return crs.lstrip().upper().startswith(("GEOGCRS", "GEOGCS", "GEODCRS"))
    if units:
        return units in DEGREES
    return x.lower().startswith("lon") and y.lower().startswith("lat")


def crs_of(raster: Raster) -> str:
    """The coordinate reference system as well-known text, if the raster has one."""
    for name in raster.coords:
        text = raster[name].attrs.get("crs_wkt") or raster[name].attrs.get("spatial_ref")
        if text:
            return str(text)
    return ""


def dims_of(raster: xarray.Dataset, places: Places) -> tuple[Hashable, ...]:
    """The dimensions of what a model needs, in the order of the raster's variables."""
    names = places.needed
    missing = [name for name in names if name not in raster.variables]
    if missing:
        raise ValueError(
            f"the model needs {_listed(names)}, and the raster has no {_listed(missing)}, but "
            f"{_listed(raster.variables)}: add it, or rename what the raster has."
        )
    first = (*((places.time,) if places.time else ()), places.y, *names)  # before x, as rows are
    used = dict.fromkeys(d for name in first for d in raster[name].dims)
    orders = (v.dims for v in raster.data_vars.values() if set(used) <= set(v.dims))
    return tuple(d for d in next(orders, tuple(used)) if d in used)


def require_dims(raster: xarray.Dataset, target: str, names: Sequence[str]) -> None:
    """That variables have no dimension that the target has not."""
    for name in names:
        more = set(raster[name].dims) - set(raster[target].dims)
        if more:
            raise ValueError(
                f"{name!r} varies along {_listed(more)}, and {target!r} does not: choose one of "
                f"its layers, as in raster.isel({sorted(map(str, more))[0]}=0)."
            )


def valid_cells(
    raster: Raster, dims: Sequence[Hashable], needed: Sequence[str], mask: str | None
) -> BoolArray:
    """Cells whose variables are all known and whose mask, if there is one, is true."""
    shape = tuple(raster.sizes[d] for d in dims)
    valid = np.ones(shape, dtype=bool)
    for name in needed:
        valid &= np.isfinite(_numbers(_over(raster[name], dims)))
    if mask is not None:
        chosen = _over(raster[mask], dims)
        valid &= np.where(np.isfinite(np.asarray(chosen, dtype=np.float64)), chosen, 0) != 0
    return valid


def inputs(raster: Raster, dims: Sequence[Hashable], cells: BoolArray, places: Places) -> Array:
    """The input columns of some cells, shape (n, d)."""
    where: dict[Hashable, IntArray] = dict(zip(dims, np.nonzero(cells), strict=True))
    return places.columns(*(values(raster[name], where) for name in places.needed))


def values(variable: xarray.DataArray, where: dict[Hashable, IntArray]) -> Array:
    """The numbers of a variable at cells, given by their indices along every dimension."""
    return _numbers(at(variable, where))


def at(variable: xarray.DataArray, where: dict[Hashable, IntArray]) -> np.ndarray[Any, Any]:
    """The values of a variable at cells."""
    found: np.ndarray[Any, Any] = np.asarray(variable.values)
    return found[tuple(where[d] for d in variable.dims)]


def _over(variable: xarray.DataArray, dims: Sequence[Hashable]) -> Array:
    """Values with all dimensions in this order, of length one where the variable has none."""
    own = variable.transpose(*(d for d in dims if d in variable.dims))
    shape = tuple(own.sizes.get(d, 1) for d in dims)
    return np.asarray(own.values).reshape(shape)


def _numbers(found: np.ndarray[Any, Any]) -> Array:
    """Numbers as they are, and dates as days since 1970."""
    if found.dtype.kind == "M":
        days = (found - np.datetime64(0, "D")) / DAY
        return np.asarray(days, dtype=np.float64)
    if found.dtype.kind not in "buif":
        raise ValueError(
            f"a coordinate or covariate holds {found.dtype}, and not numbers or dates: convert it, "
            "for example with xarray's convert_calendar('standard')."
        )
    return np.asarray(found, dtype=np.float64)


def _named(raster: Raster, names: Sequence[str], axis: str) -> str | None:
    """A coordinate by its attributes or its name; one of a dimension before others."""
    for name in sorted(map(str, raster.coords), key=lambda name: name not in raster.dims):
        attrs = raster[name].attrs
        known = (attrs.get("standard_name"), name.lower())
        if attrs.get("axis") == axis or any(each in names for each in known):
            return name
    return None


def _listed(names: object) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"  # type: ignore[attr-defined]
