"""Factors of rows: the t of their scores, how they are kept, and how rows are recognised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_t

from rwf.data.rows import Block
from rwf.uncertainty import row_noise
from rwf.uncertainty.row_noise import DOFS, RowNoise, ScoredRows, Tails, row_keys


def scores(n=4000, k=2, dof=4.0, scales=(3.0, 0.2), seed=0):
    """Draws of a t of k outputs."""
    rng = np.random.default_rng(seed)
    roots = np.sqrt(dof / rng.chisquare(dof, (n, 1)))
    return roots * rng.normal(size=(n, k)) * scales[:k]


def rows(n=30, seed=1):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, n).astype(float)
    return Block(rng.normal(3.0, 2.0, (n, 2)), rng.normal(5.0, 1.0, (n, 1)), weights)


def noise_of(block, seed=2):
    z = scores(len(block), 1, seed=seed)
    return RowNoise.of(ScoredRows.of(block, z), Tails(3.0, np.array([2.0])))


@pytest.mark.parametrize("k", [1, 2])
def test_the_likelihood_is_that_of_scipy(k):
    z, scales, weights = scores(20, k), np.array([2.0, 0.4])[:k], np.arange(1.0, 21.0)
    exact = multivariate_t(shape=np.diag(scales**2), df=3.7).logpdf(z)
    found = row_noise._log_likelihood(z / scales, scales, weights, 3.7)
    assert found == pytest.approx(weights @ np.ravel(exact), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_degrees_of_freedom_and_scales_are_found(k):
    found = Tails.learn(scores(k=k), np.ones(4000))
    # Fisher's information about ν and log s of one t of four degrees of freedom.
    assert abs(found.dof - 4.0) < 5 * 0.29
    assert_allclose(np.log(found.scales / [3.0, 0.2][:k]), 0.0, atol=5 * np.sqrt(7 / 8 / 4000))


@pytest.mark.parametrize(("dof", "bound"), [(1.0, DOFS[0]), (1e6, DOFS[1])])
def test_degrees_of_freedom_have_bounds(dof, bound):
    found = Tails.learn(scores(dof=dof), np.ones(4000))
    assert found.dof == pytest.approx(bound, rel=0.02)


def test_scales_are_those_of_highest_likelihood():
    z, weights = scores(200), np.random.default_rng(3).uniform(0.5, 2.0, 200)
    best = row_noise._scales(z, weights, 5.0)
    top = row_noise._log_likelihood(z / best, best, weights, 5.0)
    for step in (0.999, 1.001):
        for other in (best * [step, 1.0], best * [1.0, step]):
            assert row_noise._log_likelihood(z / other, other, weights, 5.0) < top


def test_rows_count_one_on_average_and_outliers_little():
    z, weights = scores(500), np.random.default_rng(3).uniform(0.5, 2.0, 500)
    tails = Tails.learn(z, weights)
    u = tails.factors(z)
    assert np.average(1.0 / u, weights=weights) == pytest.approx(1.0, rel=1e-6)
    squares = np.square(z / tails.scales).sum(axis=1)
    assert_allclose(u, (tails.dof + squares) / (tails.dof + 2), rtol=1e-12)


def test_scores_of_zero_leave_all_rows_alike():
    u = Tails.learn(np.zeros((40, 1)), np.ones(40)).factors(np.zeros((40, 1)))
    assert_allclose(u, u[0])


def test_rows_get_their_own_factors_in_any_order():
    block = rows()
    noise, order = noise_of(block), np.random.default_rng(5).permutation(30)
    u = Tails(3.0, np.array([2.0])).factors(scores(30, 1, seed=2))
    own = noise.on(block).noise
    assert_allclose(own / own[0], u / u[0], rtol=1e-12)
    assert np.average(1.0 / own, weights=block.weights) == pytest.approx(1.0, rel=1e-12)
    assert_array_equal(noise.on(block.part(order)).noise, own[order])


def test_rows_that_are_unknown_count_in_full():
    noise = noise_of(rows())
    assert_array_equal(noise.on(rows(seed=9)).noise, 1.0)
    assert_array_equal(noise(rows().X), 1.0)
    empty = RowNoise(np.empty(0), np.empty(0))
    assert_array_equal(empty.on(rows()).noise, 1.0)


def test_scored_rows_add_and_come_back_from_arrays():
    block, z = rows(), scores(30, 1)
    whole = ScoredRows.of(block, z)
    parts = [ScoredRows.of(block.part(its), z[its]) for its in (slice(0, 11), slice(11, 30))]
    for found in (parts[0] + parts[1], ScoredRows.from_arrays(whole.to_arrays())):
        for name in ("keys", "weights", "scores"):
            assert_array_equal(getattr(found, name), getattr(whole, name))


def test_the_name_tells_factors_apart():
    noise = noise_of(rows())
    assert noise.name == noise_of(rows()).name
    assert noise.name != noise_of(rows(), seed=8).name
    assert noise.name != replace(noise, keys=noise.keys + 1.0).name


def test_keys_tell_all_parts_of_a_row_apart():
    block = rows(1)
    key = row_keys(block)
    assert key == np.floor(key)
    assert (key < 2**53).all()
    for other in (
        replace(block, X=block.X[:, ::-1]),
        replace(block, X=np.nextafter(block.X, np.inf)),
        replace(block, y=-block.y),
        replace(block, X=block.y, y=block.X),
    ):
        assert row_keys(other) != key
    assert row_keys(replace(block, weights=block.weights + 1)) == key
    zero, minus = (Block(np.full((1, 2), v), np.ones((1, 1)), np.ones(1)) for v in (0.0, -0.0))
    assert row_keys(zero) == row_keys(minus)
    assert len(np.unique(row_keys(rows(20_000)))) == 20_000


def test_keys_stay_those_of_saved_files():
    block = Block(np.array([[0.5, -3.0]]), np.array([[7.25]]), np.ones(1))
    assert row_keys(block) == KEY


KEY = 6184956476596098.0
"""As computed by the formula when model files began to hold it."""
