"""Trees: stopped on held-out rows, whose scores scale the deviations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.baselines.trees import HeldOutTenth, _half_distance
from experiments.runner.methods import make

FORMS = {
    "catboost": "catboost",
    "catboost-uncertainty": "catboost",
    "xgboost": "xgboost",
    "quantile-forest": "quantile_forest",
}


@pytest.fixture
def rows(rng):
    """A step whose noise is 0.2 on the left and 1 on the right."""
    X = rng.uniform(-1, 1, (1200, 2))
    noise = np.where(X[:, 0] > 0, 1.0, 0.2) * rng.normal(size=1200)
    return X, 7 + 3 * (X[:, 1] > 0.2) + noise


@pytest.mark.parametrize("name", FORMS)
def test_trees_learn_a_step_and_where_the_noise_is(rows, name):
    pytest.importorskip(FORMS[name], reason=f"the extra bench has {FORMS[name]}")
    X, y = rows
    method = make(name, {"rounds": 150}, 3)
    method.fit(X[:900], y[:900])
    mean, std = method.predict(X[900:])
    assert np.sqrt(np.mean((mean - y[900:]) ** 2)) < 0.6 * y.std()
    scores = (y[900:] - mean) / std
    assert 0.6 < np.sqrt(np.mean(scores**2)) < 1.8
    left, right = (std[which].mean() for which in (X[900:, 0] < 0, X[900:, 0] > 0))
    learned = name not in ("catboost", "xgboost")
    assert (right > 1.5 * left) == learned


def test_the_factor_is_the_held_out_deviation_and_held_out_rows_are_not_learned():
    class Known(HeldOutTenth):
        def _grow(self, X, y, X_held, y_held):
            assert len(y_held) == 4
            assert not set(y_held) & set(y)
            self.held = y_held

        def _mean(self, X):
            return np.full(len(X), 2.0)

    X, y = np.arange(40.0)[:, None], np.random.default_rng(1).normal(5.0, 3.0, 40)
    method = Known(0).fit(X, y)
    _, std = method.predict(X[:3])
    assert np.all(std == np.sqrt(np.mean((method.held - 2.0) ** 2)))


def test_crossed_quantiles_have_a_positive_distance():
    levels = np.array([[0.0, 4.0], [1.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    assert_allclose(_half_distance(levels), [2.0, 0.225, 0.225, 1.0])
