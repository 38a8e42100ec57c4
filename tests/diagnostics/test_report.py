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
from rwf.diagnostics.report.page import make_page, write_report
from rwf.diagnostics.report.style import STYLE

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
        ("1", ["Fit", "Scalogram", "Learned variances"]),
        ("2", ["Map of the predictive mean", "Map of the predictive standard deviation",
               "Local scales", "Learned variances"]),
        ("4", []),
    ],
)  # fmt: skip
def test_figures_by_the_number_of_columns(kind, figures):
    texts = Outline(page(kind)).texts
    assert [text for text in texts if text in {"Predicted and observed", "Residuals"}]
    assert "Calibration" in texts
    known = {"Fit", "Scalogram", "Local scales", "Learned variances"}
    drawn = [text for text in texts if text in known or text.startswith("Map of")]
    assert drawn == figures


def test_sections_and_their_numbers():
    texts = Outline(page("4")).texts
    for title in (
        "Scores", "Figures", "Coverage of intervals", "Columns", "Learned parameters", "Trials",
        "Timings",
    ):  # fmt: skip
        assert title in texts
    for word in ("model", "constant", "linear", "noise", "x3", "95%", "learning", "block 1"):
        assert word in texts
    assert "When the model was fitted: hold-out of every fifth row, 16 rows" in texts
    assert any("(kept)" in text for text in texts)


def test_what_users_write_is_shown_and_never_markup():
    html = page("evil")
    assert "<script" not in html
    assert "<img src=x>" not in html
    assert html.count("</style>") == 1
    texts = Outline(html).texts
    assert EVIL in texts
    assert any(text.startswith('"><img src=x>=</style>') for text in texts)
    assert 'model & co.rwf: y' in texts  # fmt: skip


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
