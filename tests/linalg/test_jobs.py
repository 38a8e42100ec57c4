"""Jobs that joblib runs: what is sent, in which order it returns, and that numbers are the same."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, parallel_config
from numpy.testing import assert_allclose

from rwf import RWFRegressor, TableRegressor
from rwf.linalg import threads
from rwf.linalg.threads import dispatched, has_workers, jobs_at_once

QUICK = {"prior": "nystrom", "max_iter": 3, "neighbors": None, "random_state": 0}


@pytest.fixture
def sent(monkeypatch):
    """How many jobs were sent, call by call; threads run them."""
    counts = []

    class Recording(Parallel):
        def __call__(self, calls):
            calls = [*calls]
            counts.append(len(calls))
            return super().__call__(calls)

    monkeypatch.setattr(threads, "Parallel", Recording)
    with parallel_config(backend="threading"):
        yield counts


@pytest.fixture
def table(rng):
    X = rng.normal(3.0, 2.0, (60, 4))
    return X, 2.0 + np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)


def same(a, b, X):
    assert_allclose(a.predict(X, return_std=True), b.predict(X, return_std=True), rtol=1e-4)


def test_without_workers_jobs_run_here_one_after_another():
    assert not has_workers()
    assert dispatched(lambda job: (job, os.getpid()), range(3)) == [
        (i, os.getpid()) for i in (0, 1, 2)
    ]
    with jobs_at_once(1):
        assert not has_workers()


@pytest.mark.slow
def test_workers_are_other_processes_and_jobs_keep_their_order():
    with jobs_at_once(2):
        assert has_workers()
        found = dispatched(lambda job: (job, os.getpid()), range(5))
    assert not has_workers()
    assert [job for job, _ in found] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.slow
def test_a_fit_in_other_processes_is_the_same(table):
    X, y = table
    here, there = (RWFRegressor(**QUICK, n_restarts=1, n_jobs=n).fit(X, y) for n in (None, 2))
    same(there, here, X)


def test_trials_are_sent(table, sent):
    X, y = table
    here = RWFRegressor(**QUICK, n_restarts=2).fit(X, y)
    assert not sent
    same(RWFRegressor(**QUICK, n_restarts=2, n_jobs=2).fit(X, y), here, X)
    assert sent == [3]


def test_the_context_of_joblib_is_enough(table, sent):
    with parallel_config(backend="threading", n_jobs=2):
        RWFRegressor(**QUICK, n_restarts=2).fit(*table)
    assert sent == [3]


def test_priors_that_compete_are_sent(sent, rng):
    x = rng.uniform(3.0, 5.0, 150)
    y = np.where(x > 3.7, 2.0, -1.0) + 0.1 * rng.normal(size=150)
    quick = {"max_iter": 3, "n_restarts": 0, "random_state": 0}
    here, there = (RWFRegressor(**quick, n_jobs=n).fit(x[:, None], y) for n in (None, 2))
    assert sent[0] == 4
    tried = [
        {t.name: t.held_out for t in m.fit_report_.trials if t.held_out} for m in (here, there)
    ]
    assert tried[1].keys() == tried[0].keys()
    assert_allclose([*tried[1].values()], [*tried[0].values()], rtol=1e-6)
    same(there, here, x[:, None])


def test_folds_are_sent(table, sent):
    X, y = table
    rows = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    model = TableRegressor(**QUICK, n_restarts=0).fit(rows, target="y")
    expected = model.validate(rows, method="cross-validation").scores_
    assert not sent
    found = model.set_params(n_jobs=2).validate(rows, method="cross-validation").scores_
    assert sent[0] == 5
    assert_allclose(found.model.rmse, expected.model.rmse, rtol=1e-6)
