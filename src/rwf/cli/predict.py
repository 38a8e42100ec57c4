"""``rwf predict``: from a model and a table to a table of predictions."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rwf.cli.app import app
from rwf.cli.checks import UsageError, check_input, check_output, load_model
from rwf.cli.terminal import Force, Json, print_json, show, warnings_shown


class Unknown(StrEnum):
    """What a text is that was not seen in the fit."""

    error = "error"
    zeros = "zeros"


@app.command(epilog="Example: rwf predict houses.rwf new.csv --out predicted.parquet")
def predict(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    data: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file, a folder of such, or a pattern.")
    ],
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .csv.gz or .parquet.")],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    unknown: Annotated[
        Unknown, typer.Option(help="Texts not seen in the fit: an error, or none of those seen.")
    ] = Unknown.error,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict a table: columns mean, std, lower and upper, one row for each of its rows.

    Columns are taken by name, in any order. Rows stream, and the output appears once complete.
    """
    check_input(data)
    check_output(out, force=force, inputs=[model, data])
    if not 0 < interval < 1:
        raise UsageError(f"--interval {interval:g} must lie between 0 and 1; 0.95 is usual.")
    from rwf.data.writers import check_suffix

    try:
        check_suffix(out)
    except ValueError as error:
        raise UsageError(str(error)) from None
    begun = time.perf_counter()
    with warnings_shown():
        rows = load_model(model).predict_to(
            data, out, interval, "zeros" if unknown is Unknown.zeros else "error"
        )
    seconds = time.perf_counter() - begun
    if as_json:
        columns = ["mean", "std", "lower", "upper"]
        answer = {"out": str(out), "rows": rows, "columns": columns, "interval": interval}
        print_json({**answer, "seconds": seconds})
    else:
        show(f"{rows:,} rows in {seconds:.1f} s. Predictions: {out}")
