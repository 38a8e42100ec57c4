"""Print CPU time and memory of the multifrontal solver, beside their limits.

Seconds are CPU time. Those allowed are stated for a core of 60 GFLOP/s and scaled by the rate of
this machine's own ``dgemm``, measured in the same process. Every case runs in a process of its own,
so that its peak memory is its own. Example: python -m benchmarks tree line --out tree.jsonl
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import resource
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import rwf
from benchmarks.rows import append, in_own_process
from benchmarks.timing import gemm_rate, seconds
from rwf._types import Array
from rwf.data.rows import Block
from rwf.features import ConstantFeatures, LinearFeatures, Stack
from rwf.inference.multifrontal import (
    AtomTree,
    accumulate_tree,
    draw_multifrontal_lattice,
    memory_needed,
    power_law,
)
from rwf.linalg.threads import one_blas_thread
from rwf.wavelets import CompactHat
from rwf.wavelets.radial import Bump

REFERENCE_RATE = 60e9
"""Flops per second of the core for which the allowed seconds are stated."""

NOISE = 1e-2


@dataclass(frozen=True)
class Case:
    """What to run, and what it may take.

    Args:
        rows: how many, drawn uniformly from [0, 1]; the elevation map of the US if zero.
        columns: about how many.
        predicted: rows to predict with their variances.
        work: seconds for assembly, factor and inverse.
        predict: seconds for predictions.
        memory: bytes.
        repeats: of so many runs, the fastest beside ``dgemm`` counts.
    """

    rows: int
    columns: int
    predicted: int = 10_000
    work: float | None = None
    predict: float | None = None
    memory: float | None = None
    repeats: int = 3


CASES = {
    "line": Case(10**6, 65_000, 10**6, work=5.0, predict=2.0, memory=1.2e9),
    "long": Case(10**7, 262_000, 10**6, memory=8e9, repeats=1),
    "map": Case(0, 100_000, 55_000, work=12.0, memory=2.5e9),
    **{f"rows {n}": Case(n, 4000) for n in (30_000, 95_000, 300_000, 950_000, 3_000_000)},
    **{f"columns {p}": Case(10**6, p) for p in (1000, 3200, 10_000, 32_000, 100_000)},
    **{f"both {p}": Case(16 * p, p) for p in (1000, 3200, 10_000, 32_000, 100_000)},
}


@dataclass(frozen=True)
class Row:
    """One measurement, on one core; seconds are CPU time, memory is bytes."""

    case: str
    rows: int
    columns: int
    inputs: int
    largest_front: int
    lattice: float
    dissect: float
    assemble: float
    factor: float
    inverse: float
    predict: float
    predicted: int
    peak_memory: int
    foretold_memory: int
    gemm_gflops: float
    work_allowed: float | None
    predict_allowed: float | None
    memory_allowed: float | None
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()

    @property
    def work(self) -> float:
        """Seconds of assembly, factor and inverse."""
        return self.assemble + self.factor + self.inverse

    @property
    def within(self) -> bool:
        """Whether all that is limited is within its limit."""
        pairs = [
            (self.work, self.work_allowed),
            (self.predict, self.predict_allowed),
            (self.peak_memory, self.memory_allowed),
        ]
        return all(allowed is None or taken <= allowed for taken, allowed in pairs)


def elevation() -> tuple[Array, Array]:
    """Nine tenths of the elevation map of the US on a grid of 4 km, standardised."""
    path = Path(os.environ["RWF_DATA"]) / "dem_us_prism4km.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1)
    order = np.random.RandomState(0).permutation(len(table))  # the split that all tables use
    table = table[order[: int(0.9 * len(table))]]
    X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1:]
    return X, (y - y.mean()) / y.std()


def line(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(n, 1))
    return X, np.sin(50 * X**2) + 0.1 * rng.normal(size=(n, 1))


def features(X: Array, columns: int) -> Stack:
    wavelet = CompactHat() if X.shape[1] == 1 else Bump()
    lattice = draw_multifrontal_lattice(wavelet, X, columns, np.random.default_rng(2))
    return Stack((*lattice, ConstantFeatures(), LinearFeatures(X.shape[1])))


def measure(name: str, case: Case) -> Row:
    X, y = line(case.rows) if case.rows else elevation()
    rows, d = Block(X, y, np.ones(len(X))), X.shape[1]
    run(rows.part(slice(0, 2000)), AtomTree.of(features(X[:2000], 300), d, 30), 100)  # compile
    lattice, stack = seconds(lambda: features(X, case.columns))
    dissect, tree = seconds(lambda: AtomTree.of(stack, d))
    runs, rates = [], [gemm_rate()]
    for _ in range(case.repeats):
        runs.append(run(rows, tree, case.predicted))
        rates.append(gemm_rate())
    # The machine's speed changes while it has other work: a run counts beside the rate around it.
    around = [0.5 * (before + after) for before, after in pairwise(rates)]
    (assemble, factor, inverse, predict), rate = min(
        zip(runs, around, strict=True), key=lambda pair: sum(pair[0]) * pair[1]
    )
    scale = REFERENCE_RATE / rate
    return Row(
        case=name,
        rows=len(X),
        columns=tree.n_features,
        inputs=d,
        largest_front=int(tree.dissection.fronts.max()),
        lattice=lattice,
        dissect=dissect,
        assemble=assemble,
        factor=factor,
        inverse=inverse,
        predict=predict,
        predicted=case.predicted,
        peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        foretold_memory=memory_needed(tree.dissection),
        gemm_gflops=rate / 1e9,
        work_allowed=None if case.work is None else case.work * scale,
        predict_allowed=None if case.predict is None else case.predict * scale,
        memory_allowed=case.memory,
    )


def run(rows: Block, tree: AtomTree, predicted: int) -> tuple[float, float, float, float]:
    """Seconds of assembly, factor with solution, inverse, and predictions."""
    prior_variances = power_law(tree.columns.features).prior_variances(tree.columns.features.groups)
    X_new = rows.X[np.random.default_rng(3).integers(len(rows), size=predicted)]
    assemble, moments = seconds(lambda: accumulate_tree(tree, [rows], 1))
    factor, posterior = seconds(lambda: moments.posterior(0, prior_variances, NOISE))
    inverse, _ = seconds(lambda: posterior.factor.inverse)
    predict, _ = seconds(lambda: posterior.predict(X_new))
    return assemble, factor, inverse, predict


def report(row: Row) -> str:
    def beside(taken: float, allowed: float | None, unit: str) -> str:
        return f"{taken:.2f}{'' if allowed is None else f' of {allowed:.2f}'} {unit}"

    memory = None if row.memory_allowed is None else row.memory_allowed / 1e9
    return (
        f"{row.case:<16} N={row.rows} D={row.columns} front={row.largest_front}: "
        f"assemble {row.assemble:.2f} + factor {row.factor:.2f} + inverse {row.inverse:.2f} = "
        f"{beside(row.work, row.work_allowed, 's')}, {row.predicted} predictions "
        f"{beside(row.predict, row.predict_allowed, 's')}, "
        f"{beside(row.peak_memory / 1e9, memory, 'GB')}, dgemm {row.gemm_gflops:.0f} GFLOP/s"
    )


def slope(found: list[Row], by: str) -> float:
    """Slope of log seconds against log rows, log columns, or both growing alike."""
    sizes = [getattr(row, "columns" if by == "both" else by) for row in found]
    return float(np.polyfit(np.log(sizes), np.log([row.work for row in found]), 1)[0])


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks tree", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    parser.add_argument("--here", action="store_true", help="one case in this process, as JSON")
    arguments = parser.parse_args(given)
    if arguments.here:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with one_blas_thread():
            print(json.dumps(asdict(measure(arguments.cases[0], CASES[arguments.cases[0]]))))
        return
    found = []
    for name in arguments.cases:
        row = in_own_process(Row, "benchmarks.tree", [name, "--here"])
        found.append(row)
        print(report(row), "" if row.within else " TOO MUCH", flush=True)
        append(arguments.out, row)
    for by in ("rows", "columns", "both"):
        series = [row for row in found if row.case.startswith(f"{by} ")]
        if len(series) > 1:
            print(f"slope of log seconds against log {by}: {slope(series, by):.2f}")


if __name__ == "__main__":
    main()
