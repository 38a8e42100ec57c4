"""Short descriptions of fits: aligned text in a terminal, a table in a notebook."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rwf.data.wording import aligned

if TYPE_CHECKING:
    from rwf.fit.report import FitReport
    from rwf.inference.optimize import Trial

Line = tuple[str, str]  # a label, and what is said

CLEAR = 0.1  # nats per row by which a line is better than a constant
MOST = 0.8  # share of these that a model has which found the line
MOST_TRIALS = 6  # that are listed
CHAIN = re.compile(r" chain \d+$")
NUMBERED = re.compile(r" \d+ at its")  # parameters have names and numbers
FORMS = {"root": "; sums in square-root form, for the noise is very small"}
STYLE = "text-align: left; vertical-align: top; padding: 0.15em 1em 0.15em 0"


@dataclass(frozen=True)
class Card:
    """A title and some lines."""

    title: str
    lines: tuple[Line, ...]

    def __str__(self) -> str:
        return f"{self.title}\n{aligned(self.lines)}"

    def html(self) -> str:
        """The same as a table of HTML."""
        rows = "".join(
            f'<tr><th style="{STYLE}">{escape(label)}</th>'
            f'<td style="{STYLE}">{escape(text)}</td></tr>'
            for label, text in self.lines
        )
        return f"<div><strong>{escape(self.title)}</strong><table>{rows}</table></div>"


def report_card(report: FitReport) -> Card:
    """What was fitted, chosen and found."""
    title = f"Fit of {report.n_rows:,} rows with {report.n_features:,} feature columns"
    return Card(title, tuple(report_lines(report)))


def report_lines(report: FitReport) -> Iterator[Line]:
    """What was chosen and why, scores beside trivial predictors, seconds, and warnings."""
    if report.copies:
        yield "copies", f"{report.copies:,} rows repeat another exactly, and count once with it"
    yield "solver", report.solver + FORMS.get(report.statistics, "")
    yield from _trials(report.trials)
    scores = {"model": report.nll, "constant": report.constant_nll, "linear": report.linear_nll}
    known = [f"{name} {value:.4g}" for name, value in scores.items() if math.isfinite(value)]
    yield "NLL per row", f"{', '.join(known)} (leave-one-out)"
    if report.group_scores is not None:
        yield "new groups", str(report.group_scores)
    yield "seconds", report.timing
    found = list(warnings_of(report))
    yield "warnings", "; ".join(found) or "none"


def _trials(trials: tuple[Trial, ...]) -> Iterator[Line]:
    """What won, and what it was compared with."""
    kept = [trial for trial in trials if trial.chosen]
    if kept and not any(trial.name for trial in trials):
        best = max(trial.log_evidence_per_row for trial in kept)
        of = f"the best of {len(trials)} starting points" if len(trials) > 1 else "one start"
        yield "chosen", f"{of} (log evidence per row {best:.4g})"
        return
    for label, chosen in (("chosen", True), ("not chosen", False)):
        own: dict[str, list[Trial]] = {}
        for trial in (trial for trial in trials if trial.chosen is chosen):
            own.setdefault(CHAIN.sub("", trial.name) or "a start", []).append(trial)
        shown = [said for name, its in own.items() for said in _said(name, its)]
        more = [f"and {len(shown) - MOST_TRIALS} more"] if len(shown) > MOST_TRIALS else []
        if shown:
            yield label, ", ".join([*shown[:MOST_TRIALS], *more])


def _said(name: str, trials: list[Trial]) -> list[str]:
    """Trials of one name with their scores; chains of a sampler in one."""
    if len(trials) > 1 and all(CHAIN.search(trial.name) for trial in trials):
        known = (trial.held_out for trial in trials if trial.held_out is not None)
        scores = ", ".join(f"{score:.4g}" for score in known)
        return [f"{name}, {len(trials)} chains (held-out log densities {scores})"]
    return list(dict.fromkeys(name + _score(trial) for trial in trials))


def _score(trial: Trial) -> str:
    if trial.held_out is not None:
        return f" (held-out log density {trial.held_out:.4g})"
    if math.isfinite(trial.log_evidence_per_row):
        return f" (log evidence per row {trial.log_evidence_per_row:.4g})"
    return ""


def warnings_of(report: FitReport) -> Iterator[str]:
    """What a user should look at."""
    if not report.beats_trivial:
        yield no_better(report)
    if report.at_bounds:
        counts = Counter(NUMBERED.sub(" at its", each) for each in report.at_bounds)
        yield ", ".join(f"{n} × {each}" if n > 1 else each for each, n in counts.items())


def no_better(report: FitReport) -> str:
    """What it means that a model is no better than a trivial one."""
    nll, constant, linear = report.nll, report.constant_nll, report.linear_nll
    rival = "a constant" if not linear < constant else "a straight line"
    if nll < min(constant, linear):  # its densities are better, but not its means
        share = f"{100 * report.line_share:.0f} %"
        return (
            f"{rival} makes up {share} of the predicted means: the inputs say little more about y"
        )
    said = (
        f"the model predicts no better than {rival}: leave-one-out NLL {nll:.4g} nats per row, a "
        f"constant has {constant:.4g} and a straight line {linear:.4g}"
    )
    if constant - linear > CLEAR and constant - nll > MOST * (constant - linear):
        return f"{said}. y is about linear in the inputs, and so is the model"
    return f"{said}. Either the inputs say no more about y, or learning failed: try more n_restarts"
