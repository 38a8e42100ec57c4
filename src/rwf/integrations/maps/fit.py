"""Models of maps, learned from rasters with gaps or from points."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from rwf._types import Array
from rwf.data.places import (
    HIGH_LATITUDE,
    Geometry,
    Places,
    bounds_of,
    highest_latitude,
    suggested_geometry,
)
from rwf.data.readers import is_dataframe
from rwf.data.readers.table import TableReader
from rwf.errors import DegreesAsPlaneWarning
from rwf.estimators.fourier import RFFRegressor
from rwf.estimators.regressor import RWFRegressor
from rwf.integrations.maps.cells import (
    Axes,
    Raster,
    as_dataset,
    crs_of,
    is_geographic,
    needed,
    require_dims,
    valid_cells,
    values,
)
from rwf.persistence import save

if TYPE_CHECKING:
    import xarray

Regressor: TypeAlias = RWFRegressor | RFFRegressor
MOST_CELLS = 200_000  # that a model is fitted to, unless more are wanted
FEWEST_COLUMNS = 2  # of a map


@dataclass(frozen=True)
class MapModel:
    """A fitted regressor with the coordinates of its map.

    Args:
        places: how coordinates become input columns.
        regressor: fitted to these.
    """

    places: Places
    regressor: Regressor

    @property
    def metric(self) -> str:
        """In which metric places are near, in words."""
        return self.places.metric

    @classmethod
    def of(cls, regressor: Regressor, target: str) -> MapModel:
        """A regressor whose columns have the names of a raster's coordinates and variables."""
        names = tuple(str(name) for name in getattr(regressor, "feature_names_in_", ()))
        if len(names) < FEWEST_COLUMNS:
            raise ValueError(
                f"the model's columns are {', '.join(map(repr, names)) or 'without names'}: a map "
                "needs two or more, with the names of coordinates. Fit it by rwf map."
            )
        everywhere = np.array([-np.inf, -np.inf, np.inf, np.inf])
        places = Places(names[0], names[1], "plane", everywhere, None, names[2:], target)
        return cls(places, regressor)

    def save(self, path: str | os.PathLike[str], *, include_rows: bool | None = None) -> None:
        """Write the model to a file, for :func:`rwf.load`, as :meth:`RWFRegressor.save` does."""
        save(self.regressor, path, include_rows=include_rows, places=self.places)


@dataclass(frozen=True)
class _Rows:
    """Known places: their coordinates and covariates, and targets."""

    columns: tuple[Array, ...]  # x, y, time if there is one, and covariates
    y: Array

    def part(self, most: int | None, rng: np.random.Generator) -> _Rows:
        """At most so many of them, drawn at random."""
        if most is None or len(self.y) <= most:
            return self
        kept = np.sort(rng.choice(len(self.y), most, replace=False))
        return _Rows(tuple(column[kept] for column in self.columns), self.y[kept])


def fit_map(
    data: Raster | str | os.PathLike[str] | object,
    target: str | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    time: str | None = None,
    covariates: Sequence[str] | None = None,
    geometry: Geometry | None = None,
    mask: str | None = None,
    most_cells: int | None = MOST_CELLS,
    regressor: Regressor | None = None,
) -> MapModel:
    """Fit a map to the known cells of a raster, or to points of a table.

    Args:
        data: an xarray DataArray, or a Dataset; cells that are NaN are unknown. Or points: a
            dataframe, or the path of a CSV or Parquet file.
        target: the variable or column to predict.
        x: name of the first coordinate, a longitude if it is in degrees; found by names and
            attributes in a raster.
        y: name of the second.
        time: name of a third, if there is one; dates are days since 1970.
        covariates: further input variables; ``None`` takes all others of a Dataset, and no further
            columns of a table.
        geometry: "plane", "degrees", which is a plane around the middle of the map, or "sphere";
            ``None`` takes the plane for lengths, and for degrees the sphere if the map is wider
            than 180° or reaches beyond 60° of latitude. The model's ``metric`` says which.
        mask: a variable that is true, or not zero, where cells are used.
        most_cells: so many known cells are drawn at random if there are more; ``None`` takes all.
        regressor: not fitted; ``None`` takes :class:`~rwf.RWFRegressor`.
    """
    from sklearn.base import clone

    found = clone(regressor) if regressor is not None else RWFRegressor(random_state=0)
    if isinstance(data, str | os.PathLike) or is_dataframe(data):
        places, rows = _of_points(data, target, x, y, time, tuple(covariates or ()), geometry)
    else:
        raster = cast(Any, data)
        places, rows = _of_raster(raster, target, (x, y, time), covariates, geometry, mask)
    seed = getattr(found, "random_state", None)
    rows = rows.part(most_cells, np.random.default_rng(seed if isinstance(seed, int) else 0))
    X = needed("pandas").DataFrame(places.columns(*rows.columns), columns=[*places.names])
    return MapModel(places, found.fit(X, rows.y))


