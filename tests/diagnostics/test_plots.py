"""A plot draws what it is given, on the Axes it is given."""

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from rwf.diagnostics.plots import (
    BLUE,
    calibration,
    error_by_atoms,
    predicted_and_actual,
    predictive_band,
    standardized_residuals,
    usual_range,
)

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


def test_errors_are_dots_under_lines_on_logarithmic_axes():
    ax = Figure().subplots()
    atoms = np.array([16.0, 64.0, 256.0])
    errors = np.array([[0.5, 0.2, 0.1], [0.9, 0.4, 0.3]])
    bounds = {"first": 9 / np.sqrt(atoms), "second": np.full(3, np.nan)}
    assert error_by_atoms(ax, atoms, errors, errors.max(axis=0), bounds, label="seen") is ax
    assert ax.get_xscale() == ax.get_yscale() == "log"
    dots = [each for each in ax.lines if each.get_marker() == "."]
    assert_allclose([each.get_ydata() for each in dots], errors)
    assert_allclose(line(ax, "seen").get_xydata(), np.column_stack([atoms, [0.9, 0.4, 0.3]]))
    assert_allclose(line(ax, "first").get_ydata(), bounds["first"])
    styles = {(line(ax, name).get_color(), line(ax, name).get_linestyle()) for name in bounds}
    assert len(styles) == 2


def test_one_far_value_hardly_stretches_an_axis():
    rng = np.random.default_rng(3)
    y = rng.normal(20.0, 3.0, 400)
    low, high = usual_range(np.append(y, 9000.0))
    assert low < y.min()
    assert y.max() < high < y.max() + 3 * 3.0
    assert usual_range(np.array([4.0, 4.0])) == (3.0, 5.0)


def test_points_beyond_the_axes_are_shown_at_their_edge_and_counted():
    rng = np.random.default_rng(4)
    mean = rng.uniform(5.0, 9.0, 100)
    y = mean + 0.2 * rng.normal(size=100)
    y[[3, 40]] = [700.0, -80.0]
    for ax in (
        predicted_and_actual(Figure().subplots(), y, mean),
        standardized_residuals(Figure().subplots(), mean, (y - mean) / 0.2),
    ):
        edge = line(ax, "2 beyond the axes")
        assert_allclose(edge.get_xdata(), mean[[3, 40]])
        assert_allclose(edge.get_ydata(), ax.get_ylim()[::-1])
        (inside,) = [each for each in ax.lines if each.get_marker() == "."]
        assert len(inside.get_xdata()) == 98


def test_the_band_of_chance_is_two_binomial_deviations():
    levels = np.array([0.5, 0.9])
    ax = calibration(Figure().subplots(), levels, levels, 100)
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    heights = corners[np.isclose(corners[:, 0], 0.9), 1]
    assert_allclose([heights.min(), heights.max()], 0.9 + np.array([-2, 2]) * np.sqrt(0.09 / 100))
