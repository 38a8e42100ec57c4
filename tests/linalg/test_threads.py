"""BLAS is held to one thread while any context is open, and has its threads back afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from rwf import RWFRegressor
from rwf.linalg import threads
from rwf.linalg.threads import cores, in_parallel, one_blas_thread, one_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_nested_contexts_restore_the_number_of_threads_once():
    before = blas_threads()
    assert set(before) == {2}
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_jobs_keep_their_order_and_have_one_thread_each():
    found = in_parallel(lambda job: (job, max(blas_threads())), range(7))
    assert found == [(job, 1) for job in range(7)]
    with one_thread():
        assert cores() == 1
        assert in_parallel(lambda job: job**2, range(3)) == [0, 1, 4]


def test_libraries_are_searched_for_once(rng, monkeypatch):
    searches = []

    class Counting(ThreadpoolController):
        def __init__(self):
            searches.append(1)
            super().__init__()

    monkeypatch.setattr(threads, "ThreadpoolController", Counting)
    threads._libraries.cache_clear()
    X = rng.normal(3.0, 2.0, (60, 4))
    RWFRegressor(random_state=0, max_iter=5).fit(X, np.sin(X[:, 0])).predict(X)
    threads._libraries.cache_clear()
    assert len(searches) == 1
