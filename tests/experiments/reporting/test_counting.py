"""Wins, ties, and wins by a paired test."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from experiments.reporting import counting
from experiments.reporting.cells import MEASURES, Cell
from experiments.runner import default, store
from experiments.runner.run import Run, row_of
from harness import SESSION

RMSE = MEASURES["rmse"]


def cell(*values, errors=()):
    return Cell(dict(enumerate(values)), Counter(errors))


def test_a_win_is_strict_and_sure_if_splits_agree():
    column = {"rwf": cell(1.0, 2.0, 3.0), "a": cell(1.1, 2.1, 3.11), "b": cell(9.0, 9.0, 9.0)}
    found = counting.verdict(column, "rwf", RMSE)
    assert (found.strict, found.tied, found.sure, found.rival, found.n_splits) == (1, 0, 1, "a", 3)
    t, p = ttest_1samp([0.1, 0.1, 0.11], 0.0)
    assert p < 0.05
    assert found.t == pytest.approx(t)
    other = counting.verdict(column, "a", RMSE)
    assert (other.strict, other.tied, other.sure, other.rival) == (False, True, -1, "rwf")


def test_a_strict_win_need_not_be_sure():
    column = {"rwf": cell(1.0, 2.0, 3.0), "a": cell(1.5, 1.9, 3.3)}
    found = counting.verdict(column, "rwf", RMSE)
    assert (found.strict, found.sure) == (True, 0)
    assert ttest_1samp([0.5, -0.1, 0.3], 0.0).pvalue > 0.05


def test_methods_are_compared_on_the_splits_that_all_have_and_failures_are_not():
    column = {"rwf": cell(2.0, 2.0, 0.0), "a": cell(1.0, 1.5), "b": cell(0.1, errors=["E"])}
    found = counting.verdict(column, "rwf", RMSE)
    assert (found.strict, found.n_splits, found.rival) == (False, 2, "a")
    assert counting.verdict({"rwf": cell(1.0), "b": cell(errors=["E"])}, "rwf", RMSE) is None
    one = counting.verdict({"rwf": cell(1.0), "a": cell(2.0)}, "rwf", RMSE)
    assert one.strict
    assert one.sure == 0  # one split says nothing of splits


def test_higher_is_better_where_the_measure_says_so():
    column = {"rwf": cell(0.5, 0.6), "a": cell(0.4, 0.5)}
    assert counting.verdict(column, "rwf", MEASURES["rmse_skill_linear"]).strict


@pytest.mark.parametrize("same, t", [(0.0, 0.0), (0.5, np.inf), (-0.5, -np.inf)])
def test_equal_differences_have_no_error(same, t):
    assert counting.paired_t([same] * 3) == t


def test_ours_is_counted_with_the_blend_and_without_and_stale_rows_are_named(tmp_path):
    scores = {"rwf": 1.0, "rwf-alone": 3.0, "rff": 0.1, "kriging-logs": 2.0}
    for method, score in scores.items():
        for split in range(4):
            outcome = {"rmse": score + 0.1 * split, "nll": -score, "facts": {}}
            row = row_of(Run("hla-yacht", method, split), outcome, {**SESSION, "default": "old"})
            store.append(store.results_file("official", tmp_path), row)
    build = counting.section("official", "rmse", "nll")
    text = build(tmp_path)
    assert "| RWF (default) | 2 | 1 | 0 | 1 | 1 |" in text  # RFF is ours too, and no rival
    assert "| RWF (no neighbour blend) | 2 | 1 | 0 | 1 | 1 |" in text
    assert "older default" not in text
    default.settle(tmp_path)
    assert "older default" in build(tmp_path)
    assert "No rows are stored yet" in counting.section("large", "rmse_sd")(tmp_path)
    given = counting.section("official", "rmse", rivals=["rff"])
    assert "| RWF (default) | 1 | 0 | 0 | 0 | 1 |" in given(tmp_path)
