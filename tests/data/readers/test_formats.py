"""A new file format is a function that opens a file, and one line in the registry."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from rwf import RWFRegressor, TableRegressor
from rwf.data.readers import FORMATS, LoadedTable

QUICK = {"n_components": 30, "prior": "random_features", "max_iter": 2, "n_restarts": 0}


def open_npz(path):
    """A file of named columns, as numpy writes it."""
    with np.load(path) as columns:
        return LoadedTable(path, pa.table(dict(columns)))


@pytest.fixture
def rows(monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, ".npz", open_npz)
    rng = np.random.default_rng(6)
    a, b = rng.normal(3.0, 2.0, (2, 300))
    columns = {"a": a, "b": b, "y": np.sin(a) + 0.1 * b + 0.1 * rng.normal(size=300)}
    np.savez(tmp_path / "rows.npz", **columns)
    return tmp_path / "rows.npz", columns


def test_a_registered_format_is_fitted_and_predicted(rows):
    path, columns = rows
    X = np.column_stack([columns["a"], columns["b"]])
    expected = RWFRegressor(**QUICK, random_state=0).fit(X, columns["y"]).predict(X)
    for given in (path, path.parent, str(path.parent / "*.npz")):
        model = RWFRegressor(**QUICK, random_state=0).fit(given, "y")
        assert list(model.feature_names_in_) == ["a", "b"]
        assert_array_equal(model.predict(given), expected)


def test_a_registered_format_is_a_table(rows, tmp_path):
    path, _ = rows
    model = TableRegressor(**QUICK, random_state=0).fit(path, target="y")
    assert model.predict(path).shape == (300,)
    assert model.predict_to(path, tmp_path / "predictions.csv") == 300


def test_an_unknown_format_lists_those_that_are_known(rows, tmp_path):
    (tmp_path / "rows.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match=r"\.parquet, .*\.npz: rename it"):
        RWFRegressor(**QUICK).fit(tmp_path / "rows.xlsx", "y")
