"""Linear interpolation on triangles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.baselines.interpolation import SMALLEST_STD, LinearInterpolation, interpolant


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_linear_function_is_its_own_interpolant_and_goes_on_as_the_nearest_row(d, rng):
    X = rng.normal(3.0, 2.0, (200, d))
    slope = np.arange(1.0, d + 1)
    at = interpolant(X, 5 + X @ slope)
    inside = rng.dirichlet(np.ones(200), 30) @ X
    assert_allclose(at(inside), 5 + inside @ slope, rtol=1e-9)
    far = X.mean(axis=0) + np.array([[1e3] * d, [-1e3] * d])
    nearest = X[np.argmin(np.linalg.norm(far[:, None] - X, axis=2), axis=1)]
    assert_allclose(at(far), 5 + nearest @ slope)


@pytest.mark.parametrize("d", [1, 2])
def test_rows_at_one_place_are_averaged(d, rng):
    X, y = rng.normal(size=(50, d)), rng.normal(size=50)
    twice, values = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20] + 2])
    assert_allclose(interpolant(twice, values)(X[:20]), y[:20] + 1, atol=1e-9)
    assert_allclose(interpolant(twice, values)(X[20:]), y[20:], atol=1e-9)


def test_its_error_bar_is_that_of_rows_it_has_not_seen(rng):
    X, noise = rng.uniform(0, 1, (3000, 2)), rng.normal(size=3000)
    _, std = LinearInterpolation(random_state=0).fit(X, noise).predict(X[:3])
    # A row has variance 1, and a mean of three 1/2: their weights are uniform on the simplex.
    assert_allclose(std, np.sqrt(1.5), rtol=0.1)
    _, std = LinearInterpolation(random_state=0).fit(X[:, :1], 2 * X[:, 0]).predict(X[:2, :1])
    assert_array_equal(std, SMALLEST_STD)
