"""The harness: runs have stable names, failures are rows, nothing leaks, tables are rebuilt."""

import gzip
import os
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.__main__ import main, parser
from experiments.data import splits, table, tasks
from experiments.reporting import docs, figures
from experiments.reporting.tables import MEASURES, explained, suite_tables
from experiments.runner import store
from experiments.runner.methods import LABELS, METHODS, make
from experiments.runner.plan import load_suite, suite_names
from experiments.runner.run import FUNCTION_SCORES, MEASURED, Run, measure, plain, row_of
from experiments.runner.session import Conditions, pending, perform

SESSION = {"threads": 1, "dgemm_gflops": 50.0, "versions": {"rwf": "0.1.0"}}


def write_table(directory, name, X, y):
    with gzip.open(directory / f"{name}.csv.gz", "wt") as lines:
        lines.write(",".join(f"x{j}" for j in range(X.shape[1])) + ",y\n")
        np.savetxt(lines, np.column_stack([X, y]), delimiter=",")


@pytest.fixture
def waves(tmp_path, monkeypatch, rng):
    """A task of 80 rows in RWF_DATA, with a column that does not vary."""
    X = np.column_stack([rng.normal(3.0, 2.0, (80, 2)), np.full(80, 0.998)])
    y = 5 + 4 * np.sin(X[:, 0]) + X[:, 1] + rng.normal(0, 0.2, 80)
    write_table(tmp_path, "waves", X, y)
    monkeypatch.setenv("RWF_DATA", str(tmp_path))
    return X, y


# data


def test_a_split_is_a_seeded_permutation_of_which_nine_tenths_are_for_training():
    rows = splits.random_tenth(np.zeros((103, 1)), 7)
    order = np.random.RandomState(7).permutation(103)
    assert np.array_equal(rows.train, order[:92])
    assert np.array_equal(rows.test, order[92:])


def test_a_shifted_split_tests_beyond_a_plane(rng):
    X = np.column_stack([rng.normal(3.0, [1.0, 200.0], (50, 2)), np.ones(50)])
    rows = splits.beyond_a_plane(X, 4)
    direction = np.random.RandomState(4).normal(size=2) / X[:, :2].std(axis=0)
    position = X[:, :2] @ direction
    assert len(rows.train) == 40
    assert sorted([*rows.train, *rows.test]) == list(range(50))
    assert position[rows.train].max() <= position[rows.test].min()
    assert not np.array_equal(rows.test, splits.beyond_a_plane(X, 5).test)


def test_a_table_comes_from_the_named_directory(waves):
    X, y = waves
    table, rows = tasks.problem("waves-shifted", 4)
    assert table.name == "waves"
    assert table.f is None
    assert np.array_equal(rows.test, splits.beyond_a_plane(X, 4).test)
    assert_allclose(table.X, X)
    assert_allclose(table.y, y)


def test_an_unknown_table_is_refused_with_advice(waves):
    with pytest.raises(table.DataError, match=r"RWF_DATA .* tides\.csv\.gz"):
        table.load("tides")


