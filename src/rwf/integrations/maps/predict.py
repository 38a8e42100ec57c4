"""Predictions for every cell of a raster, chunk by chunk."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, BoolArray
from rwf.integrations.maps.cells import (
    Axes,
    Raster,
    as_dataset,
    dims_of,
    inputs,
    needed,
    valid_cells,
)
from rwf.integrations.maps.fit import MapModel
from rwf.uncertainty.student_t import StudentT
from rwf.uncertainty.transformed import Predictive

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

CELLS_AT_ONCE = 2**18  # cells of a chunk, where the raster has no chunks of its own
MOST_GRID_CELLS = 10**9  # more are likely a resolution in the wrong unit


@dataclass(frozen=True)
class _Wanted:
    """What is predicted."""

    quantiles: tuple[float, ...]
    above: float | None
    noise: bool

    @property
    def extra(self) -> dict[str, tuple[str, ...]]:
        """The variables, and their dimensions beside those of the cells."""
        names: dict[str, tuple[str, ...]] = {"mean": (), "sd": ()}
        if self.quantiles:
            names["quantiles"] = ("quantile",)
        if self.above is not None:
            names["exceedance"] = ()
        return names

    def of(self, p: Predictive) -> dict[str, Array]:
        """The variables of predictive distributions, shape (…, n)."""
        found = {"mean": p.mean, "sd": p.std}
        if self.quantiles:
            found["quantiles"] = np.stack([p.ppf(q) for q in self.quantiles])
        if self.above is not None:
            found["exceedance"] = 1.0 - p.cdf(self.above)
        return found


def predict_map(
    model: MapModel,
    template: Raster,
    *,
    quantiles: Sequence[float] = (0.025, 0.975),
    above: float | None = None,
    noise: bool = True,
    mask: str | None = None,
) -> xarray.Dataset:
    """Predictions for every cell of a template, which are computed when they are needed.

    The dataset has the variables ``mean``, ``sd``, ``quantiles`` and, with ``above``,
    ``exceedance``, as Dask arrays with the template's coordinates, CRS and chunks. Cells with
    unknown covariates, or masked, are NaN.

    Args:
        model: what :func:`fit_map` returns.
        template: a raster with the coordinates and covariates of the model; other variables and
            their gaps are ignored.
        quantiles: probabilities of quantiles.
        above: a threshold; ``exceedance`` is the probability that it is exceeded.
        noise: whether a new observation is predicted, or the map itself.
        mask: a variable that is true, or not zero, where cells are predicted.
    """
    wanted = _Wanted(_probabilities(quantiles), above, noise)
    dataset, dims = prepared(template, model, mask)
    xr, da = needed("xarray"), needed("dask.array")
    sizes = {d: dataset.sizes[d] for d in dims}
    chunks = _chunks(as_dataset(template).unify_chunks(), dims)
    dataset = dataset.chunk(chunks)

    def empty(*more: int) -> object:
        return da.zeros((*more, *sizes.values()), chunks=(*more, *(chunks[d] for d in dims)))

    variables = {
        name: ((*more, *dims), empty(*(len(wanted.quantiles) for _ in more)))
        for name, more in wanted.extra.items()
    }
    whole = _with_quantiles(dataset.coords.to_dataset().assign(variables), wanted)
    anchored = dataset.assign(_cells=(dims, empty()))  # a template may have coordinates alone
    given = {"model": model, "dims": dims, "mask": mask, "wanted": wanted}
    found = xr.map_blocks(_predict_block, anchored, kwargs=given, template=whole)
    return _described(found, model, wanted)


def prepared(
    template: Raster, model: MapModel, *masks: str | None
) -> tuple[xarray.Dataset, tuple[Hashable, ...]]:
    """What predictions need of a template, and the dimensions of its cells."""
    if not model.regressor.model_.n_rows > 0:
        raise ValueError("the model has seen no rows yet: fit a map.")
    dataset = as_dataset(template)
    dims = dims_of(dataset, model.places)
    for name in masks:
        if name is not None and not (
            name in dataset.variables and set(dataset[name].dims) <= set(dims)
        ):
            raise ValueError(
                f"{name!r} is no variable of the template's cells: it has "
                f"{', '.join(map(repr, map(str, dataset.variables)))}."
            )
    used = {*model.places.covariates, *masks}
    dropped = [n for n in dataset.data_vars if n not in used]
    dropped += [n for n, c in dataset.coords.items() if not set(c.dims) <= set(dims)]
    return dataset.drop_vars(dropped), dims


def _predict_block(
    block: xarray.Dataset,
    model: MapModel,
    dims: tuple[Hashable, ...],
    mask: str | None,
    wanted: _Wanted,
) -> xarray.Dataset:
    cells = valid_cells(block, dims, model.places.needed, mask)
    X = inputs(block, dims, cells, model.places)
    if len(X) == 0:
        found = wanted.of(StudentT(*np.empty((3, 0))))
    else:
        found = wanted.of(model.regressor._distributions(X, noise=wanted.noise).output(0))
    filled = {
        name: ((*more, *dims), on_cells(found[name], cells)) for name, more in wanted.extra.items()
    }
    return _with_quantiles(block.coords.to_dataset().assign(filled), wanted)


def on_cells(values: Array, cells: BoolArray) -> Array:
    """Values at chosen cells, of shape (…, n), on all of them, NaN at others."""
    whole = np.full((*values.shape[:-1], *cells.shape), np.nan)
    whole[..., cells] = values
    return whole


def _with_quantiles(dataset: xarray.Dataset, wanted: _Wanted) -> xarray.Dataset:
    if not wanted.quantiles:
        return dataset
    return dataset.assign_coords(quantile=list(wanted.quantiles))


def _described(found: xarray.Dataset, model: MapModel, wanted: _Wanted) -> xarray.Dataset:
    """The dataset with attributes, and with references to the CRS where there is one."""
    places = model.places
    own, of = {"units": places.units} if places.units else {}, places.target
    texts: Mapping[str, dict[str, object]] = {
        "mean": {"long_name": f"mean of {of}", **own},
        "sd": {"long_name": f"standard deviation of {of}", **own},
        "quantiles": {"long_name": f"quantiles of {of}", **own},
        "exceedance": {
            "long_name": f"probability that {of} exceeds {wanted.above}",
            "units": "1",
            "threshold": wanted.above,
        },
    }
    grid = "spatial_ref" if "spatial_ref" in found.coords else None
    for name in wanted.extra:
        found[name].attrs.update(texts[name])
        if grid is not None:
            found[name].encoding["grid_mapping"] = grid
    return found.assign_attrs(title=f"Predictions of {of}", source="rwf", metric=places.metric)


def _probabilities(quantiles: Sequence[float]) -> tuple[float, ...]:
    found = tuple(float(q) for q in quantiles)
    if not all(0 < q < 1 for q in found):
        raise ValueError(f"quantiles={found} must lie between 0 and 1; (0.025, 0.975) is usual.")
    return found


def _chunks(dataset: xarray.Dataset, dims: tuple[Hashable, ...]) -> dict[Hashable, object]:
    """Those of the raster; or whole lines of so many cells that memory is bounded."""
    own = dict(dataset.chunksizes)
    chunks: dict[Hashable, object] = {}
    left = CELLS_AT_ONCE
    for d in reversed(dims):
        size = min(dataset.sizes[d], max(left, 1))
        chunks[d] = own.get(d, size)
        left //= max(size, 1)
    return chunks


def grid(
    model: MapModel, resolution: float, *, times: Sequence[float] | Array | None = None
) -> xarray.Dataset:
    """A raster of square cells over the data of a model, to be given to :func:`predict_map`.

    Args:
        model: what :func:`fit_map` returns.
        resolution: the side of a cell, in the units of the coordinates.
        times: of the layers, for a model with a time.
    """
    places = model.places
    low_x, low_y, high_x, high_y = places.bounds.tolist()
    if not (np.isfinite(places.bounds).all() and resolution > 0):
        raise ValueError(
            f"resolution={resolution!r} must be positive, and the model one of a map that knows "
            "the bounds of its data: give a template instead."
        )
    if places.time is not None and times is None:
        raise ValueError(f"the model has the coordinate {places.time!r}: give times=.")
    shape = [np.floor((b - a) / resolution) + 1 for a, b in ((low_x, high_x), (low_y, high_y))]
    if shape[0] * shape[1] > MOST_GRID_CELLS:
        raise ValueError(
            f"resolution={resolution!r} makes {shape[0]:.3g} by {shape[1]:.3g} cells over "
            f"[{low_x:.6g}, {high_x:.6g}] × [{low_y:.6g}, {high_y:.6g}]: is it in other units?"
        )
    x = low_x + resolution * np.arange(int(shape[0]))
    y = low_y + resolution * np.arange(int(shape[1]))
    coords: dict[str, object] = {places.y: y[::-1], places.x: x}
    if places.time is not None:
        coords[places.time] = np.asarray(times)
    found: xarray.Dataset = needed("xarray").Dataset(coords=coords)
    if places.geometry != "plane":
        found[places.x].attrs.update(units="degrees_east", standard_name="longitude")
        found[places.y].attrs.update(units="degrees_north", standard_name="latitude")
    return found


def plot_map(predicted: xarray.Dataset, **layer: int) -> Figure:
    """A quick look at predictions: mean and standard deviation, with colour bars.

    Args:
        predicted: what :func:`predict_map` returns, or a file of it as :func:`open_map` does.
        layer: which layer of further dimensions, such as ``time=3``; the first if not given.
    """
    from rwf.diagnostics.plots.maps import map_panels

    mean, sd = predicted["mean"], predicted["sd"]
    first = {d: layer.get(str(d), 0) for d in mean.dims[:-2]}
    mean, sd = mean.isel(first), sd.isel(first)
    axes = Axes.of(mean)
    x = mean[axes.x].values
    return map_panels(
        _without_jumps(x) if x.ndim == 1 and axes.are_degrees(mean) else x,
        mean[axes.y].values,
        mean.values,
        sd.values,
        units=str(mean.attrs.get("units", "")),
        labels=(axes.x, axes.y),
    )


def _without_jumps(longitudes: Array) -> Array:
    """Longitudes that do not jump from 360 to 0, or from 180 to -180 degrees, around the former."""
    found: Array = np.unwrap(longitudes, period=360.0)
    if not np.array_equal(found, longitudes):
        found -= 360.0 * np.round(found.mean() / 360.0)
    return found
