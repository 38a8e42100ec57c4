"""Long independent jobs, which joblib sends to other processes or machines if a user wants that.

Parts of one fit are too small for that, and share the threads of :mod:`rwf.linalg.threads`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from joblib import Parallel, delayed, effective_n_jobs

Job = TypeVar("Job")
Result = TypeVar("Result")

_N_JOBS: ContextVar[int | None] = ContextVar("_N_JOBS", default=None)


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
