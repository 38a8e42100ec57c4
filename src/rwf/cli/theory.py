"""``rwf theory``: constants of wavelets, and how many atoms their error bounds require."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rwf.cli.terminal import Json, print_result, table_of

if TYPE_CHECKING:
    from rich.table import Table

    from rwf.theory import Comparison, Setting

PAPER_TABLE = ("haar", "db2", "db4", "mexican_hat")  # its Daubechies-4 may be either


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
    eps: Annotated[float, typer.Option(help="Largest error of the kernel allowed.")] = 0.1,
    delta: Annotated[
        float, typer.Option(help="Probability that the error is larger nevertheless.")
    ] = 0.1,
    n_rows: Annotated[
        int, typer.Option(min=1, help="Rows, for the bound over their pairs.")
    ] = 1000,
    normalization: Annotated[
        Literal["energy", "peak"], typer.Option(help="Unit energy, as in the paper, or unit peak.")
    ] = "energy",
    as_json: Json = False,
) -> None:
    """Print the constants of wavelets, and how many atoms their error bounds require."""
    from rwf.theory import Setting, compare

    try:
        setting = Setting(d, scales, domain, n_atoms, eps, delta, n_rows, normalization)
        lines = compare(wavelet or PAPER_TABLE, setting)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    answer = {"setting": asdict(setting), "wavelets": [asdict(line) for line in lines]}
    text = (
        f"All with probability {1 - setting.delta:g}. 'paper' is the formula as printed, which is "
        "not proved; docs/theory.md says why. The rows at hand usually need far fewer atoms: "
        "rwf.theory.required_features."
    )
    tables = _constants_table(setting, lines), _bounds_table(setting, lines)
    print_result(as_json, answer, *tables, text)


def _constants_table(setting: "Setting", lines: "list[Comparison]") -> "Table":
    D, (low, high) = setting.n_atoms, setting.domain
    constants = table_of(
        f"atoms of unit {setting.normalization}, scales {setting.scales[0]:g} to "
        f"{setting.scales[1]:g}, shifts uniform in ({low:g}, {high:g})^{setting.d}",
        "wavelet",
        *("radius R", "moments M", "bound B", "Lipschitz L_z", "k(x, x) ≤"),
        *(f"sd of D = {D} ≤, {version}" for version in ("proved", "paper")),
    )
    constants.columns[0].no_wrap = True
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
    return constants


def _bounds_table(setting: "Setting", lines: "list[Comparison]") -> "Table":
    D, eps = setting.n_atoms, setting.eps
    numbers = (f"D for {eps:g}", f"error of D = {D}", f"Pr(error ≥ {eps:g}), D = {D}")
    title = "largest error of the kernel, |z(x)ᵀz(y) - k(x, y)|"
    bounds = table_of(title, "wavelet", "over", *numbers)
    bounds.columns[0].no_wrap = bounds.columns[1].no_wrap = True
    bounds.columns[1].justify = "left"
    for line in lines:
        readings = {f"pairs of {setting.n_rows} rows": line.rows}
        for version, reading in (line.uniform or {}).items():
            readings[f"the domain, {version}"] = reading
        for name, r in readings.items():
            bounds.add_row(line.wavelet, name, f"{r.atoms:,}", f"{r.error:.3g}", f"{r.failure:.2g}")
        if line.uniform is None:
            bounds.add_row(line.wavelet, "the domain", *["none"] * 3)
        bounds.add_section()
    return bounds
