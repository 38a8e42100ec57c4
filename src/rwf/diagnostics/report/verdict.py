"""The verdict of a report: sentences about its scores, for readers without statistics."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rwf.data.wording import numeral
from rwf.diagnostics.metrics import LEVEL, interval_width
from rwf.diagnostics.report.evaluation import Evaluation
from rwf.diagnostics.report.inputs import LEAST_IMPORTANCE, Input

CHANCE = 3.0  # standard deviations of a count that may be chance
SLACK = 0.01  # of coverage, that is nothing to speak of
CLOSE = 0.02  # within which coverage is called right
MANY = 0.01  # share of improbable rows from which intervals are to blame, and not the rows
WORTH_SAYING = 0.01  # of R²
NAMED = 3  # columns that are named
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def verdict(found: Evaluation, target: str, ranked: list[Input]) -> Iterator[str]:
    """What the scores mean, a sentence or two about each question."""
    yield _accuracy(found, target)
    yield _intervals(found)
    yield _suspects(found)
    important = [each for each in ranked if each.importance >= LEAST_IMPORTANCE]
    if important and len(ranked) > 1:
        yield _columns(important)


def percent(share: float) -> str:
    """A share as people say it: more digits near one."""
    if 0.999 <= share < 1.0:
        return "more than 99.9 %"
    return f"{100 * share:.1f} %" if 0.99 <= share < 1.0 else f"{100 * share:.0f} %"


def counted(count: int, noun: str) -> str:
    """A count and a noun, small counts in words."""
    number = WORDS[count] if count < len(WORDS) else f"{count:,}"
    return f"{number} {noun}{'' if count == 1 else 's'}"


def _accuracy(found: Evaluation, target: str) -> str:
    explained = found.explained
    if math.isnan(explained):
        return f"All rows have the same {target}, so there is nothing to explain."
    error = f"The root-mean-square error is {numeral(found.metrics['rmse'])}"
    scores = found.scores
    if scores is not None:
        error += f"; always predicting the average gives {numeral(scores.constant.rmse)}"
        if scores.linear is not None:
            error += f", and a straight line {numeral(scores.linear.rmse)}"
    if explained <= 0:
        return f"The model predicts {target} no better than its average does. {error}."
    return f"The model explains {percent(explained)} of the variance of {target}. {error}."


def _intervals(found: Evaluation) -> str:
    share, n = found.metrics["coverage"], len(found.rows)
    width = f"They are {numeral(interval_width(found.prediction, LEVEL))} wide on average."
    chance = max(CHANCE * math.sqrt(LEVEL * (1 - LEVEL) / n), SLACK)
    said = f"95 % intervals cover {percent(share)} of the rows"
    if share < LEVEL - chance:
        return f"{said}, fewer than they should: they are too narrow. {width}"
    if share > LEVEL + chance:
        return f"{said}, more than they should: they are too wide. {width}"
    if abs(share - LEVEL) > CLOSE:
        return f"{said}; of {n:,} rows that may be chance. {width}"
    return f"{said}, as they should. {width}"


def _suspects(found: Evaluation) -> str:
    count, n = len(found.suspicious), len(found.rows)
    if not count:
        return "No row looks wrong: all errors are within what the model expects."
    if count > max(MANY * n, len(WORDS) - 1):
        return (
            f"{count:,} of {n:,} rows have errors that the model takes for nearly impossible. "
            "Either these rows differ from those of the fit, or its intervals are too narrow."
        )
    verb, which = ("looks", "its error is") if count == 1 else ("look", "their errors are")
    said = f"{counted(count, 'row').capitalize()} {verb} wrong: {which} far larger than expected."
    others = found.explained_without(found.suspicious)
    if others > found.explained + WORTH_SAYING:
        said += f" Without {'it' if count == 1 else 'them'}, the model explains {percent(others)}."
    return f"{said} See the largest errors below."


def _columns(important: list[Input]) -> str:
    first, *others = (f"{e.column.name} ({percent(e.importance)})" for e in important[:NAMED])
    then = f", then on {' and '.join(others)}" if others else ""
    return (
        f"Predictions depend most on {first}{then}. In brackets is the share of their variance "
        "that is lost without the column."
    )
