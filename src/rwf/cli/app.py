"""The commands of ``rwf``; they import slow modules when they run, so that help appears at once."""

from collections.abc import Callable
from importlib import metadata
from typing import Annotated

import typer

from rwf.cli.demo import demo
from rwf.cli.fit import fit
from rwf.cli.map import map_
from rwf.cli.models import inspect, merge, update
from rwf.cli.predict import predict
from rwf.cli.report import report
from rwf.cli.theory import theory

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: rwf fit houses.csv --target price --out houses.rwf",
)

COMMANDS: dict[Callable[..., None], str] = {
    demo: "rwf demo --out figures --noise 0.1 --json",
    fit: "rwf fit houses.csv --target price --features area,town --out h.rwf",
    map_: "rwf map stations.csv --target rain --x lon --y lat --resolution 0.1 --out rain.nc",
    predict: "rwf predict houses.rwf new.csv --out predicted.parquet",
    update: "rwf update houses.rwf more.parquet",
    merge: "rwf merge january.rwf february.rwf --out winter.rwf",
    inspect: "rwf inspect houses.rwf --json",
    report: "rwf report houses.rwf test.csv --out houses.html",
    theory: "rwf theory --wavelet db4 --scales 0.1 1 --eps 0.2 --json",
}
for command, example in COMMANDS.items():
    app.command(command.__name__.rstrip("_"), epilog=f"Example: {example}")(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rwf {metadata.version('rwf')}")
        raise typer.Exit


@app.callback()
def rwf(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Non-stationary regression with calibrated uncertainty, by random wavelet features."""
