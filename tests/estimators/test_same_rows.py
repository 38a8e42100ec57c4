"""The same rows give the same model, whether they come from an array, a dataframe or a file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from rwf import RWFRegressor
from rwf.fit import pipeline

N, D = 20_000, 6
QUICK = {"n_components": 50, "max_iter": 1, "n_restarts": 0, "random_state": 0}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """More rows than the sample, as arguments of fit."""
    home, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(4)
    X = rng.normal(3.0, 2.0, (N, D))
    X[:, 5] = np.exp(X[:, 5])  # skewed, so that units depend on the rows
    y = np.sin(X[:, 0]) + 0.2 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(D)]).assign(y=y)
    frame.to_csv(home / "rows.csv", index=False, float_format="%.17g")
    frame.to_parquet(home / "rows.parquet")
    np.save(home / "X.npy", X)
    return {
        "array": (X, y),
        "dataframe": (frame, "y"),
        "CSV": (home / "rows.csv", "y"),
        "Parquet": (home / "rows.parquet", "y"),
        "memory map": (np.load(home / "X.npy", mmap_mode="r"), y),
    }


def predictions(given, **settings):
    model = RWFRegressor(**QUICK, **settings).fit(*given)
    new = np.random.default_rng(5).normal(3.0, 2.0, (50, D))
    by_name = isinstance(given[1], str)
    table = pd.DataFrame(new, columns=[f"x{i}" for i in range(D)]) if by_name else new
    return model.predict(table, return_std=True)


@pytest.fixture(scope="module")
def alone(sources):
    """Predictions from the array, without neighbours."""
    return predictions(sources["array"], neighbors=None)


@pytest.mark.parametrize("name", ["dataframe", "CSV", "Parquet", "memory map"])
def test_all_sources_give_the_same_model(sources, alone, name):
    assert_allclose(predictions(sources[name], neighbors=None), alone, rtol=1e-10)


def test_neighbors_are_blended_in_for_files_too(sources, alone, monkeypatch):
    """By default; with fewer neighbours than that, as the time they take is cubic in them."""
    monkeypatch.setattr(pipeline, "NEIGHBORS", 4)
    expected = predictions(sources["array"])
    assert_allclose(predictions(sources["CSV"]), expected, rtol=1e-10)
    assert np.abs(expected[0] - alone[0]).max() > 1e-3


def test_neighbors_are_blended_in_where_a_checkpoint_is_kept(sources, monkeypatch, tmp_path):
    monkeypatch.setattr(pipeline, "NEIGHBORS", 4)
    model = RWFRegressor(**QUICK).fit(*sources["array"], checkpoint=tmp_path / "fit.checkpoint")
    assert model.model_.keeps_rows
