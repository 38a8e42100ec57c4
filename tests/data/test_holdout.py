"""One rule says which training rows are held out."""

import numpy as np
from numpy.testing import assert_array_equal

from rwf.data.holdout import held_out_rows, hold_out
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
