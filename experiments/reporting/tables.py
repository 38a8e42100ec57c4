"""Markdown tables from stored rows: methods by tasks, or by the values of a setting.

Nothing is computed but means and standard errors: see :mod:`experiments.reporting.cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from experiments.data.tasks import unit
from experiments.reporting.cells import (
    MEASURES,
    Cell,
    Measure,
    best_cells,
    cell_of,
    cell_text,
    format_of,
)
from experiments.reporting.labels import LABELS, NOTES
from experiments.reporting.printed import printed, printed_methods
from experiments.runner.plan import Suite
from experiments.runner.store import JSON, Row


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and the printed cell of every method."""

    title: str
    entries: Mapping[str, str]


def column_of(
    rows: Sequence[Row],
    measure: Measure,
    names: Sequence[str],
    title: str,
    n_splits: Callable[[str], int],
) -> Column:
    """One column of a table.

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
    """Printed cells, the best in bold; arguments as in :func:`column_of`."""
    form, best = format_of(cells, measure), best_cells(cells, measure)
    return Column(
        title + (f", 1e{form.power}" if form.power else ""),
        {name: cell_text(cell, form, n_splits(name), name in best) for name, cell in cells.items()},
    )


def present(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The methods that have rows, in order."""
    return [name for name in names if any(row["method"] == name for row in rows)]


def markdown(names: Sequence[str], columns: Sequence[Column], corner: str = "method") -> str:
    """A table of methods, or of what the corner names, by columns."""
    titles = [column.title for column in columns]
    lines = [f"| {corner} | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    lines += [
        f"| {LABELS.get(name, name)} | "
        + " | ".join(column.entries.get(name, "–") for column in columns)
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

    def n_splits(task: str) -> Callable[[str], int]:
        return lambda method: len(suite.splits_of(method, task))

    axis = next((key for key, values in suite.grid.items() if len(values) > 1), None)
    if axis is None:
        names, columns = present(rows, suite.all_methods), []
        for task in suite.tasks:
            title = task_title(task, measure)
            own = column_of(of_task(rows, task), measure, names, title, n_splits(task))
            beside = printed(f"suite-{suite.name}", task, field)
            columns.append(Column(own.title, {**own.entries, **beside}))
        names += printed_methods(f"suite-{suite.name}", field)
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
            groups["default"] = [row for row in those if row["settings"] == {}]
        columns = [
            column_of(group, measure, names, title, n_splits(task))
            for title, group in groups.items()
        ]
        parts.append(f"**{measure.title}: {task_title(task, measure)}**")
        parts.append(markdown(names, columns))
    return "\n\n".join(parts)


def _values_by_tasks(suite: Suite, rows: Sequence[Row], measure: Measure, axis: str) -> str:
    """The values of a setting by tasks, for a suite with one method."""
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
    """Tables of these rows, their footnotes, failed runs, and the conditions of the runs."""
    # A footnote mark follows a blank; the square of a unit does not.
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
    """The conditions of the runs, in one sentence."""
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
        f"{len(rows)} runs, each in its own process, with "
        f"{' or '.join(str(t) for t in threads)} thread{'s' * (threads != [1])}, "
        f"on cores{speed}; {listed}."
    )


def _setting(row: Row, key: str) -> JSON:
    return cast(dict[str, JSON], row["settings"]).get(key)
