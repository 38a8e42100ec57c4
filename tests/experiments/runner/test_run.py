"""Runs: stable keys, rows with every measure, failures as rows."""

import numpy as np
from numpy.testing import assert_allclose

from experiments.runner.methods import make
from experiments.runner.run import (
    FUNCTION_SCORES,
    MEASURED,
    Run,
    function_scores,
    measure,
    plain,
    row_of,
    scores,
)
from harness import SESSION
from rwf.diagnostics.metrics import coverage
from rwf.uncertainty.student_t import StudentT


class Known:
    """Predicts zero, with error bars of half a unit for f, and of two for y."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X)), np.full(len(X), 2.0)

    def predict_function(self, X):
        return np.zeros(len(X)), np.full(len(X), 0.5)

    def facts(self):
        return {}


def test_scores_against_f_take_the_error_bars_of_f():
    X, f = np.zeros((4, 1)), np.array([0.9, -0.9, 1.0, 3.0])
    row = function_scores(Known(), X, np.zeros(4), f)
    assert_allclose(row["rmse_f"], np.sqrt((0.81 + 0.81 + 1 + 9) / 4))
    assert row["coverage95_f"] == coverage(f, np.zeros(4), np.full(4, 0.5)) == 0.5


def test_without_f_or_its_error_bars_scores_are_null(rng):
    X = rng.uniform(size=(40, 1))
    y = X[:, 0] + 3
    method = make("boosting", {"max_iter": 3}, 0)
    method.fit(X, y)
    mean, _ = method.predict(X)
    assert function_scores(Known(), X, mean, None) == {"rmse_f": None, "coverage95_f": None}
    row = function_scores(method, X, mean, y)
    assert row["coverage95_f"] is None
    assert_allclose(row["rmse_f"], np.sqrt(np.mean((mean - y) ** 2)))


def test_keys_are_stable_and_do_not_depend_on_the_order_of_settings():
    run = Run("energy", "rwf", 3, {"n_components": 500, "n_restarts": 2})
    assert run.key == "232deb47567daaaa"
    assert run.key == Run("energy", "rwf", 3, {"n_restarts": 2, "n_components": 500}).key
    others = [
        Run("naval", "rwf", 3, run.settings),
        Run("energy", "rff", 3, run.settings),
        Run("energy", "rwf", 4, run.settings),
        Run("energy", "rwf", 3),
    ]
    assert len({run.key, *(other.key for other in others)}) == 5


def test_a_row_holds_every_measure_and_a_constant_has_no_skill_over_itself(waves):
    row = row_of(Run("waves", "constant", 0), measure(Run("waves", "constant", 0)), SESSION)
    assert row["error"] is None
    assert {field for field in MEASURED if row[field] is None} == set(FUNCTION_SCORES)
    assert row["n_train"] == 72
    assert row["n_test"] == 8
    assert len(row["coverages"]) == 19
    assert row["rmse_skill_constant"] == row["nll_skill_constant"] == 0
    assert row["rmse_skill_linear"] < 0
    assert row["coverage50"] == row["coverages"][9]
    assert row["coverage80"] == row["coverages"][15]
    assert row["coverage99"] >= row["coverage80"]


def test_the_largest_error_is_in_scales_of_its_own_row():
    y, scale = np.array([3.0, 10.0, -2.0]), np.array([0.5, 4.0, 1.0])
    prediction = StudentT(np.ones(3), scale, np.array([3.0, np.inf, 5.0]))
    references = {"constant": (np.zeros(3), np.ones(3))}
    assert scores(y, prediction, references)["largest_z"] == 4.0


def test_an_unknown_method_is_a_failure_with_advice(waves):
    outcome = measure(Run("waves", "magic", 0))
    assert outcome["error"].startswith("ValueError: no method 'magic': use one of rwf,")


def test_facts_become_plain_json():
    facts = {"a": np.float64(2.5), "b": np.array([1.0, np.nan]), "c": (np.int64(3), None, True)}
    assert plain(facts) == {"a": 2.5, "b": [1.0, None], "c": [3, None, True]}
