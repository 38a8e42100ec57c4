"""The kernel of a field: its gradient, and what it recovers from rows drawn from a known one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.data.holdout import hold_out_blobs
from rwf.uncertainty.field_kernel import _Point, _Targets, learn_field_kernel
from rwf.uncertainty.kriging import FieldKernel, Kriging


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("twice_order", "two"), [(1, False), (3, True), (5, True), (3, False)])
def test_the_gradient_equals_central_differences(rng, d, twice_order, two):
    X, y = rng.normal(size=(200, d)), rng.normal(size=200)
    metric = np.tril(rng.normal(size=(d, d)), -1) + np.diag(rng.uniform(1, 2, size=d))
    kernel = FieldKernel(metric, twice_order, 0.7, 0.4 if two else 0.0, 3.0, 0.02)
    near = Kriging(kernel, X[:150], y[:150]).predict(X[150:]).chosen
    extra = rng.uniform(0, 0.1, size=50)
    targets = _Targets(X[:150], y[:150], X[150:], y[150:], near, extra)
    point = _Point(d, twice_order, two)
    theta = point.of(kernel)
    assert_allclose(point.kernel(theta).metric, metric, rtol=1e-12)

    def density(theta):
        return targets.log_density(point.kernel(theta))[0]

    _, by_metric, by_rest = targets.log_density(kernel)
    found = point.gradient(theta, by_metric, by_rest)
    steps = 1e-5 * np.eye(len(theta))
    wanted = [(density(theta + s) - density(theta - s)) / 2e-5 for s in steps]
    assert_allclose(found, wanted, atol=1e-7)


def sheared_field(rng, n=1500):
    """Ridges along a diagonal: short across them, long along them."""
    X = rng.uniform(-1, 1, size=(n, 2))
    A = np.array([[6.0, 0.0], [-5.0, 6.0]])
    U = X @ A.T
    frequencies = rng.standard_t(3, size=(600, 2))  # those of a Matérn kernel of order 3/2
    phases = rng.uniform(0, 2 * np.pi, size=600)
    y = np.cos(U @ frequencies.T + phases).sum(axis=1) * np.sqrt(2 / 600)
    return X, y + 0.02 * rng.normal(size=n), A


def test_stretch_and_shear_are_recovered(rng):
    X, y, A = sheared_field(rng)
    held = hold_out_blobs(X, rng)
    found = learn_field_kernel(X, y, held, rng, orders=((3, False),))
    tensor, wanted = found.metric.T @ found.metric, A.T @ A
    tensor, wanted = (T / np.sqrt(np.linalg.det(T)) for T in (tensor, wanted))
    assert_allclose(tensor, wanted, atol=0.35 * np.abs(wanted).max())
    assert found.nugget < 0.01


@pytest.mark.parametrize("metric", ["isotropic", "ard"])
def test_a_metric_may_be_restricted(rng, metric):
    X, y, _ = sheared_field(rng, 600)
    held = hold_out_blobs(X, rng)
    found = learn_field_kernel(X, y, held, rng, orders=((3, True),), metric=metric).metric
    assert found[1, 0] == 0.0
    assert (found[0, 0] == found[1, 1]) == (metric == "isotropic")


def test_values_that_are_all_equal_have_a_kernel(rng):
    X = rng.normal(size=(300, 2))
    kernel = learn_field_kernel(X, np.zeros(300), hold_out_blobs(X, rng), rng)
    assert np.isfinite(kernel.metric).all()
