"""``rwf predict``: from a model and a table to a table of predictions."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rwf.cli.checks import UsageError, check_input, check_output, load_model
from rwf.cli.terminal import Force, Json, ModelFile, TableFile, print_result, warnings_shown


def predict(
    model: ModelFile,
    data: TableFile,
    out: Annotated[Path, typer.Option(help="The file to write: .csv, .csv.gz or .parquet.")],
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse missing values and new categories.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Predict a table: columns mean, std, lower and upper, one row for each of its rows.

    Columns are matched by name, in any order. Rows stream, and the output appears once complete.
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
        found = load_model(model)
        found.strict = found.strict or strict
        rows = found.predict_to(data, out, interval)
    seconds = time.perf_counter() - begun
    columns = ["mean", "std", "lower", "upper"]
    answer = {"out": str(out), "rows": rows, "columns": columns, "interval": interval}
    text = f"{rows:,} rows in {seconds:.1f} s. Predictions: {out}"
    print_result(as_json, {**answer, "seconds": seconds}, text)
