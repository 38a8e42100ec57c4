"""Seconds of jobs, and the rate of the machine's own matrix product to hold them against."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

import numpy as np

from rwf.linalg.dense import call

Result = TypeVar("Result")
Clock = Callable[[], float]
Pair = tuple[Callable[[], object], Callable[[], object]]


def fastest(job: Callable[[], object], repeats: int = 3) -> float:
    """Seconds by the wall clock of the fastest of several runs."""
    return min(seconds(job, time.perf_counter)[0] for _ in range(repeats))


def seconds(job: Callable[[], Result], clock: Clock = time.process_time) -> tuple[float, Result]:
    """Seconds of a job, of CPU time unless another clock is given, and its result."""
    begun = clock()
    result = job()
    return clock() - begun, result


def gemm_rate(size: int = 1500, repeats: int = 4) -> float:
    """Flops per CPU second of the machine's own dgemm."""
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(size, size)))
    C = np.empty_like(A)

    def multiply() -> None:
        for _ in range(repeats):
            call("dgemm", "N", "N", size, size, size, 1.0, A, size, A, size, 0.0, C, size)

    taken, _ = seconds(multiply)
    return 2 * size**3 * repeats / taken


def typical_ratio(jobs: list[Pair], clock: Clock = time.process_time) -> tuple[float, float]:
    """Seconds of the first of all pairs, and the median of their ratios to the second.

    The machine's speed changes while it has other work; two jobs that follow each other share it.
    """
    pairs = [(seconds(whole, clock)[0], seconds(bare, clock)[0]) for whole, bare in jobs]
    return sum(whole for whole, _ in pairs), median(whole / bare for whole, bare in pairs)
