"""Sobol indices against their closed forms, and partial dependence against draws."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from rwf import RWFRegressor
from rwf.diagnostics.plots import importance_bars, predictive_band
from rwf.diagnostics.sensitivity import feature_importance, partial_dependence


class Known:
    """A function in the place of a model."""

    def __init__(self, f):
        self.predict = f


def uniform(n=20_000, d=3, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, (n, d))


def assert_within(found, error, wanted):
    assert (np.abs(found - wanted) < 3 * error).all(), (found, error, wanted)
    assert (error < 0.05).all()


def test_indices_of_an_additive_function_are_shares_of_its_variance():
    model = Known(lambda X: 3 * X[:, 0] + 2 * np.sin(2 * np.pi * X[:, 1]))
    variances = np.array([9 / 12, 4 / 2, 0.0])
    found = feature_importance(model, uniform())
    for index, error in ((found.total, found.total_error), (found.first, found.first_error)):
        assert_within(index[:2], error[:2], (variances / variances.sum())[:2])
    assert found.total[2] == 0.0
    assert abs(found.first[2]) < 1e-12


def test_indices_of_ishigami_are_its_closed_forms():
    """Columns 1 and 3 interact."""

    def f(X):
        u = np.pi * (2 * X - 1)
        return np.sin(u[:, 0]) + 7 * np.sin(u[:, 1]) ** 2 + 0.1 * u[:, 2] ** 4 * np.sin(u[:, 0])

    found = feature_importance(Known(f), uniform(), n_draws=20_000)
    assert_within(found.first, found.first_error, [0.3139, 0.4424, 0.0])
    assert_within(found.total, found.total_error, [0.5576, 0.4424, 0.2437])


def test_standard_errors_are_those_of_repetitions():
    model = Known(lambda X: X[:, 0] + X[:, 0] * X[:, 1])
    found = [feature_importance(model, uniform(), n_draws=500, random_state=k) for k in range(150)]
    spread = np.std([each.total for each in found], axis=0)
    assert_allclose(np.mean([each.total_error for each in found], axis=0)[:2], spread[:2], rtol=0.2)


def test_indices_of_a_fitted_additive_function():
    X = uniform(500, 2)
    y = 2 * X[:, 0] + np.sin(2 * np.pi * X[:, 1]) + 0.01 * np.random.default_rng(1).normal(size=500)
    model = RWFRegressor(prior="nystrom", neighbors=None, n_restarts=0, random_state=0).fit(X, y)
    found = feature_importance(model, uniform(d=2))
    variances = np.array([4 / 12, 1 / 2])
    assert_within(found.total, found.total_error, variances / variances.sum())


def test_columns_of_a_category_are_drawn_together():
    codes = np.eye(3)[np.random.default_rng(0).integers(3, size=2000)]
    X = np.column_stack([codes, np.random.default_rng(1).uniform(size=2000)])

    def f(X):
        assert (X[:, :3].sum(axis=1) == 1).all()
        return X[:, 0] + X[:, 3]

    found = feature_importance(Known(f), X, columns=[[0, 1, 2], [3]])
    variances = np.array([2 / 9, 1 / 12])
    assert_within(found.total, found.total_error, variances / variances.sum())


def test_partial_dependence_is_the_mean_of_draws():
    rng = np.random.default_rng(0)
    X = uniform(150, 2)
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=150)
    model = RWFRegressor(40, prior="multiscale", random_state=0).fit(X, y)
    values = np.array([0.1, 0.5, 0.9])
    found = partial_dependence(model, X[:60], 0, values=values)
    for value, mean, std in zip(values, found.mean, found.std, strict=True):
        places = X[:60].copy()
        places[:, 0] = value
        drawn = model.sample_y(places, 4000, random_state=1, noise=False).mean(axis=0)
        assert abs(drawn.mean() - mean) < 5 * std / np.sqrt(4000)
        assert_allclose(drawn.std(), std, rtol=0.06)
    assert len(partial_dependence(model, X, 1).values) == 25


def test_figures_show_bars_with_errors_and_bands():
    model = Known(lambda X: X[:, 0] + 2 * X[:, 1])
    found = feature_importance(model, uniform(d=2), n_draws=200)
    ax = importance_bars(Figure().subplots(), ["a", "b"], found.total, found.total_error)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]  # the largest on top
    assert_allclose(sorted(bar.get_width() for bar in ax.patches), sorted(found.total))
    predictive_band(ax, np.arange(3.0), np.zeros(3), np.ones(3))


@pytest.mark.parametrize(
    "f, advice",
    [(lambda X: np.zeros(len(X)), "constant"), (lambda X: X[:, :2], "2 outputs")],
)
def test_what_has_no_indices_is_refused(f, advice):
    with pytest.raises(ValueError, match=advice):
        feature_importance(Known(f), uniform())


def test_dependence_on_columns_that_are_set_together():
    class Linear:
        def predict_combination(self, X, weights):
            return weights @ (X @ [2.0, 5.0, -3.0]), np.zeros(len(weights))

    X = uniform(80)
    found = partial_dependence(Linear(), X, [0, 2], values=np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert_allclose(found.mean, np.array([2.0, -3.0]) + 5.0 * X[:, 1].mean())
    with pytest.raises(ValueError, match="set together"):
        partial_dependence(Linear(), X, [0, 2])
