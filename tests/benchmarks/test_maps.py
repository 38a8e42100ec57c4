"""Maps are measured in processes of their own, and other libraries up to what they manage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks import map_peers, maps
from benchmarks.map_peers import PEERS
from benchmarks.rows import in_own_process

xr = pytest.importorskip("xarray", reason="the extra maps is not installed")
pytest.importorskip("netCDF4", reason="the extra maps is not installed")

CELLS = 400


def needs(case):
    if not maps.installed(case):
        pytest.skip(f"{case.split(',')[0]} is not installed: it is in the extra bench")


def a_template():
    line = np.linspace(1, 9, 12)
    return xr.Dataset(coords={"y": line[::-1], "x": line[:7]})


@pytest.mark.parametrize("case", maps.MAPPERS)
def test_every_case_predicts_the_function_on_every_cell(case, monkeypatch):
    needs(case)
    monkeypatch.setattr(maps, "POINTS", 300)
    row = maps.measure(case, CELLS)
    assert (row.case, row.rows, row.cells) == (case, 300, CELLS)
    assert row.outputs[:2] == (["mean"] if case.startswith("verde") else ["mean", "sd"])
    assert row.rmse < 0.5  # the function has a deviation of one
    assert row.peak_memory >= row.at_start > 0
    assert min(row.seconds, row.cpu_seconds, row.file_gigabytes, row.unknowns) > 0
    assert f"{CELLS:,} cells" in maps.report(row)


def test_kriging_is_the_same_in_every_backend_and_from_all_points_as_nearest():
    needs("PyKrige, C")
    points = maps.draw()[:60]
    whole = map_peers.kriging(points, "vectorized").predict(a_template())
    for other in (map_peers.kriging(points, "C"), map_peers.kriging(points, "C", 60)):
        xr.testing.assert_allclose(other.predict(a_template()), whole, rtol=1e-6)
    assert map_peers.kriging(points, "C", 5).unknowns == 6


def test_maps_lie_as_the_template_does():
    needs("verde, Spline")
    needs("PyKrige, C")
    points = maps.draw()[:300].assign(z=lambda table: table.x + 10 * table.y)
    for mapper in (map_peers.spline(points), map_peers.kriging(points, "C")):
        found = mapper.predict(a_template())
        assert float(abs(found["mean"] - (found.x + 10 * found.y)).max()) < 5


def test_a_case_runs_in_a_process_of_its_own():
    row = maps.in_a_process("rwf, multiscale, 100 components", CELLS)
    assert row.cells == CELLS
    assert row.peak_memory > row.at_start > 0


def test_a_process_that_takes_too_long_is_ended():
    with pytest.raises(TimeoutError, match=r"more than 0\.01 s"):
        in_own_process(maps.Row, "benchmarks.maps", ["--help"], 0.01)


def test_what_is_missing_is_said_and_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(maps, "find_spec", lambda name: None)
    maps.main(["--case", "PyKrige, C", "--out", str(tmp_path / "rows.jsonl")])
    assert "PyKrige, C: not installed" in capsys.readouterr().out
    assert not (tmp_path / "rows.jsonl").exists()


@dataclass(frozen=True)
class Tried:
    cells: int
    peak_memory: int


@pytest.mark.parametrize("bytes_per_cell, slow", [(map_peers.MEMORY // 800, 10**9), (1, 1600)])
def test_templates_double_until_memory_or_time_is_exceeded(bytes_per_cell, slow):
    tried = []

    def measure(cells):
        tried.append(cells)
        if cells >= slow:
            raise TimeoutError
        return Tried(cells, cells * bytes_per_cell)

    assert map_peers.largest(measure, 100).cells == 800
    assert tried == [100, 200, 400, 800, 1600]
    with pytest.raises(RuntimeError, match="begin with fewer"):
        map_peers.largest(measure, 10**10)


def test_our_templates_are_given_and_those_of_others_are_found(monkeypatch):
    asked = []

    def run(case, cells, seconds=None):
        asked.append((case, cells, seconds))
        if cells > 2 * map_peers.FIRST_CELLS and case in PEERS:
            raise TimeoutError
        return Tried(cells, 0)

    monkeypatch.setattr(maps, "in_a_process", run)
    for case, (_, _, cells) in maps.CASES.items():
        assert maps.of_case(case).cells == cells
    assert maps.of_case("verde, Spline").cells == 2 * map_peers.FIRST_CELLS
    assert asked[-1] == ("verde, Spline", 4 * map_peers.FIRST_CELLS, map_peers.SECONDS)
