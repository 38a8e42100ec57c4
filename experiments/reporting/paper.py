"""The paper's experiments as tables: our rows, and beside them what the paper prints.

Also the cells in which RWF is best, counted, and anchors: errors that a baseline must reach before
anything may be compared with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.reporting.cells import MEASURES, Cell, best_cells, cell_of
from experiments.reporting.labels import plain_label
from experiments.reporting.printed import printed, printed_methods
from experiments.reporting.tables import (
    Column,
    column_of,
    explained,
    markdown,
    missing,
    of_task,
    present,
    task_title,
)
from experiments.runner.plan import Suite, load_suite
from experiments.runner.store import RESULTS, Row

SCORES = ("rmse", "crps", "nll")
"""What the paper prints, and what is counted."""

COUNTED = (
    "rwf",
    "rff",
    "exact5k-se",
    "exact5k-matern32",
    "svgp",
    "sm",
    "ns-gp",
    "dgp",
    "drf",
    "idd-gp",
    "a-rkhs",
)
"""The paper's ten methods; ours is the default, and the exact GP has two kernels."""

TIMIT = "timit-mel-bin"
"""What only the paper has numbers of."""

SPEECH = ("audiomnist-mel-bin", "audiomnist-mel-pca", "timit-sample-mel-bin")
TABLES = (
    "energy",
    "concrete",
    "airfoil",
    "stock_aerospace",
    "motion_cmu35",
    "kin8nm",
    "naval",
)

TEN = ("five-plateaus", *TABLES, "protein", "audiomnist-mel-bin")
"""One task for each of the ten that the paper prints; the noise of its steps it does not name."""

NON_STATIONARY = ("ns-gp", "dgp", "drf", "idd-gp", "a-rkhs")
"""Baselines that can behave differently in different places, by their formulas."""

STATIONARY_BELOW = 0.01
"""The index of stationarity below which our kernel is called stationary, on a task."""


@dataclass(frozen=True)
class Anchor:
    """An error that a baseline must stay below on a table, or a method that it must be ahead of."""

    method: str
    task: str
    limit: float | str


ANCHORS = (
    Anchor("dgp", "kin8nm", 0.072),
    Anchor("svgp", "protein", 4.4),
    Anchor("exact5k-matern32", "energy", 0.40),
    Anchor("sm", "airfoil", 1.8),
    Anchor("drf", "protein", 4.7),
    Anchor("ns-gp", "five-plateaus", "exact5k-se"),
    Anchor("idd-gp", "five-plateaus", "exact5k-se"),
    Anchor("idd-gp", "five-plateaus-quiet", "exact5k-se"),
    Anchor("a-rkhs", "five-plateaus", "exact5k-se"),
    Anchor("a-rkhs", "five-plateaus-quiet", "exact5k-se"),
)


def experiment(name: str, *tasks: str) -> Callable[[Path], str]:
    """Tables of one experiment: a measure each, the paper's numbers in columns of their own."""

    def build(results: Path) -> str:
        suite, rows = stored(results)
        rows = [row for row in rows if row["task"] in tasks]
        if not rows:
            return missing(suite)
        parts = [table(suite, rows, name, tasks, field) for field in (*SCORES, "coverage95")]
        parts += [table(suite, rows, name, tasks, "fit_cpu_seconds")]
        return explained(parts, rows)

    return build


def stored(results: Path = RESULTS) -> tuple[Suite, list[Row]]:
    """The suite, and its rows."""
    suite = load_suite("paper")
    return suite, suite.rows(results)


def table(suite: Suite, rows: Sequence[Row], name: str, tasks: Sequence[str], field: str) -> str:
    """One measure of an experiment."""
    measure = MEASURES[field]
    names = present(rows, suite.all_methods)
    columns = []
    for task in tasks:
        title = task_title(task, measure)
        n_splits = _n_splits(suite, task)
        columns.append(column_of(of_task(rows, task), measure, names, title, n_splits))
        beside = printed(name, task, field)
        columns += [Column(f"{task}, as printed", beside)] if beside else []
    return f"**{measure.title}**\n\n{markdown(names, columns)}"


def printed_alone(name: str) -> Callable[[Path], str]:
    """The paper's numbers without ours, for data that we do not have."""

    def build(results: Path) -> str:
        columns = [
            Column(f"{field.upper()}, as printed", printed(name, TIMIT, field)) for field in SCORES
        ]
        of = printed_methods(name, "rmse")
        return markdown([m for m in load_suite("paper").methods if m in of], columns)

    return build


