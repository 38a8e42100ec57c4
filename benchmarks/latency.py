"""Measure what a fit costs: CPU seconds of ``RWFRegressor().fit``, each in a process of its own.

Seconds are also scaled to a core of 50 GFLOP/s, by the rate of the machine's own dgemm beside them.
A first fit has an empty cache of compiled code, and counts the whole process with its imports;
other fits are the faster of two processes, of which the first fills the cache.
Example: python -m benchmarks latency --out benchmarks/latency.jsonl
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rwf
from benchmarks.rows import append, history
from benchmarks.timing import gemm_rate
from experiments.data.tasks import problem

GFLOPS = 50.0  # of the core that limits are for
VARIABLES = ("OPENBLAS", "OMP", "MKL", "NUMBA", "VECLIB_MAXIMUM")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in VARIABLES}

CHILD = """
import sys, time
import numpy as np
rows = np.load(sys.argv[1])
from rwf import RWFRegressor
begun = time.process_time()
RWFRegressor(random_state=0).fit(rows["X"], rows["y"])
ended = time.process_time()
print(ended - begun, ended)
"""
"""Prints the CPU seconds of the fit, and of the process until then."""

Data = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """What is fitted.

    Args:
        draw: makes the rows.
        limit: scaled CPU seconds that the fit may take, if there is a limit.
        first: whether it is a first fit, with nothing compiled.
    """

    draw: Callable[[], Data]
    limit: float | None = None
    first: bool = False


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        case: by what the newest row replaces others.
        rows: how many.
        inputs: columns of X.
        seconds: CPU seconds of the fit, or of the whole process for a first fit.
        gemm_gflops: rate of dgemm on one core, per CPU second.
        limit: scaled CPU seconds that it may take, or ``None``.
        commit: of the sources.
    """

    case: str
    rows: int
    inputs: int
    seconds: float
    gemm_gflops: float
    limit: float | None
    commit: str
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()

    @property
    def scaled(self) -> float:
        """CPU seconds on a core of 50 GFLOP/s."""
        return self.seconds * self.gemm_gflops / GFLOPS

    @property
    def within(self) -> bool:
        return self.limit is None or self.scaled <= self.limit


def small(d: int) -> Data:
    """150 rows of a smooth signal."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (150, d))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))


def line(n: int) -> Data:
    """A sine with a jump on one column."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, n)
    return x[:, None], np.sin(2 * x) + 2.0 * (x > 6.0) + 0.1 * rng.normal(size=n)


def wide() -> Data:
    """2000 rows of 100 columns, of which the target depends on five."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (2000, 100))
    Z = (X - 3.0) / 2.0
    f = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.5 * Z[:, 3] ** 2 + 0.3 * Z[:, 4]
    return X, f + 0.3 * rng.normal(size=len(X))


def task(name: str, split: int = 0) -> Data:
    """The training rows of a task of the experiments."""
    table, rows = problem(name, split)
    return table.X[rows.train], table.y[rows.train]


def of_task(name: str, limit: float | None = None) -> Case:
    """The training rows of a task of the experiments."""

    def draw() -> Data:
        table, rows = problem(name, 0)
        return table.X[rows.train], table.y[rows.train]

    return Case(draw, limit)


def of_line(n: int, limit: float | None = None) -> Case:
    return Case(lambda: line(n), limit)


CASES = {
    "first fit, 150 × 1": Case(lambda: small(1), 10.0, first=True),
    "first fit, 150 × 5": Case(lambda: small(5), 8.0, first=True),
    "lidar": of_task("lidar-tenth", 2.0),
    "sine with a jump, 300": of_line(300, 2.5),
    "sine with a jump, 1,000": of_line(1_000, 4.0),
    "sine with a jump, 5,000": of_line(5_000, 12.0),
    "sine with a jump, 20,000": of_line(20_000, 30.0),
    "energy": of_task("energy", 3.0),
    "concrete": of_task("concrete", 3.0),
    "airfoil": of_task("airfoil", 5.0),
    "five of 100 columns": Case(wide, 15.0),
    "kin8nm": of_task("kin8nm", 9.0),
    "naval": of_task("naval", 20.0),
    "protein": of_task("protein", 18.0),
    "Heaton satellite": of_task("heaton_satellite", 30.0),
}
"""By the names in the table; limits are CPU seconds on a core of 50 GFLOP/s."""

GROWTH = {
    f"growth, {n:,}": of_line(n)
    for n in (
        *(1_000, 3_000, 10_000, 15_000, 20_000, 20_001),
        *(30_000, 100_000, 300_000, 1_000_000),
    )
}
"""More and more rows of a sine with a jump; beyond 20,000 another solver fits them."""

LARGE = 10_000  # rows from which the slope of log time by log rows is fitted


def measure(name: str, cache: Path) -> Row:
    """Fit a case in a process of its own, with this folder as numba's cache."""
    case = (CASES | GROWTH)[name]
    X, y = case.draw()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, X=X, y=y)
        before = gemm_rate()
        if case.first:
            _, taken = _fit(path, Path(folder))
        else:
            taken = min(_fit(path, cache)[0] for _ in range(2))
    rate = (before + gemm_rate()) / 2e9
    n, d = X.shape
    return Row(name, n, d, taken, rate, case.limit, commit())


def _fit(rows: Path, cache: Path) -> tuple[float, float]:
    environment = os.environ | ONE_THREAD | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CHILD, str(rows)]
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    fit, process = map(float, printed.split())
    return fit, process


def commit() -> str:
    """The commit of the sources, short, with a plus if they have been changed since."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    told = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    return told.stdout.strip()


def slope(rows: Iterable[Row]) -> float:
    """Of log time by log rows, from :data:`LARGE` rows on; NaN for fewer than two."""
    large = [row for row in rows if row.case in GROWTH and row.rows >= LARGE]
    if len(large) < 2:
        return float("nan")
    logs = np.log([[row.rows, row.scaled] for row in large])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def report(row: Row) -> str:
    limit = "" if row.limit is None else f", at most {row.limit:.1f}"
    return (
        f"{row.case:<26} {row.rows:>9,} × {row.inputs:<3} {row.scaled:7.2f} s scaled{limit}"
        f"{'' if row.within else ' (missed)'}; {row.seconds:.2f} s at {row.gemm_gflops:.0f} GFLOP/s"
    )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks latency", description=__doc__)
    parser.add_argument("--case", action="append", choices=[*CASES, *GROWTH], help="only this one")
    parser.add_argument("--growth", action="store_true", help="more and more rows, up to a million")
    parser.add_argument(
        "--history", action="store_true", help="print stored rows, and measure none"
    )
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    names = arguments.case or [*CASES, *(GROWTH if arguments.growth else ())]
    if arguments.history:
        stored = history("latency", Row)
        for name in names:
            for row in stored.get(name, []):
                print(f"{row.commit:<10} {row.version:<8} {report(row)}")
        return
    measured = []
    with tempfile.TemporaryDirectory() as cache:
        for name in names:
            measured.append(measure(name, Path(cache)))
            print(report(measured[-1]), flush=True)
            append(arguments.out, measured[-1])
    if any(row.case in GROWTH for row in measured):
        print(f"slope of log time by log rows, from {LARGE:,} rows on: {slope(measured):.2f}")


if __name__ == "__main__":
    main()
