"""``rwf predict``: from a model and a table to a table of predictions."""

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from rwf.cli.checks import UsageError, check_input, check_output, load_model
from rwf.cli.terminal import Force, Json, ModelFile, TableFile, print_result, warnings_shown


def predict(
    model: ModelFile,
    data: TableFile,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .csv.gz or .parquet.")],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    quantiles: Annotated[
        str, typer.Option(help="Quantiles instead of an interval, such as .05,.5,.95.")
    ] = "",
    unknown: Annotated[
        Literal["error", "zeros"],
        typer.Option(help="Unknown categories: an error, or zeros in all one-hot columns."),
    ] = "error",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict a table: columns mean, std, lower and upper, one row for each of its rows.

    With --quantiles, columns such as q0.05 take the place of lower and upper.

    Columns are matched by name, in any order. Rows stream, and the output appears once complete.
    """
    check_input(data)
    check_output(out, force=force, inputs=[model, data])
    if not 0 < interval < 1:
        raise UsageError(f"--interval {interval:g} must lie between 0 and 1; 0.95 is usual.")
    levels = _levels(quantiles)
    from rwf.data.writers import check_suffix

    try:
        check_suffix(out)
    except ValueError as error:
        raise UsageError(str(error)) from None
    begun = time.perf_counter()
    with warnings_shown():
        rows = load_model(model).predict_to(data, out, interval, unknown, levels)
    seconds = time.perf_counter() - begun
    columns = ["mean", "std", *([f"q{q:g}" for q in levels] or ["lower", "upper"])]
    answer = {"out": str(out), "rows": rows, "columns": columns, "interval": interval}
    text = f"{rows:,} rows in {seconds:.1f} s. Predictions: {out}"
    print_result(as_json, {**answer, "seconds": seconds}, text)


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
