"""From points or rasters with gaps to rasters, by one command; and every wrong turn."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from rwf.cli.app import app

xr = pytest.importorskip("xarray", reason="the extra maps is not installed")
pytest.importorskip("netCDF4", reason="the extra maps is not installed")

QUICK = ["--n-components", "40", "--quiet"]


def wave(x, y):
    return np.sin(x) + 0.3 * y


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with points, a template, and a raster with gaps."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    points = pd.DataFrame({"east": rng.uniform(0, 6, 240), "north": rng.uniform(0, 4, 240)})
    points["z"] = wave(points.east, points.north) + 0.05 * rng.normal(size=240)
    points.to_csv("points.csv", index=False)
    coords = {"north": np.linspace(4, 0, 9), "east": np.linspace(0, 6, 13)}
    land = (("north", "east"), np.arange(117).reshape(9, 13) % 5 > 0)
    template = xr.Dataset({"land": land}, coords)
    template.to_netcdf("template.nc")
    full = wave(template.east, template.north).transpose("north", "east")
    gaps = full.where(rng.uniform(size=full.shape) > 0.3).astype("float32")
    gaps.to_dataset(name="z").to_netcdf("gaps.nc")
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if code:
        return result
    assert result.exit_code == 0, result.output + str(result.exception)
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


POINTS = ["map", "points.csv", "--target", "z", "--x", "east", "--y", "north", *QUICK]


def test_points_to_the_cells_of_a_template(work):
    said = run(*POINTS, "--like", "template.nc", "--mask", "land", "--above", 1.0,
               "--out", "map.nc", "--figure", "map.png", "--json")  # fmt: skip
    assert said["cells"] == 117
    assert said["rows"] == 240
    assert said["metric"] == "east and north as a plane"
    found, template = xr.open_dataset("map.nc"), xr.open_dataset("template.nc")
    assert (np.isfinite(found["mean"]) == template.land).all()
    error = found["mean"] - wave(template.east, template.north)
    assert float(abs(error).max()) < 0.4
    assert (work / "map.png").stat().st_size > 5000


def test_points_to_cells_of_a_size_and_a_model_for_other_rasters(work):
    run(*POINTS, "--resolution", 0.5, "--out", "grid.nc", "--model", "map.rwf")
    grid = xr.open_dataset("grid.nc")
    assert abs(grid.sizes["east"] - 12) <= 1
    said = run("predict", "map.rwf", "grid.nc", "--out", "again.nc", "--interval", 0.5, "--json")
    assert said["interval"] == 0.5
    again = xr.open_dataset("again.nc")
    assert_allclose(again["mean"], grid["mean"], rtol=1e-5)
    assert again["quantile"].values.tolist() == [0.25, 0.75]
    assert "240 rows" in run("inspect", "map.rwf")
    refused = run("predict", "map.rwf", "points.csv", "--out", "table.csv", code=2)
    assert "give rwf predict a raster" in str(refused.exception)


def test_a_raster_fills_its_own_gaps(work):
    run("map", "gaps.nc", "--out", "full.nc", *QUICK)
    assert np.isfinite(xr.open_dataset("full.nc")["mean"]).all()


def test_a_geotiff_fills_its_own_gaps(work):
    pytest.importorskip("rioxarray", reason="the extra maps is not installed")
    gaps = xr.open_dataset("gaps.nc")["z"].rio.set_spatial_dims("east", "north")
    gaps.rio.write_crs("EPSG:32633").rio.to_raster("gaps.tif")
    run("map", "gaps.tif", "--out", "full.tif", *QUICK)
    from rwf import maps

    found = maps.open_map("full.tif")
    assert np.isfinite(found["mean"]).all()
    assert found.rio.crs.to_epsg() == 32633


def test_a_model_of_a_table_predicts_rasters_with_its_columns(work):
    run("fit", "points.csv", "--target", "z", "--out", "table.rwf", "--validate", "none", *QUICK)
    run("predict", "table.rwf", "template.nc", "--out", "map.nc")
    template = xr.open_dataset("template.nc")
    error = xr.open_dataset("map.nc")["mean"] - wave(template.east, template.north)
    assert float(abs(error).max()) < 0.5


@pytest.mark.parametrize(
    "arguments, advice",
    [
        (["map", "points.csv", "--out", "map.nc"], "--target, --x and --y"),
        ([*POINTS, "--out", "map.nc"], "--like with a raster, or --resolution"),
        ([*POINTS, "--resolution", "1", "--out", "map.csv"], "should end in .nc"),
        ([*POINTS, "--like", "points.csv", "--out", "map.nc"], "--like points.csv should end"),
        (["map", "gaps.nc", "--out", "gaps.nc", "--force"], "is read by this command"),
        (["map", "nothing.nc", "--out", "map.nc"], "nothing.nc"),
        ([*POINTS, "--resolution", "1", "--out", "template.nc"], "--force"),
    ],
)
def test_wrong_turns_are_noticed_before_anything_is_fitted(work, arguments, advice):
    result = run(*arguments, code=2)
    assert result.exit_code == 1
    assert advice in str(result.exception)


def test_a_missing_package_is_noticed_before_anything_is_fitted(work, monkeypatch):
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    monkeypatch.setattr("rwf.integrations.maps.fit_map", None)
    result = run(*POINTS, "--resolution", "1", "--out", "map.nc", code=2)
    assert 'maps need netCDF4: pip install "rwf[maps]"' in str(result.exception)
