"""Fields at many places given rows: against dense conditioning, and one map for all uses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.uncertainty import conditional
from rwf.uncertainty.conditional import ConditionalField
from rwf.uncertainty.kriging import FieldKernel, Kriging

KERNELS = {
    "smooth": FieldKernel(np.array([[1.0, 0.0], [-0.4, 0.8]]), 5, 1.0, 0.0, 1.0, 0.01),
    "rough": FieldKernel(np.eye(2), 1, 1.0, 0.0, 1.0, 0.001),
    "two": FieldKernel(2.0 * np.eye(2), 3, 0.6, 0.8, 5.0, 0.01),
}


def covariance(kernel, A, B):
    r = np.linalg.norm(kernel.coordinates(A)[:, None] - kernel.coordinates(B), axis=2)
    s = np.sqrt(kernel.twice_order) * r
    shape = {1: 1.0, 3: 1.0 + s, 5: 1.0 + s + s**2 / 3}[kernel.twice_order]
    return kernel.short * shape * np.exp(-s) + kernel.long * np.exp(-r / kernel.ratio)


@pytest.fixture(params=KERNELS.values(), ids=KERNELS)
def around_a_gap(request):
    """Rows around a hole, places on a grid inside it, and the dense posterior covariance."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (60, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.0]
    line = np.linspace(-0.8, 0.8, 9)
    places = np.array([(a, b) for a in line for b in line])
    kernel = request.param
    K = covariance(kernel, X, X) + kernel.nugget * np.eye(len(X))
    c = covariance(kernel, places, X)
    C = covariance(kernel, places, places) - c @ np.linalg.solve(K, c.T)
    kriging = Kriging(kernel, X, np.zeros(len(X)), len(X))
    every = np.tile(np.arange(len(X)), (len(places), 1))
    return kriging, places, every, C


def correlations(C):
    deviations = np.sqrt(np.diag(C))
    return C / deviations / deviations[:, None]


def test_variances_given_the_rows_are_those_of_dense_conditioning(around_a_gap):
    kriging, places, every, C = around_a_gap
    field = ConditionalField.at(kriging, places, every)
    assert_allclose(field.variances, np.diag(C), rtol=1e-6)


def test_few_places_have_the_covariance_of_dense_conditioning(around_a_gap):
    kriging, places, every, C = around_a_gap
    B = ConditionalField.at(kriging, places, every).transposed(np.eye(len(places)))
    assert_allclose(B @ B.T, correlations(C), atol=1e-8)


def test_the_errors_of_kriging_from_few_rows_have_their_own_covariance(around_a_gap):
    """Places that take different rows: e = f - Wy, of which dense algebra gives the covariance."""
    kriging, places, every, _ = around_a_gap
    kernel, X = kriging.kernel, kriging.X
    rows = every[:, :9].copy()
    rows[::2] = every[::2, 3:12]
    rows[5, 4:] = -1
    W = np.zeros((len(places), len(X)))
    for i, some in enumerate(rows):
        its = some[some >= 0]
        K = covariance(kernel, X[its], X[its]) + kernel.nugget * np.eye(len(its))
        W[i, its] = np.linalg.solve(K, covariance(kernel, X[its], places[i : i + 1]))[:, 0]
    T, both = np.hstack([-W, np.eye(len(places))]), np.vstack([X, places])
    C = T @ covariance(kernel, both, both) @ T.T + kernel.nugget * W @ W.T
    field = ConditionalField.at(kriging, places, rows)
    B = field.transposed(np.eye(len(places)))
    assert_allclose(field.variances, np.diag(C), rtol=1e-8)
    assert_allclose(B @ B.T, correlations(C), atol=1e-8)


def test_many_places_have_the_variance_of_kriging_wherever_their_rows_are(
    around_a_gap, monkeypatch
):
    """As many places beyond those of the dense factor as a large map has, in proportion."""
    kriging, places, every, C = around_a_gap
    monkeypatch.setattr(conditional, "EXACT", 20)
    for rows in (every, kriging.predict(places).chosen, every[:, :9]):
        B = ConditionalField.at(kriging, places, rows).transposed(np.eye(len(places)))
        assert_allclose(np.diag(B @ B.T), 1.0, atol=0.03)
        if rows is every:
            assert_allclose(B @ B.T, correlations(C), atol=0.05)


def test_draws_and_combinations_are_one_map(around_a_gap, monkeypatch):
    kriging, places, every, _ = around_a_gap
    for exact in (2000, 20):
        monkeypatch.setattr(conditional, "EXACT", exact)
        field = ConditionalField.at(kriging, places, every)
        B = field.transposed(np.eye(len(places)))
        assert_allclose(field.times(np.eye(field.n_inputs)), B, atol=1e-12)


def test_the_variogram_of_ten_draws_is_that_of_the_dense_posterior(around_a_gap):
    """Mean squared differences of neighbors, within five standard errors."""
    kriging, places, every, C = around_a_gap
    R = correlations(C)
    drawn = ConditionalField.at(kriging, places, every).draw(10, np.random.default_rng(0))
    for lag in (1, 2, 4):
        i = np.array([k for k in range(len(places)) if k % 9 + lag < 9])
        D = np.eye(len(places))[i] - np.eye(len(places))[i + lag]
        S = D @ R @ D.T
        wanted = np.trace(S) / len(i)
        # The variance of a quadratic form of a Gaussian.
        error = np.sqrt(2 * np.sum(S**2) / 10) / len(i)
        assert abs(np.mean((D @ drawn) ** 2) - wanted) < 5 * error


def test_noise_is_no_part_of_the_field():
    """A short component that neighbors forget is noise: the field is smooth without it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (200, 2))
    kernel = FieldKernel(100.0 * np.eye(2), 3, 1.0, 1.0, 1000.0, 0.01)
    kriging = Kriging(kernel, X, np.zeros(200))
    places = X[:20] + 0.05
    rows = kriging.predict(places).chosen
    AL = ConditionalField.at(kriging, places, rows).transposed(np.eye(20))
    assert conditional.without_noise(kriging).short == 0
    assert np.abs(AL @ AL.T - np.eye(20)).max() > 0.1


def test_a_field_of_no_variance_has_independent_places():
    kernel = FieldKernel(np.eye(1), 1, 0.0, 0.0, 1.0, 1.0)
    X = np.arange(10.0)[:, None]
    kriging = Kriging(kernel, X, np.zeros(10))
    field = ConditionalField.at(kriging, X, kriging.predict(X).chosen)
    AL = field.transposed(np.eye(10))
    assert_allclose(AL @ AL.T, np.eye(10))
    assert_allclose(field.variances, 0.0)
