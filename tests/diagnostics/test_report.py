"""A report is whole in itself: nothing from elsewhere, nothing that runs, and all can read it."""

from __future__ import annotations

import base64
import re
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import rwf
from rwf.data.rows import Block
from rwf.diagnostics.report.evaluation import Evaluation
from rwf.diagnostics.report.inputs import inputs_of, ranked_inputs, spelled
from rwf.diagnostics.report.page import make_page, write_report
from rwf.diagnostics.report.style import STYLE
from rwf.diagnostics.report.verdict import percent, verdict
from rwf.uncertainty.student_t import StudentT

EVIL = "<script>alert('1')</script>"
VOID = {"meta", "img", "br", "link", "input"}


def table(d, n=80):
    rng = np.random.default_rng(6)
    X = rng.uniform(2, 9, (n, d))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(d)])
    frame["y"] = 30 + 4 * np.sin(X[:, 0]) + X.sum(axis=1) + 0.2 * rng.normal(size=n)
    return frame


def evil(n=80):
    """Names and categories that are markup, formulas of TeX, or not of this world."""
    frame = table(2, n)
    frame = frame.rename(columns={"x0": EVIL, "x1": "$\\frac{\"&' 🌊"})
    frame['"><img src=x>'] = np.where(np.arange(n) % 2, "</style>" + EVIL, "a & b")
    return frame


@cache
def page(kind):
    frame = evil() if kind == "evil" else table(int(kind))
    prior = {"1": "multiscale", "2": "multiscale"}.get(kind, "nystrom")
    quick = rwf.TableRegressor(30, prior=prior, max_iter=3, n_restarts=1, random_state=0)
    model = quick.fit(frame, target="y").validate(frame)
    return make_page(model, frame, "model & co.rwf").html


