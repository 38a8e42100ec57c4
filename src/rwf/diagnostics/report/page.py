"""The page of a report. What comes from the user's data passes through :func:`html.escape`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import rwf
from rwf.data.atomic import replace_file
from rwf.data.wording import numeral
from rwf.diagnostics.inspection import Inspection
from rwf.diagnostics.metrics import interval_width
from rwf.diagnostics.report.evaluation import COVERED, Evaluation
from rwf.diagnostics.report.figures import (
    Picture,
    of_calibration,
    of_errors,
    of_importance,
    of_inputs,
)
from rwf.diagnostics.report.inputs import inputs_of, ranked_inputs, spelled
from rwf.diagnostics.report.style import STYLE
from rwf.diagnostics.report.verdict import percent, verdict
from rwf.diagnostics.scores import Score, Scores

if TYPE_CHECKING:
    from rwf.estimators.table import TableRegressor
    from rwf.fit.groups import GroupScores

SCORE_COLUMNS = ("predictor", "RMSE", "NLL", "95 % coverage")
METRIC_NAMES = {
    "rmse": "RMSE",
    "crps": "CRPS",
    "nll": "NLL, nats per row",
    "coverage": "95 % coverage",
    "width": "mean width of 95 % intervals",
    "calibration_error": "calibration error",
}


@dataclass(frozen=True)
class Page:
    """A report: the HTML, its verdict, the rows of the table, and the model's scores on them."""

    html: str
    verdict: tuple[str, ...]
    n_rows: int
    scores: dict[str, float]


def write_report(model: TableRegressor, table: object, out: Path, title: str) -> Page:
    """Evaluate a model on a table that has its target, and write the page in one step."""
    page = make_page(model, table, title)
    replace_file(out, lambda file: file.write(page.html.encode()))
    return page


def make_page(model: TableRegressor, table: object, title: str) -> Page:
    """Evaluate a model on a table, and make the page."""
    found = Evaluation.of(model, table)
    inside = Inspection.of(model)
    ranked = ranked_inputs(model, found.rows.X)
    heading = f"{title}: {inside.target}"
    sentences = tuple(verdict(found, str(inside.target), ranked))
    said = "".join(f"<li>{escape(each)}</li>\n" for each in sentences)
    sections = [
        _section("Verdict", f'{_tiles(found)}<ul class="verdict">\n{said}</ul>'),
        _figures("The function", [*of_inputs(model, found)]),
        _figures("Which columns matter", [*of_importance(model, found, ranked)]),
        _figures("Intervals", [*of_calibration(found)], _coverage(found)),
        _figures("Predictions and errors", [*of_errors(found)]),
        _section("Largest errors", _worst(found, model)),
        _section("Scores", _scores(found, inside)),
        _section("How the model was fitted", _fit(model, inside)),
    ]
    html = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escape(heading)}</h1>\n<p>{_summary(found, inside)}</p></header>\n"
        f"{''.join(sections)}</main>\n<footer><p>Made by rwf {escape(rwf.__version__)}.</p>"
        "</footer>\n</body>\n</html>\n"
    )
    return Page(html, sentences, found.n_rows, found.metrics)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>\n"


def _figures(title: str, drawn: list[Picture], below: str = "") -> str:
    """A section of figures, if there are any."""
    if not drawn:
        return ""
    return _section(title, f'<div class="figures">{"".join(map(_figure, drawn))}</div>{below}')


def _tiles(found: Evaluation) -> str:
    """The main numbers, in large type."""
    explained = "–" if math.isnan(found.explained) else percent(max(found.explained, 0.0))
    numbers = {
        "of the variance explained": explained.replace("more than", ">"),
        "root-mean-square error": _number(found.metrics["rmse"]),
        "of rows in 95 % intervals": percent(found.metrics["coverage"]),
        "rows that look wrong": f"{len(found.suspicious):,}",
    }
    tiles = "".join(
        f"<div><strong>{escape(value)}</strong> {escape(name)}</div>\n"
        for name, value in numbers.items()
    )
    return f'<div class="tiles">\n{tiles}</div>\n'


def _figure(picture: Picture) -> str:
    note = f"<p>{escape(picture.note)}</p>" if picture.note else ""
    return (
        f"<figure>\n<figcaption><h3>{escape(picture.title)}</h3>{note}</figcaption>\n"
        f'<img src="{picture.source}" alt="{escape(picture.text)}">\n</figure>\n'
    )


def _table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "numbers"
) -> str:
    """A table of numbers or words with row headers; wide tables scroll."""
    titles = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n"
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">\n'
        f'<table class="{kind}">\n'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{titles}</tr></thead>\n"
        f"<tbody>\n{lines}</tbody>\n</table></div>\n"
    )


def _number(value: float) -> str:
    return numeral(value) if math.isfinite(value) else "–"


def _summary(found: Evaluation, inside: Inspection) -> str:
    scored = f"{len(found.rows):,} of {found.n_rows:,} rows, drawn at random,"
    if len(found.rows) == found.n_rows:
        scored = f"{found.n_rows:,} rows"
    return escape(
        f"A model that was fitted to {inside.rows:,g} rows, evaluated on {scored} of a table. If "
        "these are the rows of the fit, the numbers are too good: evaluate it on others."
    )


