"""Gaussian processes of other libraries, behind the harness' interface."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.baselines.gpytorch_exact import GPyTorchExact
from experiments.baselines.sklearn_gp import SklearnGP
from experiments.baselines.xgpr import XGPR

NOISE = 0.3


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    return X, f, f + NOISE * rng.normal(size=n)


def test_gpytorch_and_scikit_learn_find_the_same_process():
    X, _, y = rows(200)
    new = rows(50, 1)[0]
    a, b = GPyTorchExact(0, budget=60.0).fit(X, y), SklearnGP(0).fit(X, y)
    assert a.facts()["converged"]
    (mean, std), (other, other_std) = a.predict(new), b.predict(new)
    # Not to more digits, as only one of them learns a mean.
    assert np.sqrt(np.mean((mean - other) ** 2)) < 0.06
    assert np.sqrt(np.mean((std / other_std - 1) ** 2)) < 0.1


@pytest.mark.parametrize(
    "method",
    [SklearnGP(0, n_rows=300), GPyTorchExact(0, n_rows=300, budget=30.0), XGPR(0, 512, 256, 128)],
    ids=["sklearn", "gpytorch", "xgpr"],
)
def test_each_finds_a_function_and_its_noise(method):
    X, _, y = rows(1000)
    new, f, observed = rows(500, 1)
    mean, std = method.fit(X, y).predict(new)
    assert np.sqrt(np.mean((mean - f) ** 2)) < 0.15
    assert 0.8 < np.mean(np.abs(mean - observed) < 1.96 * std) < 0.99  # xGPR is too sure
    own, narrower = method.predict_function(new)
    assert_allclose(own, mean)
    assert_allclose(std**2 - narrower**2, method.facts()["noise_variance"], rtol=1e-5)


def test_few_of_many_rows_are_taken():
    X, _, y = rows(1000)
    assert SklearnGP(0, n_rows=50).fit(X, y).facts()["n_rows"] == 50
    assert GPyTorchExact(0, n_rows=50, budget=5.0).fit(X, y).facts()["n_rows"] == 50
