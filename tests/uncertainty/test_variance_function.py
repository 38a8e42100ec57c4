"""Variance functions: their objective, what they find, and their units and bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rwf.data.rows import Block
from rwf.uncertainty import variance_function
from rwf.uncertainty.variance_function import learn_variance


def uneven(n, seed, d=1):
    """Rows between 3 and 7, errors of variance 0.2 + v with log v = -1 + 0.8 x, and v."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    v = np.exp(-1.0 + 0.8 * (X[:, 0] - 5.0))
    errors = np.sqrt(0.2 + v)[:, None] * rng.normal(size=(n, 1))
    return Block(X, np.zeros((n, 1)), np.ones(n)), errors, v


def learned(rows, errors, variances=0.2, **options):
    return learn_variance(rows, errors, variances, np.random.default_rng(3), **options)


@pytest.fixture
def objective(monkeypatch):
    """What is maximised for rows of uneven weights and two outputs, and the terms of it."""
    found = {}
    maximize = variance_function.maximize

    def spy(f, start, *args, **kwargs):
        found["f"], found["size"] = f, len(start)
        return maximize(f, start, *args, **kwargs)

    monkeypatch.setattr(variance_function, "maximize", spy)
    rng = np.random.default_rng(1)
    rows, errors, _ = uneven(80, 0, d=2)
    rows = replace(rows, weights=rng.uniform(0.5, 2.0, 80))
    errors = np.hstack([errors, 2.0 * errors[::-1]])
    variances = rng.uniform(0.1, 0.4, errors.shape)
    learned(rows, errors, variances)
    return found["f"], found["size"], rows, errors, variances


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_central_difference(objective, seed):
    f, size, *_ = objective
    theta = np.random.default_rng(seed).normal(0.3, 0.5, size)
    steps = 1e-6 * np.eye(size)
    slopes = [(f(theta + step)[0] - f(theta - step)[0]) / 2e-6 for step in steps]
    assert_allclose(f(theta)[1], slopes, rtol=1e-5, atol=1e-5)


def test_the_objective_is_the_penalised_log_likelihood(objective):
    f, size, rows, errors, variances = objective

    def density(level, penalty):
        spread = np.sqrt(variances + np.exp(level))
        each = norm.logpdf(errors, scale=spread) + 0.5 * np.log(2 * np.pi)
        return float(rows.weights @ each.sum(axis=1)) - 0.5 * penalty

    theta = np.zeros(size)
    for theta[0] in (-0.7, 1.2):
        assert_allclose(f(theta)[0], density(theta[0], 0.0))
    theta[1:] = 0.01
    assert f(theta)[0] != density(theta[0], 0.0)
    far = np.append(-60.0, np.full(size - 1, 1e-9))
    assert np.isfinite(f(far)[0])


def test_a_known_variance_function_is_found():
    rows, errors, v = uneven(3000, 0)
    found = learned(rows, errors)
    middle = np.abs(rows.X[:, 0] - 5.0) < 1.8
    # Half the variance of log χ² of the rows that one of eight features sees.
    error = np.sqrt(2.0 / (3000 / 8)) * (0.2 + v) / v
    assert (np.abs(np.log(found(rows.X) / v)) < 5 * error)[middle].all()
    assert np.mean(np.log(found(rows.X) / v)[middle]) == pytest.approx(0.0, abs=0.1)


def test_values_stay_above_the_least_and_are_clipped_beyond_the_rows():
    rows, errors, _ = uneven(400, 0)
    far = np.linspace(-90.0, 90.0, 501)[:, None]
    free, bound = learned(rows, errors), learned(rows, errors, least=0.5)
    assert free(rows.X).min() < 0.3
    assert bound(np.vstack([rows.X, far])).min() == pytest.approx(0.5, rel=1e-12)
    assert_allclose(bound(rows.X), np.maximum(free(rows.X), 0.5), rtol=1e-9)
    assert_array_equal(learned(rows, errors, least=1e-30)(far), free(far))
    low, high = free(rows.X).min(), free(rows.X).max()
    assert (free(far) >= low * (1 - 1e-12)).all()
    assert (free(far) <= high * (1 + 1e-12)).all()
    above = learned(rows, errors, least=50.0)
    assert_allclose(above(far), 50.0)


def test_times_multiplies_and_relative_has_a_mean_inverse_of_one():
    rows, errors, _ = uneven(300, 0)
    rows = replace(rows, weights=np.random.default_rng(0).uniform(0.5, 3.0, 300))
    found = learned(rows, errors, least=0.3)
    X = np.linspace(-20.0, 30.0, 200)[:, None]
    assert_allclose(found.times(7.0)(X), 7.0 * found(X), rtol=1e-12)
    unit = found.relative(rows)
    assert np.average(1.0 / unit(rows.X), weights=rows.weights) == pytest.approx(1.0, rel=1e-12)
    assert np.ptp(unit(X) / found(X)) < 1e-12
    assert_allclose(unit.relative(rows)(X), unit(X), rtol=1e-12)
    assert_array_equal(found.on(rows).noise, found(rows.X))


def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter():
    rows, errors, _ = uneven(300, 0)
    X = np.linspace(2.0, 8.0, 50)[:, None]
    weighted = learned(replace(rows, weights=np.full(300, 3.0)), errors)
    order = np.random.default_rng(0).permutation(np.tile(np.arange(300), 3))
    repeated = learned(rows.part(order), errors[order])
    assert_allclose(repeated(X), weighted(X), rtol=1e-3)
    assert not np.allclose(learned(rows, errors)(X), weighted(X), rtol=1e-2)


def test_the_variance_has_the_units_of_the_squared_errors():
    rows, errors, _ = uneven(300, 0)
    X = np.linspace(2.0, 8.0, 50)[:, None]
    one, other = learned(rows, errors, 0.2), learned(rows, 3.0 * errors, 9.0 * 0.2)
    assert_allclose(other(X), 9.0 * one(X), rtol=1e-3)
    moved = replace(rows, X=40.0 + 5.0 * rows.X)
    assert_allclose(learned(moved, errors)(40.0 + 5.0 * X).mean(), one(X).mean(), rtol=0.3)


def test_four_columns_have_a_linear_trend_alone():
    rows, errors, v = uneven(2000, 0, d=4)
    found = learned(rows, errors)
    assert len(found.weights) == 4
    assert np.mean(np.abs(np.log(found(rows.X) / v))) < 0.2
