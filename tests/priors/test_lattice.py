"""The choice of the multifrontal solver, its reason in the report, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from rwf import RandomFeatures, RFFRegressor, RWFRegressor
from rwf.inference.multifrontal import TreeTooLargeError
from rwf.priors import lattice
from rwf.priors.lattice import free_memory


def chirp(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = 5.0 + 2.0 * rng.uniform(size=(n, d))
    f = np.sin(40 / (X[:, 0] - 4.7)) + (X[:, -1] - 5) ** 2
    return X, 100 + 20 * (f + 0.1 * rng.normal(size=n))


def test_the_solver_is_chosen_by_columns_and_rows(monkeypatch):
    X, y = chirp(300, 1)
    quick = {"max_iter": 3, "n_restarts": 0, "random_state": 0}
    many = RWFRegressor(9000, **quick).fit(X, y)
    assert many.fit_report_.statistics == "multifrontal"
    assert many.fit_report_.solver == "multifrontal: 9000 columns are more than 8000"
    few = RWFRegressor(50, **quick).fit(X, y)
    assert few.fit_report_.statistics != "multifrontal"
    assert few.fit_report_.solver == f"dense: {few.n_features_out_} columns"
    monkeypatch.setattr(lattice, "MANY_ROWS", 200)
    long = RWFRegressor(**quick).fit(X, y)
    assert long.fit_report_.statistics == "multifrontal"
    expected = "multifrontal: 300 rows are more than 200, on 1 input column(s)"
    assert long.fit_report_.solver == expected
    dense = RWFRegressor(solver="dense", **quick).fit(X, y)
    assert dense.fit_report_.statistics != "multifrontal"
    assert dense.fit_report_.solver == f"dense: {dense.n_features_out_} columns"


def test_the_report_says_which_solver_was_used_and_why(monkeypatch):
    X, y = chirp(300, 2)
    given = RWFRegressor(40, solver="multifrontal", random_state=0).fit(X, y)
    assert given.fit_report_.solver == "multifrontal: solver='multifrontal' was given"
    fourier = RFFRegressor(20, max_iter=3, n_restarts=0, random_state=0).fit(X, y)
    assert fourier.fit_report_.solver == "dense: 23 columns"
    monkeypatch.setattr(lattice, "MOST_DENSE", 10)
    multiscale = RWFRegressor(20, prior="multiscale", random_state=0).fit(X, y)
    assert multiscale.fit_report_.solver == "multifrontal: 20 columns are more than 10"
    options = {"max_iter": 3, "n_restarts": 0, "random_state": 0}
    nystrom = RWFRegressor(20, prior="nystrom", **options).fit(X, y)
    assert nystrom.fit_report_.solver == f"dense: {nystrom.n_features_out_} columns"


def test_the_multifrontal_solver_is_named_where_it_wins_among_priors(monkeypatch):
    X, y = chirp(300, 2)
    monkeypatch.setattr("rwf.priors.auto.CHANCE", -np.inf)  # that of others to pass the first
    model = RWFRegressor(max_iter=3, n_restarts=0, random_state=0).fit(X, y)
    assert model.fit_report_.statistics == "multifrontal"
    assert model.fit_report_.solver == "multifrontal: it predicted held-out rows best"


def test_what_the_multifrontal_solver_cannot_do_is_refused(monkeypatch):
    X, y = chirp(200, 1)
    with pytest.raises(ValueError, match="solver='forest' must be 'auto', 'dense' or"):
        RWFRegressor(solver="forest").fit(X, y)
    for prior, name in (
        ("nystrom", "nystrom"),
        ("random_features", "random_features"),
        (RandomFeatures(wavelet="haar", shifts="box"), "random_features"),
    ):
        with pytest.raises(ValueError, match=f"prior='{name}'.*leave the solver out"):
            RWFRegressor(solver="multifrontal", prior=prior).fit(X, y)
    wide = np.hstack([X] * 4)
    with pytest.raises(ValueError, match=r"up to 3 input columns.*X has 4"):
        RWFRegressor(solver="multifrontal").fit(wide, y)
    with pytest.raises(ValueError, match=r"up to 3 input column\(s\), and X has 4"):
        RWFRegressor(solver="multifrontal", prior="multiscale").fit(wide, y)
    monkeypatch.setattr(lattice, "free_memory", lambda: 200_000)
    with pytest.raises(TreeTooLargeError, match="ask for at most"):
        RWFRegressor(150, solver="multifrontal").fit(X, y)


def test_free_memory_is_a_plausible_number():
    assert 10**7 < free_memory() < 10**14
