"""plot() draws what suits the columns, with the numbers of the predictions."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from rwf import RWFRegressor, TableRegressor
from rwf.datasets import diamonds

mpl.use("Agg")
QUICK = {"n_components": 30, "n_restarts": 0, "max_iter": 3, "random_state": 0, "neighbors": None}


@pytest.fixture
def ax():
    return Figure().subplots()


def test_one_column_has_its_interval(ax, rng):
    X = rng.uniform(0, 6, (80, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    model = RWFRegressor(prior="nystrom", **QUICK).fit(X, y)
    assert model.plot(X, y, ax=ax) is ax
    data, mean = ax.lines
    assert_allclose(np.sort(data.get_ydata()), np.sort(y))
    assert_allclose(mean.get_ydata(), model.predict(mean.get_xdata()[:, None]))
    low, high = model.predict_interval(mean.get_xdata()[:, None])
    ends = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose([ends.min(), ends.max()], [low.min(), high.max()])
    assert len(model.plot(X, ax=Figure().subplots()).lines) == 1  # no targets, no data


def test_two_columns_are_a_map_of_one_output(ax, rng):
    X = pd.DataFrame(rng.uniform(0, 6, (90, 2)), columns=["lon", "lat"])
    y = np.column_stack([X.lon, np.sin(X.lat)])
    model = RWFRegressor(prior="nystrom", **QUICK).fit(X, y)
    model.plot(X, output=1, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat")
    corner = pd.DataFrame([[X.lon.min(), X.lat.max()]], columns=["lon", "lat"])
    drawn = ax.collections[0].get_array()
    assert_allclose(drawn.reshape(120, 120)[-1, 0], model.predict(corner)[0, 1])


def test_more_columns_are_targets_over_predictions_or_one_column(ax):
    rows = pd.DataFrame(diamonds(300, np.random.default_rng(2)))
    model = TableRegressor(**QUICK).fit(rows, target="price")
    model.plot(rows, ax=ax)
    points = ax.lines[0]  # but for a few, which the axes do not reach
    assert len(points.get_ydata()) > 0.95 * len(rows)
    assert np.isin(points.get_ydata(), rows.price).all()
    assert np.isin(points.get_xdata().round(6), model.predict(rows).round(6)).all()
    band = model.plot(rows, column="carat", ax=Figure().subplots())
    assert band.get_xlabel() == "carat"
    assert (np.diff(band.lines[0].get_ydata()) > 0).mean() > 0.9  # large stones cost more
    inputs = rows.drop(columns="price")
    assert_allclose(model.plot(inputs, column=0, ax=Figure().subplots()).lines[0].get_ydata(),
                    band.lines[0].get_ydata())  # fmt: skip
    with pytest.raises(ValueError, match=r"plot\(X, y\), or one column"):
        model.plot(inputs, ax=ax)
    with pytest.raises(ValueError, match=r"column='karat' is none .*'carat'"):
        model.plot(rows, column="karat", ax=ax)
