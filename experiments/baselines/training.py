"""Training within a budget of time: several starts share it, each takes a few windows of steps,
and the best of them goes on. See :mod:`experiments.baselines.optimisers` for the steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from experiments.baselines.optimisers import AdamRun, Candidate, LBFGSRun, Schedule

BUDGET = 360.0
"""Seconds of a fit on one core, which are three minutes of two, unless settings give another."""

SHARE = 0.5
"""The part of the budget that several starts may use up before the best of them goes on."""

M = TypeVar("M")


@dataclass(frozen=True)
class Report:
    """How a training ended.

    Args:
        converged: whether it converged within its budget.
        steps: of the start that was kept.
        seconds: of all starts.
        loss: what was watched, in its best window.
        setbacks: steps without a finite loss, after which the best window's parameters came back.
        by_start: what was watched, of each start after its short run.
    """

    converged: bool
    steps: int
    seconds: float
    loss: float
    setbacks: int
    by_start: tuple[float, ...]

    def facts(self) -> Mapping[str, object]:
        """The report as facts of a row."""
        return {
            "converged": self.converged,
            "steps": self.steps,
            "training_seconds": round(self.seconds, 2),
            "loss": self.loss,
            "setbacks": self.setbacks,
            "loss_by_start": list(self.by_start),
        }


def train(
    make: Callable[[int], Candidate[M]],
    budget: float = BUDGET,
    schedule: Schedule | None = None,
    n_starts: int = 1,
) -> tuple[M, Report]:
    """The best of several starts, trained until it converges or the budget is over.

    Args:
        make: the candidate of a start, given its number from 0 on.
        budget: seconds of wall-clock time for all starts together.
        schedule: steps of Adam; by default :class:`Schedule`'s own numbers.
        n_starts: how many candidates compete. The lowest of what is watched wins.
    """
    schedule = schedule or Schedule()
    begun = time.perf_counter()
    runs: list[AdamRun[M] | LBFGSRun[M]] = []
    for k in range(n_starts):
        candidate = make(k)
        runs.append((LBFGSRun if candidate.smooth else AdamRun)(candidate, schedule))
        if n_starts > 1:
            runs[-1].go(begun + budget * SHARE * (k + 1) / n_starts, schedule.short)
    by_start = tuple(run.lowest for run in runs) if n_starts > 1 else ()
    best = min(runs, key=lambda run: run.lowest)
    best.go(begun + budget)
    if not math.isfinite(best.lowest):
        raise FloatingPointError(
            f"training fails from all of {n_starts} starts: {best.stuck}. "
            "Lower the rate, or look for non-finite inputs."
        )
    best.restore()
    seconds = time.perf_counter() - begun
    report = Report(
        best.converged, best.steps, seconds, best.lowest, best.setbacks, by_start or (best.lowest,)
    )
    return best.candidate.model, report
