"""Tables from RWF_DATA and from OpenML."""

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.data import splits, table, tasks


def test_a_table_comes_from_the_named_directory(waves):
    X, y = waves
    table, rows = tasks.problem("waves-shifted", 4)
    assert table.name == "waves"
    assert table.f is None
    assert np.array_equal(rows.test, splits.beyond_a_plane(X, 4).test)
    assert_allclose(table.X, X)
    assert_allclose(table.y, y)


def test_an_unknown_table_is_refused_with_advice(waves):
    with pytest.raises(table.DataError, match=r"RWF_DATA .* tides\.csv\.gz"):
        table.load("tides")


def test_without_a_network_the_error_names_the_remedy(monkeypatch):
    def unreachable(**_):
        raise URLError("no route")

    monkeypatch.delenv("RWF_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(table.DataError, match=r"no route.*Set RWF_DATA"):
        table.load("energy")


@pytest.mark.parametrize("extra, accepted", [("cooling_load", True), ("something", False)])
def test_from_openml_a_second_target_is_dropped_and_a_strange_shape_refused(
    monkeypatch, extra, accepted
):
    names = [f"x{j}" for j in range(8)] + [extra]
    found = SimpleNamespace(data=np.ones((768, 9)), target=np.arange(768.0), feature_names=names)
    monkeypatch.delenv("RWF_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: found)
    if accepted:
        assert table.load("energy").X.shape == (768, 8)
    else:
        with pytest.raises(table.DataError, match=r"not \(768, 8\)"):
            table.load("energy")
