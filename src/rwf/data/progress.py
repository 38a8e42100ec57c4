"""Progress: stages of a fit, how far passes over rows are, and the time left."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TextIO

REPORT_SECONDS = 5.0  # seconds between two lines of progress
PATIENCE, TICK = 2.0, 0.25  # seconds before a bar is shown, and between two drawings of it
WIDTH = 30  # characters of a bar of plain text

Progress = Callable[[str], None]


class Stage(str):
    """The message that a stage begins, with the share of a fit that is usually done by then."""

    done: float

    def __new__(cls, name: str, done: float) -> Stage:
        stage = super().__new__(cls, name)
        stage.done = done
        return stage


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


@dataclass
class Stopwatch:
    """Wall-clock seconds by stage, which add up to the whole; messages are passed on."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    stage: str = "sample"
    begun: float = field(default_factory=time.perf_counter)

    def __call__(self, message: str) -> None:
        if isinstance(message, Stage):
            self.lap()
            self.stage = str(message)
        self.progress(message)

    def lap(self) -> None:
        """Count the time since the last lap for the stage."""
        now = time.perf_counter()
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + now - self.begun
        self.begun = now


class Bar:
    """The stage of a fit and the time left, on one line of a terminal, if it takes longer.

    Where the time left is not known, the time so far is shown.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.perf_counter) -> None:
        self._stream, self._clock, self._begun = stream, clock, clock()
        self._stage, self._total, self._stopped = "", float("inf"), Event()
        self._line: _PlainLine | _RichLine | None = None
        self._thread = Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Bar:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        if self._line is not None:
            self._line.clear()

    def __call__(self, message: str) -> None:
        if isinstance(message, Stage):
            self._stage = str(message)
            if message.done > 0:
                self._total = (self._clock() - self._begun) / message.done

    def draw(self) -> None:
        """Draw the line, if it is time to."""
        elapsed = self._clock() - self._begun
        if elapsed < PATIENCE:
            return
        if self._line is None:
            self._line = _line_for(self._stream)
        left = self._total - elapsed
        known = 0 < left < float("inf")
        time_text = f"{_duration(left)} left" if known else f"{_duration(elapsed)} so far"
        self._line.show(f"{self._stage}, {time_text}", min(elapsed / self._total, 0.99))

    def _tick(self) -> None:
        while not self._stopped.wait(TICK):
            self.draw()


class _PlainLine:
    """A bar of plain characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._length = stream, 0

    def show(self, text: str, share: float) -> None:
        full = int(share * WIDTH)
        line = f"[{'#' * full}{'.' * (WIDTH - full)}] {text}"
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)

    def clear(self) -> None:
        self._stream.write("\r" + " " * self._length + "\r")
        self._stream.flush()


class _RichLine:
    """A bar as rich draws it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Display

        columns = BarColumn(WIDTH), TextColumn("{task.description}")
        self._display = Display(
            *columns, console=Console(file=stream), transient=True, auto_refresh=False
        )
        self._task = self._display.add_task("", total=1.0)
        self._display.start()

    def show(self, text: str, share: float) -> None:
        self._display.update(self._task, description=text, completed=share, refresh=True)

    def clear(self) -> None:
        self._display.stop()


def _line_for(stream: TextIO) -> _PlainLine | _RichLine:
    try:
        return _RichLine(stream)
    except ImportError:
        return _PlainLine(stream)


_ONE_BAR = Lock()  # of several fits at once, the first shows a bar


@contextmanager
def progress_of(name: str, verbose: int) -> Iterator[Progress]:
    """Lines on standard error if ``verbose``; else a bar there if it is a terminal."""
    stream = sys.stderr
    if verbose:
        yield lambda message: print(f"[{name}] {message}", file=stream)
    elif (
        stream is not None
        and stream.isatty()
        and multiprocessing.parent_process() is None
        and _ONE_BAR.acquire(blocking=False)
    ):
        try:
            with Bar(stream) as bar:
                yield bar
        finally:
            _ONE_BAR.release()
    else:
        yield silent
