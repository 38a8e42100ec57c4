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
from rwf.diagnostics.inspection import Inspection
from rwf.diagnostics.metrics import interval_width
from rwf.diagnostics.report.evaluation import COVERED, Evaluation
from rwf.diagnostics.report.figures import Picture, pictures
from rwf.diagnostics.report.style import STYLE
from rwf.diagnostics.scores import Score, Scores

if TYPE_CHECKING:
    from rwf.data.schema import TableSchema
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
    """A report: the HTML, the number of rows of the table, and the model's scores on them."""

    html: str
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
    heading = f"{title}: {inside.target}"
    drawn = [*pictures(model, found)]
    sections = [
        _section("Scores", _scores(found, inside)),
        _section("Figures", f'<div class="figures">{"".join(map(_figure, drawn))}</div>'),
        _section("Coverage of intervals", _coverage(found)),
        _section("Largest errors", _worst(found, model.schema_)),
        _section("Columns", _columns(inside)),
        _section("Learned parameters", _learned(model, inside)),
        _section("Trials", _trials(inside)),
        _section("Timings", _timings(inside)),
    ]
    html = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escape(heading)}</h1>\n<p>{_summary(found, inside)}</p></header>\n"
        f"{''.join(sections)}</main>\n<footer><p>Made by rwf {escape(rwf.__version__)}.</p>"
        "</footer>\n</body>\n</html>\n"
    )
    return Page(html, found.n_rows, found.metrics)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>\n"


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
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _summary(found: Evaluation, inside: Inspection) -> str:
    scored = f"{len(found.rows):,} of {found.n_rows:,} rows, drawn at random,"
    if len(found.rows) == found.n_rows:
        scored = f"{found.n_rows:,} rows"
    return escape(
        f"{inside.estimator} with {inside.features:,} features, fitted to {inside.rows:,g} rows; "
        f"evaluated on {scored} of a table. On the training rows the scores would be optimistic."
    )


def _scores(found: Evaluation, inside: Inspection) -> str:
    parts = []
    if found.scores is not None:
        note = "constant and linear predictors are fitted by five-fold cross-validation"
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
    return "".join(parts)


def _score_table(caption: str, scores: Scores) -> str:
    return _table(caption, SCORE_COLUMNS, [_score_line(*line) for line in scores.lines])


def _score_line(name: str, s: Score | GroupScores) -> tuple[str, ...]:
    return name, _number(s.rmse), _number(s.nll), f"{s.coverage:.1%}"


def _coverage(found: Evaluation) -> str:
    lines = [
        (f"{level:.0%}", f"{share:.1%}", _number(interval_width(found.prediction, level)))
        for level, share in zip(COVERED, found.coverage(COVERED), strict=True)
    ]
    head = ("nominal", "observed", "mean width")
    return _table("Share of rows inside central intervals, and their width", head, lines)


def _worst(found: Evaluation, schema: TableSchema) -> str:
    p, rows = found.prediction, found.worst
    numbers = [found.z, found.y, p.mean, p.std, *found.rows.X.T]
    lines = [
        (str(place + 1), *(_number(column[row]) for column in numbers))
        for place, row in enumerate(rows)
    ]
    head = ("", "error in scales", str(schema.target), "mean", "sd", *schema.names)
    return _table("Rows with the largest errors, in units of the predictive scale", head, lines)


def _columns(inside: Inspection) -> str:
    lines = [(c.name, c.dtype, c.categories or "–", c.fill) for c in inside.columns]
    head = ("column", "type", "categories, one-hot", "missing values")
    return _table(f"Inputs of the model of {inside.target}", head, lines, "words")


def _learned(model: TableRegressor, inside: Inspection) -> str:
    parts = []
    if inside.length_scales:
        lines = [(name, *map(_number, each)) for name, each in inside.length_scales.items()]
        parts.append(
            _table("Length-scales in the units of the columns", ("column", *inside.blocks), lines)
        )
    deviations = np.sqrt(np.asarray(model.prior_variances_, dtype=np.float64))
    values = [
        ("noise", _number(inside.noise_deviation)),
        ("smallest of the weights", _number(float(deviations.min()))),
        ("median of the weights", _number(float(np.median(deviations)))),
        ("largest of the weights", _number(float(deviations.max()))),
    ]
    parts.append(_table("Standard deviations in the units of the target", ("of", "value"), values))
    parts.append(f"<p>Solver: {escape(inside.solver)}.</p>")
    if inside.parameters:
        given = [*inside.parameters.items()]
        parts.append(_table("Parameters that are not the default", ("parameter", "value"), given))
    return "".join(parts)


def _trials(inside: Inspection) -> str:
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
