"""Maps: rasters and points in, rasters out, with what they are about kept and gaps filled."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf import RWFRegressor, maps
from rwf.diagnostics.plots.maps import map_panels
from rwf.errors import DegreesAsPlaneWarning
from rwf.integrations.maps.cells import Axes

xr = pytest.importorskip("xarray", reason="the extra maps is not installed")
pytest.importorskip("dask", reason="the extra maps is not installed")


def quick(n=60):
    return RWFRegressor(n, prior="multiscale", random_state=0)


def in_three_columns():
    return RWFRegressor(100, prior="nystrom", neighbors=None, n_restarts=0, random_state=0)


def raster(seed=0, shape=(18, 24), low=350.0, gaps=0.4):
    """Waves over degrees across Greenwich, with gaps, and a covariate that is known everywhere."""
    rng = np.random.default_rng(seed)
    lat, lon = np.linspace(50, 42, shape[0]), (low + np.linspace(0, 20, shape[1])) % 360
    turned = (lon[None, :] - low) % 360
    soil = rng.normal(size=shape)
    z = 10 + np.sin(turned / 3) + np.cos(lat[:, None]) + 0.5 * soil
    z = z + 0.05 * rng.normal(size=shape)
    z[rng.uniform(size=shape) < gaps] = np.nan
    coords = {
        "lat": ("lat", lat, {"units": "degrees_north"}),
        "lon": ("lon", lon, {"units": "degrees_east"}),
    }
    cells = ("lat", "lon")
    return xr.Dataset({"rain": (cells, z, {"units": "mm"}), "soil": (cells, soil)}, coords)


@pytest.fixture(scope="module")
def rain():
    return raster()


@pytest.fixture(scope="module")
def model(rain):
    return maps.fit_map(rain.rain, regressor=quick())


def test_predictions_are_those_of_the_regressor_at_the_cells(rain, model):
    found = maps.predict_map(model, rain, above=10.5)
    lon, lat = np.meshgrid(rain.lon, rain.lat)
    X = model.places.columns(lon.ravel(), lat.ravel())
    mean, std = model.regressor.predict(
        pd.DataFrame(X, columns=["x_degrees", "y_degrees"]), return_std=True
    )
    assert_allclose(found["mean"].values.ravel(), mean)
    assert_allclose(found["sd"].values.ravel(), std)
    p = model.regressor.predict_distribution(pd.DataFrame(X, columns=["x_degrees", "y_degrees"]))
    assert_allclose(found["quantiles"].sel(quantile=0.975).values.ravel(), p.ppf(0.975))
    assert_allclose(found["exceedance"].values.ravel(), 1.0 - p.cdf(10.5))
    assert ((found["exceedance"].values > 0.5) == (found["mean"].values > 10.5)).all()
    quiet = maps.predict_map(model, rain, noise=False)
    assert_allclose(quiet["sd"].values.ravel(), model.regressor.predict_function(
        pd.DataFrame(X, columns=["x_degrees", "y_degrees"]))[1])  # fmt: skip


def test_coordinates_units_and_attributes_stay_and_nothing_is_computed_early(rain, model):
    found = maps.predict_map(model, rain.chunk(lat=7, lon=10))
    assert found["mean"].chunks == ((7, 7, 4), (10, 10, 4))
    assert found["mean"].dims == ("lat", "lon")
    xr.testing.assert_identical(found.lon.drop_vars("lon"), rain.lon.drop_vars("lon"))
    assert found["sd"].attrs["units"] == "mm"
    assert "degrees as a plane" in found.attrs["metric"]
    whole = maps.predict_map(model, rain).compute()
    assert_allclose(found["mean"].values, whole["mean"].values, rtol=1e-12)
    turned = maps.predict_map(model, rain.transpose("lon", "lat"))
    assert_allclose(turned["mean"].values.T, whole["mean"].values)


def test_longitudes_may_be_counted_from_elsewhere(rain, model):
    other = rain.assign_coords(lon=(rain.lon + 180) % 360 - 180)
    found = maps.predict_map(model, other)["mean"].values
    assert_allclose(found, maps.predict_map(model, rain)["mean"].values)


def test_covariates_are_columns_and_cells_without_them_stay_missing(rain):
    with_soil = maps.fit_map(rain, "rain", regressor=in_three_columns())
    assert with_soil.places.covariates == ("soil",)
    without = maps.fit_map(rain, "rain", covariates=[], regressor=in_three_columns())
    template = rain.copy(deep=True)
    template.soil[3, 4] = np.nan
    found = maps.predict_map(with_soil, template)
    assert np.isnan(found["mean"][3, 4])
    assert np.isfinite(found["mean"]).sum() == rain.soil.size - 1
    new = raster(gaps=0.0)
    errors = [
        float(np.nanstd(maps.predict_map(m, template)["mean"].values - new.rain.values))
        for m in (with_soil, without)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_masked_cells_are_neither_learned_nor_predicted(rain):
    land = xr.where(rain.lat > 45, 1, 0).broadcast_like(rain.rain)
    spoiled = rain.rain.where(land == 1, 1e6).to_dataset(name="rain").assign(land=land)
    model = maps.fit_map(spoiled, "rain", covariates=[], mask="land", regressor=quick())
    found = maps.predict_map(model, spoiled, mask="land")["mean"]
    assert_array_equal(np.isfinite(found.values), land.values == 1)
    assert np.nanmax(found.values) < 20


def test_time_is_a_third_column_in_days():
    days = pd.date_range("2020-03-01", periods=4, freq="12h")
    layers = [raster(seed).rain + 0.1 * k for k, seed in enumerate(range(4))]
    cube = xr.concat(layers, pd.Index(days, name="time"))
    model = maps.fit_map(cube, regressor=in_three_columns())
    assert model.places.names == ("x_degrees", "y_degrees", "time")
    assert_allclose(model.regressor.model_.units.X.center[2], 18322.75, atol=0.1)
    found = maps.predict_map(model, cube)
    assert found["mean"].dims == ("time", "lat", "lon")
    assert np.sqrt(np.nanmean((found["mean"].values - cube.values) ** 2)) < 0.7


def test_coordinates_of_two_dimensions():
    lat, lon = np.meshgrid(np.linspace(50, 42, 15), np.linspace(0, 9, 20), indexing="ij")
    lon = lon + 0.1 * lat
    z = xr.DataArray(
        np.sin(lon), dims=("j", "i"), coords={"lat": (("j", "i"), lat), "lon": (("j", "i"), lon)}
    )
    model = maps.fit_map(z, regressor=quick())
    found = maps.predict_map(model, z)
    assert found["mean"].dims == ("j", "i")
    assert_allclose(found["mean"].values, z.values, atol=0.2)
    unknown = z.assign_coords(lon=z.lon.where(z.lat > 44))  # as beside the swath of a satellite
    here = maps.predict_map(model, unknown)["mean"]
    assert_array_equal(np.isfinite(here.values), lat > 44)
    assert maps.fit_map(unknown, regressor=quick()).regressor.model_.n_rows == (lat > 44).sum()


def test_coordinates_of_dimensions_come_before_others():
    """As of a projected raster that also has the longitudes and latitudes of its cells."""
    lat, lon = np.meshgrid(np.linspace(50, 42, 5), np.linspace(0, 9, 6), indexing="ij")
    coords = {"lat": (("y", "x"), lat), "lon": (("y", "x"), lon, {"standard_name": "longitude"})}
    z = xr.DataArray(
        lon, dims=("y", "x"), coords=coords | {"x": 1e4 * np.arange(6.0), "y": 1e4 * np.arange(5.0)}
    )
    axes = Axes.of(z)
    assert (axes.x, axes.y, axes.time) == ("x", "y", None)
    assert not axes.are_degrees(z)


def test_points_to_a_grid(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"east": rng.uniform(0, 10, 300), "north": rng.uniform(0, 6, 300)})
    frame["z"] = np.sin(frame.east) + frame.north
    frame.to_csv(tmp_path / "points.csv", index=False)
    both = [
        maps.fit_map(data, "z", x="east", y="north", regressor=quick())
        for data in (frame, tmp_path / "points.csv")
    ]
    grid = maps.grid(both[0], 0.5)
    assert both[0].places.geometry == "plane"
    assert abs(grid.sizes["east"] - 20) <= 1
    assert grid.north.values[0] > grid.north.values[-1]  # rows begin in the north
    found = [maps.predict_map(m, grid)["mean"].values for m in both]
    assert_allclose(found[0], found[1])
    wanted = np.sin(grid.east.values) + grid.north.values[:, None]
    assert np.sqrt(np.mean((found[0] - wanted) ** 2)) < 0.1


def test_saved_equals_loaded(model, rain, tmp_path):
    model.save(tmp_path / "map.rwf")
    again = rwf.load(tmp_path / "map.rwf")
    assert isinstance(again, rwf.MapModel)
    assert again.places.names == model.places.names
    a, b = (maps.predict_map(m, rain) for m in (model, again))
    assert_array_equal(a["sd"].values, b["sd"].values)


def test_netcdf_out_and_in(model, rain, tmp_path):
    found = maps.predict_map(model, rain.chunk(lat=7))
    maps.write_map(found, tmp_path / "out.nc")
    again = maps.open_map(tmp_path / "out.nc")
    assert_allclose(again["mean"].values, found["mean"].values, rtol=1e-6)
    assert again["mean"].attrs["units"] == "mm"
    assert again.lon.attrs["units"] == "degrees_east"
    assert [p.name for p in tmp_path.iterdir()] == ["out.nc"]


def test_geotiff_in_and_out_with_its_crs(tmp_path):
    pytest.importorskip("rioxarray", reason="the extra maps is not installed")
    x, y = 500_000 + 30.0 * np.arange(20), 5_000_000 - 30.0 * np.arange(12)
    z = np.sin(x / 60) + np.cos(y[:, None] / 60)
    z[4:7, 5:9] = np.nan
    da = xr.DataArray(z, dims=("y", "x"), coords={"x": x, "y": y}, name="height")
    da.rio.write_crs("EPSG:32633").rio.to_raster(tmp_path / "in.tif")
    source = maps.open_map(tmp_path / "in.tif")
    model = maps.fit_map(source, regressor=quick(80))
    assert model.places.geometry == "plane"
    assert "UTM zone 33N" in model.places.crs
    found = maps.predict_map(model, source)
    maps.write_map(found, tmp_path / "out.tif")
    again = maps.open_map(tmp_path / "out.tif")
    assert again.rio.crs.to_epsg() == 32633
    assert set(again.data_vars) == {"mean", "sd", "quantiles_0.025", "quantiles_0.975"}
    assert_allclose(again["sd"].values, found["sd"].values, rtol=1e-6)
    assert_allclose(again.x.values, x)
    maps.write_map(found, tmp_path / "out.nc")
    assert maps.open_map(tmp_path / "out.nc").rio.crs.to_epsg() == 32633


def test_a_geotiff_keeps_units_of_its_bands(tmp_path):
    pytest.importorskip("rioxarray", reason="the extra maps is not installed")
    coords = {"y": 5_000_000 - 30.0 * np.arange(4), "x": 500_000 + 30.0 * np.arange(5)}
    height = xr.DataArray(np.arange(20.0).reshape(4, 5), coords, attrs={"units": "m"})
    share = xr.DataArray(np.ones((4, 5)), coords)
    maps.write_map(xr.Dataset({"height": height, "share": share}), tmp_path / "two.tif")
    found = maps.open_map(tmp_path / "two.tif")
    assert found.height.attrs["units"] == "m"
    assert "units" not in found.share.attrs


def test_a_geotiff_needs_equal_steps(model, rain, tmp_path):
    pytest.importorskip("rioxarray", reason="the extra maps is not installed")
    with pytest.raises(ValueError, match="no equal steps"):
        maps.write_map(maps.predict_map(model, rain), tmp_path / "out.tif")
    assert not [*tmp_path.iterdir()]


def test_draws_are_as_correlated_as_their_covariance(model, rain):
    template = rain.isel(lat=slice(0, 18, 5), lon=slice(0, 24, 6))
    drawn = maps.sample_map(model, template, 3000, random_state=0)
    assert drawn.dims == ("draw", "lat", "lon")
    predicted = maps.predict_map(model, template, noise=False)
    size = 6 / np.sqrt(3000)
    sd = predicted["sd"].values
    assert_allclose(drawn.mean("draw"), predicted["mean"], atol=size * sd.max())
    assert_allclose(drawn.std("draw"), sd, rtol=size)
    assert drawn.attrs["units"] == "mm"


def test_means_over_areas_are_weighted_by_cell_size_and_exact(model, rain):
    west = [(349.0, 40.0), (358.0, 40.0), (358.0, 52.0), (349.0, 52.0)]
    east = [(0.0, 40.0), (11.0, 40.0), (11.0, 52.0), (0.0, 52.0)]
    found = maps.mean_over(model, rain, {"west": west, "east": east})
    lon, lat = np.meshgrid(rain.lon, rain.lat)
    X = model.places.columns(lon.ravel(), lat.ravel())
    units = model.regressor.model_.units
    C = model.regressor.model_.covariance(units.inputs(X), noise=False)[..., 0]
    size = np.cos(np.radians(lat.ravel()))
    w = np.array([(lon.ravel() > 349) & (lon.ravel() < 358), lon.ravel() < 11]) * size
    w /= w.sum(axis=1, keepdims=True)
    assert_allclose(found.covariance, w @ C @ w.T * units.y.scale**2, rtol=1e-8)
    assert_allclose(found["mean"], w @ maps.predict_map(model, rain)["mean"].values.ravel())
    labelled = rain.assign(zone=xr.where(rain.lon < 11, "east", "").broadcast_like(rain.rain))
    by_label = maps.mean_over(model, labelled, "zone")
    assert by_label.area.values.tolist() == ["east"]
    assert_allclose(by_label.sd[0], found.sd[1])


def test_a_plane_of_degrees_near_a_pole_is_warned_of(rain):
    north = rain.assign_coords(lat=rain.lat + 25)
    with pytest.warns(DegreesAsPlaneWarning, match="geometry='sphere'"):
        maps.fit_map(north.rain, geometry="degrees", regressor=quick())
    assert maps.fit_map(north.rain, regressor=quick()).places.geometry == "sphere"


def test_many_cells_are_thinned(rain):
    assert maps.fit_map(rain.rain, most_cells=100, regressor=quick()).regressor.model_.n_rows == 100


def test_a_quick_look_has_two_panels_with_colour_bars(model, rain):
    figure = maps.plot_map(maps.predict_map(model, rain))
    assert [ax.get_title() for ax in figure.axes[:2]] == ["mean", "standard deviation"]
    assert len(figure.axes) == 4
    assert figure.axes[2].get_ylabel() == "mm"


def test_a_quick_look_across_greenwich_has_longitudes_around_zero(rain):
    around = rain.assign_coords(lon=("lon", np.linspace(355, 367, rain.sizes["lon"]) % 360))
    around.lon.attrs["units"] = "degrees_east"
    around["mean"], around["sd"] = around.rain, around.rain
    figure = maps.plot_map(around)
    low, high = figure.axes[0].get_xlim()
    assert -6 < low < -5 < 7 < high < 8


def test_a_quick_look_writes_projected_coordinates_in_full():
    x, y = 600_000 + 30.0 * np.arange(40), 5_200_000 - 30.0 * np.arange(30)
    figure = map_panels(x, y, np.ones((30, 40)), np.ones((30, 40)))
    figure.draw_without_rendering()
    for ax in figure.axes[:2]:
        shown = [label.get_text() for label in ax.get_xticklabels()]
        assert len(shown) <= 7
        assert "600500" in shown
        assert ax.yaxis.get_offset_text().get_text() == ""


@pytest.mark.parametrize(
    "call, advice",
    [
        (lambda r, m: maps.fit_map(r, "snow"), "use one of 'rain', 'soil'"),
        (lambda r, m: maps.fit_map(r, "rain", x="east"), "no coordinate 'east'"),
        (lambda r, m: maps.fit_map(r.rain.rename(lon="i", lat="j")), "name them"),
        (lambda r, m: maps.fit_map(r.rain * np.nan), "known in no cell"),
        (lambda r, m: maps.fit_map(r.rain, geometry="flat"), "use 'plane'"),
        (lambda r, m: maps.fit_map(pd.DataFrame({"z": [1.0]}), "z"), "names of their columns"),
        (lambda r, m: maps.predict_map(m, r.rename(lon="east")), "no 'lon'"),
        (lambda r, m: maps.predict_map(m, r, quantiles=(0.5, 1.0)), "between 0 and 1"),
        (lambda r, m: maps.predict_map(m, r, mask="sea"), "'sea' is no variable"),
        (lambda r, m: maps.grid(m, -1.0), "must be positive"),
        (lambda r, m: maps.grid(m, 1e-6), "other units"),
        (lambda r, m: maps.write_map(r, "map.png"), "should be one of .nc"),
        (lambda r, m: maps.mean_over(m, r, {"far": [(90, 0), (91, 0), (91, 1)]}), "no cell"),
    ],
)
def test_wrong_turns_say_what_to_do(rain, model, call, advice):
    with pytest.raises(ValueError, match=advice):
        call(rain, model)


def test_memory_is_that_of_a_chunk(model):
    import tracemalloc

    import dask

    lat, lon = np.linspace(42, 50, 1000), np.linspace(0, 10, 500)
    template = xr.Dataset(coords={"lat": lat, "lon": lon})
    found = maps.predict_map(
        model, template.assign(c=(("lat", "lon"), np.zeros((1000, 500)))).chunk(lat=25)
    )
    with dask.config.set(scheduler="synchronous"):
        tracemalloc.start()
        total = float(found["mean"].mean())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert np.isfinite(total)
    assert peak < 30e6
