"""One rule says which training rows are held out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rwf.data.holdout import held_out_rows, hold_out, hold_out_blobs
from rwf.data.rows import Block


def test_held_out_rows_are_a_tenth_and_neither_too_few_nor_too_many(rng):
    held = held_out_rows(4000, rng)
    assert len(np.unique(held)) == len(held) == 400
    assert (np.diff(held) > 0).all()
    assert [len(held_out_rows(n, rng)) for n in (0, 100, 1000, 2000)] == [0, 30, 300, 300]
    assert len(held_out_rows(10**6, rng)) == 5000


def test_every_row_is_kept_or_held_out(rng):
    rows = Block(rng.normal(size=(40, 2)), rng.normal(size=(40, 1)), np.arange(1.0, 41.0))
    kept, held = hold_out(rows, np.random.default_rng(3))
    assert len(held) == 12
    assert_array_equal(held.weights, 1.0 + held_out_rows(40, np.random.default_rng(3)))
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
