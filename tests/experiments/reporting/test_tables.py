"""Markdown tables from stored rows."""

from experiments.reporting.tables import explained, suite_tables
from experiments.runner.plan import load_suite
from experiments.runner.run import Run, row_of
from harness import SESSION, atoms_rows, stored_rows

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
| **RWF (default)** ᵍ | **1.100 ± 0.058** | 1.60 ± 0.06 |
| RFF (this library, three blocks) | 0.900 ± 0.000 (2 of 3; TimeoutError) | failed: ValueError |
| RFF (this library) | **1.150 ± 0.030** | **1.30 ± 0.06** |
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


def test_a_row_without_a_field_leaves_its_cell_empty(tmp_path):
    (tmp_path / "small.toml").write_text(SUITE)
    rows = [row_of(Run("naval", "rwf", split), {"rmse_f": 0.5}, SESSION) for split in range(3)]
    old = row_of(Run("naval", "rff", 0), {}, SESSION)
    del old["rmse_f"]
    text = suite_tables(load_suite("small", tmp_path), [*rows, old], "rmse_f")
    assert "(default)** ᵍ | – | **0.500 ± 0.000** |" in text
    assert "| RFF (this library) | – | – |" in text


def test_a_suite_with_a_grid_has_a_table_for_every_task():
    text = suite_tables(load_suite("atoms"), atoms_rows(), "rmse")
    assert text.count("| method | n_components = 100 |") == 3
    assert text.count("| RFF (this library) | **1.02 ± 0.02** | **1.01 ± 0.01** |") == 3


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
