"""``rwf map``: from points, or a raster with gaps, to a raster of predictions."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rwf.cli.checks import UsageError, check_input, check_output, names_in
from rwf.cli.terminal import Force, Json, Quiet, print_result, warnings_shown

if TYPE_CHECKING:
    import xarray

    from rwf.integrations.maps import MapModel

RASTERS = (".nc", ".nc4", ".tif", ".tiff")

Above = Annotated[
    float | None, typer.Option(help="Also write the probability that this is exceeded.")
]
Mask = Annotated[
    str | None, typer.Option(help="The variable of the raster that is true where cells are used.")
]
Figure = Annotated[
    Path | None, typer.Option(help="A figure of mean and sd, such as map.png, to draw as well.")
]


def map_(
    data: Annotated[
        Path, typer.Argument(help="Points (CSV or Parquet), or a raster (.nc or .tif) with gaps.")
    ],
    out: Annotated[Path, typer.Option(help="The raster to write: .nc or .tif.")],
    target: Annotated[
        str | None, typer.Option(help="The column or variable; a raster may have only one.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="The first coordinate, such as lon.")] = None,
    y: Annotated[str | None, typer.Option(help="The second, such as lat.")] = None,
    time_: Annotated[str | None, typer.Option("--time", help="A third, such as a time.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Further inputs, a,b,c, which the raster of --like has.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A raster whose cells are predicted; DATA if it is one.")
    ] = None,
    resolution: Annotated[
        float | None, typer.Option(help="The side of square cells over the points, without --like.")
    ] = None,
    geometry: Annotated[
        Literal["plane", "degrees", "sphere"] | None,
        typer.Option(help="How coordinates are measured; by their units if not given."),
    ] = None,
    above: Above = None,
    mask: Mask = None,
    figure: Figure = None,
    model: Annotated[
        Path | None, typer.Option(help="A model file to write as well, with the training rows.")
    ] = None,
    n_components: Annotated[
        int | None, typer.Option(min=1, help="Feature columns; by the number of rows if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all draws.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Fit points or a raster with gaps, and write a raster of mean, sd and quantiles."""
    is_raster = data.suffix.lower() in RASTERS
    check_input(data)
    for path in (out, figure, model):
        if path is not None:
            check_output(path, force=force, inputs=[data, *([like] if like else [])])
    _check_suffix(out, "--out")
    if like is not None:
        check_input(like)
        _check_suffix(like, "--like")
    if not is_raster and (target is None or x is None or y is None):
        raise UsageError("points need --target, --x and --y, the names of their columns.")
    if not is_raster and (like is None) == (resolution is None):
        raise UsageError("points need --like with a raster, or --resolution, the side of a cell.")
    from rwf import RWFRegressor
    from rwf.integrations.maps import fit_map, grid, open_map
    from rwf.integrations.maps.files import checked_path

    checked_path(out)  # packages are missed before anything is computed
    begun = time.perf_counter()
    with warnings_shown():
        source = open_map(data) if is_raster else data
        fitted = fit_map(
            source, target, x=x, y=y, time=time_, covariates=names_in(covariates),
            geometry=geometry, mask=mask if is_raster else None,
            regressor=RWFRegressor(n_components, random_state=seed, verbose=int(not quiet)),
        )  # fmt: skip
        fitted.regressor.set_params(verbose=0)
        if model is not None:
            fitted.save(model, include_rows=True)
        if like is not None:
            template = open_map(like)
        else:
            template = open_map(data) if is_raster else grid(fitted, float(resolution or 0.0))
        answer = predict_raster(fitted, template, out, above, mask, figure)
    answer |= {"rows": fitted.regressor.model_.n_rows, "metric": fitted.metric}
    text = (
        f"{answer['rows']:,g} rows to {answer['cells']:,} cells in "
        f"{time.perf_counter() - begun:.1f} s; {fitted.metric}. Raster: {out}"
    )
    print_result(as_json, answer, text)


def predict_raster(
    model: "MapModel",
    template: "xarray.Dataset",
    out: Path,
    above: float | None,
    mask: str | None,
    figure: Path | None,
    quantiles: tuple[float, float] = (0.025, 0.975),
) -> dict[str, object]:
    """Write the predictions for a template, and a figure of them; what was written."""
    from rwf.integrations.maps import open_map, plot_map, predict_map, write_map

    found = predict_map(model, template, quantiles=quantiles, above=above, mask=mask)
    write_map(found, out)
    if figure is not None:
        plot_map(open_map(out)).savefig(figure, dpi=140)
    return {"out": str(out), "cells": found["mean"].size, "variables": [*map(str, found)]}


def _check_suffix(path: Path, option: str) -> None:
    if path.suffix.lower() not in RASTERS:
        raise UsageError(f"{option} {path} should end in {', '.join(RASTERS)}.")
