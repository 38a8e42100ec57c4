"""Curves of every method."""

import numpy as np

from experiments.reporting import curves


def test_curves_are_stored_once_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "methods", lambda: ["linear", "constant"])
    rows = list(curves.run(tmp_path))
    assert [row["method"] for row in rows] == ["linear", "constant"]
    assert list(curves.run(tmp_path)) == []
    assert curves.stored(tmp_path) == rows
    assert len(set(rows[1]["mean"])) == 1  # a constant
    figure = curves.draw(rows)
    visible = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in visible] == ["linear least squares", "constant"]
    assert curves.rounded(np.array([0.123456])) == [0.1235]
