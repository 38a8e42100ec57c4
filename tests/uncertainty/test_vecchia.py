"""Nearest-neighbor kriging against the exact Gaussian process, and what it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from experiments.baselines.kriging import Kriging
from experiments.baselines.standardized import Standardized
from experiments.runner.methods import make
from rwf.uncertainty import vecchia
from rwf.uncertainty.vecchia import (
    TREE_COLUMNS,
    TWICE_ORDERS,
    MaternKernel,
    VecchiaGP,
    _targets,
    learn_vecchia_gp,
)


def some_kernel(d, twice_order=3):
    return MaternKernel(twice_order, np.linspace(0.7, 1.9, d), 2.5, 0.03)


def some_rows(n, d, rng):
    X = rng.normal(3.0, 2.0, (n, d))
    return X, np.sin(X).sum(axis=1) + rng.normal(0.0, 0.2, n)


def exact(kernel, X, y):
    """The same process with all rows as neighbors, by scikit-learn."""
    form = ConstantKernel(kernel.amplitude) * Matern(kernel.lengths, nu=kernel.twice_order / 2)
    noise = WhiteKernel(kernel.amplitude * kernel.nugget)
    return GaussianProcessRegressor(form + noise, optimizer=None, alpha=0.0).fit(X, y)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("twice_order", TWICE_ORDERS)
def test_with_all_rows_as_neighbors_it_is_the_exact_process(twice_order, d, rng):
    (X, y), kernel = some_rows(30, d, rng), some_kernel(d, twice_order)
    X[5] = X[4]  # two rows at one place
    new = np.concatenate([rng.normal(3.0, 3.0, (9, d)), X[:6]])
    found = VecchiaGP(kernel, X, y, n_neighbors=30).predict(new)
    mean, std = exact(kernel, X, y).predict(new, return_std=True)
    assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-8)
    assert_allclose(found.variance, std**2, rtol=1e-8)


@pytest.mark.parametrize("d", [2, TREE_COLUMNS, TREE_COLUMNS + 1])
def test_the_nearest_rows_are_those_of_the_metric(d, rng):
    (X, y), kernel = some_rows(60, d, rng), some_kernel(d)
    new = rng.normal(3.0, 2.0, (4, d))
    gp = VecchiaGP(kernel, X, y, n_neighbors=5)
    distances, near = gp.nearest(new, 5)
    scaled = np.linalg.norm((new[:, None] - X) / kernel.lengths, axis=2)
    assert_array_equal(near, np.argsort(scaled, axis=1)[:, :5])
    assert_allclose(distances, np.sort(scaled, axis=1)[:, :5])
    for i, rows in enumerate(near):
        mean, std = exact(kernel, X[rows], y[rows]).predict(new[i : i + 1], return_std=True)
        found = gp.predict(new[i : i + 1])
        assert_allclose([found.mean, found.variance], [mean, std**2], rtol=1e-8)


@pytest.mark.parametrize("d", [2, TREE_COLUMNS + 1])
@pytest.mark.parametrize("n_neighbors", [4, 50])
def test_leaving_one_out_is_predicting_from_the_others(n_neighbors, d, rng):
    (X, y), kernel = some_rows(20, d, rng), some_kernel(d)
    unseen = VecchiaGP(kernel, X, y, n_neighbors).leave_one_out(np.arange(3, 20))
    for k, i in enumerate(range(3, 20)):
        rest = np.delete(np.arange(20), i)
        expected = VecchiaGP(kernel, X[rest], y[rest], n_neighbors).predict(X[i : i + 1])
        assert_allclose(unseen.mean[k], expected.mean[0], rtol=1e-8)
        assert_allclose(unseen.variance[k], expected.variance[0], rtol=1e-8)


@pytest.mark.parametrize("d", [2, TREE_COLUMNS + 1])
def test_no_row_is_its_own_neighbor_even_among_many_at_one_place(d, rng):
    X, y = some_rows(40, d, rng)
    X[10:30] = X[10]
    rows = np.arange(40)
    near = VecchiaGP(some_kernel(d), X, y, n_neighbors=4).nearest_others(rows, 4)[1]
    assert near.shape == (40, 4)
    assert not (near == rows[:, None]).any()


@pytest.mark.parametrize("d", [2, TREE_COLUMNS + 1])
@pytest.mark.parametrize("far", [1e150, -1e300])
def test_far_away_the_prediction_is_the_prior(far, d, rng):
    (X, y), kernel = some_rows(40, d, rng), some_kernel(d)
    found = VecchiaGP(kernel, X, y).predict(np.full((2, d), far))
    assert_array_equal(found.mean, 0.0)
    assert_allclose(found.variance, kernel.amplitude * (1 + kernel.nugget))


@pytest.mark.parametrize("n", [1, 2, 10])
def test_fewer_rows_than_neighbors_are_all_used(n, rng):
    X, y = some_rows(n, 2, rng)
    kernel, new = some_kernel(2), rng.normal(3.0, 2.0, (5, 2))
    few, all_of_them = (VecchiaGP(kernel, X, y, k).predict(new) for k in (16, n))
    assert_array_equal(few.mean, all_of_them.mean)
    learned = learn_vecchia_gp(X, y - y.mean(), rng).predict(new)
    assert np.isfinite(learned.mean).all()
    assert (learned.variance > 0).all()


def test_the_density_is_that_of_a_row_given_its_neighbors(rng):
    (X, y), kernel = some_rows(12, 2, rng), some_kernel(2)
    gp = VecchiaGP(kernel, X, y)
    rows, near = np.array([2, 5]), np.array([[0, 1, 7], [3, 9, 11]])
    form = exact(kernel, X, y).kernel_
    expected = 0.0
    for i, its in zip(rows, near, strict=True):
        both = np.append(its, i)
        expected += multivariate_normal(cov=form(X[both])).logpdf(y[both])
        expected -= multivariate_normal(cov=form(X[its])).logpdf(y[its])
    value, _ = gp.log_density(rows, near, kernel)
    assert_allclose(value, expected / 2, rtol=1e-9)


@pytest.mark.parametrize("twice_order", TWICE_ORDERS)
@pytest.mark.parametrize("d", [1, 3])
def test_the_gradient_is_that_of_central_differences(twice_order, d, rng):
    X, y = some_rows(40, d, rng)
    X[3] = X[2]
    kernel = some_kernel(d, twice_order)
    gp, rows = VecchiaGP(kernel, X, y, n_neighbors=6), np.arange(0, 40, 2)
    near = gp.nearest_others(rows, gp.n_neighbors)[1]
    for theta in kernel.theta + rng.normal(0.0, 0.5, (3, d + 2)):
        _, gradient = gp.log_density(rows, near, kernel.at(theta))
        differences = [
            gp.log_density(rows, near, kernel.at(theta + step))[0]
            - gp.log_density(rows, near, kernel.at(theta - step))[0]
            for step in 1e-6 * np.eye(d + 2)
        ]
        assert_allclose(gradient, np.array(differences) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [2, 40])
def test_the_density_of_rows_is_the_mean_of_those_of_their_parts(d, rng):
    """However many are computed side by side: 64 of 2 columns, 25 of 40."""
    (X, y), kernel = some_rows(150, d, rng), some_kernel(d)
    gp, rows = VecchiaGP(kernel, X, y, n_neighbors=6), np.arange(131)
    near = gp.nearest_others(rows, gp.n_neighbors)[1]
    value, gradient = gp.log_density(rows, near, kernel)
    parts = [gp.log_density(rows[[i]], near[[i]], kernel) for i in rows]
    assert_allclose(value, np.mean([part for part, _ in parts]), rtol=1e-12)
    assert_allclose(gradient, np.mean([part for _, part in parts], axis=0), rtol=1e-9, atol=1e-12)


def test_a_kernel_is_its_order_and_theta():
    kernel = some_kernel(3)
    again = replace(kernel, amplitude=9.0).at(kernel.theta)
    assert_allclose(again.theta, kernel.theta, rtol=1e-14)
    assert again.twice_order == 3


def surface(n, rng):
    """A smooth surface that varies three times as fast along the second input."""
    X = rng.uniform(-2.0, 5.0, (n, 2))
    return X, np.sin(1.2 * X[:, 0]) + np.cos(3.6 * X[:, 1]) + rng.normal(0.0, 0.05, n)


def test_learning_finds_noise_anisotropy_and_smoothness(rng):
    X, y = surface(2000, rng)
    gp = learn_vecchia_gp(X, y - y.mean(), rng)
    ratio = gp.kernel.lengths[0] / gp.kernel.lengths[1]
    assert 2.0 < ratio < 4.5
    assert gp.kernel.twice_order > 1
    assert 0.03 < np.sqrt(gp.kernel.amplitude * gp.kernel.nugget) < 0.07


def test_all_targets_choose_the_order_and_give_the_rest(rng, monkeypatch):
    X = rng.normal(3.0, 2.0, (300, 2))
    y, learned, maximized = np.sin(X).sum(axis=1), [], vecchia._maximized

    def noted(gp, targets, *others):
        found = maximized(gp, targets, *others)
        learned.append((gp.kernel.twice_order, len(targets[0]), found[1]))
        return found

    monkeypatch.setattr(vecchia, "_maximized", noted)
    gp = learn_vecchia_gp(X, y - y.mean(), np.random.default_rng(2))
    far = 18  # targets whose neighbors are among a 16th of the rows
    assert [n for _, n, _ in learned] == [300 + far] * 4
    assert [order for order, _, _ in learned[:3]] == [1, 3, 5]
    best = max(learned[:3], key=lambda each: each[2])[0]
    assert learned[3][0] == gp.kernel.twice_order == best


def test_it_predicts_within_its_error_bars(rng):
    X, y = surface(2000, rng)
    method = make("kriging", {}, 3).fit(X[:1500], y[:1500])
    mean, std = method.predict(X[1500:])
    scores = (y[1500:] - mean) / std
    assert np.sqrt(np.mean((y[1500:] - mean) ** 2)) < 0.08
    assert abs(np.mean(np.abs(scores) < 1.96) - 0.95) < 5 * np.sqrt(0.05 * 0.95 / 500)
    f_mean, f_std = method.predict_function(X[1500:])
    noise = method.facts()["noise_variance"]
    assert_array_equal(f_mean, mean)
    assert_allclose(f_std**2 + noise, std**2, rtol=1e-6)


def test_units_do_not_matter(rng):
    X, y = surface(600, rng)
    new = rng.uniform(-2.0, 5.0, (50, 2))
    mean, std = Standardized(Kriging(random_state=1)).fit(X, y).predict(new)
    bend = np.array([1e3, 1e-2])
    scaled = Standardized(Kriging(random_state=1)).fit(X * bend + 7.0, 40.0 * y - 3.0)
    mean_scaled, std_scaled = scaled.predict(new * bend + 7.0)
    assert_allclose(mean_scaled, 40.0 * mean - 3.0, atol=1e-3)
    assert_allclose(std_scaled, 40.0 * std, rtol=1e-3)


def test_what_is_learned_has_the_units_of_the_rows(rng):
    X, y = surface(400, rng)
    one, other = (
        learn_vecchia_gp(bend * X, factor * (y - y.mean()), np.random.default_rng(2)).kernel
        for bend, factor in ((1.0, 1.0), (1e5, 50.0))
    )
    assert one.twice_order == other.twice_order
    assert_allclose(other.lengths, 1e5 * one.lengths, rtol=1e-3)
    assert_allclose(
        [other.amplitude, other.nugget], [2500.0 * one.amplitude, one.nugget], rtol=0.01
    )


def test_some_targets_have_neighbors_in_a_subsample_only(rng, monkeypatch):
    monkeypatch.setattr(vecchia, "TARGETS_BY_FRACTION", {1: 20, 4: 10, 100: 5})
    X, y = some_rows(200, 2, rng)
    order = rng.permutation(200)
    gp = VecchiaGP(some_kernel(2), X, y, n_neighbors=6)
    rows, near = _targets(gp, order)
    assert_array_equal(rows, np.concatenate([order[:20], order[:10]]))  # two rows are too few
    assert np.isin(near[20:], order[:50]).all()
    assert not (near == rows[:, None]).any()
    apart = (X[near] - X[rows][:, None]) / gp.kernel.lengths
    distances = np.linalg.norm(apart, axis=2).mean(axis=1)
    assert (distances[20:] > distances[:10]).all()


def test_the_likelihood_has_far_terms_by_default(rng):
    X, y = some_rows(6000, 2, rng)
    order = rng.permutation(6000)
    gp = VecchiaGP(some_kernel(2), X, y)
    rows, near = _targets(gp, order)
    assert_array_equal(rows, np.concatenate([order, order[:100], order[:23]]))
    distances = np.linalg.norm((X[near] - X[rows][:, None]) / gp.kernel.lengths, axis=2)[:, -1]
    close, far, farthest = (
        distances[i].mean() for i in (slice(6000), slice(6000, 6100), slice(6100, None))
    )
    assert far > 3 * close  # in two columns, of 1/16 of the rows: four times as far
    assert farthest > 2 * far


def test_degenerate_rows_are_no_failure(rng):
    X = np.full((50, 2), 1.5)
    for values in (np.zeros(50), rng.normal(size=50)):
        found = learn_vecchia_gp(X, values, rng).predict(X[:3])
        assert np.isfinite(found.mean).all()
        assert (found.variance > 0).all()
