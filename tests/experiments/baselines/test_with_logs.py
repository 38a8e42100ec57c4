"""Logarithms are used where a method gains by them, and learned from training rows alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.baselines.trivial import Linear
from experiments.baselines.with_logs import WithLogs


def skewed(rng, n=400):
    return np.column_stack([rng.lognormal(0.0, 1.5, n), rng.normal(size=n)])


def test_a_line_in_logarithms_takes_them_and_one_in_the_columns_does_not(rng):
    X = skewed(rng)
    noise = 0.1 * rng.normal(size=400)
    for y, wanted in ((np.log(1 + X[:, 0]) + noise, True), (X[:, 0] + X[:, 1] + noise, False)):
        method = WithLogs(Linear, 0).fit(X[:300], y[:300])
        assert method.facts()["logs"] is wanted
        mean, std = method.predict(X[300:])
        plain = Linear().fit(X[:300], y[:300])
        if wanted:
            error, other = (np.mean((m - y[300:]) ** 2) for m in (mean, plain.predict(X[300:])[0]))
            assert error < 0.3 * other
        else:
            assert_allclose((mean, std), plain.predict(X[300:]))


def test_columns_without_skewness_are_left_and_cost_one_fit(rng):
    fits = []

    class Counted(Linear):
        def fit(self, X, y):
            fits.append(len(y))
            return super().fit(X, y)

    X = rng.normal(size=(60, 2))
    assert not WithLogs(Counted, 0).fit(X, X[:, 0]).facts()["logs"]
    assert fits == [60]
    WithLogs(Counted, 0).fit(skewed(rng, 60), X[:, 0])
    assert fits[1:] == [54, 54, 60]


@pytest.mark.parametrize("n", [3000])
def test_the_choice_uses_few_rows(rng, n):
    fits = []

    class Counted(Linear):
        def fit(self, X, y):
            fits.append(len(y))
            return super().fit(X, y)

    WithLogs(Counted, 0).fit(skewed(rng, n), rng.normal(size=n))
    assert fits == [1800, 1800, n]
