"""The benchmark of large files runs."""

from benchmarks import large


def test_files_are_fitted_in_a_process_of_their_own(monkeypatch):
    monkeypatch.setattr(large, "FILE_ROWS", 3000)
    row = large.in_a_process(8000, 20)
    assert row.rows == 8000
    assert row.rmse < 0.5
    assert row.peak_memory > row.at_start > 0
    assert "8,000 rows" in large.report(row)
