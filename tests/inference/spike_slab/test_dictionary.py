"""Dictionaries: their formulas, where atoms are drawn, and moments by structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import contracts
from rwf.data.rows import Block
from rwf.features.base import ConstantFeatures, LinearFeatures, Stack
from rwf.inference.moments import accumulate
from rwf.inference.spike_slab._atoms import gram_row
from rwf.inference.spike_slab._moves import Terms, fill_row
from rwf.inference.spike_slab.columns import CompressedColumns
from rwf.inference.spike_slab.dictionary import CUSP, GABOR, HAT, NOTHING, STEP, Dictionary
from rwf.inference.spike_slab.drawing import (
    draw,
    in_blocks,
    moved_within_gaps,
    n_blocks,
    octaves,
    redraw,
)
from rwf.inference.spike_slab.reduction import DenseRows, reduced


def by_definition(d, x):
    U = (x[:, None] - d.shifts) / d.scales
    q = np.maximum(1 - U**2 / 8, 0)
    formulas = {
        STEP: np.where(U >= 0, 0.5, -0.5),
        CUSP: np.maximum(1 - np.abs(U) / 8, 0) ** 8,
        HAT: q**2 * (1 - 7 * U**2 / 8),
        GABOR: q**4 * np.cos(d.frequencies * U + d.phases),
    }
    return np.select([d.kinds == k for k in formulas], list(formulas.values()))


def random_dictionary(rng, m, low=3.0, high=8.0):
    """Atoms of all kinds with any scales, local ones first."""
    kinds = np.sort(rng.integers(4, size=m))[::-1].copy()
    return Dictionary(
        kinds,
        np.where(kinds == STEP, 1.0, np.exp(rng.uniform(-4, 1, m))),
        rng.uniform(low, high, m),
        rng.uniform(0, 5, m),
        rng.uniform(0, 6, m),
        rng.integers(3, size=m),
    )


def test_atoms_are_their_formulas_and_a_feature_map(rng):
    d, X = random_dictionary(rng, 60), rng.uniform(2, 9, (200, 1))
    assert_allclose(d(X), by_definition(d, X[:, 0]), rtol=1e-12, atol=1e-12)
    contracts.owes_shape_and_precision(d, X)
    contracts.owes_row_independence(d, X, rng)
    contracts.owes_theta(d, X, rng)
    contracts.owes_gradients(d, X, rng)
    assert NOTHING(X).shape == (200, 0)


def test_atoms_have_unit_height_and_end_where_they_say(rng):
    d = random_dictionary(rng, 300)
    d = d.take(d.kinds != STEP)
    u = np.linspace(-9, 9, 20001)
    for j in range(0, d.n_features, 7):
        one = d.take(np.array([j]))
        x = one.shifts + u * one.scales
        z = one(x[:, None])[:, 0]
        assert np.abs(z).max() <= 1
        first, last = one.runs(x)
        assert (z[: first[0]] == 0).all()
        assert (z[last[0] :] == 0).all()
    hats = d.take(d.kinds != GABOR)
    assert_allclose(np.diag(hats(hats.shifts[:, None])), 1.0)


@given(st.integers(2, 60), st.integers(0, 10**6), st.booleans())
def test_every_gap_has_its_step_and_scales_lie_in_their_octave(n, seed, ties):
    rng = np.random.default_rng(seed)
    x = rng.normal(5.0, 100.0, n)
    x = np.unique(np.round(x, -1) if ties else x)
    d = draw(x, rng)
    steps = d.take(d.kinds == STEP)
    assert steps.n_features == len(x) - 1
    assert (x[:-1] < steps.shifts).all()
    assert (steps.shifts < x[1:]).all()
    local = d.take(d.kinds != STEP)
    tops = octaves(x)
    assert d.blocks.max(initial=0) < n_blocks(x)
    if local.n_features:
        octave = (local.blocks - 1) % len(tops)
        assert (local.scales <= tops[octave]).all()
        assert (local.scales >= tops[octave] / 2).all()
        assert (np.sum(local(x[:, None]) ** 2, axis=0) > 1.5 * np.max(local(x[:, None]) ** 2)).all


def test_scales_go_from_the_span_to_four_spacings_in_any_units(rng):
    for unit, origin in [(1.0, 0.0), (1e-6, 3.0), (1e5, -7e6)]:
        x = origin + unit * np.arange(512) / 511
        d = draw(x, rng)
        local = d.take(d.kinds != STEP)
        assert_allclose(octaves(x)[0], unit, rtol=1e-6)
        assert 4 * unit / 511 / 1.5 < local.scales.min() < 6 * unit / 511
        # An atom of each of three kinds per scale length, and some beyond both ends.
        expected = 3 * (2.0 ** np.arange(7) + 7).sum()
        assert 0.85 * expected < local.n_features <= expected


def test_far_apart_clusters_do_not_blow_up_the_dictionary(rng):
    x = np.unique(np.concatenate([rng.uniform(0, 1, 300), 1e7 + rng.uniform(0, 1, 300), [5e9]]))
    d = draw(x, rng)
    assert 600 <= d.n_features < 20 * len(x)
    assert d.scales[d.kinds != STEP].min() < 0.05


def test_a_redraw_keeps_active_atoms_and_the_size_of_every_block(rng):
    x = np.sort(rng.uniform(3, 8, 200))
    first = draw(x, rng)
    active = first.take(rng.permutation(first.n_features)[:60])
    sizes = np.bincount(draw(x, rng).blocks, minlength=n_blocks(x))
    for copies in (0, 2):
        pool = redraw(x, active, copies, rng)
        kept = pool.dictionary.take(pool.active)
        key = np.lexsort([active.shifts, active.blocks]), np.lexsort([kept.shifts, kept.blocks])
        assert_array_equal(kept.shifts[key[1]], active.shifts[key[0]])
        assert_array_equal(kept.scales[key[1]], active.scales[key[0]])
        found = np.bincount(pool.dictionary.blocks, minlength=n_blocks(x))
        crowded = np.bincount(active.blocks, minlength=n_blocks(x)) > sizes
        # Atoms that see one point only are left out, a few in each draw.
        assert (np.abs(found - sizes)[~crowded] <= 3).all()
        steps = pool.dictionary.kinds == STEP
        assert steps[np.argmax(steps) :].all()
    assert not np.isin(pool.dictionary.shifts, first.shifts).sum() > 60


def test_steps_move_within_their_gaps_and_nothing_else_changes(rng):
    x = np.sort(rng.uniform(3, 8, 200))
    d = draw(x, rng)
    moved = moved_within_gaps(d, x, rng)
    steps = d.kinds == STEP
    assert (np.abs(moved.shifts - d.shifts)[steps] > 0).all()
    assert_array_equal(moved(x[:, None]), d(x[:, None]))
    assert_array_equal(moved.take(~steps).shifts, d.take(~steps).shifts)


def test_atoms_get_the_blocks_of_other_inputs(rng):
    x = np.sort(rng.uniform(3, 8, 300))
    d = draw(x, rng)
    assert_array_equal(in_blocks(d, x).blocks, d.blocks)
    fewer = x[::4]
    found = in_blocks(d, fewer)
    assert (found.blocks < n_blocks(fewer)).all()
    assert len(octaves(fewer)) < len(octaves(x))
    assert_array_equal(found.kinds == STEP, found.blocks == 0)
    wide = (d.scales > 2.6) & (d.scales < 4.9)  # the coarsest octave of both
    assert wide.sum() > 5
    assert_array_equal((found.blocks[wide] - 1) % len(octaves(fewer)), np.zeros(wide.sum()))


def test_jittered_copies_are_near_and_there_are_none_of_steps(rng):
    d = random_dictionary(rng, 200)
    near = d.jittered(3, rng)
    local = d.take(d.kinds != STEP)
    assert near.n_features == 3 * local.n_features
    assert_array_equal(near.kinds, np.repeat(local.kinds, 3))
    moved = (near.shifts - np.repeat(local.shifts, 3)) / np.repeat(local.scales, 3)
    assert 0.2 < moved.std() < 0.4


@given(st.integers(1, 50), st.integers(0, 40), st.integers(0, 10**6), st.booleans())
def test_moments_by_structure_are_those_of_one_pass(n, m, seed, ties):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(2.5, 8.5, n))
    x = np.round(x, 1) if ties else x
    rows = Block(x[:, None], rng.normal(2, 3, (n, 1)), rng.uniform(0.2, 3.0, n))
    d = random_dictionary(rng, m)
    columns = CompressedColumns.of(d, x, rows.weights)
    expected = accumulate(d, [rows], 1)
    G, before = np.zeros((m, m)), np.empty(n + 1)
    for j in range(m):
        gram_row(columns.runs, j, before, G[j])
    assert_allclose(G, expected.ZtZ, rtol=1e-10, atol=1e-10)
    assert_allclose(columns.energies, expected.ZtZ.diagonal(), rtol=1e-10, atol=1e-10)
    root = np.sqrt(rows.weights)[:, None]
    assert_allclose(columns.products(root * rows.y), expected.Zty, rtol=1e-10, atol=1e-10)


@given(st.integers(1, 30), st.integers(0, 15), st.integers(0, 10**6))
def test_reduced_moments_are_those_in_the_metric_of_the_dense_part(n, m, seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(2.5, 8.5, n))
    rows = Block(x[:, None], rng.normal(2, 3, (n, 1)), rng.uniform(0.2, 3.0, n))
    d, dense = random_dictionary(rng, m), Stack((ConstantFeatures(), LinearFeatures(1)))
    ratios = np.array([3.0, 0.4])
    columns = CompressedColumns.of(d, x, rows.weights)
    found = reduced(columns, DenseRows.of(dense, rows), ratios)
    # y = Zw + Z_d u + ε with u ~ N(0, σ²R) and ε ~ N(0, σ²/v): marginal covariance σ²C.
    Z, Zd, y = d(rows.X), dense(rows.X), rows.y[:, 0]
    C = np.diag(1 / rows.weights) + (Zd * ratios) @ Zd.T
    G, expected = np.zeros((m, m)), Z.T @ np.linalg.solve(C, Z)
    for j in range(m):
        fill_row(Terms(columns.runs, found.H, 1.0, np.ones(m), np.ones(m)), j, G[j])
    assert_allclose(G, expected, rtol=1e-8, atol=1e-9)
    assert_allclose(found.diagonal, expected.diagonal(), rtol=1e-8, atol=1e-9)
    assert_allclose(found.b, Z.T @ np.linalg.solve(C, y), rtol=1e-8, atol=1e-9)
    assert_allclose(found.yty, y @ np.linalg.solve(C, y), rtol=1e-9)
    assert_allclose(found.n, rows.weights.sum())


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_few_points_have_few_atoms(n, rng):
    x = np.sort(rng.normal(size=n))
    d = draw(x, rng)
    assert (d.kinds == STEP).sum() == n - 1
    assert d.n_features == n - 1 or n == 10
