"""One rule says which training rows are held out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rwf.data.holdout import (
    group_parts,
    held_out_rows,
    hold_out,
    hold_out_blobs,
    in_random_order,
    scored_rows,
    standard_error,
)
from rwf.data.rows import Block


def rows_of(n, groups=None):
    return Block(np.arange(n)[:, None] * 1.0, np.zeros((n, 1)), np.ones(n), groups=groups)


def test_held_out_rows_are_a_tenth_and_neither_too_few_nor_too_many(rng):
    held = held_out_rows(rows_of(4000), rng)
    assert len(np.unique(held)) == len(held) == 400
    assert (np.diff(held) > 0).all()
    assert [len(held_out_rows(rows_of(n), rng)) for n in (0, 100, 1000, 2000)] == [0, 30, 300, 300]
    assert len(held_out_rows(rows_of(10**6), rng)) == 5000


def test_every_row_is_kept_or_held_out(rng):
    rows = Block(rng.normal(size=(40, 2)), rng.normal(size=(40, 1)), np.arange(1.0, 41.0))
    kept, held = hold_out(rows, np.random.default_rng(3))
    assert len(held) == 12
    assert_array_equal(held.weights, 1.0 + held_out_rows(rows, np.random.default_rng(3)))
    assert_array_equal(np.sort([*kept.weights, *held.weights]), rows.weights)
    assert_array_equal(rows.X[held.weights.astype(int) - 1], held.X)


@pytest.mark.parametrize("n", [250, 3000])
def test_blobs_are_the_rows_nearest_to_one_another(rng, n):
    X = rng.normal(size=(n, 2))
    held = hold_out_blobs(X, rng)
    assert 0.15 * n < (~held.kept).sum() < 0.4 * n
    assert_array_equal(held.blob < 0, held.kept)
    its = held.blob == held.blob.max()  # the last one, which no other overlaps
    assert its.sum() == int(0.04 * n)
    middles = np.linalg.norm(X - X[its][:, None], axis=2)
    assert any(set(np.argsort(row)[: its.sum()]) == set(np.flatnonzero(its)) for row in middles)


def test_a_sample_has_so_many_rows_of_every_size(rng):
    held = hold_out_blobs(rng.normal(size=(5000, 2)), rng)
    rows = held.sample(30, rng)
    assert (np.diff(rows) > 0).all()
    assert_array_equal(np.bincount(held.size[rows]), np.full(held.size.max() + 1, 30))


@pytest.fixture
def grouped(rng):
    return rows_of(600, rng.permutation(np.repeat(np.arange(40), 15)))


def test_groups_are_held_out_as_a_whole(rng, grouped):
    kept, held = hold_out(grouped, rng)
    assert 100 < len(held) <= 180
    assert not set(kept.groups) & set(held.groups)
    assert_array_equal(np.sort([*kept.X[:, 0], *held.X[:, 0]]), np.arange(600.0))


def test_two_of_five_large_groups_are_held_out(rng):
    kept, held = hold_out(rows_of(500, np.repeat(np.arange(5), 100)), rng)
    assert len(np.unique(kept.groups)) == 3
    assert len(np.unique(held.groups)) == 2


def test_scored_groups_are_whole_and_ten_at_least(rng, grouped):
    some = scored_rows(grouped, 200, rng)
    assert len(some) == 195
    assert (np.unique(some.groups, return_counts=True)[1] == 15).all()
    assert len(np.unique(scored_rows(grouped, 20, rng).groups)) == 10
    assert scored_rows(grouped, 600, rng) is grouped


def test_halves_have_different_groups(rng, grouped):
    order, half = in_random_order(grouped, rng)
    assert_array_equal(np.sort(order), np.arange(600))
    assert half == 300
    codes = grouped.groups[order]
    assert not set(codes[:half]) & set(codes[half:])
    alone, middle = in_random_order(rows_of(7), rng)
    assert_array_equal(np.sort(alone), np.arange(7))
    assert middle == 3


def test_the_standard_error_of_repeated_values_is_that_of_the_values(rng):
    values = rng.normal(size=50)
    expected = standard_error(values, None)
    assert standard_error(np.repeat(values, 4), np.repeat(np.arange(50), 4)) == pytest.approx(
        expected
    )
    assert standard_error(values, np.arange(50)) == pytest.approx(expected)


@pytest.mark.parametrize("size", [1, 20, 31, 1000])
def test_parts_hold_every_row_once_and_whole_groups(grouped, size):
    parts = [*group_parts(grouped.groups, 600, size)]
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(600))
    codes = [set(grouped.groups[part]) for part in parts]
    assert sum(map(len, codes)) == 40
    assert all(len(part) <= size or len(its) == 1 for part, its in zip(parts, codes, strict=True))
