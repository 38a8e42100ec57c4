"""Nearest neighbours: the mean of near rows, and an error bar from their spread."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.baselines.nearest import Nearest, spread_to_variance
from experiments.runner.methods import make


def surface(n, rng, noise=0.5):
    """Waves over two columns of very different units, in noise."""
    X = rng.uniform([3, -800], [7, 200], (n, 2))
    f = 40 + 10 * np.sin(2 * X[:, 0]) + 8 * np.cos(X[:, 1] / 120)
    return X, f + rng.normal(0, noise, n), f


def coverage_is_nominal(errors, std):
    """Within five standard errors, and 0.02 more for what is learned from few rows."""
    covered = np.mean(np.abs(errors) < 1.96 * std)
    return abs(covered - 0.95) < 0.02 + 5 * np.sqrt(0.05 * 0.95 / len(errors))


@pytest.mark.parametrize("name", ["knn", "linear-interpolation", "spline"])
def test_a_smooth_surface_is_found_within_its_error_bars(name, rng):
    n = 1500 if name == "spline" else 5000
    X, y, f = surface(n + 1000, rng)
    method = make(name, {}, 2).fit(X[:n], y[:n])
    mean, std = method.predict(X[n:])
    assert np.sqrt(np.mean((mean - f[n:]) ** 2)) < 0.6
    assert np.all(std > 0)
    assert coverage_is_nominal(mean - y[n:], std)


@pytest.mark.parametrize("name", ["knn", "linear-interpolation", "spline"])
def test_units_do_not_matter(name, rng):
    X, y, _ = surface(500, rng)
    new = rng.uniform([2, -900], [8, 300], (60, 2))
    mean, std = make(name, {}, 1).fit(X, y).predict(new)
    bend = np.array([1e3, 1e-2])
    other = make(name, {}, 1).fit(X * bend + 7, 40 * y - 3).predict(new * bend + 7)
    assert_allclose(other[0], 40 * mean - 3, rtol=1e-6)
    assert_allclose(other[1], 40 * std, rtol=1e-3)


def test_the_mean_is_that_of_the_nearest_rows(rng):
    X, y, _ = surface(300, rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    method = Nearest(random_state=0).fit(X, y)
    new = rng.normal(0.3, 1.0, (20, 2))
    distances = np.linalg.norm(new[:, None] - X, axis=2)
    near = np.argsort(distances, axis=1)
    for k, weighted in ((5, False), (7, True)):
        method._k, method._weighted = k, weighted
        rows = near[:, :k]
        weights = 1 / np.take_along_axis(distances, rows, axis=1) if weighted else np.ones((20, k))
        mean, std = method.predict(new)
        assert_allclose(mean, (weights * y[rows]).sum(axis=1) / weights.sum(axis=1))
        assert_allclose(std**2, method._c * y[near[:, :16]].var(axis=1) + method._e)
    assert_allclose(method.predict(X[:9])[0], y[:9])  # 1/distance: a row at the place decides


def test_many_neighbours_are_selected_with_noise_and_few_without(rng):
    quiet, loud = (surface(3000, rng, noise) for noise in (0.01, 8.0))
    facts = [make("knn", {}, 0).fit(X, y).method.facts() for X, y, _ in (quiet, loud)]
    assert facts[0]["n_neighbours"] <= 8 < facts[1]["n_neighbours"]
    assert facts[0]["weights"] == "1/distance"


def test_the_error_bar_is_wide_where_targets_vary(rng):
    X = rng.uniform(0, 1, (4000, 2))
    y = np.where(X[:, 0] < 0.5, 0.01, 1.0) * rng.normal(size=4000)
    _, std = make("knn", {}, 0).fit(X, y).predict(np.array([[0.2, 0.5], [0.8, 0.5]]))
    assert std[1] > 10 * std[0]
    assert 0.8 < std[1] < 1.3


def test_the_scale_of_the_spread_is_learned(rng):
    spread = rng.uniform(0.01, 1.0, 20_000)
    errors = rng.normal(size=20_000) * np.sqrt(0.3 * spread + 0.05)
    assert_allclose(spread_to_variance(spread, errors), (0.3, 0.05), rtol=0.1)


def test_constant_targets_are_no_failure(rng):
    X = rng.normal(size=(60, 2))
    for name in ("knn", "linear-interpolation"):
        mean, std = make(name, {}, 0).fit(X, np.full(60, 7.0)).predict(X[:5] + 0.1)
        assert_allclose(mean, 7.0)
        assert np.all((std > 0) & (std < 0.01))
