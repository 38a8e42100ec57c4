"""Blocks cover all rows once; distinct rows and samples do not depend on the rows' order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rwf.data.rows import (
    ENOUGH_ROWS,
    Block,
    block_rows,
    blocks,
    copies_among,
    counted_once,
    distinct,
    joined,
    repeated_share,
    sample,
)


def make_rows(n: int, seed: int = 0) -> Block:
    rng = np.random.default_rng(seed)
    return Block(rng.normal(3, 2, (n, 2)), rng.normal(5, 1, (n, 1)), rng.integers(1, 4, n) * 1.0)


@given(n=st.integers(1, 2000), p=st.integers(1, 3000), budget=st.integers(1, 10**7))
def test_blocks_hold_every_row_once_in_order(n, p, budget):
    rows = make_rows(n)
    parts = list(blocks(rows, p, budget))
    assert_array_equal(np.vstack([part.X for part in parts]), rows.X)
    assert_array_equal(np.concatenate([part.weights for part in parts]), rows.weights)
    assert max(len(part) for part in parts) <= block_rows(p, budget)


def test_a_block_fits_its_budget():
    assert 8 * 1000 * block_rows(1000, 2**24) <= 2**24


@given(seed=st.integers(0, 50))
def test_distinct_rows_do_not_depend_on_order_repetition_or_rows_without_weight(seed):
    rng = np.random.default_rng(seed)
    rows = make_rows(20, seed)
    weights = rng.integers(0, 4, 20)
    repeated = np.repeat(np.arange(20), weights)
    shuffled = rng.permutation(repeated)
    a = distinct(Block(rows.X, rows.y, weights.astype(float)))
    b = distinct(Block(rows.X[shuffled], rows.y[shuffled], np.ones(len(shuffled))))
    for left, right in ((a.X, b.X), (a.y, b.y), (a.weights, b.weights)):
        assert_array_equal(left, right)
    assert a.weights.sum() == weights.sum()


def test_rows_with_equal_inputs_and_other_targets_stay_apart():
    rows = Block(np.array([[3.0], [3.0], [3.0]]), np.array([[1.0], [2.0], [1.0]]), np.ones(3))
    assert_array_equal(distinct(rows).y[:, 0], [1.0, 2.0])
    assert_array_equal(distinct(rows).weights, [2.0, 1.0])


def test_equal_rows_of_different_groups_stay_apart():
    groups = np.array([4, 1, 4])
    rows = Block(np.full((3, 1), 3.0), np.ones((3, 1)), np.ones(3), groups=groups)
    assert_array_equal(distinct(rows).groups, [1, 4])
    assert_array_equal(distinct(rows).weights, [1.0, 2.0])


def test_groups_go_with_their_rows(rng):
    rows = make_rows(50)
    rows = Block(rows.X, rows.y, rows.weights, groups=rng.integers(0, 6, 50))
    label = dict(zip(rows.X[:, 0], rows.groups, strict=True))
    for part in (rows.part(rng.permutation(50)[:9]), distinct(rows), sample(rows, 20, rng)):
        assert [label[x] for x in part.X[:, 0]] == part.groups.tolist()
    halves = [rows.part(slice(0, 20)), rows.part(slice(20, None))]
    assert_array_equal(joined(halves).groups, rows.groups)


def test_the_share_of_repeated_inputs():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert repeated_share(X) == 0.5
    assert repeated_share(X[:2]) == 0.0


def test_a_sample_has_the_asked_size_and_favours_heavy_rows(rng):
    rows = Block(
        np.arange(1000.0)[:, None], np.zeros((1000, 1)), np.r_[np.full(500, 9.0), np.ones(500)]
    )
    drawn = np.concatenate([sample(rows, 50, rng).X[:, 0] for _ in range(40)])
    assert len(drawn) == 2000
    # The first draw takes a heavy row with probability 0.9; without replacement a little less.
    share = (drawn < 500).mean()
    assert abs(share - 0.9) < 5 * np.sqrt(0.9 * 0.1 / 2000) + 0.01


def test_rows_without_weight_are_never_sampled(rng):
    rows = Block(np.arange(100.0)[:, None], np.zeros((100, 1)), np.r_[np.zeros(90), np.ones(10)])
    assert sample(rows, 20, rng).X.min() >= 90


def test_equal_rows_are_copies_unless_repeated_inputs_have_other_targets(rng):
    X, y = rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    order = np.concatenate([np.arange(50), np.arange(20), np.arange(7)])
    copied = distinct(Block(X[order], y[order], np.ones(77)))
    assert copies_among(copied) == 27
    assert_array_equal(counted_once(copied).weights, 1.0)
    assert_array_equal(counted_once(copied).y, copied.y)
    for others, found in ((3, 27), (4, 0)):
        again = np.concatenate([order, np.arange(30, 30 + others)])
        targets = np.concatenate([y[order], y[30 : 30 + others] + 0.1])
        rows = distinct(Block(X[again], targets, np.ones(len(again))))
        assert copies_among(rows) == found
    few = distinct(copied.part(np.arange(ENOUGH_ROWS - 1)))
    assert few.weights.sum() > len(few)
    assert copies_among(few) == 0
    assert counted_once(few) is few
