"""A run is data: one method on one split of one task, and the row of numbers it gives.

:func:`measure` does the work, in a process of its own (see :mod:`experiments.runner.session`), so
that peak memory and crashes belong to the run. A failure is a row too, with the same fields.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from experiments.baselines.standardized import (
    FunctionMethod,
    GroupMethod,
    Method,
    predicted_by,
)
from experiments.data.splits import Split
from experiments.data.table import Table
from experiments.data.tasks import problem
from experiments.runner.store import JSON, Row
from rwf._types import Array
from rwf.diagnostics.metrics import (
    LEVEL,
    METRICS,
    SKILLS,
    Distribution,
    MeanStd,
    calibration_curve,
    constant_reference,
    coverage,
    linear_reference,
    rmse,
)

SCORES = {
    "rmse": METRICS["rmse"],
    "crps": METRICS["crps"],
    "nll": METRICS["nll"],
    "coverage95": METRICS["coverage"],
    "width95": METRICS["width"],
    "calibration_error": METRICS["calibration_error"],
}
"""The metrics of a row under the names of its fields."""

INTERVALS = {"coverage50": 0.5, "coverage80": 0.8, "coverage99": 0.99}
"""Further coverages of central intervals, by the names of their fields."""

SKILL_FIELDS = tuple(
    f"{name}_skill_{reference}" for reference in ("constant", "linear") for name in SKILLS
)
FUNCTION_SCORES = ("rmse_f", "coverage95_f")
"""Scores against the noiseless values, null where these are not known."""

COSTS = ("fit_seconds", "fit_cpu_seconds", "predict_seconds", "peak_memory_mb")
SIZES = ("n_train", "n_test", "n_inputs", "target_variance")
MEASURED = (
    *SCORES, *INTERVALS, "largest_z", *FUNCTION_SCORES, *SKILL_FIELDS,
    "coverages", *COSTS, *SIZES, "facts",
)  # fmt: skip
"""The fields that a run measures; all are null where it failed."""


@dataclass(frozen=True)
class Run:
    """One method on one split of one task.

    Args:
        task: as :func:`experiments.data.tasks.problem` knows it.
        method: as :data:`experiments.runner.methods.METHODS` knows it, or ``module:factory``.
        split: the number of the split, and the seed of the method.
        settings: parameters that differ from the method's own.
    """

    task: str
    method: str
    split: int
    settings: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A name that depends on nothing but the fields, whatever the order of settings."""
        fields = [self.task, self.method, self.split, dict(self.settings)]
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def row_of(run: Run, outcome: Mapping[str, JSON], session: Mapping[str, JSON]) -> Row:
    """The row of a run: the run itself, its measurements or its error, and its conditions.

    Args:
        run: the run.
        outcome: the fields of :data:`MEASURED`, or only ``error``.
        session: what all runs of a session share: threads, the machine's rate, versions.
    """
    identity: Row = {
        "key": run.key,
        "task": run.task,
        "method": run.method,
        "split": run.split,
        "settings": dict(run.settings),
        "error": None,
    }
    return {**identity, **dict.fromkeys(MEASURED), **outcome, **session}


def measure(run: Run) -> Row:
    """Fit, predict and score; whatever goes wrong becomes ``{"error": ...}``."""
    try:
        return _measured(run, *problem(run.task, run.split))
    except Exception as error:  # noqa: BLE001 - a failure is a row with its message
        return {"error": f"{type(error).__name__}: {error}"}


def _measured(run: Run, table: Table, rows: Split) -> Row:
    from experiments.runner.methods import make

    X, y = table.X[rows.train], table.y[rows.train]
    X_test, y_test = table.X[rows.test], table.y[rows.test]
    method = make(run.method, run.settings, run.split)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        begun, cpu_begun = time.perf_counter(), time.process_time()
        if not isinstance(method, GroupMethod):
            method.fit(X, y)
        elif table.groups is not None:
            method.fit_groups(X, y, table.groups[rows.train])
        else:
            raise ValueError(f"{run.task} has no groups: use another method than {run.method}.")
        fitted, cpu_fitted = time.perf_counter(), time.process_time()
        prediction = predicted_by(method, X_test)
        predicted = time.perf_counter()
    costs = (fitted - begun, cpu_fitted - cpu_begun, predicted - fitted, peak_memory_mb())
    sizes: tuple[JSON, ...] = (len(y), len(y_test), X.shape[1], float(y.var()))
    seen = sorted({f"{w.category.__name__}: {w.message}"[:300] for w in raised})
    references = {
        "constant": constant_reference(y, len(y_test)),
        "linear": linear_reference(X, y, X_test),
    }
    return {
        **scores(y_test, prediction, references),
        **function_scores(
            method, X_test, prediction.mean, None if table.f is None else table.f[rows.test]
        ),
        **dict(zip(COSTS, costs, strict=True)),
        **dict(zip(SIZES, sizes, strict=True)),
        "facts": plain({**method.facts(), "warnings": seen}),
    }


def scores(y: Array, prediction: Distribution, references: Mapping[str, MeanStd]) -> Row:
    """Every metric of a prediction, its skill over each reference, and its calibration curve.

    The largest z is that of one row, in units of the scale of its own distribution.
    """
    row: Row = {name: metric(y, prediction) for name, metric in SCORES.items()}
    for name, level in INTERVALS.items():
        row[name] = coverage(y, prediction, level=level)
    row["largest_z"] = float(np.abs(prediction.standardized(y)).max())
    for label, reference in references.items():
        for name, skill in SKILLS.items():
            row[f"{name}_skill_{label}"] = skill(y, prediction, reference)
    row["coverages"] = [float(share) for share in calibration_curve(y, prediction)]
    return row


def function_scores(method: Method, X: Array, mean: Array, f: Array | None) -> Row:
    """Error in the noiseless f, and coverage of its 95 % interval.

    Both are null where f is not known, and coverage also for a method that gives no error bars
    for f. An error bar may be zero here: it holds f only where the mean is f.
    """
    if f is None:
        return dict.fromkeys(FUNCTION_SCORES)
    if not isinstance(method, FunctionMethod):
        return {"rmse_f": rmse(f, mean), "coverage95_f": None}
    mean, std = method.predict_function(X)
    covered = np.abs(f - mean) <= ndtri((1 + LEVEL) / 2) * std
    return {"rmse_f": rmse(f, mean), "coverage95_f": float(np.mean(covered))}


def peak_memory_mb() -> float:
    """The largest resident size that this process has had, in megabytes."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)  # bytes there, kilobytes elsewhere


def plain(value: object) -> JSON:
    """Numbers, strings and containers as JSON has them; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
