"""The page on speed is what the stored rows of the benchmarks give, and the benchmarks run."""

from __future__ import annotations

import pytest

from benchmarks import dense, docs, large
from benchmarks.timing import typical_ratio


def test_the_page_is_made_of_the_stored_rows():
    assert docs.PAGE.read_text(encoding="utf-8") == docs.stored_page()


def test_the_page_shows_every_case_and_says_which_limits_are_missed():
    rows = docs.dense_rows()
    page = docs.stored_page()
    assert {row.case for row in rows} == set(dense.CASES)
    assert page.count("missed**") == sum(not row.within for row in rows)
    for row in rows:
        kind = "" if row.job == "size" else f"{row.features} | "
        assert f"| {kind}{row.inputs} | {row.rows:,} | {row.columns:,} | " in page


def test_ratios_are_medians_of_pairs():
    ticks = iter([0.0, 3.0, 3.0, 4.0, 4.0, 6.0, 6.0, 7.0, 7.0, 17.0, 17.0, 18.0])
    taken, ratio = typical_ratio([(lambda: None, lambda: None)] * 3, lambda: next(ticks))
    assert taken == 15.0
    assert ratio == 3.0


@pytest.mark.parametrize("job", ["pass", "threads", "evidence", "predict", "size"])
def test_every_job_is_measured(job):
    case = next(case for case in dense.CASES.values() if case.job == job)
    row = dense.measure(case, 4000, 20)
    assert row.rows == int(4000 * case.share)
    assert row.ratio > 0
    assert row.case == case.name
    assert str(row.columns) in dense.report(row)


def test_files_are_fitted_in_a_process_of_their_own(monkeypatch):
    monkeypatch.setattr(large, "FILE_ROWS", 3000)
    row = large.in_a_process(8000, 20)
    assert row.rows == 8000
    assert row.rmse < 0.5
    assert row.peak_memory > row.at_start > 0
    assert "8,000 rows" in large.report(row)
