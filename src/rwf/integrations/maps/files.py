"""Rasters in NetCDF and GeoTIFF files."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rwf.integrations.maps.cells import DEGREES, needed

if TYPE_CHECKING:
    import xarray

NETCDF, TIFF = (".nc", ".nc4"), (".tif", ".tiff")  # ends of names
SUFFIXES = NETCDF + TIFF


def open_map(path: str | os.PathLike[str]) -> xarray.Dataset:
    """A raster from a NetCDF or GeoTIFF file; its values are read when they are needed.

    The bands of a GeoTIFF are variables, by their descriptions if they have any.
    """
    place = checked_path(path)
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}. The present folder is {Path.cwd()}.")
    if place.suffix.lower() in NETCDF:
        found: xarray.Dataset = needed("xarray").open_dataset(place, decode_coords="all")
        return found
    bands = needed("rioxarray").open_rasterio(place, band_as_variable=True, masked=True)
    names = {n: v.attrs.get("long_name") or n for n, v in bands.data_vars.items()}
    if len(names) == 1:
        names = {n: (place.stem if name == n else name) for n, name in names.items()}
    if len(set(names.values())) == len(names):
        bands = bands.rename(names)
    found = bands
    return found


def write_map(dataset: xarray.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a raster to a NetCDF or GeoTIFF file, chunk by chunk; an old file is replaced at once.

    Numbers are in single precision. In a GeoTIFF every variable, and every quantile or draw, is a
    band.
    """
    place = checked_path(path)
    with _replaced(place) as beside, needed("dask").config.set(scheduler="synchronous"):
        if place.suffix.lower() in NETCDF:
            _write_netcdf(dataset, beside)
        else:
            _write_tiff(dataset, beside)


def _write_netcdf(dataset: xarray.Dataset, path: Path) -> None:
    packed = {"zlib": True, "complevel": 1, "dtype": "float32", "_FillValue": np.nan}
    encoding: dict[Any, dict[str, object]] = {}
    for name, variable in dataset.data_vars.items():
        grid = variable.encoding.get("grid_mapping")
        encoding[name] = packed | ({"grid_mapping": grid} if grid else {})
    dataset.to_netcdf(path, encoding=encoding)


def _write_tiff(dataset: xarray.Dataset, path: Path) -> None:
    needed("rioxarray")
    layers = {
        name: layer for n, v in dataset.data_vars.items() for name, layer in _layers(str(n), v)
    }
    y, x = next(iter(layers.values())).dims[-2:]
    for name in (x, y):
        _require_even(dataset, str(name))
    bands = needed("xarray").concat([*layers.values()], "band", coords="minimal")
    bands = bands.astype("float32").assign_attrs(long_name=tuple(layers), _FillValue=np.nan)
    bands = bands.rio.set_spatial_dims(x, y)
    if "spatial_ref" in dataset.coords:
        bands = bands.assign_coords(spatial_ref=dataset["spatial_ref"])
    elif dataset[x].attrs.get("units") in DEGREES:
        bands = bands.rio.write_crs("EPSG:4326")
    bands.rio.to_raster(path, driver="GTiff", compress="deflate", tiled=True, BIGTIFF="IF_SAFER")
    with needed("rasterio").open(path, "r+") as file:
        file.units = [str(layer.attrs.get("units", "")) for layer in layers.values()]


def _layers(name: str, variable: xarray.DataArray) -> Iterator[tuple[str, xarray.DataArray]]:
    """The layers of a variable, one for each of its quantiles, draws or times, with names."""
    extra = variable.dims[:-2]
    for place in np.ndindex(*(variable.sizes[d] for d in extra)):
        layer = variable.isel(dict(zip(extra, place, strict=True)))
        labels = [
            str(layer[d].values) if d in layer.coords else str(i)
            for d, i in zip(extra, place, strict=True)
        ]
        yield "_".join([name, *labels]), layer.reset_coords(drop=True)


def _require_even(dataset: xarray.Dataset, name: str) -> None:
    """That a coordinate has equal steps, as a GeoTIFF needs them."""
    steps = np.diff(dataset[name].values.astype(np.float64)) if name in dataset.coords else None
    if steps is None or not np.allclose(steps, steps[:1], rtol=1e-3):
        raise ValueError(
            f"{name!r} has no equal steps, which a GeoTIFF needs: write a NetCDF file, or predict "
            "a template with equal steps."
        )


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path of a raster, once its end and the packages that it needs have been checked."""
    place = Path(path)
    needed("xarray")
    if place.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{place} is read or written by the end of its name, which should be one of "
            f"{', '.join(SUFFIXES)}."
        )
    needed("netCDF4" if place.suffix.lower() in NETCDF else "rioxarray")
    return place


@contextlib.contextmanager
def _replaced(place: Path) -> Iterator[Path]:
    """A new file beside an old one, whose place it takes once it is complete."""
    beside = place.with_name(f".{secrets.token_hex(4)}.{place.name}")
    try:
        yield beside
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
