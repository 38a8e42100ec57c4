"""Predictions of every method for the plateaus: mean and standard deviation along the line.

Rows of suites hold scores, no predictions; the figure needs predictions at a few hundred points,
which are stored here, one line a method, so that it can be drawn without fitting again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from experiments.data.tasks import problem
from experiments.reporting.labels import plain_label
from experiments.runner.methods import make
from experiments.runner.plan import load_suite
from experiments.runner.run import Run
from experiments.runner.store import JSON, RESULTS, Row, append, read, results_file
from rwf._types import Array
from rwf.datasets import FIVE_PLATEAUS, step_function

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASK, SPLIT = "five-plateaus", 0
N_POINTS = 501
LEFT_OUT = ("linear", "constant")


def methods() -> list[str]:
    """The methods whose curves are drawn, in the order of the tables."""
    return [name for name in load_suite("paper").methods if name not in LEFT_OUT]


def grid() -> Array:
    return np.linspace(0, 1, N_POINTS)


def run(results: Path = RESULTS) -> Iterator[Row]:
    """Fit the methods that have no curve yet; yields each curve as it is stored."""
    path = results_file("curves", results)
    done = {row["key"] for row in read(path)}
    table, rows = problem(TASK, SPLIT)
    for name in methods():
        key = Run(TASK, name, SPLIT).key
        if key not in done:
            method = make(name, {}, SPLIT)
            method.fit(table.X[rows.train], table.y[rows.train])
            mean, std = method.predict(grid()[:, None])
            row: Row = {"key": key, "method": name, "mean": rounded(mean), "std": rounded(std)}
            append(path, row)
            yield row


def stored(results: Path = RESULTS) -> list[Row]:
    """The curves there are, in the order of the tables."""
    found = {str(row["method"]): row for row in read(results_file("curves", results))}
    return [found[name] for name in methods() if name in found]


def rounded(values: Array) -> list[JSON]:
    """Four digits, which is more than a figure shows."""
    return [float(f"{value:.4g}") for value in values]


def draw(rows: Sequence[Row], columns: int = 4) -> Figure:
    """A panel for every method: plateaus, mean, and the band of two standard deviations."""
    from matplotlib.figure import Figure

    lines = -(-len(rows) // columns)
    figure = Figure(figsize=(2.7 * columns, 1.9 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    x = grid()
    for ax, row in zip(axes.ravel(), rows, strict=False):
        mean, std = (np.asarray(cast(list[float], row[name])) for name in ("mean", "std"))
        ax.plot(x, step_function(x, FIVE_PLATEAUS), color="black", linewidth=0.8)
        ax.fill_between(x, mean - 2 * std, mean + 2 * std, color="#56B4E9", alpha=0.5, linewidth=0)
        ax.plot(x, mean, color="#0072B2", linewidth=1.0)
        ax.set_title(plain_label(str(row["method"])), fontsize=8)
        ax.set_ylim(-2, 2)
    for ax in axes.ravel()[len(rows) :]:
        ax.set_visible(False)
    return figure
