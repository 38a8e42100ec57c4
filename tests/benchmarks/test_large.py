"""The benchmark of large files runs."""

from benchmarks import large


def test_files_are_fitted_in_a_process_of_their_own(monkeypatch):
    monkeypatch.setattr(large, "FILE_ROWS", 150)
    row = large.in_a_process(400, 20)
    assert row.rows == 400
    assert row.rmse < 0.5
    assert row.peak_memory > row.at_start > 0
    assert "400 rows" in large.report(row)
