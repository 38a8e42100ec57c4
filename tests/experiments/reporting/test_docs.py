"""Generated sections of the docs."""

import pytest

from experiments.reporting import docs
from experiments.reporting.cells import MEASURES
from experiments.runner import store
from experiments.runner.plan import load_suite
from experiments.runner.run import row_of
from harness import SESSION, stored_rows

SECTION = "<!-- begin generated: {} -->\n<!-- end generated -->\n"


def test_pages_show_the_rows_there_are_with_the_notes_they_need(tmp_path):
    for suite, method in (("terrain", "knn"), ("long", "celerite-matern32")):
        run = load_suite(suite).runs(methods=[method])[0]
        store.append(store.results_file(suite, tmp_path), row_of(run, {"rmse": 2.0}, SESSION))
    text = docs.regenerated("".join(SECTION.format(name) for name in ("terrain", "long")), tmp_path)
    assert "| K nearest neighbours ⁷ | **2.00** (1 of 3) | – |" in text
    assert "| Matérn-3/2 by celerite2 ⁹ | **2.00** (1 of 3) | – |" in text
    assert text.count("\n⁷ The number of neighbours") == text.count("\n⁹ Length scale,") == 1
    assert "⁸" not in text


PAGE = """# Page

<!-- begin generated: tables-accuracy -->
old
<!-- end generated -->

By hand.
"""


def test_generated_sections_are_rebuilt_once_and_the_rest_is_kept(tmp_path):
    for row in stored_rows():
        full = {**row, **dict.fromkeys(MEASURES, row["rmse"])}
        store.append(store.results_file("tables", tmp_path), full)
    once = docs.regenerated(PAGE, tmp_path)
    assert "\nold\n" not in once
    assert once.endswith("<!-- end generated -->\n\nBy hand.\n")
    assert "- rff-3 on airfoil, split 1: TimeoutError: no result" in once
    assert docs.regenerated(once, tmp_path) == once
    with pytest.raises(ValueError, match="no generated section 'more'"):
        docs.regenerated(PAGE.replace("tables-accuracy", "more"), tmp_path)


def test_the_docs_are_up_to_date_with_the_stored_rows():
    pages = docs.pages()
    assert {page.name for page in pages} >= {"README.md", "signals.md", "tables.md", "terrain.md"}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert docs.regenerated(text) == text, f"run python -m experiments docs: {page.name}"
