"""Draws have the law that their measure states, and θ never re-rolls them."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from scipy.stats import kstest

from rwf.features import RidgeFamily, WaveletFamily
from rwf.wavelets import MexicanHat, Morlet
from rwf.wavelets.measure import (
    SHIFTS,
    Box,
    Hull,
    Measure,
    Rows,
    _hull_simplices,
    as_shifts,
    stratified,
)

FIVE_SIGMA = 5.7e-7
"""The two-sided tail of a Gaussian beyond five standard deviations."""

DIMENSIONS = pytest.mark.parametrize("d", [1, 2, 3])


def rows(n, d, rng):
    """Skewed data with mean about 3, so that no law is symmetric by accident."""
    return 2.0 + rng.gamma(1.0, 1.0 + np.arange(d), (n, d))


# --------------------------------------------------------------------------------- stratification


@given(m=st.integers(1, 300), seed=st.integers(0, 1000))
def test_stratified_draws_are_one_per_stratum(m, seed):
    u = stratified(m, np.random.default_rng(seed))
    assert_array_equal(np.sort(np.floor(u * m)), np.arange(m))
    assert u.min() >= 0
    assert u.max() < 1


def test_every_stratified_draw_is_uniform_by_itself(rng):
    u = np.array([stratified(7, rng) for _ in range(4000)])
    for position in (0, 3, 6):
        assert kstest(u[:, position], "uniform").pvalue > FIVE_SIGMA


def test_stratified_draws_repel(rng):
    m, repeats = 5, 4000
    pairs = np.array([stratified(m, rng)[:2] for _ in range(repeats)])
    same_stratum = np.floor(pairs[:, 0] * m) == np.floor(pairs[:, 1] * m)
    assert not same_stratum.any()


# ----------------------------------------------------------------------------------------- shifts


@DIMENSIONS
@pytest.mark.parametrize("pad", [0.0, 0.1, 0.75])
def test_the_box_is_uniform_within_its_padding(d, pad, rng):
    X, m = rows(40, d, rng), 4000
    side = np.ptp(X, axis=0)
    low, width = X.min(axis=0) - pad * side, (1 + 2 * pad) * side
    t = Box(pad)(X, m, rng)
    assert t.shape == (m, d)
    assert_allclose(Box(pad).corners(X), [low, low + width], rtol=1e-13)
    for k in range(d):
        assert kstest((t[:, k] - low[k]) / width[k], "uniform").pvalue > FIVE_SIGMA
        others = np.corrcoef(t.T).reshape(d, d)[k, :k]
        assert np.all(np.abs(others) < 5 / np.sqrt(m))


@DIMENSIONS
def test_rows_draws_rows_only(d, rng):
    X = rows(11, d, rng)
    t = Rows()(X, 200, rng)
    distance = np.abs(t[:, None] - X).sum(-1).min(1)
    assert_array_equal(distance, 0.0)


@pytest.mark.parametrize("m", [1, 4, 26])
def test_rows_are_equally_likely(m, rng):
    n, repeats = 13, 3000
    X = 3.0 + np.arange(n)[:, None]
    first = np.array([Rows()(X, m, rng)[0, 0] for _ in range(repeats)]) - 3.0
    counts = np.bincount(first.astype(int), minlength=n)
    expected = repeats / n
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected * (1 - 1 / n)))


def test_rows_spread_over_the_data_before_they_repeat(rng):
    X = 3.0 + np.arange(13)[:, None]
    counts = np.bincount((Rows()(X, 39, rng)[:, 0] - 3).astype(int), minlength=13)
    assert_array_equal(counts, 3)


def in_hull(point, X):
    """Whether a point is a convex combination of rows: a linear programme finds the weights."""
    A = np.vstack([X.T, np.ones(len(X))])
    return linprog(np.zeros(len(X)), A_eq=A, b_eq=np.append(point, 1.0), bounds=(0, None)).success


@DIMENSIONS
def test_the_hull_contains_its_draws(d, rng):
    X = rows(12, d, rng)
    t = Hull()(X, 60, rng)
    assert all(in_hull(point, X) for point in t)
    assert not in_hull(X.max(axis=0) + 0.1, X)  # the test can fail


def cross_polytope(d):
    """±2e_j: {Σ|t_j| <= 2} has E t_j² = 4·2/((d + 1)(d + 2)) and volume 4^d/d!."""
    return (
        np.vstack([2 * np.eye(d), -2 * np.eye(d)]),
        8 / ((d + 1) * (d + 2)),
        4.0**d / factorial(d),
    )


def simplex(d):
    """The origin and 3e_j: a coordinate is 3·Beta(1, d), and the volume 3^d/d!."""
    return np.vstack([np.zeros(d), 3 * np.eye(d)]), 18 / ((d + 1) * (d + 2)), 3.0**d / factorial(d)


def cube(d):
    """{0, 5}^d with rows inside, which are no corners: E t_j² = 25/3, and the volume is 5^d."""
    corners = 5.0 * np.array([[i >> j & 1 for j in range(d)] for i in range(2**d)])
    return np.vstack([corners, np.full((3, d), 1.5), corners[:2]]), 25 / 3, 5.0**d


@pytest.mark.parametrize(
    "shape, d",
    [(s, d) for s in (cross_polytope, simplex, cube) for d in (2, 5, 8) if (s, d) != (cube, 8)],
)
def test_the_hull_is_uniform_on_bodies_of_known_volume_and_moments(shape, d, rng):
    X, second, volume = shape(d)
    unique = np.unique(X, axis=0)
    corners = _hull_simplices(unique - unique.mean(axis=0))
    volumes = np.abs(np.linalg.det(corners[:, 1:])) / factorial(d)
    assert_allclose(volumes.sum(), volume, rtol=1e-10)
    m = 20_000
    t = Hull()(rng.permutation(X), m, rng)
    squares = t**2
    assert np.all(np.abs(squares.mean(axis=0) - second) < 5 * squares.std(axis=0) / np.sqrt(m))
    shrunk = 0.5 ** (1 / d)  # the body shrunk to its mean by this factor has half of the volume
    center = t.mean(axis=0)
    inside = [in_hull(point, center + shrunk * (unique - center)) for point in t[:150]]
    assert abs(np.mean(inside) - 0.5) < 5 * 0.5 / np.sqrt(150)


def test_the_hull_of_rows_in_a_plane_is_that_plane(rng):
    plane = rng.normal(size=(2, 4))
    square = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    t = Hull()(3.0 + square @ plane, 4000, rng)
    places, residual, *_ = np.linalg.lstsq(plane.T, (t - 3.0).T, rcond=None)
    assert np.all(residual < 1e-20)
    assert places.min() > -1e-9
    assert places.max() < 2 + 1e-9
    for coordinate in places:
        assert kstest(coordinate / 2, "uniform").pvalue > FIVE_SIGMA


@pytest.mark.parametrize("n, d", [(300, 8), (20, 9)])
def test_a_hull_of_too_many_faces_is_refused_with_the_remedy(n, d, rng):
    with pytest.raises(
        ValueError, match=rf"hull of {n} rows in {d} columns .* Use shifts='data' or 'box'"
    ):
        Hull()(rng.normal(size=(n, d)), 5, rng)
    flat = np.column_stack([rng.normal(size=(20, 3)), np.full((20, 6), 2.0)])
    assert Hull()(flat, 5, rng).shape == (5, 9)  # columns that do not vary are not counted


@pytest.mark.parametrize("sampler", SHIFTS.values(), ids=SHIFTS.keys())
def test_one_row_and_constant_columns_are_no_obstacle(sampler, rng):
    assert_allclose(sampler(np.full((1, 2), 3.0), 5, rng), np.full((5, 2), 3.0), rtol=1e-15)
    X = np.column_stack([np.full(9, 3.0), rows(9, 1, rng)])
    assert_allclose(sampler(X, 20, rng)[:, 0], 3.0, rtol=1e-15)


@pytest.mark.parametrize("sampler", SHIFTS.values(), ids=SHIFTS.keys())
def test_shifts_follow_the_units_of_the_data(sampler, rng):
    X, scale, origin = rows(9, 2, rng), 1e5, -40.0
    here = sampler(X, 30, np.random.default_rng(3))
    there = sampler(scale * X + origin, 30, np.random.default_rng(3))
    assert_allclose(there, scale * here + origin, rtol=1e-10)


def test_names_samplers_and_functions_are_shifts():
    assert (as_shifts("data"), as_shifts("box"), as_shifts("hull")) == (Rows(), Box(), Hull())
    box = Box(pad=0.3)
    assert as_shifts(box) is box

    def own(X, m, rng):
        return np.zeros((m, X.shape[1]))

    assert as_shifts(own) is own


@pytest.mark.parametrize("unknown", ["rows", "grid", 3, None])
def test_unknown_shifts_are_refused_with_the_remedy(unknown):
    with pytest.raises(ValueError, match=r"use 'data', 'box', 'hull', or a function \(X, m, rng\)"):
        as_shifts(unknown)


# ---------------------------------------------------------------------------------------- measure


@pytest.mark.parametrize("stratify", [True, False])
def test_scales_are_log_uniform_over_their_range(stratify, rng):
    measure = Measure(0.3, 2.4, Rows(), stratify)
    X = rows(20, 2, rng)
    atoms = WaveletFamily(MexicanHat(), measure, 1.7).draw(3000, X, rng).atoms
    share = (np.log(atoms.scales) - np.log(0.3)) / np.log(2.4 / 0.3)
    assert 0 <= share.min() < share.max() <= 1
    assert kstest(share, "uniform").pvalue > FIVE_SIGMA
    strata = len(np.unique(np.floor(share * 3000)))
    assert (strata > 2990) == stratify  # independent draws miss a share e^-1 of the strata


def test_scales_and_shifts_are_independent(rng):
    X, m = rows(50, 2, rng), 4000
    for shifts in (Rows(), Box(), Hull()):
        u, t = Measure(0.3, 2.4, shifts).draw(m, X, rng)
        assert np.all(np.abs(np.corrcoef(u, t.T)[0, 1:]) < 5 / np.sqrt(m))


@pytest.mark.parametrize("low, high", [(0.3, 2.4), (5.0, 5.0), (1e-200, 1e200)])
def test_middle_and_width_describe_the_range(low, high):
    measure = Measure(low, high, Rows())
    assert_allclose(2 * np.log(measure.middle), np.log(low) + np.log(high), rtol=1e-12, atol=1e-12)
    assert_allclose(measure.width, np.log(high) - np.log(low), rtol=1e-12)


def test_one_scale_is_a_range_with_nothing_to_learn(rng):
    features = WaveletFamily(MexicanHat(), Measure(0.7, 0.7, Rows()), 1.3).draw(
        9, rows(9, 2, rng), rng
    )
    assert_allclose(features.atoms.scales, 0.7, rtol=1e-15)
    assert len(features.theta) == features.n_lengths == 2


@pytest.mark.parametrize(
    "low, high",
    [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, np.inf), (np.nan, 1.0), (1.0, np.nan)],
)
def test_what_is_no_range_of_scales_is_refused(low, high):
    with pytest.raises(ValueError, match=r"give \(low, high\) with 0 < low <= high < inf"):
        Measure(low, high, Rows())


def test_a_function_of_the_user_is_a_sampler(rng):
    def two_clusters(X, m, rng):
        return np.where(rng.uniform(size=(m, 1)) < 0.5, X.min(axis=0), X.max(axis=0))

    X = rows(20, 2, rng)
    _, t = Measure(0.3, 2.4, two_clusters).draw(50, X, rng)
    assert np.all((t == X.min(axis=0)) | (t == X.max(axis=0)))


@pytest.mark.parametrize(
    "wrong, seen",
    [
        (lambda X, m, rng: X[: m - 1], r"shape \(6, 2\)"),
        (lambda X, m, rng: np.zeros((m, 3)), r"shape \(7, 3\)"),
        (lambda X, m, rng: np.zeros(m), r"shape \(7,\)"),
        (lambda X, m, rng: np.full((m, 2), np.nan), "NaN or infinite"),
        (lambda X, m, rng: np.full((m, 2), np.inf), "NaN or infinite"),
    ],
)
def test_shifts_of_a_wrong_shape_are_refused_with_the_remedy(wrong, seen, rng):
    with pytest.raises(ValueError, match=seen + r".*must return finite shifts of shape \(7, 2\)"):
        Measure(0.3, 2.4, wrong).draw(7, rows(20, 2, rng), rng)


def test_draws_do_not_depend_on_the_range_of_scales(rng):
    X = rows(20, 2, rng)
    for shifts in (Rows(), Box(), Hull()):
        narrow = Measure(0.9, 1.1, shifts).draw(30, X, np.random.default_rng(5))
        wide = Measure(0.01, 9.0, shifts).draw(30, X, np.random.default_rng(5))
        for a, b in zip(narrow, wide, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("family", [WaveletFamily, RidgeFamily])
def test_theta_moves_the_atoms_and_never_rerolls_them(family, rng):
    X = rows(20, 2, rng)
    features = family(Morlet(), Measure(0.3, 2.4, Box()), 1.3).draw(30, X, rng)
    moved = features.with_theta(features.theta + 0.2)
    assert_array_equal(moved.atoms.draws, features.atoms.draws)
    assert_array_equal(moved.atoms.shifts, features.atoms.shifts)
    # log s = log s_mid + (v - ½)ρ, and a θ raised by 0.2 multiplies both ρ and ℓ by e^0.2.
    half_width = (features.atoms.draws - 0.5) * np.log(2.4 / 0.3) * np.exp(0.2)
    assert_allclose(moved.atoms.scales, np.sqrt(0.3 * 2.4) * np.exp(half_width), rtol=1e-13)
    assert_allclose(moved.atoms.lengths, 1.3 * np.exp(0.2), rtol=1e-14)
