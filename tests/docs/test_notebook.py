"""The first example of the README in a notebook, where a fitted model is shown as a card."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rwf import RWFRegressor
from rwf.priors import PRIORS

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


@pytest.mark.parametrize("prior", [*PRIORS, "auto"])
def test_a_fitted_model_is_a_card_and_tab_lists_its_methods(prior, short_chains):
    from IPython.core.completer import IPCompleter, provisionalcompleter

    rng = np.random.default_rng(2)
    X = rng.uniform(size=(200, 2 if prior == "field" else 1))
    model = RWFRegressor(prior=prior, max_iter=3, n_restarts=0, random_state=0)
    model.fit(X, np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=200))
    assert "NLL per row" in model._repr_html_()
    completer = IPCompleter(namespace={"model": model}, use_jedi=False)
    with provisionalcompleter():
        found = {each.text.rpartition(".")[2] for each in completer.completions("model.pre", 9)}
    assert {"predict", "predict_interval", "predict_quantiles"} <= found
    assert {"model_", "fit_report_"} <= set(dir(model))
