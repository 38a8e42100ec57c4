"""Tasks by name: simulated draws repeat, and real tables are there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import splits, tasks
from rwf.datasets import DONOHO_JOHNSTONE, step_function


@pytest.mark.parametrize("name", tasks.SIMULATED)
def test_draws_repeat_and_differ_between_splits(name):
    table, rows = tasks.problem(name, 2)
    again, _ = tasks.problem(name, 2)
    other, _ = tasks.problem(name, 3)
    assert_array_equal(table.X, again.X)
    assert_array_equal(table.y, again.y)
    assert not np.array_equal(table.y, other.y)
    assert_array_equal([*rows.train, *rows.test], np.arange(len(table.y)))


@pytest.mark.parametrize(
    "name, noise, n_train",
    [
        ("six-plateaus", 0.05, 4200),
        ("five-plateaus", 0.05, 4200),
        ("five-plateaus-quiet", 0.005, 4200),
        ("five-plateaus-350", 0.005, 350),
    ],
)
def test_plateaus_have_their_sizes_levels_and_noise(name, noise, n_train):
    table, rows = tasks.problem(name, 1)
    levels = {"six": (0, 1, -0.5, 0.75, -1, 0.5), "five": (-1, 1.2, -0.25, 1.2, 0.25)}
    assert (len(rows.train), len(rows.test)) == (n_train, 1800)
    assert_array_equal(table.f, step_function(table.X[:, 0], levels[name.split("-")[0]]))
    assert abs((table.y - table.f).std() / noise - 1) < 5 / np.sqrt(2 * (n_train + 1800))


@pytest.mark.parametrize("ending", ["", "-irregular"])
def test_denoising_is_tested_at_the_design_points_with_fresh_noise(ending):
    tables = [tasks.problem(f"{name}{ending}", 4) for name in DONOHO_JOHNSTONE]
    noises = [table.y - table.f for table, _ in tables]
    table, rows = tables[0]
    assert_array_equal(table.X[rows.train], table.X[rows.test])
    assert_array_equal(table.f[rows.train], table.f[rows.test])
    assert abs(np.corrcoef(noises[0].reshape(2, -1))[0, 1]) < 5 / np.sqrt(2048)
    assert_allclose(noises, [noises[0]] * 4, atol=1e-12)  # the four functions share their draws


def test_the_name_of_a_task_decides_its_split():
    assert tasks.hold_out("co2") is tasks.hold_out("electricity") is splits.quarter
    assert tasks.hold_out("volcano") is splits.random_tenth
    assert tasks.hold_out("volcano-block") is splits.block
    assert tasks.hold_out("six-plateaus-gap") is splits.hole
    assert tasks.parts("five-plateaus-quiet-edge") == ("five-plateaus-quiet", "-edge")
    assert tasks.unit("volcano-gap") == "m"
    assert tasks.unit("six-plateaus-gap") is None


@pytest.mark.parametrize("name", [*tasks.SERIES, *tasks.FIELDS])
def test_every_real_table_is_there(data_dir, name):
    from experiments.data.table import local_file

    assert local_file(name) is not None


TERRAIN = {"dem_jacksboro": 138_632, "dem_us_prism4km": 556_816, "walker_lake": 78_000}


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


def test_shuffled_targets_are_the_same_on_the_same_rows_in_another_order():
    table, split = tasks.problem("blocks", 1)
    shuffled, same = tasks.problem("blocks-shuffled", 1)
    assert_array_equal(shuffled.X, table.X)
    assert_array_equal(same.test, split.test)
    assert_array_equal(np.sort(shuffled.y), np.sort(table.y))
    assert (shuffled.y != table.y).mean() > 0.9
    assert tasks.unit("airfoil-shuffled") == "dB"