def _of_raster(
    raster: Raster,
    target: str | None,
    axes: tuple[str | None, str | None, str | None],
    covariates: Sequence[str] | None,
    geometry: Geometry | None,
    mask: str | None,
) -> tuple[Places, _Rows]:
    dataset = as_dataset(raster, target or "y")
    target = _target_of(dataset, target)
    if covariates is None:
        whole = set(dataset[target].dims)
        fits = [str(n) for n, v in dataset.data_vars.items() if v.dims and set(v.dims) <= whole]
        covariates = [name for name in fits if name not in (target, mask)]
    found = Axes.of(dataset, axes)
    times = () if found.time is None else (found.time,)
    names = (found.x, found.y, *times, *covariates)
    require_dims(dataset, target, (*names, *([mask] if mask else [])))
    dims = dataset[target].dims
    known = valid_cells(dataset, dims, (target, *names), mask)
    if not known.any():
        raise ValueError(f"{target!r} is known in no cell: there is nothing to learn from.")
    where = dict(zip(dims, np.nonzero(known), strict=True))
    columns = tuple(values(dataset[name], where) for name in names)
    degrees = found.are_degrees(dataset)
    bounds = bounds_of(columns[0], columns[1], degrees=degrees)
    places = Places(
        found.x, found.y, _geometry(geometry, bounds, degrees), bounds, found.time,
        tuple(covariates), target, str(dataset[target].attrs.get("units", "")), crs_of(dataset),
    )  # fmt: skip
    return places, _Rows(columns, values(dataset[target], where))


def _target_of(dataset: xarray.Dataset, target: str | None) -> str:
    names = [str(name) for name in dataset.data_vars]
    if target is None and len(names) == 1:
        return names[0]
    if target not in names:
        raise ValueError(
            f"target={target!r} is no variable of the raster: use one of "
            f"{', '.join(map(repr, names))}."
        )
    return target


def _of_points(
    data: object,
    target: str | None,
    x: str | None,
    y: str | None,
    time: str | None,
    covariates: tuple[str, ...],
    geometry: Geometry | None,
) -> tuple[Places, _Rows]:
    if target is None or x is None or y is None:
        raise ValueError(
            "points need the names of their columns: fit_map(points, 'z', x='lon', y='lat')."
        )
    names = [x, y, *([time] if time else []), *covariates]
    rows = TableReader.of(cast(str, data), target, names=names).read_all()
    degrees = is_geographic(x, y)
    bounds = bounds_of(rows.X[:, 0], rows.X[:, 1], degrees=degrees)
    chosen = _geometry(geometry, bounds, degrees)
    places = Places(x, y, chosen, bounds, time, covariates, target)
    return places, _Rows(tuple(rows.X.T), rows.y[:, 0])


def _geometry(wanted: Geometry | None, bounds: Array, degrees: bool) -> Geometry:
    chosen = wanted or suggested_geometry(bounds, degrees=degrees)
    if chosen not in ("plane", "degrees", "sphere"):
        raise ValueError(f"geometry={chosen!r}: use 'plane', 'degrees', 'sphere' or None.")
    if chosen != "plane" and highest_latitude(bounds) > 90:
        raise ValueError(
            f"y reaches {highest_latitude(bounds):.4g}, which is no latitude: use "
            "geometry='plane' for coordinates of length."
        )
    if chosen != "sphere" and degrees and highest_latitude(bounds) > HIGH_LATITUDE:
        warnings.warn(
            f"the map reaches {highest_latitude(bounds):.3g}° of latitude, where degrees are no "
            "plane: a degree of longitude becomes shorter towards the pole. Use "
            "geometry='sphere', or projected coordinates.",
            DegreesAsPlaneWarning,
            stacklevel=4,
        )
    return chosen
