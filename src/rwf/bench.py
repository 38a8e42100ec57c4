"""A short benchmark: seconds to fit, add and predict rows, beside the machine's matrix product."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rwf.estimators import RWFRegressor
from rwf.types import Array

SIZE, REPEATS = 1000, 3
"""Of the matrix product."""


@dataclass(frozen=True)
class BenchResult:
    """What was timed.

    Args:
        rows: fitted, added and predicted.
        columns: of the inputs.
        features: of the model, trend included.
        cores: of the machine.
        gemm_gflops: of a product of two matrices in double precision.
        seconds: by job.
    """

    rows: int
    columns: int
    features: int
    cores: int
    gemm_gflops: float
    seconds: dict[str, float]


def run_bench(rows: int, columns: int, n_components: int) -> BenchResult:
    """Time every job once, after a small one of its kind, so that compilation is not timed."""
    X, y = _data(rows, columns)
    small = RWFRegressor(20, prior="projected", max_iter=2, n_restarts=0, random_state=0)
    small.fit(X[:100], y[:100]).predict(X[:100], return_std=True)
    model = RWFRegressor(n_components, prior="projected", max_iter=20, n_restarts=0, random_state=0)
    seconds = {"fit": _seconds(lambda: model.fit(X, y))}
    blank = model.without_rows()
    seconds["add rows"] = _seconds(lambda: blank.partial_fit(X, y))
    seconds["predict means"] = _seconds(lambda: model.predict(X))
    seconds["predict with error bars"] = _seconds(lambda: model.predict(X, return_std=True))
    features, cores = model.n_features_out_, os.cpu_count() or 1
    return BenchResult(rows, columns, features, cores, _gemm_gflops(), seconds)


def _data(rows: int, columns: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, (rows, columns))
    y = np.sin(X[:, 0]) + 0.1 * X.sum(axis=1) + 0.1 * rng.normal(size=rows)
    return X, y


def _seconds(job: Callable[[], object]) -> float:
    begun = time.perf_counter()
    job()
    return time.perf_counter() - begun


def _gemm_gflops() -> float:
    A = np.random.default_rng(0).normal(size=(SIZE, SIZE))
    fastest = min(_seconds(lambda: A @ A) for _ in range(REPEATS))
    return 2e-9 * SIZE**3 / fastest
