"""Numbers and pictures of what a model is made of."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from rwf import RFFRegressor, RWFRegressor
from rwf.diagnostics import plots
from rwf.diagnostics.decomposition import (
    atom_table,
    components,
    grid,
    prior_deviation,
    scale_edges,
    scalogram,
    usual_range,
    variances_by_scale,
)

PRIORS = ["multiscale", "adaptive", "random_features"]
UNIT, START = 7.0, 30.0  # x runs from 30 to 37


def packet(centre: float, n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Fast oscillations around a centre, on a slow wave."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(size=n))
    burst = np.exp(-(((x - centre) / 0.12) ** 2)) * np.sin(2 * np.pi * 10 * x)
    y = 50.0 + 4.0 * burst + 4.0 * np.sin(6 * x) + 0.2 * rng.normal(size=n)
    return START + UNIT * x[:, None], y


def fit(prior: str, X: np.ndarray, y: np.ndarray, **more: object) -> RWFRegressor:
    settings = {"n_components": 200, "noise": "constant", "n_restarts": 0, "random_state": 0}
    return RWFRegressor(prior=prior, **(settings | more)).fit(X, y)


@pytest.fixture(scope="module")
def line() -> dict[str, RWFRegressor]:
    return {prior: fit(prior, *packet(0.3)) for prior in PRIORS}


@pytest.fixture(scope="module")
def plane() -> RWFRegressor:
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(600, 2)) * [80.0, 60.0] + [100.0, 10.0]
    fine = np.exp(-(((X - [115.0, 25.0]) / 12.0) ** 2).sum(axis=1)) * np.sin(X[:, 0] / 2.5)
    y = 20 + 3 * fine + np.sin(X[:, 1] / 15) + 0.1 * rng.normal(size=600)
    return fit("multiscale", X, y, n_components=500, metric="isotropic")


# ------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize("prior", PRIORS)
def test_the_parts_of_all_scales_and_the_trend_are_the_prediction(prior, line):
    model, x = line[prior], np.linspace(31.0, 36.0, 50)[:, None]
    table = atom_table(model.model_)
    edges, parts = components(model.model_, table, x)
    assert len(parts) == len(edges) - 1 > 2
    Z = model.model_.base.features(model.model_.units.inputs(x))
    p = model.model_.base.fits[0].posterior
    rest = np.setdiff1d(np.arange(Z.shape[1]), table.columns)
    scaler = model.model_.units.y
    trend = scaler.center[0] + scaler.scale[0] * Z[:, rest] @ p.mean[rest]
    assert_allclose(parts.sum(axis=0) + trend, model.predict(x), rtol=1e-9)


def test_scales_and_places_are_in_the_units_of_the_inputs(line):
    for model in line.values():
        table = atom_table(model.model_)
        assert START - UNIT < table.shifts.min() < START + 0.1 * UNIT
        assert START + 0.9 * UNIT < table.shifts.max() < START + 2 * UNIT
    x, y = packet(0.3)
    moved = fit("multiscale", 1000.0 * x, y)
    assert_allclose(
        atom_table(moved.model_).scales, 1000.0 * atom_table(line["multiscale"].model_).scales
    )


def test_energy_is_the_square_of_a_scale_in_a_window(line):
    model, x = line["multiscale"], np.linspace(-20.0, 90.0, 1501)
    found = scalogram(model.model_, [x])
    _, parts = components(model.model_, atom_table(model.model_), x[:, None])
    assert found.energy.shape == parts.shape
    # A window moves energy and makes none: totals agree where the ends are empty.
    assert_allclose(found.energy.sum(axis=1), (parts**2).sum(axis=1), rtol=1e-6)
    row, at = 0, 700
    window = np.exp(-(((x - x[at]) / found.scales[row]) ** 2))
    expected = window @ parts[row] ** 2 / window.sum()
    assert_allclose(found.energy[row, at], expected, rtol=1e-9)


def test_the_ridge_moves_with_the_signal(line):
    x = np.linspace(START, START + UNIT, 300)
    for centre in (0.3, 0.7):
        model = line["multiscale"] if centre == 0.3 else fit("multiscale", *packet(centre))
        found = scalogram(model.model_, [x])
        fine = found.energy[found.scales < UNIT / 15].sum(axis=0)
        assert abs(x @ fine / fine.sum() - (START + centre * UNIT)) < 0.03 * UNIT


def test_the_local_scale_is_small_where_f_is_fine(plane):
    axes = np.linspace(102.0, 178.0, 39), np.linspace(12.0, 68.0, 29)
    found = scalogram(plane.model_, axes)
    assert found.energy.shape == (len(found.scales), 29, 39)
    local = found.local_scale
    assert found.scales[0] < local.min() < local.max() < found.scales[-1]
    X = grid(axes)
    near = (np.linalg.norm(X - [115.0, 25.0], axis=1) < 6).reshape(local.shape)
    assert local[near].mean() < 0.7 * np.median(local)


def test_a_grid_lists_places_as_images_do():
    X = grid([np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])])
    assert_allclose(X.reshape(2, 3, 2)[1, 2], [3.0, 20.0])
    assert_allclose(X.reshape(2, 3, 2)[0, 1], [2.0, 10.0])


def test_the_prior_deviation_is_that_of_prior_draws_without_trend(line, rng):
    model, x = line["multiscale"].model_, np.linspace(30.5, 36.5, 6)[:, None]
    variances = model.summary.prior_variances[:, 0].copy()
    variances[-2:] = 0.0
    draws = model.base.features(model.units.inputs(x)) @ (
        np.sqrt(variances)[:, None] * rng.normal(size=(len(variances), 40_000))
    )
    expected = draws.std(axis=1)
    found = prior_deviation(model, x)
    assert_allclose(found, expected, rtol=5 / np.sqrt(2 * 40_000))


def test_few_scales_have_a_row_each_and_many_share_half_octaves():
    assert_allclose(
        scale_edges(np.array([2.0, 8.0, 2.0, 4.0])), 2 ** np.array([0.5, 1.5, 2.5, 3.5])
    )
    assert_allclose(scale_edges(np.array([4.0])), [2**1.5, 2**2.5])
    many = scale_edges(np.geomspace(1.1, 7.0, 40))
    assert_allclose(many, 2 ** np.arange(0, 3.1, 0.5))


def test_every_cell_has_its_variance_and_its_place(line):
    model = line["multiscale"]
    table = atom_table(model.model_)
    rows = variances_by_scale(table)
    assert [row.low for row in rows] == sorted(row.low for row in rows)
    assert sum(len(row.heights) for row in rows) == len(np.unique(table.groups))
    one = rows[0]
    mine = np.flatnonzero((table.scales > one.low) & (table.scales < one.high))
    cell = np.searchsorted(one.edges, table.shifts[mine, 0]) - 1
    assert_allclose(table.heights[mine], one.heights[cell])
    lambdas = model.prior_variances_[table.columns[mine]]
    assert_allclose(table.heights[mine] ** 2, lambdas / len(mine))  # unit peaks over √m


@pytest.mark.parametrize("prior", [*PRIORS, "nystrom"])
def test_the_usual_range_is_that_of_the_data(prior, line):
    model = line.get(prior) or fit(prior, *packet(0.3, 200))
    ((low, high),) = usual_range(model.model_)
    assert_allclose([low, high], [START, START + UNIT], atol=0.12 * UNIT)


# ----------------------------------------------------------------------------------------- pictures


def mesh_of(ax):
    return [each for each in ax.collections if isinstance(each, QuadMesh)]


def bar_of(ax):
    (bar,) = [each for each in ax.figure.axes if each is not ax]
    return bar


@pytest.mark.parametrize("prior", PRIORS)
def test_a_scalogram_shows_amplitude_over_scale_and_place(prior, line):
    ax, x = Figure().subplots(), np.linspace(31.0, 36.0, 80)
    assert plots.scalogram(line[prior], x, ax=ax) is ax
    (mesh,) = mesh_of(ax)
    amplitude = np.sqrt(scalogram(line[prior].model_, [x]).energy)
    assert isinstance(mesh.norm, LogNorm)
    assert_allclose(mesh.norm.vmax, amplitude.max())
    shown = np.asarray(mesh.get_array()).reshape(amplitude.shape)
    assert_allclose(shown, np.maximum(amplitude, mesh.norm.vmin))
    assert ax.get_yscale() == "log"
    assert ax.yaxis_inverted()
    assert ax.get_xlim() == (31.0, 36.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "scale (units of x)")
    assert bar_of(ax).get_ylabel() == "amplitude (units of y)"
    ax.figure.canvas.draw()
    ticks = [float(label.get_text()) for label in ax.get_yticklabels()]  # plain numbers
    assert_allclose(ticks, ax.get_yticks())


def test_local_scales_are_a_map_in_units_of_the_inputs(plane):
    ax, sides = Figure().subplots(), (np.linspace(105, 175, 20), np.linspace(12, 60, 15))
    assert plots.local_scales(plane, sides, ax=ax) is ax
    (mesh,) = mesh_of(ax)
    expected = scalogram(plane.model_, sides).local_scale
    assert_allclose(np.asarray(mesh.get_array()).ravel(), expected.ravel())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x2")
    assert bar_of(ax).get_ylabel() == "local scale (units of X)"
    corners = mesh.get_coordinates()
    assert_allclose(corners[0, 0], [105 - 35 / 19, 12 - 24 / 14])


def test_prior_deviations_are_a_line_or_a_map(line, plane):
    ax, x = Figure().subplots(), np.linspace(31.0, 36.0, 40)
    assert plots.prior_deviations(line["multiscale"], x, ax=ax) is ax
    assert_allclose(ax.lines[0].get_ydata(), prior_deviation(line["multiscale"].model_, x[:, None]))
    assert ax.get_ylabel() == "prior sd of f (units of y)"
    ax = plots.prior_deviations(plane, ax=Figure().subplots())
    (mesh,) = mesh_of(ax)
    low, high = usual_range(plane.model_).T
    axes = np.linspace(low, high, plots.models.PIXELS).T
    expected = prior_deviation(plane.model_, grid(axes))
    assert_allclose(np.asarray(mesh.get_array()).ravel(), expected)
    assert bar_of(ax).get_ylabel() == "prior sd of f (units of y)"


def test_learned_variances_are_an_image_of_cells_or_points(line, plane):
    ax = plots.learned_variances(line["multiscale"], ax=Figure().subplots())
    rows = variances_by_scale(atom_table(line["multiscale"].model_))
    for mesh, row in zip(mesh_of(ax), rows, strict=True):
        assert_allclose(mesh.get_coordinates()[0, :, 0], row.edges)
        assert mesh.get_clim() == mesh_of(ax)[0].get_clim()
    assert bar_of(ax).get_ylabel() == "prior sd of atoms (units of y)"
    for model in (line["adaptive"], line["random_features"], plane):
        ax = plots.learned_variances(model, ax=Figure().subplots())
        dots = [each for each in ax.lines if each.get_marker() == "."]
        rows = variances_by_scale(atom_table(model.model_))
        for dot, row in zip(dots, rows, strict=True):
            assert_allclose(dot.get_ydata(), row.heights)
        assert ax.get_xlabel() == "scale (units of X)"
        assert ax.get_xscale() == ax.get_yscale() == "log"


def test_columns_keep_their_names_and_the_current_axes_are_the_default(line):
    pandas = pytest.importorskip("pandas")
    mpl.use("Agg")
    from matplotlib import pyplot

    X, y = packet(0.3)
    model = fit("multiscale", pandas.DataFrame({"depth": X[:, 0]}), y)
    ax = pyplot.figure().subplots()
    assert plots.scalogram(model) is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("depth", "scale (units of depth)")
    pyplot.close("all")


def test_models_without_such_a_picture_are_refused(line, plane):
    X, y = packet(0.3, 60)
    ax = Figure().subplots()
    nystrom = fit("nystrom", X, y)
    for draw in (plots.scalogram, plots.learned_variances):
        with pytest.raises(ValueError, match="prior='multiscale', 'adaptive' or 'random_features'"):
            draw(nystrom, ax=ax)
    assert len(plots.prior_deviations(nystrom, ax=ax).lines) == 1
    with pytest.raises(ValueError, match="is for 1 input column, and X had 2"):
        plots.scalogram(plane, ax=ax)
    with pytest.raises(ValueError, match="is for 2 input columns, and X had 1"):
        plots.local_scales(line["multiscale"], ax=ax)
    with pytest.raises(ValueError, match="pass x"):
        plots.prior_deviations(RFFRegressor(20, random_state=0).fit(X, y), ax=ax)
    skewed = fit("multiscale", np.exp(X - START), y)
    with pytest.raises(ValueError, match="log_skewed=False"):
        plots.scalogram(skewed, ax=ax)
