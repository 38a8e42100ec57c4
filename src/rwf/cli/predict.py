"""``rwf predict``: from a model and a table to a table of predictions."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rwf.cli.checks import UsageError, check_input, check_output, load_map, load_model
from rwf.cli.map import RASTERS, Above, Figure, Mask, predict_raster
from rwf.cli.terminal import Force, Json, ModelFile, print_result, warnings_shown


def predict(
    model: ModelFile,
    data: Annotated[
        Path,
        typer.Argument(help="A CSV or Parquet file, a folder of such, a pattern, or a raster."),
    ],
    out: Annotated[
        Path, typer.Option(help="The file to write: .csv or .parquet, or .nc or .tif of a raster.")
    ],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    quantiles: Annotated[
        str, typer.Option(help="Quantiles instead of an interval, such as .05,.5,.95.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse missing values and new categories.")
    ] = False,
    above: Above = None,
    mask: Mask = None,
    figure: Figure = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict a table: columns mean, std, lower and upper, one row for each of its rows.

    With --quantiles, columns such as q0.05 take the place of lower and upper.

    Columns are matched by name, in any order. Rows stream, and the output appears once complete.
    For a raster (.nc or .tif) with the coordinates of the model it is a raster of predictions.
    """
    check_input(data)
    check_output(out, force=force, inputs=[model, data])
    if not 0 < interval < 1:
        raise UsageError(f"--interval {interval:g} must lie between 0 and 1; 0.95 is usual.")
    if data.suffix.lower() in RASTERS:
        _predict_raster(model, data, out, interval, (above, mask, figure), as_json)
        return
    levels = _levels(quantiles)
    from rwf.data.writers import check_suffix

    try:
        check_suffix(out)
    except ValueError as error:
        raise UsageError(str(error)) from None
    begun = time.perf_counter()
    with warnings_shown():
        found = load_model(model)
        found.strict = found.strict or strict
        rows = found.predict_to(data, out, interval, levels)
    seconds = time.perf_counter() - begun
    columns = ["mean", "std", *([f"q{q:g}" for q in levels] or ["lower", "upper"])]
    answer = {"out": str(out), "rows": rows, "columns": columns, "interval": interval}
    text = f"{rows:,} rows in {seconds:.1f} s. Predictions: {out}"
    print_result(as_json, {**answer, "seconds": seconds}, text)


def _predict_raster(
    model: Path,
    data: Path,
    out: Path,
    interval: float,
    options: tuple[float | None, str | None, Path | None],
    as_json: bool,
) -> None:
    if out.suffix.lower() not in RASTERS:
        raise UsageError(f"--out {out} of a raster should end in {', '.join(RASTERS)}.")
    from rwf.integrations.maps import open_map

    begun = time.perf_counter()
    ends = (0.5 - interval / 2, 0.5 + interval / 2)
    with warnings_shown():
        answer = predict_raster(load_map(model), open_map(data), out, *options, quantiles=ends)
    seconds = time.perf_counter() - begun
    text = f"{answer['cells']:,} cells in {seconds:.1f} s. Raster: {out}"
    print_result(as_json, {**answer, "interval": interval, "seconds": seconds}, text)


def _levels(text: str) -> list[float]:
    """Probabilities from a list with commas."""
    try:
        levels = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        levels = [0.0]
    if not all(0 < level < 1 for level in levels):
        raise UsageError(
            f"--quantiles {text} must be numbers between 0 and 1 with commas, such as .05,.5,.95."
        )
    return levels