def _beside(*tables: str) -> str:
    """Small tables next to each other, if there is room."""
    return f'<div class="beside">\n{"".join(tables)}</div>\n'


def _scores(found: Evaluation, inside: Inspection) -> str:
    parts = []
    if found.scores is not None:
        note = "constant and straight line are fitted by five-fold cross-validation"
        parts.append(_score_table(f"On these rows; {note}", found.scores))
    if inside.scores is not None:
        when = f"When the model was fitted: {inside.scores.method}, {inside.scores.n_rows:,} rows"
        parts.append(_score_table(when, inside.scores))
    if inside.group_scores is not None:
        by_group = inside.group_scores
        when = f"When the model was fitted: leave-group-out, {by_group.n_groups:,} groups"
        parts.append(_table(when, SCORE_COLUMNS, [_score_line("model", by_group)]))
    lines = [(METRIC_NAMES[name], _number(value)) for name, value in found.metrics.items()]
    parts.append(
        _table("All scores of the model on these rows, unweighted", ("score", "value"), lines)
    )
    return _beside(*parts)


def _score_table(caption: str, scores: Scores) -> str:
    return _table(caption, SCORE_COLUMNS, [_score_line(*line) for line in scores.lines])


def _score_line(name: str, s: Score | GroupScores) -> tuple[str, ...]:
    return name, _number(s.rmse), _number(s.nll), f"{100 * s.coverage:.1f} %"


def _coverage(found: Evaluation) -> str:
    n = len(found.rows)
    lines = [
        (
            f"{100 * level:.0f} %",
            f"{100 * share:.1f} %",
            f"± {200 * math.sqrt(level * (1 - level) / n):.1f} %",
            _number(interval_width(found.prediction, level)),
        )
        for level, share in zip(COVERED, found.coverage(COVERED), strict=True)
    ]
    head = ("intervals of", "cover", "give or take", "mean width")
    return _table(f"Share of the {n:,} rows inside intervals, and their width", head, lines)


def _worst(found: Evaluation, model: TableRegressor) -> str:
    schema, own, X = model.schema_, inputs_of(model), found.rows.X
    low, high = found.prediction.interval(0.95)
    lines = [
        (
            f"{found.z[row]:+.1f}".replace("-", "−"),
            _number(found.y[row]),
            _number(found.mean[row]),
            f"{_number(low[row])} to {_number(high[row])}",
            *(spelled(each.column, X[row, list(each.part)]) for each in own),
        )
        for row in found.worst.tolist()
    ]
    head = (
        "error / sd", f"{schema.target}", "predicted", "95 % interval",
        *(column.name for column in schema.columns),
    )  # fmt: skip
    return _table("By their size relative to the predicted deviation", head, lines)


def _fit(model: TableRegressor, inside: Inspection) -> str:
    tables = [_columns(inside), _trials(inside), _learned(model, inside), _timings(inside)]
    if inside.parameters:
        given = [*inside.parameters.items()]
        tables.append(_table("Parameters that are not the default", ("parameter", "value"), given))
    about = f"{inside.estimator} with {inside.features:,} features. Solver: {inside.solver}."
    return f"<p>{escape(about)}</p>\n{_beside(*tables)}"


def _columns(inside: Inspection) -> str:
    lines = [(c.name, c.dtype, c.categories or "–", c.fill) for c in inside.columns]
    head = ("column", "type", "categories", "missing values become")
    return _table(f"Inputs of the model of {inside.target}", head, lines, "words")


def _learned(model: TableRegressor, inside: Inspection) -> str:
    """The noise, and how far f varies along every column."""
    noise = _table(
        "Learned noise",
        ("", "value"),
        [("standard deviation" + inside.noise_of, _number(inside.noise_deviation))],
    )
    if not inside.length_scales:
        return noise
    lines = [
        (name, _number(float(np.min(each))), _number(float(np.max(each))))
        for name, each in inside.length_scales.items()
    ]
    head = ("column", "shortest", "longest")
    return noise + _table("Length-scales, in the units of the columns", head, lines)


def _trials(inside: Inspection) -> str:
    """What was compared, if anything was."""
    if len(inside.trials) < 2:
        return ""
    lines = [
        (
            f"{index + 1} {trial.name}{' (kept)' if trial.chosen else ''}",
            _number(trial.log_evidence_per_row),
            "–" if trial.held_out is None else _number(trial.held_out),
            str(trial.iterations),
            f"{trial.seconds:.2f}",
        )
        for index, trial in enumerate(inside.trials)
    ]
    head = ("trial", "log evidence per row", "held-out log density", "iterations", "seconds")
    return _table("Trials of the fit; log densities in standardised units", head, lines)


def _timings(inside: Inspection) -> str:
    lines = [(stage, f"{seconds:.2f}") for stage, seconds in inside.seconds.items()]
    return _table("Wall-clock seconds of the fit", ("stage", "seconds"), lines)
