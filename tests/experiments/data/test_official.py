"""Tables with official splits: the rows, the masks, and what is refused."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from experiments.data import official, tasks
from experiments.data.table import DataError
from experiments.reporting.cells import value_of
from experiments.runner.plan import load_suite
from harness import write_table


@pytest.fixture
def yacht(tmp_path, monkeypatch, rng):
    """Thirty rows and twenty splits; returns inputs, targets and masks."""
    (tmp_path / "official").mkdir()
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    masks = np.stack([rng.permutation(30) < 3 for _ in range(20)], axis=1)
    write_table(tmp_path / "official", "hla_yacht", X, y)
    with gzip.open(tmp_path / "official" / "hla_yacht_test.csv.gz", "wt") as file:
        names = ",".join(f"split{k}" for k in range(20))
        np.savetxt(file, masks, delimiter=",", header=names, comments="", fmt="%d")
    monkeypatch.setenv("RWF_DATA", str(tmp_path))
    return X, y, masks


def test_split_k_tests_on_the_rows_of_mask_k(yacht):
    X, y, masks = yacht
    table, rows = tasks.problem("hla-yacht", 7)
    assert_array_equal(table.X, X)
    assert_array_equal(table.y, y)
    assert_array_equal(rows.test, np.flatnonzero(masks[:, 7]))
    assert_array_equal(np.sort([*rows.train, *rows.test]), np.arange(30))


def test_what_is_not_official_is_refused(yacht, tmp_path):
    with pytest.raises(ValueError, match="splits 0 to 19"):
        tasks.problem("hla-yacht", 20)
    with pytest.raises(ValueError, match="leave out -gap"):
        tasks.problem("hla-yacht-gap", 0)
    write_table(tmp_path / "official", "hla_yacht", yacht[0][:29], yacht[1][:29])
    with pytest.raises(DataError, match=r"shape \(30, 20\), but hla-yacht has 29 rows"):
        tasks.problem("hla-yacht", 0)
    (tmp_path / "official" / "hla_yacht_test.csv.gz").unlink()
    with pytest.raises(DataError, match="but not"):
        tasks.problem("hla-yacht", 0)


@pytest.mark.parametrize("name", ["hla-wine_red", "hla-protein", "evans-pol"])
def test_official_tables_are_there_and_lose_a_tenth(data_dir, name):
    table, rows = tasks.problem(name, official.N_SPLITS[name] - 1)
    assert abs(len(rows.test) / len(table.y) - 0.1) < 0.001
    assert np.isfinite(table.X).all()
    assert table.y.std() > 0


def test_suites_have_the_splits_that_there_are():
    suite = load_suite("official")
    runs = {task: [r.split for r in suite.runs([task], ["rwf"])] for task in suite.tasks}
    assert runs["hla-protein"] == [0, 1, 2, 3, 4]
    assert runs["hla-yacht"] == [*range(20)]
    assert [run.split for run in suite.runs(["hla-yacht"], ["svgp-logs"])] == [0, 1, 2, 3, 4]
    assert suite.splits_of("rwf", "hla-protein") == (0, 1, 2, 3, 4)
    large = load_suite("large")
    assert [run.split for run in large.runs(["evans-pol"], ["svgp-logs"])] == [0, 1, 2]


def test_scores_in_deviations_are_those_of_standardised_targets(rng):
    y, mean, std = rng.normal(5, 3, 40), rng.normal(5, 1, 40), 2.5
    scale = 3.7
    row = {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "nll": float(np.mean(0.5 * ((y - mean) / std) ** 2 + np.log(std * np.sqrt(2 * np.pi)))),
        "target_variance": scale**2,
    }
    u, v, s = y / scale, mean / scale, std / scale
    assert value_of(row, "rmse_sd") == pytest.approx(np.sqrt(np.mean((u - v) ** 2)))
    density = 0.5 * ((u - v) / s) ** 2 + np.log(s * np.sqrt(2 * np.pi))
    assert value_of(row, "nll_sd") == pytest.approx(np.mean(density))
    assert value_of({**row, "target_variance": None}, "rmse_sd") is None
    assert value_of(row, "rmse") == row["rmse"]
