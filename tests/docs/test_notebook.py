"""The first example of the README in a notebook, where a fitted model is shown as a card."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"

nbconvert = pytest.importorskip("nbconvert")
pytest.importorskip("ipykernel")


@pytest.mark.slow
def test_the_readme_runs_in_a_notebook_and_shows_a_card(tmp_path):
    from nbformat.v4 import new_code_cell, new_notebook

    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    cells = [new_code_cell(text) for text in [*code, "model", "model.fit_report_"]]
    execute = nbconvert.preprocessors.ExecutePreprocessor(timeout=300)
    found, _ = execute.preprocess(new_notebook(cells=cells), {"metadata": {"path": str(tmp_path)}})
    *ran, model, report = (cell.outputs for cell in found.cells)
    assert "90 % interval" in "".join(output.get("text", "") for output in ran[0])
    assert "NLL per row" in model[0].data["text/html"]
    assert "random_state=0" in model[0].data["text/html"]
    assert report[0].data["text/plain"].startswith("Fit of 300 rows")
