"""Progress: seconds by stage, and a bar that appears late, on terminals alone."""

from __future__ import annotations

import io
import sys

import pytest

from rwf.data import progress
from rwf.data.progress import Bar, Stage, Stopwatch, progress_of


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


class Clock:
    """Seconds that pass when they are told to."""

    seconds = 100.0

    def __call__(self):
        return self.seconds


@pytest.fixture(params=["rich", "plain"])
def terminal(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "rich.console", None)
    else:
        pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "90")
    return Terminal()


def test_a_bar_has_the_stage_and_the_time_left_from_two_seconds_on(terminal):
    clock = Clock()
    bar = Bar(terminal, clock)
    bar(Stage("learning", 0.0))
    clock.seconds += 1.9
    bar.draw()
    assert terminal.getvalue() == ""
    clock.seconds += 0.2
    bar.draw()
    assert "learning" in terminal.getvalue()
    assert "left" not in terminal.getvalue()  # nothing is known yet
    assert "s so far" in terminal.getvalue()
    clock.seconds += 1.9
    bar(Stage("conditioning", 0.4))
    clock.seconds += 1.0
    bar.draw()
    assert "conditioning, 5 s left" in terminal.getvalue()
    bar("a message that begins no stage")
    clock.seconds += 10.0
    bar.draw()
    last = terminal.getvalue().split("conditioning")[-1]
    assert "left" not in last  # it takes longer than it usually does


def test_a_bar_leaves_an_empty_line(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_of("RWFRegressor", 0) as report:
        report(Stage("learning", 0.2))
        assert isinstance(report, Bar)
        report.draw()
        with progress_of("RWFRegressor", 0) as other:
            assert other is progress.silent  # there is a bar already
    shown = terminal.getvalue()
    assert "learning" in shown
    assert shown.endswith(("\x1b[2K", "\r"))
    with progress_of("RWFRegressor", 0) as report:
        assert isinstance(report, Bar)


def test_a_short_fit_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_of("RWFRegressor", 0) as report:
        report(Stage("learning", 0.2))
    assert terminal.getvalue() == ""


def test_nothing_is_shown_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress_of("RWFRegressor", 0) as report:
        assert report is progress.silent
    with progress_of("RWFRegressor", 1) as report:
        report(Stage("learning", 0.2))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "[RWFRegressor] learning\n"


def test_seconds_by_stage_add_up_and_messages_are_passed_on(monkeypatch):
    clock, messages = Clock(), []
    monkeypatch.setattr(progress.time, "perf_counter", clock)
    watch = Stopwatch(messages.append, begun=clock())
    for message, seconds in [(Stage("a", 0.1), 1.0), ("b", 2.0), (Stage("c", 0.5), 4.0)]:
        clock.seconds += seconds
        watch(message)
    clock.seconds += 8.0
    watch(Stage("a", 0.6))
    clock.seconds += 16.0
    watch.lap()
    assert messages == ["a", "b", "c", "a"]
    assert watch.seconds == {"sample": 1.0, "a": 6.0 + 16.0, "c": 8.0}
