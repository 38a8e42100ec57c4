"""The demo is a fair comparison, and it leaves one whole figure behind."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf import RFFRegressor
from rwf.cli import demo
from rwf.diagnostics.metrics import METRICS

SMALL = {"n_train": 120, "n_test": 60, "n_components": 24, "n_restarts": 1}


@pytest.fixture(scope="module")
def result(tmp_path_factory, short_chains):
    return demo.run_demo(tmp_path_factory.mktemp("demo") / "made" / "here", **SMALL, random_state=3)


def test_every_method_is_scored_by_every_metric(result):
    assert [row.method for row in result.rows] == list(demo.methods())
    for row in result.rows:
        assert set(row.scores) == set(METRICS)
        assert np.isfinite(list(row.scores.values())).all()
        assert row.seconds > 0


def test_the_default_is_compared_and_the_conclusion_comes_from_the_numbers(result):
    names = [row.method for row in result.rows]
    assert names == ["RFF", "RWF as printed", "RWF by default"]
    errors = dict(zip(names, (0.06, 0.02, 0.005), strict=True))
    rows = tuple(replace(row, function_error=errors[row.method]) for row in result.rows)
    said = demo.conclusion(replace(result, rows=rows))
    assert said.startswith(
        "RWF by default is closest to the true function, with a root-mean-square"
    )
    assert "error of 0.005; that of RWF as printed (0.02) is 4.0 times as large" in said
    assert "that of RFF (0.06) is 12.0 times as large" in said
    assert all(f"{100 * row.scores['coverage']:.0f} % ({row.method})" in said for row in rows)


def test_the_error_is_that_of_the_function_and_the_score_that_of_the_rows(result):
    """Noise is independent of the error, so that squares add up, but for chance."""
    for row in result.rows:
        total = np.hypot(row.function_error, result.noise)
        assert abs(row.scores["rmse"] - total) < 4 * result.noise / np.sqrt(result.n_test)


def test_every_method_has_n_components_columns_and_at_most_a_trend_more(result):
    *equal, chosen = result.rows
    for row in equal:
        assert 24 <= row.features <= 24 + 2
    assert chosen.method == "RWF by default"


def test_the_same_seed_gives_the_same_scores(result, tmp_path):
    again = demo.run_demo(tmp_path, **SMALL, random_state=3)
    for first, second in zip(result.rows, again.rows, strict=True):
        assert_allclose(list(first.scores.values()), list(second.scores.values()), rtol=1e-6)


def test_the_figure_is_a_png_and_nothing_else_is_left(result):
    assert [path.name for path in result.figure.parent.iterdir()] == ["demo.png"]
    assert result.figure.read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_cannot_be_drawn_leaves_the_old_one(tmp_path, monkeypatch):
    def broken(figure, file, **options):
        file.write(b"half")
        raise OSError(28, "disk full")

    target = tmp_path / "demo.png"
    target.write_text("old")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    monkeypatch.setattr(demo, "methods", lambda: {"RFF": RFFRegressor})
    with pytest.raises(OSError, match="disk full"):
        demo.run_demo(tmp_path, **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("sizes", [{"n_train": 1}, {"n_test": 0}])
def test_too_few_rows_are_refused(sizes, tmp_path):
    with pytest.raises(ValueError, match="at least 2 and 1"):
        demo.run_demo(tmp_path, **SMALL | sizes)
