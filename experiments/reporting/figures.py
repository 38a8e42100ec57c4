"""Figures from stored rows: error against atoms, calibration, cost against rows, curves, maps.

A map shows a stored run, and its method is fitted again for it: rows hold scores, no predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from experiments import ROOT
from experiments.data.table import local_file
from experiments.data.tasks import parts, unit
from experiments.reporting import curves
from experiments.reporting.maps import block_map, draw_map
from experiments.runner.plan import load_suite
from experiments.runner.run import Run
from experiments.runner.store import JSON, RESULTS, Row, read, results_file
from rwf.diagnostics.metrics import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURES = ROOT / "docs" / "figures"

STYLES: Mapping[str, tuple[str, str, str]] = {
    "rwf": ("RWF (default)", "#0072B2", "o"),
    "rwf-independent": ("RWF (random features)", "#56B4E9", "s"),
    "rff": ("RFF", "#D55E00", "^"),
    "rwf-quick": ("RWF (one trial)", "#56B4E9", "s"),
    "rwf-adaptive": ("RWF (adaptive)", "#0072B2", "o"),
    "rwf-cells": ("RWF (multiscale)", "#56B4E9", "s"),
    "rwf-paper": ("RWF (as printed)", "#CC79A7", "P"),
    "rff-matern12": ("RFF, Matérn-1/2", "#E69F00", "X"),
    "exact-matern32": ("exact GP, Matérn-3/2", "#009E73", "v"),
    "exact5k-matern32": ("exact GP, Matérn-3/2", "#009E73", "v"),
    "svgp": ("SVGP", "#E69F00", "X"),
    "dgp": ("deep GP", "#CC79A7", "P"),
    "boosting": ("boosting", "#8C8C8C", "D"),
}
"""Name, colour and marker of the methods that figures show; the colours are Okabe and Ito's."""

MAPPED: Mapping[str, Run] = {"terrain": Run("dem_jacksboro-block", "rwf", 0)}
"""The runs that have a map, by the suite that has their row, and by the name of the figure."""


def error_by_atoms(ax: Axes, rows: Sequence[Row]) -> Axes:
    """RMSE of every method against its number of atoms, with standard errors over splits."""
    for method, (label, colour, marker) in STYLES.items():
        groups: dict[int, list[float]] = {}
        for row in rows:
            if row["method"] == method and row["error"] is None and row["settings"]:
                atoms = cast(int, cast(dict[str, JSON], row["settings"])["n_components"])
                groups.setdefault(atoms, []).append(cast(float, row["rmse"]))
        if groups:
            atoms_seen = sorted(groups)
            means = [np.mean(groups[a]) for a in atoms_seen]
            errors = [np.std(groups[a]) / np.sqrt(max(1, len(groups[a]) - 1)) for a in atoms_seen]
            ax.errorbar(
                atoms_seen, means, errors, color=colour, marker=marker, markersize=4, label=label
            )
    ax.set_xscale("log")
    ax.set_xlabel("columns D")
    return ax


def calibration(ax: Axes, rows: Sequence[Row]) -> Axes:
    """Observed against nominal coverage, the mean over splits; the diagonal is calibrated."""
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
    for method, (label, colour, _) in STYLES.items():
        curves = [row["coverages"] for row in rows if row["method"] == method and not row["error"]]
        if curves:
            observed = np.mean(np.asarray(curves, dtype=np.float64), axis=0)
            ax.plot(LEVELS, observed, color=colour, label=label)
    ax.set_xlabel("nominal coverage")
    return ax


def cost_by_rows(ax: Axes, rows: Sequence[Row], field: str) -> Axes:
    """A cost of every method against the number of training rows; subsets are left out."""
    for method, (label, colour, marker) in STYLES.items():
        points = sorted(
            (cast(int, row["n_train"]), cast(float, row[field]))
            for row in rows
            if row["method"] == method and row["error"] is None and not _is_subset(row)
        )
        if points:
            ax.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=4, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("training rows N")
    return ax


def _is_subset(row: Row) -> bool:
    facts = cast(dict[str, JSON], row["facts"])
    return bool(facts.get("subset"))


def growth(rows: Sequence[Row]) -> Figure:
    """Seconds and memory against the number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    cost_by_rows(left, rows, "fit_cpu_seconds").set_ylabel("CPU seconds to fit")
    cost_by_rows(right, rows, "peak_memory_mb").set_ylabel("peak memory, MB")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def panels(
    rows: Sequence[Row],
    tasks: Sequence[str],
    draw: Callable[[Axes, Sequence[Row]], Axes],
    ylabel: Callable[[str], str],
    columns: int = 3,
) -> Figure:
    """One panel a task, under one legend."""
    from matplotlib.figure import Figure

    lines = -(-len(tasks) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.7 * lines + 0.4), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax, task in zip(axes, tasks, strict=False):
        draw(ax, [row for row in rows if row["task"] == task])
        ax.set_title(task)
        ax.set_ylabel(ylabel(task))
    for ax in axes[len(tasks) :]:
        ax.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    ncols = min(len(labels), columns)
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, frameon=False)
    return figure


def draw_all(results: Path = RESULTS, directory: Path = FIGURES) -> list[Path]:
    """Write every figure that is made of stored rows alone; returns the files."""
    written = []
    for name, suite_name, draw, ylabel in (
        ("atoms", "atoms", error_by_atoms, lambda task: f"RMSE ({unit(task) or 'target'})"),
        ("calibration", "tables", calibration, lambda task: "observed coverage"),
        ("columns", "plateaus", error_by_atoms, lambda task: "RMSE"),
    ):
        suite = load_suite(suite_name)
        rows = suite.rows(results)
        tasks = [task for task in suite.tasks if any(row["task"] == task for row in rows)]
        if tasks:
            written.append(_save(panels(rows, tasks, draw, ylabel), directory / f"{name}.png"))
    grown = load_suite("growth").rows(results)
    if grown:
        written.append(_save(growth(grown), directory / "growth.png"))
    drawn = curves.stored(results)
    if drawn:
        written.append(_save(curves.draw(drawn), directory / "curves.png"))
    return written


def draw_maps(results: Path = RESULTS, directory: Path = FIGURES) -> list[Path]:
    """Fit again and write every map whose row is stored and whose table is at hand."""
    written = []
    for name, run in MAPPED.items():
        rows = read(results_file(name, results))
        stored = any(row["key"] == run.key and row["error"] is None for row in rows)
        if stored and local_file(parts(run.task)[0]) is not None:
            found = block_map(run.task, run.method, run.split)
            written.append(_save(draw_map(found), directory / f"{name}.png"))
    return written


def _save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})
    return path
