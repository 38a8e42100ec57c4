"""Short descriptions of fits, in terminals and notebooks."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from rwf import RWFRegressor, TableRegressor
from rwf.fit.cards import Card, no_better
from rwf.fit.report import FitReport
from rwf.inference.optimize import Trial

REPORT = FitReport(
    trials=(
        Trial(np.nan, 9, 0.0, True, name="prior 'spike_slab' chain 1", held_out=0.52),
        Trial(np.nan, 0, 0.0, name="prior 'nystrom'", held_out=0.41),
        Trial(0.7, 5, 1.0),
    ),
    seconds={"learning": 1.25, "report": 0.5},
    n_rows=1234,
    n_features=56,
    statistics="gram",
    at_bounds=(),
    jitter=0.0,
    nll=0.5,
    constant_nll=2.5,
    linear_nll=1.5,
    solver="dense: 56 columns",
)


def test_a_report_is_a_few_aligned_lines():
    lines = repr(REPORT).splitlines()
    assert lines == [
        "Fit of 1,234 rows with 56 feature columns",
        "solver       dense: 56 columns",
        "chosen       prior 'spike_slab' (held-out log density 0.52)",
        "not chosen   prior 'nystrom' (held-out log density 0.41), a start (log evidence per row",
        "             0.7)",
        "NLL per row  model 0.5, constant 2.5, linear 1.5 (leave-one-out)",
        "seconds      1.8: learning 1.2, report 0.5",
        "warnings     none",
    ]
    assert str(REPORT) == repr(REPORT)


def test_chains_of_a_sampler_are_one_choice_and_square_roots_are_said():
    chains = tuple(
        Trial(np.nan, 9, 2.0, True, name=f"chain {i}", held_out=0.5 + i / 8) for i in (1, 2)
    )
    said = repr(replace(REPORT, trials=chains, statistics="root"))
    assert "chosen       chain 1 (held-out log density 0.625), chain 2 (held-out" in said
    named = tuple(replace(trial, name=f"prior 'spike_slab' {trial.name}") for trial in chains)
    said = repr(replace(REPORT, trials=named, statistics="root"))
    assert "chosen       prior 'spike_slab', 2 chains (held-out log densities 0.625, 0.75)" in said
    assert "solver       dense: 56 columns; sums in square-root form" in said


def test_warnings_of_a_report_are_in_it():
    ended = tuple(f"{each} at its upper bound" for each in ("a 1", "b 12", "b 13"))
    bad = replace(REPORT, nll=2.6, at_bounds=ended)
    line = " ".join(repr(bad).partition("\nwarnings")[2].split())
    assert "no better than a straight line" in line
    assert "a at its upper bound, 2 × b at its upper bound" in line
    many = replace(REPORT, trials=tuple(Trial(i / 8, 1, 0.0) for i in range(9)))
    assert "and 3 more" in " ".join(repr(many).split())


@pytest.mark.parametrize(
    "nll, linear, words",
    [
        (1.52, 1.5, "about linear"),
        (1.8, 1.5, "learning failed"),
        (2.6, 2.45, "learning failed"),
        (2.6, 2.7, "no better than a constant"),
        (2.6, np.nan, "no better than a constant"),
    ],
)
def test_what_no_improvement_means(nll, linear, words):
    report = replace(REPORT, nll=nll, linear_nll=linear)
    assert not report.beats_trivial
    assert words in no_better(report)
    assert ("failed" in no_better(report)) == (words != "about linear")


def test_means_of_a_line_are_no_improvement_whatever_the_densities():
    report = replace(REPORT, nll=1.2, linear_nll=1.5, line_share=0.83)
    assert not report.beats_trivial
    assert no_better(report).startswith("a straight line makes up 83 % of the predicted means")


class Cells(HTMLParser):
    """Texts of a page whose tags close in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_card_is_a_table_in_a_notebook_and_markup_in_it_is_text():
    evil = Card("<script>", (("a", "1 < 2 & 'so'"), ("</td>", "b")))
    assert Cells(evil.html()).texts == ["<script>", "a", "1 < 2 & 'so'", "</td>", "b"]
    assert "0.41" in "".join(Cells(REPORT._repr_html_()).texts)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(2, 9, 90), "kind": rng.choice(["a", "<b>"], 90)})
    rows["y"] = 5 + np.sin(rows.x) + (rows.kind == "a") + 0.1 * rng.normal(size=90)
    quick = TableRegressor(20, n_restarts=0, max_iter=5, random_state=0, neighbors=4)
    return quick.fit(rows, target="y").validate(rows)


def test_a_summary_says_what_was_done_chosen_and_scored(fitted):
    said = dict(line.split("  ", 1) for line in fitted.summary().splitlines()[1:])
    said = {label: text.strip() for label, text in said.items()}
    assert (
        said["parameters"]
        == "max_iter=5, n_components=20, n_restarts=0, neighbors=4, random_state=0"
    )
    assert said["target"] == "y"
    assert said["one-hot"] == "kind (2)"
    assert said["scored by"] == "hold-out of every fifth row, 18 rows"
    assert said["RMSE"].startswith(f"model {fitted.scores_.model.rmse:.4g}, constant ")
    assert float(said["noise sd"]) == pytest.approx(np.sqrt(fitted.noise_variance_), rel=1e-3)
    assert ("keeps rows" in said) == fitted.model_.keeps_rows
    assert "learning" in said["seconds"]


def test_a_fitted_model_is_shown_as_a_card_and_another_as_its_parameters(fitted):
    shown = fitted._repr_mimebundle_()
    assert "kind (2)" in Cells(shown["text/html"]).texts
    assert fitted._repr_html_() == shown["text/html"]
    assert "sk-" in RWFRegressor()._repr_mimebundle_()["text/html"]
    several = RWFRegressor(10, n_restarts=0, max_iter=2, random_state=0)
    X = np.random.default_rng(1).uniform(2, 9, (40, 2))
    text = several.fit(X, np.column_stack([np.sin(X[:, 0]), X[:, 1]])).summary()
    assert text.startswith("RWFRegressor, fitted to 40 rows")
    with pytest.raises(ValueError, match="not fitted"):
        RWFRegressor().summary()
