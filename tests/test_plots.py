"""A plot draws what it is given, on the Axes it is given."""

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from rwf.plots import BLUE, predictive_band

X = np.linspace(2.0, 5.0, 7)
MEAN, STD = 3.0 + X**2, 0.5 * X


def line(ax, label):
    (found,) = [each for each in ax.lines if each.get_label() == label]
    return found


def test_the_band_reaches_two_standard_deviations_either_side():
    ax = Figure().subplots()
    assert predictive_band(ax, X, MEAN, STD, label="model") is ax
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    for x, mean, std in zip(X, MEAN, STD, strict=True):
        heights = corners[np.isclose(corners[:, 0], x), 1]
        assert_allclose([heights.min(), heights.max()], [mean - 2 * std, mean + 2 * std])
    assert_allclose(line(ax, "model").get_xydata(), np.column_stack([X, MEAN]))
    assert to_hex(line(ax, "model").get_color()).upper() == BLUE


def test_data_and_truth_are_drawn_when_given():
    ax = Figure().subplots()
    data = (np.array([4.0, 2.5]), np.array([1.0, 9.0]))
    predictive_band(ax, X, MEAN, STD, data=data, truth=MEAN + 1)
    assert_allclose(line(ax, "data").get_xydata(), np.column_stack(data))
    assert line(ax, "data").get_linestyle() == "None"
    assert_allclose(line(ax, "truth").get_ydata(), MEAN + 1)


def test_only_the_mean_and_the_band_are_drawn_otherwise():
    ax = predictive_band(Figure().subplots(), X, MEAN, STD)
    assert len(ax.lines) == len(ax.collections) == 1
