"""Suites and their runs."""

import tomllib

import pytest

from experiments.data import tasks
from experiments.reporting.tables import suite_tables
from experiments.runner import store
from experiments.runner.methods import METHODS
from experiments.runner.plan import SUITES, load_suite, suite_names
from experiments.runner.run import Run, row_of
from harness import SESSION

TERRAIN = {"dem_jacksboro": 138_632, "dem_us_prism4km": 556_816, "walker_lake": 78_000}


def test_suites_of_terrain_and_long_series_have_their_tasks_and_competitors():
    terrain, long = load_suite("terrain"), load_suite("long")
    assert terrain.splits == long.splits == (0, 1, 2)
    for name in TERRAIN:
        assert {name, f"{name}-block"} <= set(terrain.tasks)
    assert {"rwf", "rwf-tree", "knn", "linear-interpolation", "kriging"} <= {*terrain.methods}
    assert {"rwf-tree", "celerite-matern32", "ti-sym8"} <= set(long.methods)
    for name in ("terrain", "long"):
        text = tomllib.loads((SUITES / f"{name}.toml").read_text(encoding="utf-8"))
        assert not text["description"].count("\n")


@pytest.mark.parametrize("name", suite_names())
def test_suites_name_known_methods_and_tables(name):
    suite = load_suite(name)
    assert set(suite.all_methods) <= set(METHODS)
    names = {task.removesuffix(tasks.SHUFFLED) for task in suite.tasks}
    assert {tasks.parts(name)[0] for name in names} <= tasks.KNOWN
    keys = [run.key for run in suite.runs()]
    assert len(set(keys)) == len(keys)


def test_what_is_chosen_on_is_not_reported():
    chosen, reported = load_suite("tables-choice"), load_suite("tables")
    assert chosen.splits == (10, 11, 12, 13, 14)
    assert reported.splits == (0, 1, 2, 3, 4)
    frequencies, reported = load_suite("ablation-frequencies"), load_suite("paper")
    assert not set(frequencies.splits) & set(reported.splits)


def test_the_grid_is_expanded_and_runs_can_be_chosen():
    runs = load_suite("atoms").runs(tasks=["kin8nm"], methods=["rff"])
    assert len(runs) == 6 * 2
    assert {run.settings["n_components"] for run in runs} == {100, 200, 500, 1000, 2000, 4000}
    with pytest.raises(ValueError, match="not in the suite"):
        load_suite("atoms").runs(methods=["boosting"])
    with pytest.raises(ValueError, match=r"there are .*, atoms, .*, tables"):
        load_suite("nothing")


def test_methods_that_the_grid_does_not_concern_are_run_once():
    suite = load_suite("plateaus")
    runs = suite.runs(tasks=["six-plateaus"], methods=["rff", "ti-haar"])
    settings = {m: [r.settings for r in runs if r.method == m and r.split == 3] for m in METHODS}
    assert settings["rff"] == [{"n_components": n} for n in (100, 300, 1000)]
    assert settings["ti-haar"] == [{}]
    rows = [row_of(run, {"rmse": 2.0}, SESSION) for run in runs]
    text = suite_tables(suite, rows, "rmse")
    assert "| n_components = 1000 | default |" in text
    assert "Haar ⁴ | – | – | – | **2.00 ± 0.00** |" in text


SLOW = """
description = "For this test."
tasks = ["airfoil"]
methods = ["rwf", "rff", "svgp"]
also = ["other"]
first_split = 0
last_split = 4
timeout = 1

[slow]
methods = ["svgp"]
splits = 2
"""


def test_slow_methods_get_the_first_splits_and_are_compared_on_them(tmp_path):
    (tmp_path / "slow.toml").write_text(SLOW)
    suite = load_suite("slow", tmp_path)
    assert [run.split for run in suite.runs(methods=["svgp"])] == [0, 1]
    errors = {"rwf": (2.0, 2.0, 1.0, 1.0, 1.0), "rff": (9.0,) * 5, "svgp": (1.8, 1.8)}
    rows = [
        row_of(run, {"rmse": errors[run.method][run.split], "facts": {}}, SESSION)
        for run in suite.runs()
    ]
    text = suite_tables(suite, rows, "rmse")
    assert "| **RWF (default)** ᵍ | 1.40 ± 0.24 |" in text  # lower, thanks to splits of its own
    assert "ᵃ | **1.80 ± 0.00** |" in text
    text = suite_tables(suite, [row for row in rows if row["split"] != 1], "rmse")
    assert "ᵃ | **1.80** (1 of 2) |" in text  # compared on the one split that all have
    kept = [row for row in rows if row["method"] != "svgp" or row["split"] == 0]
    text = suite_tables(
        suite, [row for row in kept if row["method"] == "svgp" or row["split"]], "rmse"
    )
    assert text.count("**") == 4  # of the title and of our label: no split is shared
    rows[2]["facts"] = {"converged": False}
    assert "ᵃ | **1.80 ± 0.00** † |" in suite_tables(suite, rows, "rmse")


def test_a_suite_takes_rows_of_others_and_prefers_its_own(tmp_path):
    (tmp_path / "slow.toml").write_text(SLOW)
    suite = load_suite("slow", tmp_path)
    runs = [Run("airfoil", "rwf", 0), Run("airfoil", "rff", 0), Run("airfoil", "linear", 0)]
    for name, chosen, rmse in (("other", runs, 1.0), ("slow", runs[1:2], 2.0)):
        for run in chosen:
            store.append(store.results_file(name, tmp_path), row_of(run, {"rmse": rmse}, SESSION))
    assert [(row["method"], row["rmse"]) for row in suite.rows(tmp_path)] == [
        ("rwf", 1.0),
        ("rff", 2.0),
    ]
