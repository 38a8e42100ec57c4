"""The commands of ``rwf``: each parses, calls one library function and prints.

What is slow to import is imported inside the command that needs it, so that help comes at once.
"""

import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table

if TYPE_CHECKING:
    from rwf.demo import DemoResult
    from rwf.theory import Comparison, Setting

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Example: rwf demo --out figures",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Fit wavelet and Fourier features to a step function; print a table and draw a figure."""
    from rwf.demo import run_demo

    with _progress():
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
        typer.echo(json.dumps(asdict(result), default=str, indent=2))
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


PAPER_TABLE = ("haar", "db2", "db4", "mexican_hat")
"""The wavelets of the paper's last corollary, whose "Daubechies-4" may be either of two."""


class Normalization(StrEnum):
    """How atoms of different scales compare."""

    energy = "energy"
    peak = "peak"


@app.command(epilog="Example: rwf theory --wavelet db4 --scales 0.1 1 --eps 0.2 --json")
def theory(
    wavelet: Annotated[
        list[str] | None,
        typer.Option(help="A wavelet's name; give several. The paper's table is the default."),
    ] = None,
    d: Annotated[int, typer.Option("--d", min=1, help="Columns of the inputs.")] = 1,
    scales: Annotated[
        tuple[float, float], typer.Option(help="Lowest and highest scale of the atoms.")
    ] = (2.0**-4, 2.0**2),
    domain: Annotated[
        tuple[float, float],
        typer.Option(help="Low and high end of every column; shifts are uniform there."),
    ] = (0.0, 1.0),
    n_atoms: Annotated[int, typer.Option("--n-atoms", "-D", min=1, help="Atoms.")] = 1000,
    eps: Annotated[float, typer.Option(help="Error of the kernel to be allowed.")] = 0.1,
    delta: Annotated[
        float, typer.Option(help="Probability that the error is larger after all.")
    ] = 0.1,
    n_rows: Annotated[
        int, typer.Option(min=1, help="Rows, for the bound over their pairs.")
    ] = 1000,
    normalization: Annotated[
        Normalization, typer.Option(help="Unit energy, as in the paper, or unit peak.")
    ] = Normalization.energy,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Print the constants of wavelets, and how many atoms their error bounds ask for."""
    from rwf.theory import Setting, compare

    try:
        setting = Setting(d, scales, domain, n_atoms, eps, delta, n_rows, normalization.value)
        lines = compare(wavelet or PAPER_TABLE, setting)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        answer = {"setting": asdict(setting), "wavelets": [asdict(line) for line in lines]}
        typer.echo(json.dumps(_finite(answer), allow_nan=False, indent=2))
    else:
        _print_theory(setting, lines)


def _finite(value: object) -> object:
    """The same with null for what is infinite, which JSON has no word for."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_theory(setting: "Setting", lines: "list[Comparison]") -> None:
    D, eps, (low, high) = setting.n_atoms, setting.eps, setting.domain
    constants = Table(
        title=f"atoms of unit {setting.normalization}, scales {setting.scales[0]:g} to "
        f"{setting.scales[1]:g}, shifts uniform in ({low:g}, {high:g})^{setting.d}",
        title_justify="left",
    )
    constants.add_column("wavelet", no_wrap=True)
    for name in ("radius R", "moments M", "bound B", "Lipschitz L_z", "k(x, x) ≤"):
        constants.add_column(name, justify="right")
    for version in ("proved", "paper"):
        constants.add_column(f"sd of D = {D} ≤, {version}", justify="right")
    for line in lines:
        c = line.constants
        constants.add_row(
            line.wavelet,
            "∞" if math.isinf(c.radius) else f"{c.radius:.4g}",
            str(c.vanishing_moments),
            f"{c.bound:.4g}",
            "none" if math.isinf(c.lipschitz) else f"{c.lipschitz:.4g}",
            f"{c.diagonal:.4g}",
            *(f"{deviation:.3g}" for deviation in line.deviation.values()),
        )
    bounds = Table(title="largest error of the kernel, |z(x)ᵀz(y) - k(x, y)|", title_justify="left")
    for name in ("wavelet", "over"):
        bounds.add_column(name, no_wrap=True)
    for name in (f"D for {eps:g}", f"error of D = {D}", f"Pr(error ≥ {eps:g}), D = {D}"):
        bounds.add_column(name, justify="right")
    for line in lines:
        readings = {f"pairs of {setting.n_rows} rows": line.rows}
        for version, reading in (line.uniform or {}).items():
            readings[f"the domain, {version}"] = reading
        for name, r in readings.items():
            bounds.add_row(line.wavelet, name, f"{r.atoms:,}", f"{r.error:.3g}", f"{r.failure:.2g}")
        if line.uniform is None:
            bounds.add_row(line.wavelet, "the domain", *["none"] * 3)
        bounds.add_section()
    console = Console()
    console.print(constants, bounds)
    console.print(
        f"All with probability {1 - setting.delta:g}. 'paper' is the formula as printed, which is "
        "not proved; docs/theory.md says why. Data at hand need far fewer atoms: "
        "rwf.theory.required_features.",
        soft_wrap=True,
    )


@contextmanager
def _progress() -> Iterator[None]:
    """Show the library's log on standard error, so that standard output stays the result."""
    log = logging.getLogger("rwf")
    handler = RichHandler(
        console=Console(stderr=True), show_time=False, show_level=False, show_path=False
    )
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
