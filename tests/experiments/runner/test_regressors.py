"""The estimators of this library as methods."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from experiments.runner.methods import make
from experiments.runner.regressors import Regressor
from rwf import RFFRegressor, RWFRegressor


def test_f_is_predicted_by_the_estimator_itself():
    method = make("rff", {}, 0)
    method.model.predict_function = lambda X: (X[:, 0], X[:, 0] + 1)
    assert_array_equal(method.predict_function(np.array([[2.0]])), [[2.0], [3.0]])


@pytest.mark.parametrize(
    "name, expected",
    [
        ("rwf-tree", {"solver": "multifrontal", "neighbors": "auto"}),
        ("rwf-second", {"solver": "multifrontal", "neighbors": 16}),
        ("rwf-2000", {"n_components": 2000, "solver": "dense", "prior": "multiscale"}),
        ("rff-2000", {"n_components": 2000}),
    ],
)
def test_names_stand_for_parameters(name, expected):
    settings = make(name, {}, 3).model.get_params()
    assert {key: settings[key] for key in expected} == expected
    assert settings["random_state"] == 3


@pytest.mark.parametrize("name", ["rwf-tree", "rwf-second"])
def test_the_multifrontal_solver_is_a_method(name, rng):
    X = rng.uniform([3, -8], [5, 2], (900, 2))
    y = 40 + 3 * np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.1, 900)
    method = make(name, {}, 0).fit(X[:800], y[:800])
    mean, std = method.predict(X[800:])
    assert np.sqrt(np.mean((mean - y[800:]) ** 2)) < 0.3
    assert np.mean(np.abs(mean - y[800:]) < 1.96 * std) > 0.85
    _, std_f = method.predict_function(X[800:])
    assert np.all((std_f >= 0) & (std_f <= std * (1 + 1e-9)))
    assert method.facts()["n_features"] > 0


@pytest.mark.filterwarnings("ignore:the model predicts no better")  # 20 atoms, two iterations
def test_morlet_wavelets_work_in_many_columns(rng):
    X = rng.normal(3.0, 2.0, (60, 79))
    y = 5 + np.sin(X[:, 0]) + X[:, 1]
    method = make("rwf-morlet", {"n_components": 20, "max_iter": 2, "n_restarts": 0}, 0)
    mean, std = method.fit(X, y).predict(X[:5])
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


@pytest.mark.parametrize(
    "model, stationary",
    [
        (RWFRegressor(prior="nystrom", neighbors=None), True),
        (RFFRegressor(60), True),
        (RWFRegressor(60, prior="random_features", calibration=None), False),
        (RWFRegressor(60, solver="multifrontal", calibration=None, neighbors=None), None),
    ],
    ids=["nystrom", "fourier", "wavelets", "multifrontal"],
)
def test_rows_say_whether_the_kernel_is_stationary(model, stationary, rng):
    X = rng.uniform(0, 3, (80, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    model.set_params(max_iter=2, n_restarts=0, random_state=0)
    found = Regressor(model).fit(X, y).facts()["stationarity"]
    if stationary is None:
        assert found is None
    else:
        assert (found < 0.05) == stationary
