"""Fingerprints of the sources, and the rows that they make stale."""

import subprocess

import pytest

from experiments.reporting.cells import cell_of, cell_text, format_of
from experiments.reporting.tables import MEASURES
from experiments.runner import default, store
from experiments.runner.plan import load_suite
from experiments.runner.run import Run, row_of
from experiments.runner.session import Conditions, pending
from harness import SESSION

CODE = '''"""Words."""

def f(x, n=16):
    """More words."""
    return x + n  # and more
'''


@pytest.fixture
def package(tmp_path):
    (tmp_path / "fit").mkdir()
    (tmp_path / "cli").mkdir()
    (tmp_path / "fit" / "a.py").write_text(CODE)
    (tmp_path / "cli" / "b.py").write_text(CODE)
    default.fingerprint.cache_clear()
    return tmp_path


@pytest.mark.parametrize(
    "file, old, new, same",
    [
        ("fit/a.py", "More words.", "Other words.", True),
        ("fit/a.py", "  # and more", "", True),
        ("cli/b.py", "x + n", "x - n", True),
        ("fit/a.py", "n=16", "n=8", False),
        ("fit/a.py", "x + n", "x - n", False),
    ],
)
def test_the_fingerprint_is_that_of_what_predictions_run_through(package, file, old, new, same):
    before = default.fingerprint(package)
    path = package / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    default.fingerprint.cache_clear()
    assert (default.fingerprint(package) == before) == same


def test_a_moved_module_has_another_fingerprint(package):
    before = default.fingerprint(package)
    (package / "fit" / "a.py").rename(package / "fit" / "c.py")
    default.fingerprint.cache_clear()
    assert default.fingerprint(package) != before


def rows(*fingerprints):
    return [
        row_of(Run("energy", method, 0), {"rmse": 2.0, "facts": {}}, {**SESSION, "default": name})
        for method, name in fingerprints
    ]


def test_only_our_rows_with_another_default_are_stale():
    old, new, other, none = rows(("rwf", "a"), ("rff-3", "b"), ("svgp", "a"), ("rwf-plain", None))
    assert [default.is_stale(row, ("b",)) for row in (old, new, other, none)] == [1, 0, 0, 1]
    assert not default.is_stale(old, None)


@pytest.mark.parametrize("method", default.MIXTURES)
def test_rows_that_were_scored_by_one_normal_are_stale(method):
    (row,) = rows((method, None))
    assert default.is_stale(row, None)
    assert not default.is_stale({**row, "facts": {"density": "mixture of normals"}}, None)
    assert not default.is_stale({**row, "facts": None}, None)  # it failed, and says why


def test_stale_rows_are_marked_and_renewed_on_demand(tmp_path):
    now = default.settle(tmp_path)
    for row in rows(("rwf", "older"), ("rff", now), ("boosting", "older")):
        store.append(store.results_file("tables", tmp_path), row)
    found = {row["method"]: row for row in load_suite("tables").rows(tmp_path)}
    assert [found[name]["stale"] for name in ("rwf", "rff", "boosting")] == [True, False, False]
    cells = {name: cell_of([row], "rmse") for name, row in found.items()}
    form = format_of(cells, MEASURES["rmse"])
    texts = {name: cell_text(cell, form, 1, False) for name, cell in cells.items()}
    assert texts == {"rwf": "2.00 ‡", "rff": "2.00", "boosting": "2.00"}
    runs = [Run("energy", name, 0) for name in found]
    assert pending(runs, list(found.values())) == []
    assert [r.method for r in pending(runs, list(found.values()), renew=True)] == ["rwf"]


def test_settling_forgets_older_defaults_unless_they_predict_the_same(tmp_path):
    assert default.fresh(tmp_path) is None
    (tmp_path / "defaults.txt").write_text("# words\nolder\n")
    assert default.fresh(tmp_path) == ("older",)
    now = default.settle(tmp_path, same=True)
    assert default.fresh(tmp_path) == (now, "older")
    assert default.settle(tmp_path) == now
    assert default.fresh(tmp_path) == (now,)


def test_rows_have_the_commit_and_whether_sources_differ_from_it(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    assert default.commit(tmp_path / "nowhere") is None
    (tmp_path / "src").mkdir()
    (tmp_path / "experiments" / "results").mkdir(parents=True)
    for name in ("src/a.py", "experiments/results/x.jsonl"):
        (tmp_path / name).write_text("1")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "a")
    clean = default.commit(tmp_path)
    (tmp_path / "experiments/results/x.jsonl").write_text("2")
    assert default.commit(tmp_path) == clean
    (tmp_path / "src/a.py").write_text("2")
    assert default.commit(tmp_path) == clean + "+"
    assert {"commit", "default"} <= set(Conditions().fields())
