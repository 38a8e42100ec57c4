"""Maxima of smooth functions within bounds, by L-BFGS from several starting points.

The evidence is multimodal for wavelets and Fourier features alike: a single starting point finds
whatever it favours. All trials are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, minimize

from rwf._types import Array
from rwf.linalg.threads import dispatched, has_workers, in_parallel, one_blas_thread

Objective = Callable[[Array], tuple[float, Array]]  # x ↦ (f(x), ∇f(x))


@dataclass(frozen=True)
class Maximum:
    """A local maximum, and what it took to find it."""

    x: Array  # the highest point found, shape (k,)
    value: float  # f(x)
    iterations: int  # steps taken
    evaluations: int  # how often f and its gradient were computed


def maximize(
    objective: Objective,
    start: Array,
    bounds: Array,
    *,
    max_iter: int,
    ftol: float,
    gtol: float,
    corrections: int,
) -> Maximum:
    """A local maximum near the start, which is first moved into the bounds, shape (k, 2).

    L-BFGS stops when a step gains less than ``ftol``, relative to the value, or no entry of the
    gradient exceeds ``gtol``; ``corrections`` is its memory in steps.
    """
    low, high = bounds.T

    def descent(x: Array) -> tuple[float, Array]:
        value, gradient = objective(x)
        return -value, -gradient

    result = minimize(
        descent,
        np.clip(start, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options={"maxiter": max_iter, "maxcor": corrections, "ftol": ftol, "gtol": gtol},
    )
    return Maximum(result.x, -float(result.fun), int(result.nit), int(result.nfev))


Progress = Callable[[str], None]
Point = TypeVar("Point")


@dataclass(frozen=True)
class Trial:
    """The result of one trial: of initial values, or of a way to tie prior variances."""

    log_evidence_per_row: float  # what it reached
    iterations: int  # steps it took
    seconds: float  # wall-clock seconds
    chosen: bool = False  # whether it is the one that was kept
    at_bounds: tuple[str, ...] = ()  # parameters that ended on their bounds
    name: str = ""  # what was tried, if not just other initial values
    # log density per row of rows that were kept back, where these decided
    held_out: float | None = None

    @property
    def line(self) -> str:
        """What was tried, and how it predicted rows that were kept back."""
        density = "" if self.held_out is None else f"held-out log density {self.held_out:.4f}"
        return f"{self.name}: {density}"


def maximize_log_evidence(
    objective: Objective, max_iter: int, *parameters: tuple[str | Sequence[str], Array, ArrayLike]
) -> tuple[Array, Trial]:
    """L-BFGS on a log evidence per row.

    Parameters are a name for all or for each, initial values, and bounds.
    """
    start = np.concatenate([values for _, values, _ in parameters])
    bounds = np.vstack([np.broadcast_to(limits, (len(v), 2)) for _, v, limits in parameters])
    names = [
        f"{name if isinstance(name, str) else name[i]} {i}"
        for name, values, _ in parameters
        for i in range(len(values))
    ]
    begun = time.perf_counter()
    with one_blas_thread():
        top = maximize(
            objective, start, bounds, max_iter=max_iter, ftol=1e-9, gtol=1e-6, corrections=20
        )
    seconds = time.perf_counter() - begun
    at_bounds = names_at_bounds(top.x, bounds, names)
    return top.x, Trial(top.value, top.iterations, seconds, at_bounds=at_bounds)


def best_of(
    initial: Sequence[Point],
    maximize_evidence: Callable[[Point, int], tuple[Point, Trial]],
    *,
    max_iter: int,
    share: int,
    progress: Progress,
) -> tuple[Point, list[Trial]]:
    """The highest maximum that any trial finds, each from its initial value.

    ``maximize_evidence`` goes from a point, with so many iterations, to a higher one. Every trial
    has max_iter/share iterations, and the best one has the rest.
    """
    budget = max_iter if len(initial) == 1 else max(1, max_iter // share)

    def attempt(point: Point) -> tuple[Point, Trial]:
        return maximize_evidence(point, budget)

    def shown(index: int, found: tuple[Point, Trial]) -> tuple[Point, Trial]:
        report = found[1]
        progress(
            f"trial {index + 1}/{len(initial)}: log evidence {report.log_evidence_per_row:.4f} per "
            f"row, {report.iterations} iterations, {report.seconds:.1f} s"
        )
        return found

    if has_workers():
        tried = [shown(index, found) for index, found in enumerate(dispatched(attempt, initial))]
    else:
        tried = in_parallel(
            lambda index: shown(index, attempt(initial[index])), range(len(initial))
        )
    best = int(np.argmax([report.log_evidence_per_row for _, report in tried]))
    point, report = tried[best]
    if len(initial) > 1 and report.iterations >= budget:
        point, more = maximize_evidence(point, max_iter - budget)
        report = replace(
            more,
            iterations=report.iterations + more.iterations,
            seconds=report.seconds + more.seconds,
        )
        progress(f"best trial continued: log evidence {report.log_evidence_per_row:.4f} per row")
    reports = [r for _, r in tried]
    reports[best] = replace(report, chosen=True)
    return point, reports


def names_at_bounds(v: Array, bounds: Array, names: list[str]) -> tuple[str, ...]:
    """Which parameters ended on their bounds."""
    low, high = np.isclose(v, bounds[:, 0]), np.isclose(v, bounds[:, 1])
    return tuple(
        f"{name} at its {'lower' if low[i] else 'upper'} bound"
        for i, name in enumerate(names)
        if low[i] or high[i]
    )
