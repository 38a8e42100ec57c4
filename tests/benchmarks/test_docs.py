"""The page on speed is rebuilt from the stored rows of the benchmarks."""

from benchmarks import dense, docs, latency
from benchmarks.rows import newest


def test_the_page_is_made_of_the_stored_rows():
    assert docs.PAGE.read_text(encoding="utf-8") == docs.stored_page()


def test_the_page_shows_every_case_and_which_limits_are_missed():
    rows, fits = newest("dense", dense.Row), newest("latency", latency.Row)
    page = docs.stored_page()
    assert {row.case for row in rows} == set(dense.CASES)
    assert page.count("missed**") == sum(not row.within for row in (*rows, *fits))
    assert all(f"| {row.case} | {row.rows:,} | {row.inputs} | " in page for row in fits)
    for row in rows:
        kind = "" if row.job == "size" else f"{row.features} | "
        assert f"| {kind}{row.inputs} | {row.rows:,} | {row.columns:,} | " in page
