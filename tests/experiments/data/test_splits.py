"""Splits: no row is in both parts, and gaps are where they should be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import splits, tasks

GRID = np.stack(np.meshgrid(np.arange(30.0), 5 + 2 * np.arange(25.0)), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("hold_out", [splits.quarter, *tasks.ENDINGS.values()])
@pytest.mark.parametrize("index", range(6))
def test_rows_are_for_training_or_testing_and_splits_repeat(hold_out, index):
    rows, again = hold_out(GRID, index), hold_out(GRID, index)
    assert sorted([*rows.train, *rows.test]) == list(range(len(GRID)))
    assert len(rows.test) > 20
    assert_array_equal(rows.test, again.test)


def test_a_quarter_is_every_fourth_row_and_then_random_ones():
    X = np.zeros((103, 1))
    for index in range(4):
        assert_array_equal(splits.quarter(X, index).test, np.arange(index, 103, 4))
    random = splits.quarter(X, 4).test
    assert len(random) == 25
    assert len(set(np.diff(random))) > 3
    assert not np.array_equal(random, splits.quarter(X, 5).test)


@pytest.mark.parametrize("index", range(5))
def test_a_block_is_a_rectangle_of_a_tenth_of_the_area(index):
    held = GRID[splits.block(GRID, index).test]
    low, high = held.min(axis=0), held.max(axis=0)
    inside = np.all((low <= GRID) & (high >= GRID), axis=1)
    assert inside.sum() == len(held)  # no row of the rectangle is left in training
    assert 0.07 * len(GRID) < len(held) < 0.13 * len(GRID)
    assert len({splits.block(GRID, k).test[0] for k in range(5)}) > 2  # at different places


def test_where_no_block_has_enough_rows_the_error_has_advice(rng):
    corners = rng.integers(0, 2, (200, 2)) + 1e-3 * rng.normal(size=(200, 2))
    with pytest.raises(ValueError, match="use a gap"):
        splits.block(corners, 0)


def test_a_gap_is_the_middle_fifth_and_then_another(rng):
    X = rng.uniform(3, 13, (2000, 1))
    x, first = X[:, 0], splits.hole(X, 0)
    middle = (x.min() + x.max()) / 2
    assert_array_equal(first.test, np.flatnonzero(np.abs(x - middle) <= np.ptp(x) / 10))
    for index in range(5):
        rows = splits.hole(X, index)
        held, learned = x[rows.test], x[rows.train]
        assert not np.any((held.min() <= learned) & (learned <= held.max()))
        assert_allclose(np.ptp(held), 2, rtol=0.02)
        assert held.min() > 4.5
    assert_array_equal(first.test, splits.hole(X, 5).test)


@pytest.mark.parametrize("index", range(5))
def test_a_gap_of_two_columns_is_a_round_disc_of_a_tenth_of_the_area(rng, index):
    X = rng.uniform([3, 0], [13, 30], (20_000, 2))
    rows = splits.hole(X, index)
    center, radius = X[rows.test].mean(axis=0), np.sqrt(30 / np.pi)
    distances = np.linalg.norm(X - center, axis=1)
    assert abs(len(rows.test) / 20_000 - 0.1) < 5 * np.sqrt(0.09 / 20_000)
    assert distances[rows.test].max() < radius + 0.2
    assert distances[rows.train].min() > radius - 0.2


def test_an_edge_is_beyond_all_that_is_learned_from(rng):
    X = rng.uniform(3, 13, (500, 1))
    x = X[:, 0]
    for index, share in enumerate((0.1, 0.1, 0.2, 0.2, 0.3)):
        rows = splits.edge(X, index)
        inside, outside = x[rows.train], x[rows.test]
        assert outside.min() > inside.max() if index % 2 == 0 else outside.max() < inside.min()
        assert abs(len(outside) / 500 - share) < 5 * np.sqrt(share * (1 - share) / 500)
    with pytest.raises(ValueError, match="use 0 to 17"):
        splits.edge(X, 18)


def test_a_tenth_begins_at_the_number_of_the_split():
    X = np.zeros((47, 1))
    assert_array_equal(splits.tenth(X, 7).test, [7, 17, 27, 37])
    assert_array_equal(splits.tenth(X, 17).test, splits.tenth(X, 7).test)
    assert_array_equal(splits.tenth(X, 0).train[:9], np.arange(1, 10))


def test_a_split_is_a_seeded_permutation_of_which_nine_tenths_are_for_training():
    rows = splits.random_tenth(np.zeros((103, 1)), 7)
    order = np.random.RandomState(7).permutation(103)
    assert np.array_equal(rows.train, order[:92])
    assert np.array_equal(rows.test, order[92:])


def test_a_shifted_split_tests_beyond_a_plane(rng):
    X = np.column_stack([rng.normal(3.0, [1.0, 200.0], (50, 2)), np.ones(50)])
    rows = splits.beyond_a_plane(X, 4)
    direction = np.random.RandomState(4).normal(size=2) / X[:, :2].std(axis=0)
    position = X[:, :2] @ direction
    assert len(rows.train) == 40
    assert sorted([*rows.train, *rows.test]) == list(range(50))
    assert position[rows.train].max() <= position[rows.test].min()
    assert not np.array_equal(rows.test, splits.beyond_a_plane(X, 5).test)
