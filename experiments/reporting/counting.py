"""In how many cells a method of ours wins: strictly, tied, and by a paired test over splits.

A cell is a task and a score. It is strictly won by the best mean; tied, if another mean is best and
ours within one standard error; and surely won, or lost, if the differences to the best of the
others, split by split, have a t beyond its 2.5 % tail. Every cell counts the splits that all of the
compared methods have. Ours is counted with the neighbour blend, and without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from experiments.reporting.cells import MEASURES, Cell, Measure, best_cells, cell_of
from experiments.reporting.labels import plain_label
from experiments.reporting.tables import missing, of_task
from experiments.runner.default import OURS
from experiments.runner.plan import load_suite
from experiments.runner.store import Row

VARIANTS = ("rwf", "rwf-alone")
"""Ours, with the neighbour blend and without."""

LEVEL = 0.05
"""Of the paired test, which has two sides."""


@dataclass(frozen=True)
class Verdict:
    """How a method did in one cell.

    Args:
        strict: whether its mean is the best.
        tied: whether another's is, by no more than one standard error.
        t: of the differences to the best of the others, positive where ours is better; NaN with
            fewer than two splits.
        n_splits: of the comparison.
        rival: the best of the others.
    """

    strict: bool
    tied: bool
    t: float
    n_splits: int
    rival: str

    @property
    def sure(self) -> int:
        """1 for a win by the paired test, -1 for a loss, 0 for neither."""
        if self.n_splits < 2 or np.isnan(self.t):
            return 0
        beyond = abs(self.t) > stdtrit(self.n_splits - 1, 1 - LEVEL / 2)
        return int(np.sign(self.t)) * int(beyond)


def verdict(column: Mapping[str, Cell], own: str, measure: Measure) -> Verdict | None:
    """How one method did in a column; ``None`` if it or all others have no common splits."""
    whole = {name: cell for name, cell in column.items() if cell.values and not cell.errors}
    if own not in whole or len(whole) < 2:
        return None
    shared = set.intersection(*(set(cell.by_split) for cell in whole.values()))
    if not shared:
        return None
    cells = {name: cell.on(shared) for name, cell in whole.items()}
    badness = {name: measure.badness(cell.mean) for name, cell in cells.items()}
    rival = min((name for name in badness if name != own), key=lambda name: badness[name])
    strict = badness[own] < badness[rival]
    tied = not strict and own in best_cells(column, measure)
    splits = sorted(shared)
    gains = [
        measure.badness(cells[rival].by_split[k]) - measure.badness(cells[own].by_split[k])
        for k in splits
    ]
    return Verdict(strict, tied, paired_t(gains), len(splits), rival)


def paired_t(differences: Sequence[float]) -> float:
    """The mean over its standard error; infinite if all are the same, and not zero."""
    if len(differences) < 2:
        return float("nan")
    mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
    if error == 0:
        return float(np.copysign(np.inf, mean)) if mean != 0 else 0.0
    return float(mean / error)


def verdicts(
    rows: Sequence[Row],
    tasks: Sequence[str],
    own: str,
    rivals: Sequence[str],
    fields: Sequence[str],
) -> dict[tuple[str, str], Verdict]:
    """The verdict of every cell, by task and field, that can be judged."""
    found = {}
    for task in tasks:
        for field in fields:
            column = {
                name: cell_of([r for r in of_task(rows, task) if r["method"] == name], field)
                for name in (own, *rivals)
            }
            judged = verdict(column, own, MEASURES[field])
            if judged is not None:
                found[task, field] = judged
    return found


def summary(by_variant: Mapping[str, Mapping[tuple[str, str], Verdict]]) -> str:
    """A line for each variant of ours: how many cells it wins, and how."""
    lines = [
        "| method | cells | strictly best | tied | ahead of all others, p < 5 % | behind one, "
        "p < 5 % |",
        "|---" * 6 + "|",
    ]
    for name, found in by_variant.items():
        all_of = found.values()
        lines.append(
            f"| {plain_label(name)} | {len(found)} | {sum(v.strict for v in all_of)} | "
            f"{sum(v.tied for v in all_of)} | {sum(v.sure > 0 for v in all_of)} | "
            f"{sum(v.sure < 0 for v in all_of)} |"
        )
    return "\n".join(lines)


def section(
    suite_name: str, *fields: str, rivals: Sequence[str] | None = None
) -> Callable[[Path], str]:
    """The counts of a suite, against all methods that are not ours, or against some."""

    def build(results: Path) -> str:
        suite = load_suite(suite_name)
        rows = suite.rows(results)
        own = [name for name in VARIANTS if any(row["method"] == name for row in rows)]
        if not own:
            return missing(suite)
        others = [
            name
            for name in (rivals or suite.all_methods)
            if name.split("-")[0] not in OURS or (rivals is not None and name not in VARIANTS)
        ]
        by_variant = {name: verdicts(rows, suite.tasks, name, others, fields) for name in own}
        ours = [row for row in rows if row["method"] in own]
        stale = any(row.get("stale") is True for row in ours)
        note = "\n\nSome of these rows were made with an older default of this library."
        return summary(by_variant) + note * stale

    return build
