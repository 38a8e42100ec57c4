"""The largest error of the random kernel against the number of atoms, beside the bounds on it.

The paper's setting on the unit interval: atoms of unit energy, scales log-uniform in [2⁻⁴, 2²],
shifts uniform; Fourier features of a squared exponential beside them. The kernel that they estimate
is known, so that the error is too. A row is one method with one number of atoms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from experiments.reporting.figures import FIGURES
from experiments.runner.store import RESULTS, Row, append, read, results_file
from rwf._types import Array
from rwf.diagnostics.plots import error_by_atoms
from rwf.features import Family, FourierFamily, WaveletFamily
from rwf.kernels import ExpectedKernel
from rwf.theory import FeatureConstants, Setting, constants_of, on_rows, sup_error, uniform
from rwf.wavelets import as_wavelet
from rwf.wavelets.measure import Box, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTING = Setting(d=1, n_rows=200, delta=0.1)
LENGTH = 0.1
"""Of the squared exponential."""

ATOMS = tuple(4**k for k in range(2, 8))
REPEATS = 40
GRID = np.linspace(*SETTING.domain, SETTING.n_rows)[:, None]

METHODS: Mapping[str, str] = {
    "mexican_hat": "Mexican hat",
    "morlet": "Morlet",
    "db4": "Daubechies, db4",
    "haar": "Haar",
    "rff": "Fourier features",
}
"""What is drawn, and what the figure calls it."""

BOUNDS: Mapping[str, str] = {
    "proved": "any two points, proved",
    "paper": "any two points, as printed",
    "rows": f"pairs of {SETTING.n_rows} points, proved",
    "estimate": "estimated from one draw",
}
"""The fields of a row that hold bounds, and what the figure calls them."""

SHOWN = 1024
"""The number of atoms of the table."""


def wavelets(method: str) -> WaveletFamily:
    """Wavelet atoms before they are drawn, independent of each other."""
    measure = Measure(*SETTING.scales, Box(pad=0.0), stratify=False)
    return WaveletFamily(as_wavelet(method), measure, 1.0, True, SETTING.normalization)


def family(method: str) -> Family:
    """Atoms before they are drawn."""
    return FourierFamily("se", LENGTH) if method == "rff" else wavelets(method)


def exact_kernel(method: str) -> Array:
    """k at all pairs of the grid."""
    if method == "rff":
        return cast(Array, np.exp(-0.5 * ((GRID - GRID.T) / LENGTH) ** 2))
    return ExpectedKernel.of(wavelets(method), GRID)(GRID)


def constants(method: str) -> FeatureConstants:
    if method == "rff":
        return constants_of(family(method).draw(2, GRID, np.random.default_rng(0)))
    return SETTING.constants(method)


def rows_to_do(stored: list[Row]) -> list[tuple[str, int]]:
    """Methods and numbers of atoms that have no row yet."""
    have = {row["key"] for row in stored}
    return [(m, D) for m in METHODS for D in ATOMS if f"{m}-{D}" not in have]


def measure_errors(method: str, n_atoms: int, exact: Array) -> Row:
    """The largest error of repeated draws, its quantile, and the bounds."""
    rng = np.random.default_rng([n_atoms, *method.encode()])
    columns = 2 * n_atoms if method == "rff" else n_atoms
    errors = []
    for _ in range(REPEATS):
        features = family(method).draw(columns, GRID, rng)
        Z = np.asarray(features(GRID), dtype=np.float64)
        errors.append(float(np.abs(Z @ Z.T - exact).max()))
    c, delta = constants(method), SETTING.delta
    smooth = np.isfinite(c.lipschitz)
    whole = {
        version: uniform(c, SETTING.d, SETTING.diameter, version).error(n_atoms, delta)
        if smooth
        else None
        for version in ("proved", "paper")
    }
    return {
        "key": f"{method}-{n_atoms}",
        "method": method,
        "n_atoms": n_atoms,
        "delta": delta,
        "errors": list(errors),
        "quantile": float(np.quantile(errors, 1 - delta)),
        "rows": on_rows(c, SETTING.n_rows).error(n_atoms, delta),
        "estimate": sup_error(features, GRID, delta, rng=rng),
        **whole,
    }


def run(results: Path = RESULTS) -> Iterator[Row]:
    """Measure and store what has no row yet."""
    path = results_file("theory", results)
    todo = rows_to_do(read(path))
    exact = {method: exact_kernel(method) for method in dict(todo)}
    for method, n_atoms in todo:
        row = measure_errors(method, n_atoms, exact[method])
        append(path, row)
        yield row


def figure_of(rows: Sequence[Row]) -> Figure:
    """One panel per method: the observed error, below its bounds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.2, 6.0), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for ax, (method, title) in zip(axes, METHODS.items(), strict=False):
        mine = sorted((row for row in rows if row["method"] == method), key=_atoms)
        error_by_atoms(
            ax,
            np.array([_atoms(row) for row in mine]),
            np.array([row["errors"] for row in mine], dtype=np.float64).T,
            _numbers(mine, "quantile"),
            {label: _numbers(mine, name) for name, label in BOUNDS.items()},
            label="observed, nine draws of ten below",
        )
        ax.set_title(title)
        ax.grid(which="major", color="#DDDDDD", linewidth=0.6)
        ax.set_xticks(ATOMS, [str(D) for D in ATOMS])
        ax.minorticks_off()
    for ax in (axes[0], axes[3]):
        ax.set_ylabel("largest error of the kernel")
    for ax in axes[2:5]:
        ax.set_xlabel("atoms D")
        ax.tick_params(labelbottom=True)
    handles, labels = axes[0].get_legend_handles_labels()
    axes[5].legend(handles, labels, loc="center", frameon=False)
    axes[5].set_axis_off()
    return figure


def _atoms(row: Row) -> int:
    return cast(int, row["n_atoms"])


def _numbers(rows: Sequence[Row], field: str) -> Array:
    """A field of the rows, NaN where there is none."""
    return np.array([row[field] for row in rows], dtype=np.float64)


def draw(results: Path = RESULTS, directory: Path = FIGURES) -> Path:
    """Write the figure of the stored rows."""
    path = directory / "theory.png"
    directory.mkdir(parents=True, exist_ok=True)
    rows = read(results_file("theory", results))
    figure_of(rows).savefig(path, dpi=150, metadata={"Software": None})
    return path


def table(results: Path = RESULTS) -> str:
    """Observed errors and bounds for one number of atoms, as Markdown."""
    rows = [row for row in read(results_file("theory", results)) if _atoms(row) == SHOWN]
    if not rows:
        return "No rows are stored yet."
    head = ["atoms", "observed", *BOUNDS.values()]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for row in rows:
        fields = [row["quantile"], *(row[name] for name in BOUNDS)]
        numbers = ["none" if v is None else f"{cast(float, v):.3f}" for v in fields]
        lines.append(f"| {METHODS[str(row['method'])]} | {' | '.join(numbers)} |")
    caption = f"Largest error of k over the unit interval with D = {SHOWN} atoms, nine times of ten"
    draws = len(cast(list[float], rows[0]["errors"]))
    low, high = SETTING.scales
    setting = (
        f"{draws} draws each. Wavelets have unit energy, scales log-uniform in [{low:g}, {high:g}] "
        f"and uniform shifts; Fourier features are those of a squared exponential of length "
        f"{LENGTH:g}."
    )
    return "\n\n".join([f"**{caption}**", "\n".join(lines), setting])
