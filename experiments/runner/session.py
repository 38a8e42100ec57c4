"""A session: runs that have no row yet, each in a fresh process, one or more at once.

What all rows of a session share is measured once: threads, the machine's dgemm rate, versions.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from scipy.linalg import blas

import rwf
from experiments import ROOT
from experiments.runner.default import commit, fingerprint, is_stale
from experiments.runner.run import Run, row_of
from experiments.runner.store import JSON, Row, append
from rwf.linalg.threads import cores, one_blas_thread

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "gpytorch": "gpytorch",
    "catboost": "catboost",
    "xgboost": "xgboost",
}
"""Whose versions rows record, under which names."""


@dataclass(frozen=True)
class Conditions:
    """Under what conditions the runs of a session take place.

    Args:
        jobs: runs at once; with more than one, each has one thread on a core of its own.
        timeout: seconds after which a run has failed.
        dgemm_gflops: the machine's rate on one thread, or ``None`` where it was not measured.
    """

    jobs: int = 1
    timeout: float = 1800.0
    dgemm_gflops: float | None = None

    @property
    def threads(self) -> int:
        return 1 if self.jobs > 1 else cores()

    def fields(self) -> Row:
        return {
            "threads": self.threads,
            "dgemm_gflops": self.dgemm_gflops,
            "versions": versions(),
            "commit": commit(),
            "default": fingerprint(),
        }


def versions() -> dict[str, JSON]:
    """What the numbers depend on besides the settings, as far as it is installed."""
    installed: dict[str, JSON] = {}
    for name, package in PACKAGES.items():
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(package)
    return {"rwf": rwf.__version__, **installed, "python": platform.python_version()}


def dgemm_gflops(size: int = 1200, repeats: int = 5) -> float:
    """The rate of the fastest of several matrix products on one thread, in 10⁹ flops a second."""
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(size, size)))
    seconds = []
    with one_blas_thread():
        for _ in range(repeats):
            begun = time.perf_counter()
            blas.dgemm(1.0, A, A)
            seconds.append(time.perf_counter() - begun)
    return round(2e-9 * size**3 / min(seconds), 1)


def pending(
    runs: Sequence[Run],
    rows: Sequence[Row],
    *,
    retry_failed: bool = False,
    renew: bool = False,
    again: bool = False,
) -> list[Run]:
    """The runs to do: those without a row, and on demand others.

    Args:
        runs: all of them.
        rows: those that are stored.
        retry_failed: also the runs that failed.
        renew: also those of our methods whose row was made with other sources.
        again: all of them.
    """
    known = {row["key"]: row for row in rows}
    now = (fingerprint(),) if renew else ()

    def todo(run: Run) -> bool:
        row = known.get(run.key)
        if row is None or again:
            return True
        return (retry_failed and row["error"] is not None) or (renew and is_stale(row, now))

    return [run for run in runs if todo(run)]


def perform(
    runs: Sequence[Run], path: Path, conditions: Conditions, until: float = math.inf
) -> Iterator[Row]:
    """Do the runs and append each row to the file as it comes; yields the rows.

    Args:
        runs: what is to be done, in order.
        path: the file.
        conditions: threads, timeout, and the machine's rate.
        until: the time, by :func:`time.monotonic`, after which no run begins any more.
    """
    shared = conditions.fields()
    free: queue.SimpleQueue[int] = queue.SimpleQueue()  # cores that no run keeps to
    for core in _cores_for(conditions.jobs):
        free.put(core)

    def do(run: Run) -> Row | None:
        if time.monotonic() > until:
            return None
        core = free.get() if conditions.jobs > 1 else None
        try:
            return row_of(run, outcome_of(run, conditions, core), shared)
        finally:
            if core is not None:
                free.put(core)

    with ThreadPoolExecutor(max_workers=conditions.jobs) as pool:
        futures = [pool.submit(do, run) for run in runs]
        try:
            for future in as_completed(futures):
                row = future.result()
                if row is not None:
                    append(path, row)
                    yield row
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _cores_for(jobs: int) -> list[int]:
    """One core for each of several jobs, shared only where there are fewer cores than jobs."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return [allowed[k % len(allowed)] for k in range(jobs)]


def outcome_of(run: Run, conditions: Conditions, core: int | None = None) -> Row:
    """What a fresh process measured, or the error that ended it."""
    with tempfile.TemporaryDirectory() as directory:
        outcome = Path(directory) / "outcome.json"
        command = [sys.executable, "-m", "experiments.runner.child", str(outcome)]
        try:
            done = subprocess.run(
                command if core is None else [*command, str(core)],
                input=json.dumps(asdict(run)),
                cwd=ROOT,
                env=_environment(conditions.threads),
                capture_output=True,
                text=True,
                timeout=conditions.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"error": f"TimeoutError: no result after {conditions.timeout:g} s"}
        if done.returncode != 0 or not outcome.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"error": f"ChildProcessError: exit code {done.returncode}: {last[:300]}"}
        result: Row = json.loads(outcome.read_text(encoding="utf-8"))
        return result


def _environment(threads: int) -> Mapping[str, str]:
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
