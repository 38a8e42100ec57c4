"""Cells of tables: the mean ± standard error of one measure over splits, and which cells are bold.

Bold are the best mean of a column and every mean within one standard error (that of the best) of
it; a method that failed on some split, or lacks one, is never bold. If methods have different
numbers of splits, they are compared on the splits that all of them have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from experiments.runner.store import Row


@dataclass(frozen=True)
class Measure:
    """A field of the rows, and how to print it.

    Args:
        field: its name.
        title: what the table is called, with the unit if it is not the target's.
        decimals: after the point; ``None`` for three significant digits of the best, in the units
            of the target.
        better: which mean is best; ``None`` marks nothing.
        nominal: the best mean, if that is a nominal one.
    """

    field: str
    title: str
    decimals: int | None = None
    better: Literal["lower", "higher", "nominal"] | None = "lower"
    nominal: float = 0.95

    def badness(self, mean: float) -> float:
        """What the best mean of a column has the least of."""
        return {"higher": -mean, "nominal": abs(mean - self.nominal)}.get(self.better or "", mean)


MEASURES: Mapping[str, Measure] = {
    measure.field: measure
    for measure in (
        Measure("rmse", "RMSE, in the units of the target"),
        Measure("crps", "CRPS, in the units of the target"),
        Measure("nll", "Negative log density, nats a row, in the units of the target", 3),
        Measure("coverage95", "Coverage of the 95 % interval", 3, "nominal"),
        Measure("rmse_sd", "RMSE, in standard deviations of the target", 3),
        Measure("nll_sd", "Negative log density, nats a row, of the standardised target", 3),
        Measure("coverage50", "Coverage of the 50 % interval", 3, "nominal", 0.5),
        Measure("coverage80", "Coverage of the 80 % interval", 3, "nominal", 0.8),
        Measure("coverage99", "Coverage of the 99 % interval", 3, "nominal", 0.99),
        Measure("largest_z", "Largest error, in the scales of its own distribution", 1, None),
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


def value_of(row: Row, field: str) -> float | None:
    """A field of a row, or a score in standard deviations of the training targets."""
    if not field.endswith("_sd"):
        return cast(float | None, row.get(field))
    value, variance = row.get(field.removesuffix("_sd")), row.get("target_variance")
    if not isinstance(value, float) or not isinstance(variance, float):
        return None
    return value - 0.5 * math.log(variance) if field == "nll_sd" else value / math.sqrt(variance)


@dataclass(frozen=True)
class Cell:
    """One measure of one method on one task, over splits.

    Args:
        by_split: the value of every split that succeeded, and has the field.
        errors: how many splits ended in which kind of error.
        unconverged: whether training had not converged on some split when its time was over.
        stale: whether some row was made with an older default of this library.
    """

    by_split: Mapping[int, float]
    errors: Counter[str]
    unconverged: bool = False
    stale: bool = False

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
    known = [row for row in rows if row["error"] is None and value_of(row, field) is not None]
    values = {cast(int, row["split"]): cast(float, value_of(row, field)) for row in known}
    errors = Counter(str(row["error"]).split(":")[0] for row in rows if row["error"] is not None)
    unconverged = any(_unconverged(row) for row in known)
    return Cell(values, errors, unconverged, any(row.get("stale") is True for row in known))


def _unconverged(row: Row) -> bool:
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
"""From here on, numbers are printed in scientific notation: something broke."""


@dataclass(frozen=True)
class Format:
    """How the numbers of a column are printed: in powers of ten, with so many decimals."""

    power: int
    decimals: int

    def __call__(self, value: float) -> str:
        scaled = value / 10.0**self.power
        return f"{scaled:.{self.decimals}f}" if abs(scaled) < BEYOND else f"{scaled:.0e}"


def format_of(column: Mapping[str, Cell], measure: Measure) -> Format:
    """Three significant digits of the smallest mean, unless the measure has decimals."""
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
    if cell.unconverged:
        text += " †"
    if cell.stale:
        text += " ‡"
    if len(cell.values) < n_splits:
        text += f" ({len(cell.values)} of {n_splits}{'; ' + reason if reason else ''})"
    return text
