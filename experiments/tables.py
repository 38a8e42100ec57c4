"""Markdown tables from stored rows: mean ± standard error over splits, the best in bold.

Bold are the best mean of a column and every mean within one standard error of it, the best one's;
a method that failed on some split is never bold. Nothing is computed but means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from experiments.methods import LABELS
from experiments.plan import Suite
from experiments.store import JSON, Row
from experiments.tasks import unit


@dataclass(frozen=True)
class Measure:
    """A field of the rows, and how to print it.

    Args:
        field: its name.
        title: what the table is called, with the unit if it is not the target's.
        decimals: after the point; ``None`` for three significant digits of the best, in the units
            of the target.
        better: which mean is best; ``None`` marks nothing.
    """

    field: str
    title: str
    decimals: int | None = None
    better: Literal["lower", "higher", "nominal"] | None = "lower"

    def badness(self, mean: float) -> float:
        """What the best mean of a column has the least of."""
        return {"higher": -mean, "nominal": abs(mean - 0.95)}.get(self.better or "", mean)


MEASURES: Mapping[str, Measure] = {
    measure.field: measure
    for measure in (
        Measure("rmse", "RMSE, in the units of the target"),
        Measure("crps", "CRPS, in the units of the target"),
        Measure("nll", "Negative log density, nats a row, in the units of the target", 3),
        Measure("coverage95", "Coverage of the 95 % interval", 3, "nominal"),
        Measure("rmse_f", "RMSE against the function without noise, in the units of the target"),
        Measure("coverage95_f", "Coverage of the function by its 95 % interval", 3, "nominal"),
        Measure("width95", "Width of the 95 % interval, in the units of the target", better=None),
        Measure("calibration_error", "Calibration error, mean over levels 0.05 to 0.95", 3),
        Measure("rmse_skill_linear", "Skill over a straight line, 1 − RMSE/RMSE₀", 3, "higher"),
        Measure("fit_seconds", "Seconds to fit", 1, None),
        Measure("fit_cpu_seconds", "CPU seconds to fit", 1, None),
        Measure("predict_seconds", "Seconds to predict the test rows", 2, None),
        Measure("peak_memory_mb", "Peak memory of the process, MB", 0, None),
    )
}


@dataclass(frozen=True)
class Cell:
    """What the splits of one method on one column say.

    Args:
        values: of the splits that succeeded, and have the field.
        errors: how many splits ended in which kind of error.
    """

    values: tuple[float, ...]
    errors: Counter[str]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def standard_error(self) -> float:
        n = len(self.values)
        return float(np.std(self.values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def cell_of(rows: Sequence[Row], field: str) -> Cell:
    known = [row for row in rows if row["error"] is None and row.get(field) is not None]
    values = [cast(float, row[field]) for row in known]
    errors = Counter(str(row["error"]).split(":")[0] for row in rows if row["error"] is not None)
    return Cell(tuple(values), errors)


def best_cells(column: Mapping[str, Cell], measure: Measure) -> set[str]:
    """The names of the cells to print in bold."""
    most = max((len(cell.values) for cell in column.values()), default=0)
    whole = {
        name: cell
        for name, cell in column.items()
        if most and len(cell.values) == most and not cell.errors
    }
    if measure.better is None or not whole:
        return set()
    badness = {name: measure.badness(cell.mean) for name, cell in whole.items()}
    best = min(badness, key=lambda name: badness[name])
    limit = badness[best] + whole[best].standard_error
    return {name for name, value in badness.items() if value <= limit}


BEYOND = 1e5
"""From here on numbers are printed by their power of ten: they say that something broke."""


@dataclass(frozen=True)
class Format:
    """How the numbers of a column are printed: in powers of ten, with so many decimals."""

    power: int
    decimals: int

    def __call__(self, value: float) -> str:
        scaled = value / 10.0**self.power
        return f"{scaled:.{self.decimals}f}" if abs(scaled) < BEYOND else f"{scaled:.0e}"


def format_of(column: Mapping[str, Cell], measure: Measure) -> Format:
    """Three significant digits of the smallest mean, unless the measure says how many decimals."""
    if measure.decimals is not None:
        return Format(0, measure.decimals)
    sizes = [abs(cell.mean) for cell in column.values() if cell.values and cell.mean != 0]
    exponent = math.floor(math.log10(min(sizes))) if sizes else 0
    power = exponent if exponent < -3 else 0
    return Format(power, max(0, 2 - exponent + power))


def cell_text(cell: Cell, form: Format, n_splits: int, bold: bool) -> str:
    """Mean ± standard error; how many splits where some are missing; why where it failed."""
    reason = ", ".join(sorted(cell.errors))
    if not cell.values:
        return f"failed: {reason}" if reason else "–"
    text = form(cell.mean)
    if len(cell.values) > 1:
        text += f" ± {form(cell.standard_error)}"
    if bold:
        text = f"**{text}**"
    if len(cell.values) < n_splits:
        text += f" ({len(cell.values)} of {n_splits}{'; ' + reason if reason else ''})"
    return text


def pivot(
    rows: Sequence[Row],
    measure: Measure,
    names: Sequence[str],
    columns: Mapping[str, Callable[[Row], bool]],
    n_splits: int,
) -> str:
    """A table of methods by columns.

    Args:
        rows: one a run.
        measure: what to print.
        names: the methods, in order; those without rows are left out.
        columns: titles, and which rows belong to each.
        n_splits: how many splits a whole cell has.
    """
    present = [name for name in names if any(row["method"] == name for row in rows)]
    printed: dict[str, list[str]] = {name: [] for name in present}
    titles = []
    for title, belongs in columns.items():
        column = {
            name: cell_of([r for r in rows if r["method"] == name and belongs(r)], measure.field)
            for name in present
        }
        form, best = format_of(column, measure), best_cells(column, measure)
        titles.append(title + (f", 1e{form.power}" if form.power else ""))
        for name, cell in column.items():
            printed[name].append(cell_text(cell, form, n_splits, name in best))
    lines = ["| method | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    lines += [
        f"| {LABELS.get(name, name)} | " + " | ".join(printed[name]) + " |" for name in present
    ]
    return "\n".join(lines)


def suite_tables(suite: Suite, rows: Sequence[Row], field: str) -> str:
    """The tables of one measure: methods by tasks, or methods by settings for every task."""
    if not rows:
        return missing(suite)
    measure = MEASURES[field]
    axis = next((key for key, values in suite.grid.items() if len(values) > 1), None)
    parts = []
    if axis is None:
        columns = {task_title(t, measure): _has("task", t) for t in suite.tasks}
        parts.append(f"**{measure.title}**")
        parts.append(pivot(rows, measure, suite.all_methods, columns, len(suite.splits)))
    else:
        for task in suite.tasks:
            those = [row for row in rows if row["task"] == task]
            columns = {f"{axis} = {v}": _has_setting(axis, v) for v in suite.grid[axis]}
            if suite.references:
                columns["as it comes"] = lambda row: row["settings"] == {}
            parts.append(f"**{measure.title}: {task_title(task, measure)}**")
            parts.append(pivot(those, measure, suite.all_methods, columns, len(suite.splits)))
    return "\n\n".join(parts)


def missing(suite: Suite) -> str:
    return f"No rows are stored yet: `python -m experiments run --suite {suite.name}` makes them."


def task_title(task: str, measure: Measure) -> str:
    has_unit = measure.decimals is None and unit(task) is not None
    return f"{task} ({unit(task)})" if has_unit else task


def failures(rows: Sequence[Row]) -> str:
    """Every failed run with its message, or nothing."""
    return "\n".join(
        f"- {row['method']} on {row['task']}, split {row['split']}: {row['error']}"
        for row in rows
        if row["error"] is not None
    )


def conditions(rows: Sequence[Row]) -> str:
    """Under what conditions the rows came about, in one sentence."""
    if not rows:
        return ""
    rates = [cast(float, row["dgemm_gflops"]) for row in rows if row["dgemm_gflops"] is not None]
    threads = sorted({cast(int, row["threads"]) for row in rows})
    packages = {str(name) for row in rows for name in cast(dict[str, JSON], row["versions"])}
    seen = {
        name: sorted({str(cast(dict[str, JSON], row["versions"]).get(name)) for row in rows})
        for name in packages
    }
    listed = ", ".join(f"{name} {' and '.join(seen[name])}" for name in sorted(seen))
    ends = sorted({f"{min(rates):.0f}", f"{max(rates):.0f}"}, key=float) if rates else []
    speed = f" of {' to '.join(ends)} GFLOP/s (dgemm)" if ends else ""
    return (
        f"{len(rows)} runs, each a process of its own, with "
        f"{' or '.join(str(t) for t in threads)} thread{'s' * (threads != [1])}, "
        f"on cores{speed}; {listed}."
    )


def _has(field: str, value: str) -> Callable[[Row], bool]:
    return lambda row: row[field] == value


def _has_setting(key: str, value: JSON) -> Callable[[Row], bool]:
    return lambda row: cast(dict[str, JSON], row["settings"]).get(key) == value
