"""``rwf bench``: how fast this machine is."""

from dataclasses import asdict
from typing import Annotated

import typer

from rwf.commands.application import app
from rwf.commands.terminal import Json, print_json, show, table_of


@app.command(epilog="Example: rwf bench --rows 100000 --n-components 1000 --json")
def bench(
    rows: Annotated[int, typer.Option(min=1000, help="Rows to fit and predict.")] = 20_000,
    columns: Annotated[int, typer.Option(min=1, help="Columns of the inputs.")] = 8,
    n_components: Annotated[int, typer.Option(min=10, help="Feature columns.")] = 500,
    as_json: Json = False,
) -> None:
    """Time fitting, adding rows and predicting on made-up data, beside the machine's own dgemm."""
    from rwf.bench import run_bench

    result = run_bench(rows, columns, n_components)
    if as_json:
        print_json(asdict(result))
        return
    table = table_of(
        f"{rows:,} rows, {columns} columns, {n_components} features", "job", "seconds", "rows/s"
    )
    for name, seconds in result.seconds.items():
        table.add_row(name, f"{seconds:.2f}", f"{rows / seconds:,.0f}")
    show(table, f"dgemm: {result.gemm_gflops:.1f} GFLOP/s, {result.cores} cores")
