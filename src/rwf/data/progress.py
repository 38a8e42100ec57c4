"""Progress of passes over rows: how many are done, how fast, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

REPORT_SECONDS = 5.0  # seconds between two lines of progress

Progress = Callable[[str], None]


def silent(message: str) -> None:
    """Report no progress."""


@dataclass
class ProgressMeter:
    """Reports now and then how far a pass over rows is, and how fast."""

    what: str  # name of the pass
    rows: int | None  # their number, if it is known
    progress: Progress  # called with a line of text
    first: int = 0  # rows that were there at the beginning
    begun: float = field(default_factory=time.perf_counter)
    reported: float = field(default_factory=time.perf_counter)

    def reached(self, done: int, *, finished: bool = False) -> None:
        """Report, if it is time to."""
        now = time.perf_counter()
        if not finished and (now - self.reported < REPORT_SECONDS or done == self.rows):
            return
        self.reported = now
        speed = (done - self.first) / max(now - self.begun, 1e-9)
        line = f"{self.what}: {done:,} rows"
        if self.rows is not None and not finished:
            line += f" of {self.rows:,}"
        line += f", {speed:,.0f} rows/s"
        if self.rows is not None and not finished and speed > 0:
            line += f", {_duration((self.rows - done) / speed)} left"
        self.progress(line)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
