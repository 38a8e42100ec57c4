"""Joint draws of whole maps, and means over areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rwf._types import BoolArray
from rwf.data.places import inside
from rwf.estimators.validation import RandomState, generator
from rwf.integrations.maps.cells import Raster, at, inputs, needed, valid_cells, values
from rwf.integrations.maps.fit import MapModel
from rwf.integrations.maps.predict import on_cells, prepared

if TYPE_CHECKING:
    import xarray

Corners: TypeAlias = Sequence[tuple[float, float]]


def sample_map(
    model: MapModel,
    template: Raster,
    n: int = 1,
    *,
    random_state: RandomState = None,
    noise: bool = False,
    mask: str | None = None,
) -> xarray.DataArray:
    """Draws of the whole map, in which nearby cells are as correlated as they are known to be.

    Args:
        model: what :func:`fit_map` returns.
        template: as for :func:`predict_map`; all its cells are drawn in memory.
        n: how many draws.
        random_state: seed of the draws.
        noise: whether to add the noise of new observations.
        mask: as for :func:`predict_map`.
    """
    dataset, dims = prepared(template, model, mask)
    cells = valid_cells(dataset, dims, model.places.needed, mask)
    X = inputs(dataset, dims, cells, model.places)
    units, rng = model.regressor.model_.units, generator(random_state)
    drawn = model.regressor.model_.sample(units.inputs(X), n, rng, noise=noise)[:, 0]
    on_map = on_cells(units.original_targets(drawn.T[..., None])[..., 0], cells)
    attrs = {"units": model.places.units} if model.places.units else {}
    found: xarray.DataArray = needed("xarray").DataArray(
        on_map, dims=("draw", *dims), coords=dataset.coords, name=model.places.target, attrs=attrs
    )
    return found


def mean_over(
    model: MapModel,
    template: Raster,
    areas: Mapping[str, Corners] | str,
    *,
    mask: str | None = None,
) -> xarray.Dataset:
    """Means of the map over areas, with the exact deviation and covariance of these means.

    Cells count by their size: by the cosine of their latitude where coordinates are degrees, and
    equally otherwise.

    Args:
        model: what :func:`fit_map` returns.
        template: as for :func:`predict_map`; the cells whose middle is in an area are averaged.
        areas: the corners of a polygon for every name, in the coordinates of the map; or a
            variable of the template with a number or name for every cell.
        mask: as for :func:`predict_map`.
    """
    labels = areas if isinstance(areas, str) else None
    dataset, dims = prepared(template, model, mask, labels)
    cells = valid_cells(dataset, dims, model.places.needed, mask)
    where = dict(zip(dims, np.nonzero(cells), strict=True))
    if isinstance(areas, str):
        names, chosen = _labelled(at(dataset[areas], where))
    else:
        x, y = (values(dataset[n], where) for n in (model.places.x, model.places.y))
        names = [*areas]
        chosen = np.array([inside(x, y, np.asarray(areas[name], float)) for name in names])
    sizes = np.ones(chosen.shape[1])
    if model.places.geometry != "plane":
        sizes = np.cos(np.radians(values(dataset[model.places.y], where)))
    used = chosen.any(axis=0)
    empty = [name for name, its in zip(names, chosen, strict=True) if not its.any()]
    if empty:
        raise ValueError(
            f"no cell of the template has its middle in {', '.join(map(repr, empty))}: use a finer "
            "template, or leave the area out."
        )
    kept = cells.copy()
    kept[cells] = used
    X = inputs(dataset, dims, kept, model.places)
    weights = chosen[:, used] * sizes[used]
    weights /= weights.sum(axis=1, keepdims=True)
    frame = needed("pandas").DataFrame(X, columns=[*model.places.names])
    mean, covariance = model.regressor.predict_combination(frame, weights, return_cov=True)
    xr = needed("xarray")
    attrs = {"units": model.places.units} if model.places.units else {}
    found: xarray.Dataset = xr.Dataset(
        {
            "mean": ("area", mean, attrs),
            "sd": ("area", np.sqrt(np.diagonal(covariance)), attrs),
            "covariance": (("area", "other"), covariance),
        },
        coords={"area": names, "other": names},
    )
    return found


def _labelled(labels: np.ndarray[Any, Any]) -> tuple[list[Any], BoolArray]:
    """The labels that occur, and which cells have them; NaN and empty names are no labels."""
    known = labels == labels
    if labels.dtype.kind in "OU":
        known &= labels.astype(str) != ""
    names = np.unique(labels[known])
    return names.tolist(), labels == names[:, None]
