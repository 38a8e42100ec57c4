"""Measure where the time of a fit goes, by its stages, each fit in a process of its own.

One thread does all of the work, so that seconds by the wall clock are those of the CPU on a quiet
machine. Example: python -m benchmarks profile --out benchmarks/profile.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rwf
from benchmarks.latency import CASES, ONE_THREAD, commit
from benchmarks.rows import append

PROFILED = ("sine with a jump, 1,000", "concrete", "protein")

CHILD = """
import json, sys
import numpy as np
rows = np.load(sys.argv[1])
from rwf import RWFRegressor
from rwf.linalg.threads import one_thread
with one_thread():
    for _ in range(2):  # the first fit loads compiled code
        model = RWFRegressor(random_state=0).fit(rows["X"], rows["y"])
print(json.dumps(model.fit_report_.seconds))
"""


@dataclass(frozen=True)
class Row:
    """Seconds of a fit.

    Args:
        case: by what the newest row replaces others.
        rows: how many.
        inputs: columns of X.
        stages: seconds by stage, in order.
        commit: of the sources.
    """

    case: str
    rows: int
    inputs: int
    stages: dict[str, float]
    commit: str
    version: str = rwf.__version__

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())


def measure(name: str) -> Row:
    """Fit a case of the latency benchmark, and keep the seconds of its report."""
    X, y = CASES[name].draw()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X, y=y)
        command = [sys.executable, "-c", CHILD, str(path)]
        environment = os.environ | ONE_THREAD
        printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    stages = json.loads(printed.stdout)
    n, d = X.shape
    return Row(name, n, d, stages, commit())


def report(row: Row) -> str:
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in row.stages.items())
    return f"{row.case:<26} {row.seconds:6.2f} s: {stages}"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks profile", description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    for name in arguments.case or PROFILED:
        row = measure(name)
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
