"""The application that commands join."""

from importlib import metadata
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: rwf fit houses.csv --target price --out houses.rwf",
)


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
