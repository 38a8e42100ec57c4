"""Print how much faster a pass over rows is on a Dask cluster of more workers.

Clusters of processes on this machine take turns at the same pass, several times, so that all meet
the same other work; a ratio is the median over turns. No more is to be gained than there are cores,
but for rows that must be waited for: in these cases every partition sleeps before it is there.
With --spark, the example of docs/large-data.md is run instead; it needs pyspark and Java.
Example: python -m benchmarks cluster --out benchmarks/cluster.jsonl
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import re
import tempfile
import time
from contextlib import ExitStack, chdir
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import rwf
from benchmarks.rows import append
from benchmarks.timing import gemm_rate, seconds
from rwf import RWFRegressor
from rwf._types import Array
from rwf.models.dense import DenseModel

WORKERS = (1, 2, 4)
PAGE = Path(__file__).parent.parent / "docs" / "large-data.md"
INPUTS = 8


@dataclass(frozen=True)
class Row:
    """One measurement: a pass for moments, by the wall clock.

    Args:
        case: by what the newest row replaces others.
        workers: processes of one thread each.
        rows: how many.
        columns: of features.
        partitions: of the rows.
        waiting: seconds that each partition sleeps, as if it came from a slow disk.
        rows_per_second: the median over turns.
        ratio: how many times as many as one worker has in the same turn, the median.
        difference: of ZᵀZ from that of one machine, relative to its largest entry.
        turns: how many.
        cores: of the machine.
        load: its load average at the end; beyond the workers, it is other work.
        gemm_gflops: rate of dgemm on one core, per CPU second.
    """

    case: str
    workers: int
    rows: int
    columns: int
    partitions: int
    waiting: float
    rows_per_second: float
    ratio: float
    difference: float
    turns: int
    cores: int
    load: float
    gemm_gflops: float
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()


def data(rows: int, partitions: int, waiting: float) -> tuple[da.Array, da.Array]:
    """Rows that workers make when they are needed, after a while."""
    rng = da.random.default_rng(1)
    size = rows // partitions
    X = rng.normal(3.0, 2.0, (size * partitions, INPUTS), chunks=(size, INPUTS))
    if waiting:
        X = X.map_blocks(functools.partial(_late, waiting), dtype=float, meta=np.empty((0, 0)))
    return X, da.sin(X[:, 0]) + 0.1 * X[:, 1]


def _late(seconds: float, block: Array) -> Array:
    time.sleep(seconds)
    return block


def _gram(model: RWFRegressor) -> Array:
    assert isinstance(model.model_.base, DenseModel)
    return model.model_.base.statistics.ZtZ


def measure(rows: int, columns: int, partitions: int, waiting: float, turns: int) -> list[Row]:
    X, y = data(rows, partitions, waiting)
    first = X[:4000].compute(scheduler="synchronous")
    model = RWFRegressor(
        prior="random_features", n_components=columns, max_iter=2, n_restarts=0, random_state=0
    ).fit(first, np.sin(first[:, 0]) + 0.1 * first[:, 1])
    taken: dict[int, list[float]] = {count: [] for count in WORKERS}
    sums: dict[int, Array] = {}
    with ExitStack() as stack:
        clients = {}
        for count in WORKERS:
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0"
                )
            )
            clients[count] = stack.enter_context(Client(cluster))
        for turn in range(turns + 1):
            for count, client in clients.items():
                with client.as_current():
                    wall, found = seconds(
                        lambda: model.empty_copy().partial_fit(X, y), time.perf_counter
                    )
                sums[count] = _gram(found)
                if turn:  # before that, workers import and compile
                    taken[count].append(wall)
    inputs, targets = X.compute(scheduler="synchronous"), y.compute(scheduler="synchronous")
    here = _gram(model.empty_copy().partial_fit(inputs, targets))
    return [
        Row(
            case=f"{count} workers{', waiting' if waiting else ''}",
            workers=count,
            rows=len(X),
            columns=model.n_features_out_,
            partitions=partitions,
            waiting=waiting,
            rows_per_second=len(X) / median(taken[count]),
            ratio=median(
                one / own for one, own in zip(taken[WORKERS[0]], taken[count], strict=True)
            ),
            difference=float(np.abs(sums[count] - here).max() / np.abs(here).max()),
            turns=turns,
            cores=len(os.sched_getaffinity(0)),
            load=os.getloadavg()[0],
            gemm_gflops=gemm_rate() / 1e9,
        )
        for count in WORKERS
    ]


def report(row: Row) -> str:
    return (
        f"{row.case:<18} N={row.rows} D={row.columns} in {row.partitions} partitions: "
        f"{row.rows_per_second:,.0f} rows/s, {row.ratio:.2f} of one worker, ZᵀZ within "
        f"{row.difference:.0e} of one machine; {row.cores} cores, load {row.load:.1f}"
    )


def spark() -> dict[str, object]:
    """Run the example of the docs, beside the same rows on one machine."""
    page = PAGE.read_text(encoding="utf-8")
    (first, *_) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (example,) = [
        block for block in re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL) if "spark" in block
    ]
    names: dict[str, Any] = {"__name__": "example"}
    with tempfile.TemporaryDirectory() as home, chdir(home):
        exec(compile(first, str(PAGE), "exec"), names)
        taken, _ = seconds(
            lambda: exec(compile(example, str(PAGE), "exec"), names), time.perf_counter
        )
        names["spark"].stop()
    frame, whole = names["frame"], names["whole"]
    same = names["model"].empty_copy().partial_fit(frame, "y")
    ours, theirs = whole.model_.base.statistics, same.model_.base.statistics
    return {
        "case": "Spark example",
        "rows": int(ours.n),
        "seconds": taken,
        "difference": float(np.abs(ours.ZtZ - theirs.ZtZ).max() / np.abs(theirs.ZtZ).max()),
        "of_predictions": float(np.abs(whole.predict(frame) - same.predict(frame)).max()),
        "pyspark": version("pyspark"),
        "version": rwf.__version__,
    }


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=160_000)
    parser.add_argument("--columns", type=int, default=600)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--waiting", type=float, default=0.0, help="seconds for every partition")
    parser.add_argument("--spark", action="store_true", help="run the example of the docs")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    if arguments.spark:
        found = spark()
        print(found)
        append(arguments.out, found)
        return
    sizes = arguments.rows, arguments.columns, arguments.partitions
    for row in measure(*sizes, arguments.waiting, arguments.turns):
        print(report(row))
        append(arguments.out, row)


if __name__ == "__main__":
    main()
