"""The page on speed is rebuilt from the stored rows of the benchmarks."""

from benchmarks import __main__, dense, docs, latency, map_peers, maps, sizes
from benchmarks.rows import newest


def test_the_page_is_made_of_the_stored_rows():
    assert docs.PAGE.read_text(encoding="utf-8") == docs.stored_page()


def test_the_page_shows_every_case_and_which_limits_are_missed():
    rows, fits = newest("dense", dense.Row), newest("latency", latency.Row)
    page = docs.stored_page()
    assert {row.case for row in rows} == set(dense.CASES)
    assert page.count("missed**") == sum(not row.within for row in (*rows, *fits))
    cases = [row for row in fits if row.case not in latency.GROWTH]
    assert all(f"| {row.case} | {row.rows:,} | {row.inputs} | " in page for row in cases)
    growing = [row for row in fits if row.case in latency.GROWTH]
    assert all(f"| {row.rows:,} | {row.seconds:.2f} | " in page for row in growing)
    for row in rows:
        kind = "" if row.job == "size" else f"{row.features} | "
        assert f"| {kind}{row.inputs} | {row.rows:,} | {row.columns:,} | " in page


def test_the_page_shows_files_that_are_small_and_intervals_that_hold():
    rows = {row.case: row for row in newest("sizes", sizes.Row)}
    assert set(rows) == {*(f"map of {n:,} points" for n in sizes.MAPS), *sizes.WAYS}
    page = docs.stored_page()
    for row in rows.values():
        assert f"| {row.case} | {row.rows:,} | {row.inputs} | {row.columns:,} | " in page
        assert row.same
        assert row.ratio < 10
    chance = 2 * (0.95 * 0.05 / (sizes.HELD / 10)) ** 0.5
    for row in (rows[way] for way in sizes.WAYS):
        assert row.file_megabytes < 20
        assert row.lowest > 0
        assert 0.92 < min(row.deciles) <= max(row.deciles) < 0.97 + chance
    of_table, command = rows[sizes.TABLE], rows[sizes.COMMAND]
    assert (of_table.scores, of_table.deciles) == (command.scores, command.deciles)


def test_the_page_shows_rasters_of_ours_and_of_other_libraries():
    rows = {row.case: row for row in newest("maps", maps.Row)}
    assert set(rows) == set(maps.MAPPERS)
    page = docs.stored_page()
    for row in rows.values():
        assert (
            f"| {row.case} | {row.unknowns:,} | {', '.join(row.outputs)} | {row.cells:,} |" in page
        )
        assert f"| {row.cells / row.seconds:,.0f} |" in page
        assert row.peak_memory < map_peers.MEMORY
    assert max(row.cells for row in rows.values()) > 9_990_000
    assert page.index("| rwf, ") < page.index("| PyKrige, ") < page.index("| verde, ")


def test_every_benchmark_with_stored_rows_has_a_name():
    stored = {path.stem for path in (docs.PAGE.parents[1] / "benchmarks").glob("*.jsonl")}
    assert len(stored) > 5
    assert stored <= set(__main__.BENCHMARKS)
