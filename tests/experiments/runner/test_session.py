"""Sessions: a row for every run, whatever happens."""

import os

from experiments.runner import store
from experiments.runner.run import Run, row_of
from experiments.runner.session import Conditions, pending, perform
from harness import SESSION


def test_a_rerun_skips_what_has_a_row_and_retries_failures_on_demand():
    done, failed, fresh = (Run("waves", method, 0) for method in ("linear", "rff", "rwf"))
    rows = [row_of(done, {}, SESSION), row_of(failed, {"error": "ValueError: no"}, SESSION)]
    runs = [done, failed, fresh]
    assert pending(runs, rows) == [fresh]
    assert pending(runs, rows, retry_failed=True) == [failed, fresh]
    assert pending(runs, rows, again=True) == runs


def test_no_run_begins_after_its_time(tmp_path):
    path = tmp_path / "suite.jsonl"
    assert list(perform([Run("six-plateaus", "constant", 0)], path, Conditions(), until=0.0)) == []
    assert not path.exists()


FAULTY = """
import os

def raising(settings, seed):
    raise RuntimeError(f"seed {seed} is unlucky")

def dying(settings, seed):
    os._exit(3)
"""


def test_a_session_writes_a_row_for_every_run_whatever_happens(waves, tmp_path, monkeypatch):
    (tmp_path / "faulty.py").write_text(FAULTY)
    paths = [str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    runs = [Run("waves", m, 5) for m in ("linear", "faulty:raising", "faulty:dying")]
    path = tmp_path / "suite.jsonl"
    yielded = list(perform(runs, path, Conditions(jobs=2, dgemm_gflops=50.0)))
    rows = {row["method"]: row for row in store.read(path)}
    assert len(yielded) == len(rows) == 3
    assert rows["linear"]["error"] is None
    assert rows["linear"]["peak_memory_mb"] > 10
    assert rows["faulty:raising"]["error"] == "RuntimeError: seed 5 is unlucky"
    assert rows["faulty:dying"]["error"].startswith("ChildProcessError: exit code 3")
    assert len({tuple(row) for row in rows.values()}) == 1  # the same fields in the same order
    assert all(row["threads"] == 1 for row in rows.values())
    assert {run.method for run in pending(runs, store.read(path), retry_failed=True)} == {
        "faulty:raising",
        "faulty:dying",
    }


def test_a_run_that_takes_too_long_has_failed(waves, tmp_path):
    conditions = Conditions(timeout=0.01)
    (row,) = perform([Run("waves", "linear", 0)], tmp_path / "suite.jsonl", conditions)
    assert row["error"] == "TimeoutError: no result after 0.01 s"