def count(results: Path) -> str:
    """In how many cells RWF is best or tied, task by task, and how often it is the fastest.

    A task counts on the splits for which every method has a row: being the best of a few methods
    means little. The fastest of the non-stationary methods it can be only where its own kernel is
    not stationary.
    """
    suite, rows = stored(results)
    tasks = [task for task in suite.tasks if of_task(rows, task)]
    if not tasks:
        return missing(suite)
    lines = [
        "| task | splits | RMSE | CRPS | NLL | CPU seconds, RWF | next non-stationary | kernel |",
        "|---" * 8 + "|",
    ]
    best: dict[str, int] = {}
    kernels: list[str] = []
    n_fastest = 0
    for task in tasks:
        shared = _on_shared_splits(of_task(rows, task))
        if not shared:
            lines.append(f"| {task} | not all methods yet | – | – | – | – | – | – |")
            continue
        winners = [_winners(shared, field) for field in SCORES]
        own, (seconds, rival) = _times(shared)
        best[task] = sum("rwf" in names for names in winners)
        kernels.append(kernel_of(shared))
        n_fastest += own <= seconds and kernels[-1] == "non-stationary"
        cells = ["**RWF**" if "rwf" in names else _listed(names) for names in winners]
        other = f"{seconds:.1f} ({_short(rival)})" if rival else "–"
        n_splits = len({row["split"] for row in shared})
        lines.append(
            f"| {task} | {n_splits} | {' | '.join(cells)} | {own:.1f} | {other} | {kernels[-1]} |"
        )
    ten = [task for task in TEN if task in best]
    summary = (
        f"On the {len(best)} of {len(suite.tasks)} tasks that have rows of all methods, RWF with "
        f"default settings is best or tied in **{sum(best.values())} of {3 * len(best)}** cells. "
        f"Its kernel is measured to be non-stationary on {kernels.count('non-stationary')} tasks, "
        f"and there it is the fastest of the non-stationary methods on {n_fastest}. Of the paper's "
        f"ten tasks ({', '.join(TEN)}), {len(ten)} are among them; RWF is best or tied in "
        f"**{sum(best[task] for task in ten)} of {3 * len(ten)}** cells."
    )
    return summary + "\n\n" + "\n".join(lines)


def kernel_of(rows: Sequence[Row]) -> str:
    """What the index of stationarity says of our kernel in these rows."""
    facts = [row["facts"] for row in rows if row["method"] == "rwf"]
    known = [fact.get("stationarity") for fact in facts if isinstance(fact, dict)]
    indices = [index for index in known if isinstance(index, float)]
    if not indices:
        return "not measured"
    return "stationary" if np.mean(indices) < STATIONARY_BELOW else "non-stationary"


def _on_shared_splits(rows: Sequence[Row]) -> list[Row]:
    """Rows of the splits on which every counted method has one, if only a failure."""
    splits = [{row["split"] for row in rows if row["method"] == name} for name in COUNTED]
    return [row for row in rows if row["split"] in set.intersection(*splits)]


def _winners(rows: Sequence[Row], field: str) -> set[str]:
    cells = {
        name: cell_of([row for row in rows if row["method"] == name], field) for name in COUNTED
    }
    return best_cells(cells, MEASURES[field])


def _listed(names: set[str]) -> str:
    """One or two names, or the first of more and their number: a column is narrow."""
    short = [*dict.fromkeys(_short(name) for name in COUNTED if name in names)]
    return " and ".join(short) if len(short) <= 2 else f"{short[0]} and {len(short) - 1} more"


def _short(name: str) -> str:
    """The label of a method without its details."""
    return re.split(r",| \(", plain_label(name))[0]


def _times(rows: Sequence[Row]) -> tuple[float, tuple[float, str]]:
    """Mean CPU seconds of RWF, and the least among the other non-stationary methods."""
    means = {
        name: cell_of([row for row in rows if row["method"] == name], "fit_cpu_seconds").mean
        for name in ("rwf", *NON_STATIONARY)
    }
    own = means.pop("rwf")
    others = {name: value for name, value in means.items() if np.isfinite(value)}
    rival = min(others, key=lambda name: others[name], default="")
    return own, (others.get(rival, np.inf), rival)


def anchors(results: Path) -> str:
    """The errors that baselines must reach, and those that they reach."""
    _, rows = stored(results)
    lines = ["| baseline | table | at most | RMSE | splits | lowest of a split |", "|---" * 6 + "|"]
    for anchor in ANCHORS:
        cell = _errors(rows, anchor.task, anchor.method)
        limit = f"{anchor.limit:g}" if isinstance(anchor.limit, float) else ""
        if isinstance(anchor.limit, str):
            other = _errors(rows, anchor.task, anchor.limit).on(cell.by_split)
            limit = f"{other.mean:.4g} ({plain_label(anchor.limit)})"
        lines.append(f"| {plain_label(anchor.method)} | {anchor.task} | {limit} | {_seen(cell)} |")
    return "\n".join(lines)


def behind_a_line(results: Path) -> str:
    """Which methods have a greater RMSE than least squares on the splits that both have."""
    suite, rows = stored(results)
    lines = [
        "| task | method | RMSE | least squares | difference | splits |",
        "|---" * 6 + "|",
    ]
    for task in suite.tasks:
        line = _errors(rows, task, "linear")
        for method in suite.methods:
            own = _errors(rows, task, method)
            shared = sorted(set(own.by_split) & set(line.by_split))
            if method in ("linear", "constant") or not shared:
                continue
            excess = Cell({k: own.by_split[k] - line.by_split[k] for k in shared}, Counter())
            if excess.mean > 0:
                both = f"{own.on(shared).mean:.3g} | {line.on(shared).mean:.3g}"
                error = f" ± {excess.standard_error:.2g}" if len(shared) > 1 else ""
                lines.append(
                    f"| {task} | {plain_label(method)} | {both} | {excess.mean:.2g}{error} | "
                    f"{len(shared)} |"
                )
    return "\n".join(lines)


def _errors(rows: Sequence[Row], task: str, method: str) -> Cell:
    """RMSE of a method on a task, split by split."""
    return cell_of([row for row in of_task(rows, task) if row["method"] == method], "rmse")


def _seen(cell: Cell) -> str:
    if not cell.values:
        return "– | 0 | –"
    return f"{cell.mean:.4g} | {len(cell.values)} | {min(cell.values):.4g}"


def _n_splits(suite: Suite, task: str) -> Callable[[str], int]:
    return lambda method: len(suite.splits_of(method, task))
