"""Every job of the dense benchmark runs."""

import pytest

from benchmarks import dense


@pytest.mark.parametrize("job", ["pass", "threads", "evidence", "predict", "size"])
def test_every_job_is_measured(job):
    case = next(case for case in dense.CASES.values() if case.job == job)
    row = dense.measure(case, 4000, 20)
    assert row.rows == int(4000 * case.share)
    assert row.ratio > 0
    assert row.case == case.name
    assert str(row.columns) in dense.report(row)
