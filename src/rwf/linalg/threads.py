"""Threads: one BLAS thread for many small products, and our own threads over independent work.

numpy and scipy have a BLAS each, and their threads compete: on matrices of a few hundred columns
one thread is twice as fast as two. Independent jobs then share the cores.
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

from threadpoolctl import ThreadpoolController

Job = TypeVar("Job")
Result = TypeVar("Result")

_ALONE = ContextVar("_ALONE", default=False)


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
