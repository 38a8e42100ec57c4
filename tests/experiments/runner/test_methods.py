"""Methods by name: nothing leaks from test rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.data import splits
from experiments.runner.methods import make
from experiments.runner.run import (
    Run,
    measure,
)
from harness import write_table


@pytest.mark.parametrize(
    "name, settings",
    [
        ("rff-matern12", {"n_components": 40, "max_iter": 3, "n_restarts": 0, "calibration": None}),
        ("exact-matern12", {"max_iter": 6, "short": 3}),
        ("nystroem", {"n_components": 20}),
    ],
)
def test_the_variance_of_f_is_that_of_y_without_the_noise(rng, name, settings):
    X = rng.uniform(5, 9, (60, 1))
    y = 300 + 20 * np.sin(3 * X[:, 0]) + rng.normal(0, 4.0, 60)
    method = make(name, settings, 0)
    method.fit(X, y)
    (mean, std), (mean_f, std_f) = method.predict(X), method.predict_function(X)
    assert_allclose(mean_f, mean)
    assert_allclose(std_f**2, std**2 - method.facts()["noise_variance"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "method, settings",
    [
        ("constant", {}),
        ("linear", {}),
        ("boosting", {"max_iter": 10}),
        ("knn", {}),
        ("linear-interpolation", {}),
        ("spline", {}),
        ("rbfsampler", {"n_components": 40}),
        ("nystroem", {"n_components": 40}),
        ("exact-se", {"max_iter": 6, "short": 3}),
        ("rff", {"n_components": 40, "max_iter": 3, "n_restarts": 0}),
    ],
)
def test_what_a_method_learns_does_not_depend_on_the_test_rows(waves, tmp_path, method, settings):
    X, y = waves
    run = Run("waves", method, 1, settings)
    first = measure(run)
    rows = splits.random_tenth(X, 1)
    train, test = rows.train, rows.test
    X[test[1:]], y[test] = 1e4, -1e5  # all that a leak could feed on, but the inputs of one row
    write_table(tmp_path, "waves", X, y)
    second = measure(run)
    assert first.get("error") is second.get("error") is None
    assert first["target_variance"] == second["target_variance"]
    noise = [row["facts"].get("noise_variance") for row in (first, second)]
    assert noise[0] == noise[1]
    model = make(method, settings, 1)
    model.fit(X[train], y[train])
    alone, among = model.predict(X[test[:1]]), model.predict(X[test])
    assert_allclose(alone[0][0], among[0][0], rtol=1e-8)
    assert_allclose(alone[1][0], among[1][0], rtol=1e-8)


def test_gaussian_processes_beat_a_line_on_waves(waves):
    for method in ("exact-matern52", "nystroem"):
        assert measure(Run("waves", method, 0))["rmse_skill_linear"] > 0.3