class Outline(HTMLParser):
    """Tags of a page, and whether they close in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append(data.strip())

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


KINDS = ["1", "2", "4", "evil"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_well_formed_and_whole_in_itself(kind):
    found = Outline(page(kind))
    names = {tag for tag, _ in found.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in found.tags:
        assert "href" not in attributes
        assert not [name for name in attributes if name.startswith("on")], tag
        assert attributes.get("src", "data:").startswith("data:image/svg+xml;base64,") or (
            "src" not in attributes
        )
    assert not re.search(r"url\(|@import|https?:", page(kind).split("<main>")[0])


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_images_that_fetch_nothing(kind):
    for attributes in Outline(page(kind)).all("img"):
        drawing = base64.b64decode(attributes["src"].partition("base64,")[2]).decode()
        assert "<script" not in drawing
        for address in re.findall(r'(?:href|src)="([^"]*)"', drawing):
            assert address.startswith(("#", "data:image/png;base64,")), address


@pytest.mark.parametrize("kind", KINDS)
def test_everyone_can_read_it(kind):
    found = Outline(page(kind))
    assert found.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.all(
        "meta"
    )
    assert len(found.all("h1")) == len(found.all("main")) == len(found.all("title")) == 1
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h\d", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(len(image["alt"]) > 20 for image in found.all("img"))
    assert all(cell["scope"] in ("row", "col") for cell in found.all("th"))
    assert len(found.all("table")) == len(found.all("caption"))
    scrolling = [each for each in found.all("div") if each.get("class") == "scroll"]
    assert len(scrolling) == len(found.all("table"))
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in scrolling)


def luminance(colour):
    if len(colour) == 4:
        colour = "#" + "".join(2 * each for each in colour[1:])
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_of_text_and_background_contrast():
    grounds = re.findall(r"background: (#\w+)", STYLE)
    inks = re.findall(r"(?<![-\w])color: (#\w+)", STYLE)
    assert len(grounds) >= 2
    assert len(inks) >= 2
    for ground in grounds:
        for ink in inks:
            assert (luminance(ground) + 0.05) / (luminance(ink) + 0.05) >= 7


def test_the_style_has_rules_for_phones_and_paper():
    assert "@media print" in STYLE
    assert "@media (max-width" in STYLE
    assert "overflow-x: auto" in STYLE


@pytest.mark.parametrize(
    "kind, figures",
    [
        ("1", ["Fit", "Scalogram"]),
        ("2", ["Map of the prediction", "Map of the standard deviation"]),
        ("4", []),
    ],
)  # fmt: skip
def test_figures_by_the_number_of_columns(kind, figures):
    texts = Outline(page(kind)).texts
    assert {"Predicted and observed", "Errors", "Reliability"} <= set(texts)
    assert ("Importance of columns" in texts) == (kind != "1")
    known = {"Fit", "Scalogram"}
    drawn = [text for text in texts if text in known or text.startswith("Map of")]
    assert drawn == figures


def test_the_verdict_comes_first_and_private_words_do_not_come():
    texts = Outline(page("4")).texts
    titles = [
        "Verdict", "Which columns matter", "Intervals", "Predictions and errors",
        "Largest errors", "Scores", "How the model was fitted",
    ]  # fmt: skip
    assert [text for text in texts if text in titles] == titles
    for word in ("model", "constant", "linear", "x3", "95 %", "99 %", "learning", "shortest"):
        assert word in texts
    assert "When the model was fitted: hold-out of every fifth row, 16 rows" in texts
    assert not re.search(r"block \d", page("4"))


def test_what_users_write_is_shown_and_never_markup():
    html = page("evil")
    assert "<script" not in html
    assert "<img src=x>" not in html
    assert html.count("</style>") == 1
    texts = Outline(html).texts
    assert EVIL in texts
    assert any(text.startswith('"><img src=x>=</style>') for text in texts)
    assert 'model & co.rwf: y' in texts  # fmt: skip


# ------------------------------------------------------------------------ what the sentences say


def evaluation(n=400, scale=1.0, errors=None):
    """Normal predictions with deviation 2 of a line, whose errors have another deviation."""
    rng = np.random.default_rng(3)
    x = rng.uniform(5, 40, n)
    errors = 2.0 * scale * rng.normal(size=n) if errors is None else errors
    rows = Block(x[:, None], (x + errors)[:, None], np.ones(n))
    return Evaluation(rows, n, StudentT.normal(x, np.full(n, 2.0)))


def sentences(found, ranked=()):
    return " ".join(verdict(found, "price", list(ranked)))


def test_the_verdict_has_the_share_of_variance_and_the_errors_of_simpler_predictions():
    found = evaluation()
    error = found.y - found.mean
    share = 1 - (error**2).mean() / found.y.var()
    text = sentences(found)
    assert f"explains {100 * share:.0f} % of the variance of price" in text
    assert f"error is {np.sqrt((error**2).mean()):.4g}; always" in text
    assert f"average gives {found.scores.constant.rmse:.4g}" in text
    assert "No row looks wrong" in text


@pytest.mark.parametrize(
    "scale, words",
    [(1.0, "as they should"), (1.6, "they are too narrow"), (0.4, "they are too wide")],
)
def test_the_verdict_says_whether_intervals_are_right(scale, words):
    found = evaluation(scale=scale)
    assert words in sentences(found)
    assert f"cover {percent(found.metrics['coverage'])} of the rows" in sentences(found)


def test_a_table_of_right_predictions_has_a_suspicious_row_once_in_twenty():
    rng, n, tables = np.random.default_rng(8), 50, 2000
    y = rng.normal(3.0, 2.0, (tables, n))
    known = StudentT.normal(np.full(n, 3.0), np.full(n, 2.0))
    alarms = sum(
        len(Evaluation(Block(each[:, None], each[:, None], np.ones(n)), n, known).suspicious)
        for each in y
    )
    assert abs(alarms - 0.05 * tables) < 4 * np.sqrt(0.05 * tables)


def test_wrong_rows_are_counted_and_the_largest_comes_first():
    rng = np.random.default_rng(3)
    errors = 2.0 * rng.normal(size=400)
    errors[[7, 70, 170]] = [60.0, -90.0, 70.0]
    found = evaluation(errors=errors)
    assert found.suspicious.tolist() == found.worst[:3].tolist() == [70, 170, 7]
    clean = np.delete(found.y - found.mean, [7, 70, 170])
    share = 1 - (clean**2).mean() / np.delete(found.y, [7, 70, 170]).var()
    text = sentences(found)
    assert "Three rows look wrong: their errors" in text
    assert f"Without them, the model explains {100 * share:.0f} %" in text
    drifted = evaluation(errors=np.repeat([0.0, 30.0], [360, 40]))
    assert "40 of 400 rows have errors that the model takes" in sentences(drifted)


def test_a_model_that_explains_nothing_is_told_so():
    found = evaluation(errors=np.full(400, 50.0))
    assert "no better than its average" in sentences(found)
    constant = Evaluation(Block(np.ones((20, 1)), np.ones((20, 1)), np.ones(20)), 20,
                          StudentT.normal(np.ones(20), np.ones(20)))  # fmt: skip
    assert "nothing to explain" in sentences(constant)


def test_the_verdict_names_the_columns_that_matter():
    frame = table(4, 200)
    quick = rwf.TableRegressor(60, prior="nystrom", max_iter=8, n_restarts=0, random_state=0)
    model = quick.fit(frame, target="y")
    found = Evaluation.of(model, frame)
    ranked = ranked_inputs(model, found.rows.X)
    assert [each.importance for each in ranked] == sorted(
        (each.importance for each in ranked), reverse=True
    )
    names = [each.column.name for each in ranked]
    shares = [percent(each.importance) for each in ranked]
    said = f"depend most on {names[0]} ({shares[0]}), then on {names[1]} ({shares[1]}) and"
    assert said in sentences(found, ranked)


def test_values_are_spelled_as_the_table_has_them():
    frame = table(2, 60)
    frame["when"] = pd.Timestamp("2021-03-04") + pd.to_timedelta(np.arange(60), unit="D")
    frame["town"] = np.where(np.arange(60) % 3, "Bern", "Chur")
    frame["agent"] = [f"agent {i % 25}" for i in range(60)]
    frame.loc[5, "x1"] = np.nan
    quick = rwf.TableRegressor(20, prior="nystrom", max_iter=2, n_restarts=0, random_state=0)
    model = quick.fit(frame, target="y")
    X = model.sample_rows(frame)[0].X
    for row in (0, 5, 17):
        shown = [spelled(each.column, X[row, list(each.part)]) for each in inputs_of(model)]
        x1 = "–" if row == 5 else f"{frame.x1[row]:.6g}"
        assert shown == [
            f"{frame.x0[row]:.6g}", x1, str(frame.when[row])[:10], frame.town[row],
            frame.agent[row],
        ]  # fmt: skip


def test_few_rows_are_enough_for_a_page(tmp_path):
    frame = table(1)
    quick = rwf.TableRegressor(20, prior="nystrom", max_iter=3, n_restarts=0, random_state=0)
    model = quick.fit(frame, target="y")
    found = write_report(model, frame[:1], tmp_path / "one.html", "one")
    assert found.n_rows == 1
    Outline((tmp_path / "one.html").read_text(encoding="utf-8"))


def test_a_report_that_fails_leaves_the_old_one(tmp_path):
    frame = table(1)
    quick = rwf.TableRegressor(20, prior="nystrom", max_iter=3, n_restarts=0, random_state=0)
    model = quick.fit(frame, target="y")
    path = tmp_path / "page.html"
    path.write_text("old")
    frame.loc[3, "x0"] = np.inf
    with pytest.raises(ValueError, match="row 3"):
        write_report(model, frame, path, "page")
    assert path.read_text() == "old"
