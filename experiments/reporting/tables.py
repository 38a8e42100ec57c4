"""Markdown tables from stored rows: mean ± standard error over splits, the best in bold.

Bold are the best mean of a column and every mean within one standard error of it, the best one's;
a method that failed on some split, or lacks one, is never bold. Where methods have different
numbers of splits, the best is found on those that all have. Nothing is computed but means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from experiments.data.tasks import unit
from experiments.runner.methods import LABELS, NOTES
from experiments.runner.plan import Suite
from experiments.runner.store import JSON, Row


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
        by_split: the value of every split that succeeded, and has the field.
        errors: how many splits ended in which kind of error.
        unsettled: whether a training had not converged when its time was over.
    """

    by_split: Mapping[int, float]
    errors: Counter[str]
    unsettled: bool = False

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self.by_split.values())

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def standard_error(self) -> float:
        n = len(self.values)
        return float(np.std(self.values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0

    def on(self, splits: Collection[int]) -> Cell:
        """The cell of some of its splits."""
        kept = {split: value for split, value in self.by_split.items() if split in splits}
        return replace(self, by_split=kept)


def cell_of(rows: Sequence[Row], field: str) -> Cell:
    known = [row for row in rows if row["error"] is None and row.get(field) is not None]
    values = {cast(int, row["split"]): cast(float, row[field]) for row in known}
    errors = Counter(str(row["error"]).split(":")[0] for row in rows if row["error"] is not None)
    return Cell(values, errors, any(_unsettled(row) for row in known))


def _unsettled(row: Row) -> bool:
    facts = row.get("facts")
    return isinstance(facts, dict) and facts.get("converged") is False


def best_cells(column: Mapping[str, Cell], measure: Measure) -> set[str]:
    """The names of the cells to print in bold: compared on the splits that all methods have.

    Args:
        column: the cells of one column by the names of their methods. Those that failed on some
            split are not compared.
        measure: what they hold.
    """
    whole = {name: cell for name, cell in column.items() if cell.values and not cell.errors}
    if measure.better is None or not whole:
        return set()
    shared = set.intersection(*(set(cell.by_split) for cell in whole.values()))
    if not shared:
        return set()
    compared = {name: cell.on(shared) for name, cell in whole.items()}
    badness = {name: measure.badness(cell.mean) for name, cell in compared.items()}
    best = min(badness, key=lambda name: badness[name])
    limit = badness[best] + compared[best].standard_error
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
    if cell.unsettled:
        text += " †"
    if len(cell.values) < n_splits:
        text += f" ({len(cell.values)} of {n_splits}{'; ' + reason if reason else ''})"
    return text


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and a text for every method."""

    title: str
    texts: Mapping[str, str]


def column_of(
    rows: Sequence[Row],
    measure: Measure,
    names: Sequence[str],
    title: str,
    n_splits: Callable[[str], int],
) -> Column:
    """What some rows say of every method.

    Args:
        rows: one a run, of this column only.
        measure: what to print.
        names: the methods.
        title: of the column; a power of ten is added to it where numbers are small.
        n_splits: how many splits a whole cell of a method has.
    """
    cells = {
        name: cell_of([row for row in rows if row["method"] == name], measure.field)
        for name in names
    }
    return column_of_cells(cells, measure, title, n_splits)


def column_of_cells(
    cells: Mapping[str, Cell], measure: Measure, title: str, n_splits: Callable[[str], int]
) -> Column:
    """Cells as texts, the best in bold; arguments as in :func:`column_of`."""
    form, best = format_of(cells, measure), best_cells(cells, measure)
    return Column(
        title + (f", 1e{form.power}" if form.power else ""),
        {name: cell_text(cell, form, n_splits(name), name in best) for name, cell in cells.items()},
    )


def present(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The methods that have rows, in order."""
    return [name for name in names if any(row["method"] == name for row in rows)]


def markdown(names: Sequence[str], columns: Sequence[Column], corner: str = "method") -> str:
    """A table of methods, or of whatever the corner says, by columns."""
    titles = [column.title for column in columns]
    lines = [f"| {corner} | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    lines += [
        f"| {LABELS.get(name, name)} | "
        + " | ".join(column.texts.get(name, "–") for column in columns)
        + " |"
        for name in names
    ]
    return "\n".join(lines)


def suite_tables(suite: Suite, rows: Sequence[Row], field: str) -> str:
    """The tables of one measure.

    Methods by tasks; where a grid has several values, methods by values for every task, or with a
    single method values by tasks.
    """
    if not rows:
        return missing(suite)
    measure = MEASURES[field]

    def n_splits(method: str) -> int:
        return len(suite.splits_of(method))

    axis = next((key for key, values in suite.grid.items() if len(values) > 1), None)
    if axis is None:
        names = present(rows, suite.all_methods)
        columns = [
            column_of(of_task(rows, task), measure, names, task_title(task, measure), n_splits)
            for task in suite.tasks
        ]
        return f"**{measure.title}**\n\n{markdown(names, columns)}"
    if len(suite.all_methods) == 1:
        return _values_by_tasks(suite, rows, measure, axis)
    parts = []
    for task in suite.tasks:
        those = of_task(rows, task)
        names = present(those, suite.all_methods)
        groups = {
            f"{axis} = {value}": [row for row in those if _setting(row, axis) == value]
            for value in suite.grid[axis]
        }
        if suite.references:
            groups["as it comes"] = [row for row in those if row["settings"] == {}]
        columns = [
            column_of(group, measure, names, title, n_splits) for title, group in groups.items()
        ]
        parts.append(f"**{measure.title}: {task_title(task, measure)}**")
        parts.append(markdown(names, columns))
    return "\n\n".join(parts)


def _values_by_tasks(suite: Suite, rows: Sequence[Row], measure: Measure, axis: str) -> str:
    """What the values of a setting make of the one method of a suite."""
    columns = []
    for task in suite.tasks:
        cells = {
            str(value): cell_of(
                [row for row in of_task(rows, task) if _setting(row, axis) == value], measure.field
            )
            for value in suite.grid[axis]
        }
        title = task_title(task, measure)
        columns.append(column_of_cells(cells, measure, title, lambda _: len(suite.splits)))
    names = [str(value) for value in suite.grid[axis]]
    return f"**{measure.title}**\n\n{markdown(names, columns, corner=axis)}"


def of_task(rows: Sequence[Row], task: str) -> list[Row]:
    return [row for row in rows if row["task"] == task]


def missing(suite: Suite) -> str:
    return f"No rows are stored yet: `python -m experiments run --suite {suite.name}` makes them."


def task_title(task: str, measure: Measure) -> str:
    has_unit = measure.decimals is None and unit(task) is not None
    return f"{task} ({unit(task)})" if has_unit else task


def explained(tables: Sequence[str], rows: Sequence[Row]) -> str:
    """Tables of these rows, the notes on their marks, what failed, and under what conditions."""
    # A mark stands behind a blank: the square of a unit does not.
    notes = [note for note in NOTES if any(f" {note[0]}" in table for table in tables)]
    failed = failures(rows)
    parts = [*tables, "  \n".join(notes), f"Failed runs:\n\n{failed}" if failed else ""]
    return "\n\n".join(part for part in [*parts, conditions(rows)] if part)


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
    installed = {
        (name, str(version))
        for row in rows
        for name, version in cast(dict[str, JSON], row["versions"]).items()
        if version is not None
    }
    seen: dict[str, list[str]] = {}
    for name, version in sorted(installed):
        seen.setdefault(name, []).append(version)
    listed = ", ".join(f"{name} {' and '.join(versions)}" for name, versions in seen.items())
    ends = sorted({f"{min(rates):.0f}", f"{max(rates):.0f}"}, key=float) if rates else []
    speed = f" of {' to '.join(ends)} GFLOP/s (dgemm)" if ends else ""
    return (
        f"{len(rows)} runs, each a process of its own, with "
        f"{' or '.join(str(t) for t in threads)} thread{'s' * (threads != [1])}, "
        f"on cores{speed}; {listed}."
    )


def _setting(row: Row, key: str) -> JSON:
    return cast(dict[str, JSON], row["settings"]).get(key)