def test_without_a_network_the_error_names_the_remedy(monkeypatch):
    def unreachable(**_):
        raise URLError("no route")

    monkeypatch.delenv("RWF_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(table.DataError, match=r"no route.*Set RWF_DATA"):
        table.load("energy")


@pytest.mark.parametrize("extra, accepted", [("cooling_load", True), ("something", False)])
def test_from_openml_a_second_target_is_dropped_and_a_strange_shape_refused(
    monkeypatch, extra, accepted
):
    names = [f"x{j}" for j in range(8)] + [extra]
    found = SimpleNamespace(data=np.ones((768, 9)), target=np.arange(768.0), feature_names=names)
    monkeypatch.delenv("RWF_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: found)
    if accepted:
        assert table.load("energy").X.shape == (768, 8)
    else:
        with pytest.raises(table.DataError, match=r"not \(768, 8\)"):
            table.load("energy")


# runs and their rows


def test_keys_are_stable_and_do_not_depend_on_the_order_of_settings():
    run = Run("energy", "rwf", 3, {"n_components": 500, "n_restarts": 2})
    assert run.key == "232deb47567daaaa"
    assert run.key == Run("energy", "rwf", 3, {"n_restarts": 2, "n_components": 500}).key
    others = [
        Run("naval", "rwf", 3, run.settings),
        Run("energy", "rff", 3, run.settings),
        Run("energy", "rwf", 4, run.settings),
        Run("energy", "rwf", 3),
    ]
    assert len({run.key, *(other.key for other in others)}) == 5


@pytest.mark.parametrize(
    "method, settings",
    [
        ("constant", {}),
        ("linear", {}),
        ("boosting", {"max_iter": 10}),
        ("knn", {}),
        ("linear-interpolation", {}),
        ("rbfsampler", {"n_components": 40}),
        ("nystroem", {"n_components": 40}),
        ("exact-se", {"max_iter": 6, "short": 3}),
        ("rff", {"n_components": 40, "max_iter": 3, "n_restarts": 0}),
    ],
)
def test_what_a_method_learns_does_not_depend_on_the_test_rows(waves, tmp_path, method, settings):
    X, y = waves
    run = Run("waves", method, 1, settings)
    first = measure(run)
    rows = splits.random_tenth(X, 1)
    train, test = rows.train, rows.test
    X[test[1:]], y[test] = 1e4, -1e5  # all that a leak could feed on, but the inputs of one row
    write_table(tmp_path, "waves", X, y)
    second = measure(run)
    assert first.get("error") is second.get("error") is None
    assert first["target_variance"] == second["target_variance"]
    noise = [row["facts"].get("noise_variance") for row in (first, second)]
    assert noise[0] == noise[1]
    model = make(method, settings, 1)
    model.fit(X[train], y[train])
    alone, among = model.predict(X[test[:1]]), model.predict(X[test])
    assert_allclose(alone[0][0], among[0][0], rtol=1e-9)
    assert_allclose(alone[1][0], among[1][0], rtol=1e-9)


def test_a_row_holds_every_measure_and_a_constant_has_no_skill_over_itself(waves):
    row = row_of(Run("waves", "constant", 0), measure(Run("waves", "constant", 0)), SESSION)
    assert row["error"] is None
    assert {field for field in MEASURED if row[field] is None} == set(FUNCTION_SCORES)
    assert row["n_train"] == 72
    assert row["n_test"] == 8
    assert len(row["coverages"]) == 19
    assert row["rmse_skill_constant"] == row["nll_skill_constant"] == 0
    assert row["rmse_skill_linear"] < 0


def test_gaussian_processes_beat_a_line_on_waves(waves):
    for method in ("exact-matern52", "nystroem"):
        assert measure(Run("waves", method, 0))["rmse_skill_linear"] > 0.3


def test_an_unknown_method_is_a_failure_with_advice(waves):
    outcome = measure(Run("waves", "magic", 0))
    assert outcome["error"].startswith("ValueError: no method 'magic': use one of rwf,")


def test_facts_become_plain_json():
    facts = {"a": np.float64(2.5), "b": np.array([1.0, np.nan]), "c": (np.int64(3), None, True)}
    assert plain(facts) == {"a": 2.5, "b": [1.0, None], "c": [3, None, True]}


# the store


def test_rows_are_appended_and_the_last_of_a_key_counts(tmp_path):
    path = tmp_path / "deep" / "suite.jsonl"
    assert store.read(path) == []
    for row in ({"key": "a", "x": 1}, {"key": "b", "x": 2}, {"key": "a", "x": 3}):
        store.append(path, row)
    assert store.read(path) == [{"key": "a", "x": 3}, {"key": "b", "x": 2}]


def test_a_line_torn_by_a_crash_costs_only_itself(tmp_path):
    path = tmp_path / "suite.jsonl"
    path.write_text('{"key": "a"}\n{"key": "b", "rm')
    store.append(path, {"key": "c"})
    with pytest.warns(UserWarning, match="line 2 is not JSON"):
        assert store.read(path) == [{"key": "a"}, {"key": "c"}]


def test_what_is_not_a_number_is_not_stored(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        store.append(tmp_path / "suite.jsonl", {"key": "a", "rmse": float("nan")})


# suites and sessions


@pytest.mark.parametrize("name", suite_names())
def test_suites_name_known_methods_and_tables(name):
    suite = load_suite(name)
    assert set(suite.all_methods) <= set(METHODS)
    assert {tasks.parts(task)[0] for task in suite.tasks} <= tasks.KNOWN
    keys = [run.key for run in suite.runs()]
    assert len(set(keys)) == len(keys)


def test_every_method_has_a_label():
    assert set(LABELS) == set(METHODS)


def test_what_is_chosen_on_is_not_reported():
    chosen, reported = load_suite("tables-choice"), load_suite("tables")
    assert chosen.splits == (10, 11, 12, 13, 14)
    assert reported.splits == (0, 1, 2, 3, 4)


def test_the_grid_is_expanded_and_runs_can_be_chosen():
    runs = load_suite("atoms").runs(tasks=["kin8nm"], methods=["rff"])
    assert len(runs) == 6 * 2
    assert {run.settings["n_components"] for run in runs} == {100, 200, 500, 1000, 2000, 4000}
    with pytest.raises(ValueError, match="not in the suite"):
        load_suite("atoms").runs(methods=["boosting"])
    with pytest.raises(ValueError, match=r"there are .*, atoms, .*, tables"):
        load_suite("nothing")


def test_a_rerun_skips_what_has_a_row_and_retries_failures_on_demand():
    done, failed, fresh = (Run("waves", method, 0) for method in ("linear", "rff", "rwf"))
    rows = [row_of(done, {}, SESSION), row_of(failed, {"error": "ValueError: no"}, SESSION)]
    runs = [done, failed, fresh]
    assert pending(runs, rows) == [fresh]
    assert pending(runs, rows, retry_failed=True) == [failed, fresh]
    assert pending(runs, rows, again=True) == runs


def test_no_run_begins_after_its_time(tmp_path):
    path = tmp_path / "suite.jsonl"
    assert list(perform([Run("six-plateaus", "constant", 0)], path, Conditions(), until=0.0)) == []
    assert not path.exists()


def test_methods_that_the_grid_does_not_concern_are_run_once():
    suite = load_suite("plateaus")
    runs = suite.runs(tasks=["six-plateaus"], methods=["rff", "ti-haar"])
    settings = {m: [r.settings for r in runs if r.method == m and r.split == 3] for m in METHODS}
    assert settings["rff"] == [{"n_components": n} for n in (100, 300, 1000)]
    assert settings["ti-haar"] == [{}]
    rows = [row_of(run, {"rmse": 2.0}, SESSION) for run in runs]
    text = suite_tables(suite, rows, "rmse")
    assert "| n_components = 1000 | as it comes |" in text
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
    assert "| **RWF, the default** ᵍ | 1.40 ± 0.24 |" in text  # lower, thanks to splits of its own
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


FAULTY = """
import os

def raising(settings, seed):
    raise RuntimeError(f"seed {seed} is unlucky")

def dying(settings, seed):
    os._exit(3)
"""


def test_a_session_writes_a_row_for_every_run_whatever_happens(waves, tmp_path, monkeypatch):
    (tmp_path / "faulty.py").write_text(FAULTY)
    paths = [str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    runs = [Run("waves", m, 5) for m in ("linear", "faulty:raising", "faulty:dying")]
    path = tmp_path / "suite.jsonl"
    yielded = list(perform(runs, path, Conditions(jobs=2, dgemm_gflops=50.0)))
    rows = {row["method"]: row for row in store.read(path)}
    assert len(yielded) == len(rows) == 3
    assert rows["linear"]["error"] is None
    assert rows["linear"]["peak_memory_mb"] > 10
    assert rows["faulty:raising"]["error"] == "RuntimeError: seed 5 is unlucky"
    assert rows["faulty:dying"]["error"].startswith("ChildProcessError: exit code 3")
    assert len({tuple(row) for row in rows.values()}) == 1  # the same fields in the same order
    assert all(row["threads"] == 1 for row in rows.values())
    assert {run.method for run in pending(runs, store.read(path), retry_failed=True)} == {
        "faulty:raising",
        "faulty:dying",
    }


def test_a_run_that_takes_too_long_has_failed(waves, tmp_path):
    conditions = Conditions(timeout=0.01)
    (row,) = perform([Run("waves", "linear", 0)], tmp_path / "suite.jsonl", conditions)
    assert row["error"] == "TimeoutError: no result after 0.01 s"


# tables, figures, docs


def stored_rows():
    """Two tasks and four methods: a clear best, a tie, one failure of three, one of all."""
    values = {
        ("airfoil", "rwf"): (1.00, 1.10, 1.20),
        ("airfoil", "rff"): (1.12, 1.12, 1.21),
        ("airfoil", "linear"): (4.0, 4.0, 4.3),
        ("airfoil", "rff-3"): (0.9, "TimeoutError: no result", 0.9),
        ("naval", "rwf"): (1.5e-5, 1.6e-5, 1.7e-5),
        ("naval", "rff"): (1.2e-5, 1.3e-5, 1.4e-5),
        ("naval", "linear"): (5e-3, 5e-3, 5e-3),
        ("naval", "rff-3"): ("ValueError: no",) * 3,
    }
    rows = []
    for (task, method), scores in values.items():
        for split, score in enumerate(scores):
            outcome = {"error": score} if isinstance(score, str) else {"rmse": score}
            rows.append(row_of(Run(task, method, split), outcome, SESSION))
    return rows


SUITE = """
description = "For this test."
tasks = ["airfoil", "naval"]
methods = ["rwf", "rff-3", "rff", "linear", "constant"]
first_split = 0
last_split = 2
timeout = 1
"""

TABLE = """\
**RMSE, in the units of the target**

| method | airfoil (dB) | naval (coefficient), 1e-5 |
|---|---|---|
| **RWF, the default** ᵍ | **1.100 ± 0.058** | 1.60 ± 0.06 |
| RFF on our engine, three blocks | 0.900 ± 0.000 (2 of 3; TimeoutError) | failed: ValueError |
| RFF on our engine | **1.150 ± 0.030** | **1.30 ± 0.06** |
| linear least squares | 4.100 ± 0.100 | 500.00 ± 0.00 |"""


def test_a_table_is_rebuilt_from_its_lines_whatever_their_order(tmp_path):
    (tmp_path / "small.toml").write_text(SUITE)
    suite = load_suite("small", tmp_path)
    rows = stored_rows()
    assert suite_tables(suite, rows, "rmse") == TABLE
    assert suite_tables(suite, rows[::-1], "rmse") == TABLE
    assert "No rows are stored yet" in suite_tables(suite, [], "rmse")


def test_tables_are_followed_by_notes_on_their_marks_and_by_versions_without_gaps():
    with_torch = {**SESSION, "versions": {"rwf": "1", "torch": "2"}}
    without = {**SESSION, "versions": {"rwf": "1", "torch": None}}
    rows = [row_of(Run("energy", "svgp", k), {}, v) for k, v in enumerate((with_torch, without))]
    text = explained(["| method | energy (kWh/m²) |", "| SVGP, Matérn-3/2 ᵃ | 1.0 † |"], rows)
    assert [part[0] for part in text.split("\n")[-5:-2] if part] == ["ᵃ", "†"]
    assert text.endswith("; rwf 1, torch 2.")


def test_coverage_is_best_where_it_is_nearest_to_nominal(tmp_path):
    (tmp_path / "small.toml").write_text(SUITE)
    rows = [
        row_of(Run("airfoil", method, split), {"coverage95": value}, SESSION)
        for method, value in (("rwf", 0.951), ("rff", 0.99), ("linear", 0.8))
        for split in range(3)
    ]
    text = suite_tables(load_suite("small", tmp_path), rows, "coverage95")
    assert "**0.951 ± 0.000**" in text
    assert "| 0.990 ± 0.000 |" in text


def test_a_row_without_a_field_says_nothing_about_it(tmp_path):
    (tmp_path / "small.toml").write_text(SUITE)
    rows = [row_of(Run("naval", "rwf", split), {"rmse_f": 0.5}, SESSION) for split in range(3)]
    old = row_of(Run("naval", "rff", 0), {}, SESSION)
    del old["rmse_f"]
    text = suite_tables(load_suite("small", tmp_path), [*rows, old], "rmse_f")
    assert "default** ᵍ | – | **0.500 ± 0.000** |" in text
    assert "| RFF on our engine | – | – |" in text


def atoms_rows():
    return [
        row_of(run, {"rmse": 1.0 + 4 * run.split / run.settings["n_components"]}, SESSION)
        for run in load_suite("atoms").runs()
    ]


def test_a_suite_with_a_grid_has_a_table_for_every_task():
    text = suite_tables(load_suite("atoms"), atoms_rows(), "rmse")
    assert text.count("| method | n_components = 100 |") == 3
    assert text.count("| RFF on our engine | **1.02 ± 0.02** | **1.01 ± 0.01** |") == 3


def test_with_a_single_method_the_values_of_the_grid_are_compared():
    suite = load_suite("ablation-shifts")
    rows = [
        row_of(
            run, {"rmse": {"data": 1.0, "box": 2.0, "hull": 3.0}[run.settings["shifts"]]}, SESSION
        )
        for run in suite.runs()
    ]
    text = suite_tables(suite, rows, "rmse")
    assert "| shifts | five-plateaus | airfoil (dB) |" in text
    assert text.count("**1.00 ± 0.00**") == len(suite.tasks)
    assert text.count("| 2.00 ± 0.00 ") == len(suite.tasks)


def test_figures_are_drawn_from_the_rows_there_are(tmp_path):
    assert figures.draw_all(tmp_path, tmp_path) == []
    for row in atoms_rows():
        store.append(store.results_file("atoms", tmp_path), row)
    outcome = {"coverages": [0.5] * 19}
    store.append(
        store.results_file("tables", tmp_path), row_of(Run("naval", "rwf", 0), outcome, SESSION)
    )
    drawn = figures.draw_all(tmp_path, tmp_path)
    assert [path.name for path in drawn] == ["atoms.png", "calibration.png"]
    assert all(path.stat().st_size > 1000 for path in drawn)


PAGE = """# Page

<!-- begin generated: tables-accuracy -->
old
<!-- end generated -->

By hand.
"""


def test_generated_sections_are_rebuilt_once_and_the_rest_is_kept(tmp_path):
    for row in stored_rows():
        full = {**row, **dict.fromkeys(MEASURES, row["rmse"])}
        store.append(store.results_file("tables", tmp_path), full)
    once = docs.regenerated(PAGE, tmp_path)
    assert "\nold\n" not in once
    assert once.endswith("<!-- end generated -->\n\nBy hand.\n")
    assert "- rff-3 on airfoil, split 1: TimeoutError: no result" in once
    assert docs.regenerated(once, tmp_path) == once
    with pytest.raises(ValueError, match="no generated section 'more'"):
        docs.regenerated(PAGE.replace("tables-accuracy", "more"), tmp_path)


def test_the_docs_say_what_the_stored_rows_say():
    pages = docs.pages()
    assert {page.name for page in pages} >= {"README.md", "signals.md", "tables.md", "terrain.md"}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert docs.regenerated(text) == text, f"run python -m experiments docs: {page.name}"


# the command line


@pytest.mark.parametrize("command", ["run", "table", "tidy", "theory", "figures", "docs"])
def test_every_command_has_help_that_ends_with_an_example(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        parser().parse_args([command, "--help"])
    assert f"Example: python -m experiments {command}" in capsys.readouterr().out


def test_the_table_command_prints_and_tidy_keeps_the_last_rows(tmp_path, capsys):
    path = store.results_file("tables", tmp_path)
    for row in [*stored_rows(), *stored_rows()]:
        store.append(path, row)
    assert (
        main(["table", "--suite", "tables", "--measures", "rmse", "--results", f"{tmp_path}"]) == 0
    )
    assert "| RFF on our engine | – | – | **1.150 ± 0.030** (3 of 5)" in capsys.readouterr().out
    assert main(["tidy", "--suite", "tables", "--results", str(tmp_path)]) == 0
    assert len(path.read_text().splitlines()) == 24
    assert main(["table", "--suite", "nothing"]) == 2
    assert "there are" in capsys.readouterr().err
