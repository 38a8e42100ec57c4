"""Kriging from near and far rows equals a Gaussian process where it uses all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf.uncertainty.kriging import AROUND, GAP, FieldKernel, Kriging

METRIC = np.array([[2.0, 0.0], [-0.8, 1.3]])


def kernel(twice_order=3, long=0.4, d=2):
    metric = METRIC if d == 2 else np.tril(np.full((d, d), 0.3)) + np.eye(d)
    return FieldKernel(metric, twice_order, 0.7, long, 4.0, 0.05)


def covariance(k, A, B):
    """The kernel, written down once more."""
    D = (A[:, None] - B) @ k.metric.T
    r = np.sqrt((D**2).sum(axis=-1))
    s = np.sqrt(k.twice_order) * r
    short = {1: 1.0, 3: 1.0 + s, 5: 1.0 + s + s**2 / 3}[k.twice_order] * np.exp(-s)
    return k.short * short + k.long * np.exp(-r / k.ratio)


def exact(k, X, y, V):
    K = covariance(k, X, X) + k.nugget * np.eye(len(X))
    weights = np.linalg.solve(K, covariance(k, X, V))
    prior = k.short + k.long + k.nugget
    variance = prior - np.einsum("nm,nm->m", covariance(k, X, V), weights)
    return weights.T @ y, variance, weights.sum(axis=0)


@pytest.mark.parametrize("twice_order", [1, 3, 5])
@pytest.mark.parametrize("long", [0.0, 0.4])
@pytest.mark.parametrize("far", [False, True])
def test_kriging_from_all_rows_is_a_gaussian_process(rng, twice_order, long, far):
    k = kernel(twice_order, long)
    X, y = rng.normal(size=(14, 2)), rng.normal(size=14)
    V = rng.normal(size=(30, 2)) * 0.3 + (4.0 if far else 0.0)
    p = Kriging(k, X, y).predict(V)
    assert (p.gap > GAP).any() == far
    for found, wanted in zip((p.mean, p.variance, p.total), exact(k, X, y, V), strict=True):
        # A row that explains less than 1e-7 of the variance is left out.
        assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_a_row_left_out_is_predicted_as_if_it_were_not_there(rng):
    k, n = kernel(), 60
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    whole = Kriging(k, X, y)
    every = whole.leave_one_out(np.arange(n))
    for row in (0, 17, 59):
        others = np.delete(np.arange(n), row)
        alone = Kriging(k, X[others], y[others]).predict(X[[row]])
        if every.gap[row] < GAP:  # in a gap the random subsets differ
            assert_allclose(every.mean[row], alone.mean[0], rtol=1e-10)
            assert_allclose(every.variance[row], alone.variance[0], rtol=1e-10)
    assert not (every.chosen == np.arange(n)[:, None]).any()


def test_coincident_rows_are_left_out_one_at_a_time(rng):
    X = np.repeat(rng.normal(size=(3, 2)), 40, axis=0)
    p = Kriging(kernel(), X, rng.normal(size=120)).leave_one_out(np.arange(120))
    assert np.isfinite(p.mean).all()
    assert (p.variance > 0).all()
    assert not (p.chosen == np.arange(120)[:, None]).any()


def test_far_from_all_rows_kriging_is_the_prior(rng):
    k = kernel()
    p = Kriging(k, rng.normal(size=(50, 2)), rng.normal(size=50)).predict(np.full((1, 2), 1e8))
    assert_allclose([p.mean[0], p.total[0]], 0.0, atol=1e-12)
    assert_allclose(p.variance[0], k.short + k.long + k.nugget)


def test_the_mean_is_linear_in_the_values_and_that_of_ones_is_the_total(rng):
    X, V = rng.normal(size=(300, 2)), 2.0 * rng.normal(size=(50, 2))
    p = Kriging(kernel(), X, np.ones(300)).predict(V)
    assert_allclose(p.mean, p.total, rtol=1e-12)


def test_in_a_gap_rows_are_chosen_from_several_sides(rng):
    angle = rng.uniform(0, 2 * np.pi, size=4000)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(1.0, 1.5, size=(4000, 1))
    gp = Kriging(replace(kernel(), metric=np.eye(2)), X, np.zeros(4000))
    V = np.array([[0.1, 0.05]])
    p = gp.predict(V)
    assert p.gap[0] > GAP
    assert len(np.unique(p.chosen[0])) == AROUND
    nearest = np.argsort(np.linalg.norm(X - V, axis=1))[:AROUND]
    around, one_side = (np.linalg.norm(X[rows].mean(axis=0)) for rows in (p.chosen[0], nearest))
    assert around < 0.7 < 0.9 < one_side


def test_predictions_do_not_depend_on_how_rows_are_divided(rng, monkeypatch):
    gp = Kriging(kernel(), rng.normal(size=(500, 2)), rng.normal(size=500))
    V = 1.5 * rng.normal(size=(100, 2))
    whole = gp.predict(V)
    monkeypatch.setattr("rwf.uncertainty.kriging.ROWS_AT_ONCE", 7)
    assert_array_equal(gp.predict(V).mean, whole.mean)


@pytest.mark.parametrize("d", [1, 3])
def test_one_and_three_columns(rng, d):
    k = kernel(d=d)
    X, y, V = rng.normal(size=(12, d)), rng.normal(size=12), rng.normal(size=(9, d))
    p = Kriging(k, X, y).predict(V)
    mean, variance, _ = exact(k, X, y, V)
    assert_allclose(p.mean, mean, atol=1e-3)
    assert_allclose(p.variance, variance, atol=1e-3)
