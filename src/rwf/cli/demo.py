"""``rwf demo``: a table and a figure to begin with."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rwf.cli.app import app
from rwf.cli.terminal import Json, log_shown, print_json

if TYPE_CHECKING:
    from rwf.cli.demonstration import DemoResult


@app.command(epilog="Example: rwf demo --out figures --noise 0.1 --json")
def demo(
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Directory of the figure, made if missing.")
    ] = Path("rwf-demo"),
    n_train: Annotated[int, typer.Option(min=2, help="Rows to fit.")] = 4200,
    n_test: Annotated[int, typer.Option(min=1, help="Rows to score.")] = 1800,
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of the noise.")] = 0.05,
    n_components: Annotated[int, typer.Option(min=2, help="Columns of every method.")] = 300,
    n_restarts: Annotated[
        int, typer.Option(min=0, help="Starts after the first, for every method.")
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and the methods.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit wavelet and Fourier features to a step function; print a table and draw a figure."""
    from rwf.cli.demonstration import run_demo

    with log_shown():
        result = run_demo(
            out,
            n_train=n_train,
            n_test=n_test,
            noise=noise,
            n_components=n_components,
            n_restarts=n_restarts,
            random_state=seed,
        )
    if as_json:
        print_json(asdict(result))
    else:
        _print_demo(result)


def _print_demo(result: "DemoResult") -> None:
    table = Table(
        title=f"multi-step function, {result.n_train} rows to fit, {result.n_test} to score, "
        f"noise {result.noise:g}, {result.n_restarts + 1} starts each",
        title_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for name in ("RMSE", "CRPS", "NLL", "95 % coverage", "seconds", "features"):
        table.add_column(name, justify="right")
    for row in result.rows:
        score = row.scores
        table.add_row(
            row.method,
            *(f"{score[name]:.4f}" for name in ("rmse", "crps", "nll")),
            f"{score['coverage']:.1%}",
            f"{row.seconds:.1f}",
            str(row.features),
        )
    console = Console()
    console.print(table)
    console.print(f"Figure: {result.figure}", soft_wrap=True)
