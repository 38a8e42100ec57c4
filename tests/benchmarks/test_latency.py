"""Fits are measured in processes of their own, scaled by dgemm, and kept as rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import docs, latency, profile
from benchmarks.latency import CASES, GFLOPS, GROWTH, Row, slope
from benchmarks.rows import newest

ROW = Row("sine with a jump, 300", 300, 1, 4.0, 75.0, 2.5, "abc")


@pytest.mark.parametrize("first", [False, True])
def test_a_case_is_fitted_in_a_process_of_its_own(first, monkeypatch, tmp_path):
    case = latency.Case(lambda: latency.line(12), 9.0, first)
    monkeypatch.setitem(latency.CASES, "few", case)
    started = []

    def fit(rows, cache):
        started.append(cache)
        assert np.load(rows)["X"].shape == (12, 1)
        return (1.0, 3.0) if len(started) == 1 else (0.5, 2.5)

    monkeypatch.setattr(latency, "_fit", fit)
    row = latency.measure("few", tmp_path)
    assert (row.rows, row.inputs, row.limit) == (12, 1, 9.0)
    assert row.seconds == (3.0 if first else 0.5)  # imports too, or the faster of two
    assert [cache == tmp_path for cache in started] == ([False] if first else [True, True])
    assert row.gemm_gflops > 0


def test_a_process_counts_the_fit_and_all_of_its_own_seconds(tmp_path):
    X, _ = latency.small(2)
    np.savez(tmp_path / "rows.npz", X=X[:9], y=np.ones(9))
    fit, process = latency._fit(tmp_path / "rows.npz", tmp_path)
    assert 0 < fit < process


def test_seconds_are_scaled_to_a_core_of_a_known_rate():
    assert ROW.scaled == 4.0 * 75.0 / GFLOPS
    assert not ROW.within
    assert replace(ROW, gemm_gflops=30.0).within
    assert replace(ROW, limit=None).within
    assert "(missed)" in latency.report(ROW)


def test_the_slope_is_the_power_of_the_number_of_rows():
    rows = [
        replace(ROW, case=f"growth, {n:,}", rows=n, seconds=2.0 * n**1.1)
        for n in (1_000, 10_000, 20_000, 100_000, 1_000_000)
    ]
    rows[0] = replace(rows[0], seconds=1e9)  # too few rows to count
    assert np.isclose(slope(rows), 1.1)
    assert np.isnan(slope(rows[:2]))


def test_the_page_shows_every_stored_case():
    rows = newest("latency", Row)
    assert {row.case for row in rows} <= {*CASES, *GROWTH}
    page = "\n".join(docs._latency([*rows, ROW]))
    assert all(f"| {row.case} | " in page for row in rows if row.case not in GROWTH)
    assert "| 4.00 | 6.00 | **2.50, missed** |" in page


def test_the_page_shows_how_time_grows_and_jumps():
    rows = [
        replace(ROW, case=f"growth, {n:,}", rows=n, seconds=seconds)
        for n, seconds in ((20_001, 9.0), (10_000, 4.0), (20_000, 6.0))
    ]
    page = "\n".join(docs._growth([*rows, ROW]))
    assert "| 10,000 | 4.00 | 6.00 | – |\n| 20,000 | 6.00 | 9.00 | 1.50 |" in page
    assert "| 20,001 | 9.00 | 13.50 | 1.50 |" in page
    assert f"proportional to N^{slope(rows):.2f}" in page
    assert docs._growth([ROW]) == []


def test_stages_of_a_fit_are_shown_as_shares_of_its_seconds(monkeypatch):
    case = latency.Case(lambda: latency.small(2))
    monkeypatch.setitem(latency.CASES, "few", case)
    row = profile.measure("few")
    assert {"learning", "conditioning", "calibration"} <= row.stages.keys()
    assert 0 < row.seconds < 60
    rows = [
        replace(row, stages={"learning": 3.0, "report": 1.0}),
        replace(row, stages={"one": 2.0}),
    ]
    page = "\n".join(docs._profile(rows))
    assert "| learning | report | one |" in page
    assert (
        "| few | 150 | 2 | 4.00 | 75% | 25% | 0% |\n| few | 150 | 2 | 2.00 | 0% | 0% | 100% |"
        in page
    )


def test_the_history_of_a_case_is_printed_by_commit(monkeypatch, capsys):
    rows = [replace(ROW, commit="old", seconds=2.0), replace(ROW, commit="new+", seconds=3.0)]
    monkeypatch.setattr(latency, "history", lambda *_: {ROW.case: rows, "other": [ROW]})
    latency.main(["--history", "--case", ROW.case])
    first, second = capsys.readouterr().out.splitlines()
    assert first.split()[0] == "old"
    assert "3.00 s scaled" in first  # 2 s at 75 GFLOP/s
    assert second.split()[0] == "new+"
    assert "(missed)" in second
