"""A line under methods that have none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.baselines.detrended import Detrended
from experiments.baselines.mixtures import NormalMixture


class Mean:
    """Predicts the mean of what it saw; f is twice as sure."""

    def fit(self, X, y):
        self.seen = y
        return self

    def predict(self, X):
        return np.full(len(X), self.seen.mean()), np.full(len(X), 0.4)

    def predict_function(self, X):
        return np.full(len(X), self.seen.mean()), np.full(len(X), 0.2)

    def facts(self):
        return {"seen": len(self.seen)}


class TwoModes(Mean):
    """One above that mean, and one below."""

    def predict_distribution(self, X):
        means = self.seen.mean() + np.tile([-1.0, 1.0], (len(X), 1))
        return NormalMixture(means, np.full((len(X), 2), 0.4))


def rows(n=60, bend=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, 3))
    return X, 7.0 + X @ [2.0, -1.0, 0.5] + bend * X[:, 0] ** 2 + 0.1 * rng.normal(size=n)


def test_where_a_line_says_almost_everything_the_method_sees_its_residuals():
    X, y = rows()
    found = Detrended(Mean()).fit(X, y)
    A = np.column_stack([np.ones(60), X])
    line = np.linalg.lstsq(A, y, rcond=None)[0]
    assert_allclose(found.method.seen, y - A @ line, atol=1e-10)
    new = rows(5, seed=1)[0]
    B = np.column_stack([np.ones(5), new])
    for noise, std in ((True, 0.4), (False, 0.2)):
        mean, deviation = found.predict(new) if noise else found.predict_function(new)
        assert_allclose(mean, B @ line + found.method.seen.mean(), rtol=1e-10)
        variance = np.sum((y - A @ line) ** 2) / 56
        own = variance * np.einsum("ij,jk,ik->i", B, np.linalg.inv(A.T @ A), B)
        assert_allclose(deviation**2, std**2 + own, rtol=1e-8)
    assert found.facts() == {"seen": 60, "line_first": True}


@pytest.mark.parametrize("n, bend", [(60, 3.0), (4, 0.0), (3, 0.0)])
def test_elsewhere_it_sees_the_targets(n, bend):
    X, y = rows(n, bend)
    found = Detrended(Mean()).fit(X, y)
    assert_array_equal(found.method.seen, y)
    assert_array_equal(found.predict(X)[1], 0.4)
    assert found.facts()["line_first"] is False


def test_columns_that_repeat_each_other_have_no_line():
    X, y = rows()
    assert Detrended(Mean()).fit(np.hstack([X, X]), y).facts()["line_first"] is False


def test_a_line_moves_and_widens_predictive_distributions():
    X, y = rows()
    new = rows(5, seed=1)[0]
    one, two = (Detrended(method).fit(X, y) for method in (Mean(), TwoModes()))
    mean, std = one.predict(new)
    normal, mixture = (found.predict_distribution(new) for found in (one, two))
    assert_allclose(normal.mean, mean)
    assert_allclose(normal.std, std)
    assert_allclose(mixture.means, mean[:, None] + [-1.0, 1.0])
    assert_allclose(mixture.stds, np.tile(std[:, None], 2))


def test_without_a_line_a_distribution_is_that_of_the_method():
    X, y = rows(bend=3.0)
    found = Detrended(TwoModes()).fit(X, y).predict_distribution(X)
    assert_array_equal(found.means, y.mean() + np.tile([-1.0, 1.0], (60, 1)))
