"""Terrain and long series: tasks hold out what they say, the chirp is its formula, maps fit."""

import tomllib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import chirp, splits, tasks
from experiments.reporting import docs, figures
from experiments.reporting.maps import block_map, draw_map
from experiments.runner import store
from experiments.runner.methods import make
from experiments.runner.plan import SUITES, load_suite
from experiments.runner.run import Run, row_of

TERRAIN = {"dem_jacksboro": 138_632, "dem_us_prism4km": 556_816, "walker_lake": 78_000}
SESSION = {"threads": 1, "dgemm_gflops": None, "versions": {}}
PAGE = "<!-- begin generated: {} -->\n<!-- end generated -->\n"


def write_grid(directory, name, n=40):
    """A smooth surface on a grid of lines and columns that are not square, in RWF_DATA."""
    x, y = np.meshgrid(5 + 0.1 * np.arange(n), -3 + 0.2 * np.arange(n // 2))
    X = np.column_stack([x.ravel(), y.ravel()])
    z = 400 + 30 * np.sin(2 * X[:, 0]) + 10 * X[:, 1]
    lines = np.column_stack([X, z])
    np.savetxt(directory / f"{name}.csv.gz", lines, delimiter=",", header="x,y,z")
    return X, z


# real tables


@pytest.mark.parametrize("name", TERRAIN)
def test_terrain_is_split_at_random_or_loses_a_block(data_dir, name):
    table, random = tasks.problem(name, 1)
    n = TERRAIN[name]
    assert table.X.shape == (n, 2)
    assert_array_equal(random.test, np.random.RandomState(1).permutation(n)[int(0.9 * n) :])
    block = tasks.hold_out(f"{name}-block")(table.X, 1)
    held, learned = table.X[block.test], table.X[block.train]
    assert len(held) + len(learned) == n
    assert 0.05 <= len(held) / n <= 0.15
    low, high = held.min(axis=0), held.max(axis=0)
    assert not np.any(np.all((low <= learned) & (learned <= high), axis=1))
    assert_array_equal(block.test, tasks.hold_out(f"{name}-block")(table.X, 1).test)
    other = table.X[tasks.hold_out(f"{name}-block")(table.X, 2).test]
    assert not np.array_equal(low, other.min(axis=0))


@pytest.mark.parametrize("name, n", [("argo", 32_436), ("jason3", 18_973)])
def test_the_sea_has_time_as_a_third_column(data_dir, name, n):
    assert tasks.problem(name, 0)[0].X.shape == (n, 3)


@pytest.mark.parametrize("name, n", [("ecg", 108_000), ("audio", 11_359)])
def test_a_recording_loses_every_tenth_row(data_dir, name, n):
    table, rows = tasks.problem(f"{name}-tenth", 2)
    assert table.X.shape == (n, 1)
    assert_array_equal(rows.test, np.arange(2, n, 10))
    assert len(rows.train) + len(rows.test) == n
    assert_array_equal(np.diff(table.X[:, 0]) > 0, True)


def test_a_tenth_begins_where_the_split_says():
    X = np.zeros((47, 1))
    assert_array_equal(splits.tenth(X, 7).test, [7, 17, 27, 37])
    assert_array_equal(splits.tenth(X, 17).test, splits.tenth(X, 7).test)
    assert_array_equal(splits.tenth(X, 0).train[:9], np.arange(1, 10))


# the chirp


def test_the_chirp_has_its_sizes_and_noise():
    table, rows = tasks.problem("chirp-bursts", 2)
    assert (len(rows.train), len(rows.test)) == (100_000, 20_000)
    assert 0 <= table.X.min() < 1e-3 < 0.999 < table.X.max() <= 1
    noise = table.y - table.f
    assert abs(noise.std() / 0.1 - 1) < 5 / np.sqrt(2 * 120_000)
    assert abs(np.corrcoef(noise, table.f)[0, 1]) < 5 / np.sqrt(120_000)


def test_bursts_differ_between_splits_and_not_within_one():
    first, again, other = (tasks.problem("chirp-bursts", index)[0] for index in (0, 0, 1))
    assert_array_equal(first.y, again.y)
    near_zero = [table.f[np.argmin(np.abs(table.X[:, 0] - 0.2))] for table in (first, other)]
    assert near_zero[0] != near_zero[1]


def test_the_chirp_is_its_formula():
    x = np.array([0.0, 0.1, 0.36999, 0.37, 0.7, 0.71, 1.0])
    assert_allclose(chirp.jumps(x), [0, 0, 0, 0.6, 0.6, -0.3, -0.3], atol=1e-12)
    assert_allclose(chirp.chirp(x), 0.5 * np.sin(2 * np.pi * (20 * x + 600 * x**3)), atol=1e-9)
    step = 1e-8
    rate = (chirp.chirp(np.array([0.5 + step])) - chirp.chirp(np.array([0.5 - step]))) / (2 * step)
    phase = 2 * np.pi * (20 * 0.5 + 600 * 0.125)
    assert_allclose(rate, np.pi * (20 + 1800 * 0.25) * np.cos(phase), rtol=1e-5)


def test_a_burst_is_a_cosine_in_a_window():
    one = chirp.Bursts(*(np.array([value]) for value in (0.4013, 0.01, 100.0, 1.3)))
    at = 0.4013 + np.array([0, 0.005, 0.01, -0.005, 0.0025])
    windows = np.exp(-0.5 * np.array([0, 0.5, 1, 0.5, 0.25]) ** 2)
    assert_allclose(one(at), 1.3 * windows * np.array([1, -1, 1, -1, 0]), atol=1e-12)


def test_bursts_are_drawn_from_their_ranges():
    many = [chirp.draw_bursts(np.random.default_rng(seed)) for seed in range(200)]
    for field, low, high in (
        ("centers", 0, 1),
        ("frequencies", 200, 1500),
        ("amplitudes", 0.5, 1.5),
    ):
        drawn = np.concatenate([getattr(bursts, field) for bursts in many])
        assert len(drawn) == 200 * 25
        middle, width = (low + high) / 2, high - low
        assert low <= drawn.min() < drawn.max() <= high
        assert abs(drawn.mean() - middle) < 5 * width / np.sqrt(12 * len(drawn))
    widths = np.log10(np.concatenate([bursts.widths for bursts in many]))
    assert -3.2 <= widths.min() < -3.19 < -2.01 < widths.max() <= -2.0


# suites


def test_terrain_asks_both_questions_and_long_series_the_matern_process():
    terrain, long = load_suite("terrain"), load_suite("long")
    assert terrain.splits == long.splits == (0, 1, 2)
    for name in TERRAIN:
        assert {name, f"{name}-block"} <= set(terrain.tasks)
    assert {"rwf-tree", "rwf-second", "knn", "linear-interpolation", "kriging"} <= {
        *terrain.methods
    }
    assert {"rwf-tree", "celerite-matern32", "ti-sym8"} <= set(long.methods)
    for name in ("terrain", "long"):
        text = tomllib.loads((SUITES / f"{name}.toml").read_text(encoding="utf-8"))
        assert not text["description"].count("\n")


@pytest.mark.parametrize(
    "name, expected",
    [
        ("rwf-tree", {"solver": "multifrontal", "second_opinion": "auto"}),
        ("rwf-second", {"solver": "multifrontal", "second_opinion": True}),
        ("rwf-2000", {"n_components": 2000, "solver": "dense", "prior": "multiscale"}),
        ("rff-2000", {"n_components": 2000}),
    ],
)
def test_ours_are_what_their_names_say(name, expected):
    settings = make(name, {}, 3).model.get_params()
    assert {key: settings[key] for key in expected} == expected
    assert settings["random_state"] == 3


@pytest.mark.parametrize("name", ["rwf-tree", "rwf-second"])
def test_a_tree_runs_behind_the_harness(name, rng):
    X = rng.uniform([3, -8], [5, 2], (900, 2))
    y = 40 + 3 * np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.1, 900)
    method = make(name, {}, 0).fit(X[:800], y[:800])
    mean, std = method.predict(X[800:])
    assert np.sqrt(np.mean((mean - y[800:]) ** 2)) < 0.3
    assert np.mean(np.abs(mean - y[800:]) < 1.96 * std) > 0.85
    _, std_f = method.predict_function(X[800:])
    assert np.all((std_f >= 0) & (std_f <= std * (1 + 1e-9)))
    assert method.facts()["n_features"] > 0


def test_pages_show_the_rows_there_are_with_the_notes_they_need(tmp_path):
    for suite, method in (("terrain", "knn"), ("long", "celerite-matern32")):
        run = load_suite(suite).runs(methods=[method])[0]
        store.append(store.results_file(suite, tmp_path), row_of(run, {"rmse": 2.0}, SESSION))
    text = docs.regenerated("".join(PAGE.format(name) for name in ("terrain", "long")), tmp_path)
    assert "| K nearest neighbours ⁷ | **2.00** (1 of 3) | – |" in text
    assert "| Matérn-3/2 by celerite2 ⁹ | **2.00** (1 of 3) | – |" in text
    assert text.count("\n⁷ Number of neighbours") == text.count("\n⁹ Length, amplitude") == 1
    assert "⁸" not in text


# maps


@pytest.fixture
def hills(tmp_path, monkeypatch):
    monkeypatch.setenv("RWF_DATA", str(tmp_path))
    return write_grid(tmp_path, "dem_jacksboro")


def test_a_map_has_the_truth_at_its_place_and_nothing_of_the_block_was_learned(hills):
    X, z = hills
    found = block_map("dem_jacksboro-block", "linear", 0)
    rows = splits.block(X, 0)
    for row in (rows.test[0], rows.test[-1], rows.test[3]):
        line, column = np.searchsorted(found.y, X[row, 1]), np.searchsorted(found.x, X[row, 0])
        assert found.truth[line, column] == z[row]
        mean, std = make("linear", {}, 0).fit(X[rows.train], z[rows.train]).predict(X[row][None])
        assert_allclose([found.mean[line, column], found.std[line, column]], [mean[0], std[0]])
    assert_array_equal(
        [found.low, found.high], [X[rows.test].min(axis=0), X[rows.test].max(axis=0)]
    )
    assert found.x[0] < found.low[0] < found.high[0] < found.x[-1]
    assert found.unit == "m"
    panels = draw_map(found).axes
    assert [ax.get_title() for ax in panels[:4]] == [
        "truth",
        "mean",
        "standard deviation",
        "mean − truth",
    ]


def test_a_map_is_drawn_where_its_row_is_stored_and_its_table_at_hand(hills, tmp_path, monkeypatch):
    run = Run("dem_jacksboro-block", "linear", 0)
    monkeypatch.setattr(figures, "MAPPED", {"terrain": run})
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []
    failed = row_of(run, {"error": "ValueError: no"}, SESSION)
    store.append(store.results_file("terrain", tmp_path), failed)
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []
    store.append(store.results_file("terrain", tmp_path), row_of(run, {"rmse": 2.0}, SESSION))
    (path,) = figures.draw_maps(tmp_path, tmp_path / "drawn")
    assert path.name == "terrain.png"
    assert path.stat().st_size > 1000
    monkeypatch.delenv("RWF_DATA")
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []


def test_the_map_is_of_a_run_of_its_suite():
    for name, run in figures.MAPPED.items():
        assert run.key in {each.key for each in load_suite(name).runs()}
