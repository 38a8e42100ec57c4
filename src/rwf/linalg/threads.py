"""Threads: one BLAS thread for many small products, and our own threads over independent work.

numpy and scipy have a BLAS each, and their threads compete: on matrices of a few hundred columns
one thread is twice as fast as two. Independent jobs then share the cores. Those that take long
enough may go to other processes or machines, by joblib.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

Job = TypeVar("Job")
Result = TypeVar("Result")

_ALONE = ContextVar("_ALONE", default=False)
_N_JOBS: ContextVar[int | None] = ContextVar("_N_JOBS", default=None)


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS of numpy and of scipy. To search a process for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - what is loaded later would not be found

    return ThreadpoolController()


class _Limit:
    """Limits BLAS to one thread while any context is open, in any thread of the process.

    If two concurrent fits each restored the number, the second would restore the first's limit.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._restore: Callable[[], None] | None = None

    def hold(self) -> None:
        with self._lock:
            self._holders += 1
            if self._restore is None:
                limits = _libraries().limit(limits=1, user_api="blas")
                self._restore = limits.restore_original_limits

    def release(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0 and self._restore is not None:
                self._restore()
                self._restore = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which matrix products use a single thread."""
    _LIMIT.hold()
    try:
        yield
    finally:
        _LIMIT.release()


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which all work stays on this thread: other processes use the other cores."""
    token = _ALONE.set(True)
    try:
        with one_blas_thread():
            yield
    finally:
        _ALONE.reset(token)


def cores() -> int:
    """Cores this process may use; one within :func:`one_thread`."""
    if _ALONE.get():
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
    """The results in the order of the jobs, which run on as many threads as there are cores."""
    if cores() == 1:
        with one_blas_thread():
            return [function(job) for job in jobs]
    with one_blas_thread(), ThreadPoolExecutor(max_workers=cores()) as pool:
        return list(pool.map(function, jobs))


@contextmanager
def jobs_at_once(n_jobs: int | None) -> Iterator[None]:
    """A context in which so many jobs run at once; ``None`` leaves it to joblib's own context."""
    token = _N_JOBS.set(n_jobs)
    try:
        yield
    finally:
        _N_JOBS.reset(token)


def has_workers() -> bool:
    """Whether jobs run beside one another, on the current backend of joblib."""
    return int(effective_n_jobs(_N_JOBS.get())) > 1


def dispatched(function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
    """The results in the order of the jobs, one after another if there are no workers.

    The function and the jobs are pickled, so a result must not depend on what a job changes.
    """
    if not has_workers():
        return [function(job) for job in jobs]
    # Larger arrays would come as memory maps, which are read-only.
    parallel = Parallel(n_jobs=_N_JOBS.get(), max_nbytes=None)
    return list(parallel(delayed(function)(job) for job in jobs))
