"""Figures from stored rows."""

from experiments.reporting import figures
from experiments.runner import store
from experiments.runner.plan import load_suite
from experiments.runner.run import Run, row_of
from harness import SESSION, atoms_rows


def test_a_map_is_drawn_where_its_row_is_stored_and_its_table_at_hand(hills, tmp_path, monkeypatch):
    run = Run("dem_jacksboro-block", "linear", 0)
    monkeypatch.setattr(figures, "MAPPED", {"terrain": run})
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []
    failed = row_of(run, {"error": "ValueError: no"}, SESSION)
    store.append(store.results_file("terrain", tmp_path), failed)
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []
    store.append(store.results_file("terrain", tmp_path), row_of(run, {"rmse": 2.0}, SESSION))
    (path,) = figures.draw_maps(tmp_path, tmp_path / "drawn")
    assert path.name == "terrain.png"
    assert path.stat().st_size > 1000
    monkeypatch.delenv("RWF_DATA")
    assert figures.draw_maps(tmp_path, tmp_path / "drawn") == []


def test_the_map_is_of_a_run_of_its_suite():
    for name, run in figures.MAPPED.items():
        assert run.key in {each.key for each in load_suite(name).runs()}


def test_figures_are_drawn_from_the_rows_there_are(tmp_path):
    assert figures.draw_all(tmp_path, tmp_path) == []
    for row in atoms_rows():
        store.append(store.results_file("atoms", tmp_path), row)
    outcome = {"coverages": [0.5] * 19}
    store.append(
        store.results_file("tables", tmp_path), row_of(Run("naval", "rwf", 0), outcome, SESSION)
    )
    drawn = figures.draw_all(tmp_path, tmp_path)
    assert [path.name for path in drawn] == ["atoms.png", "calibration.png"]
    assert all(path.stat().st_size > 1000 for path in drawn)
