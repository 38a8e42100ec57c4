"""Transforms of targets: inverses, slopes, and targets that have none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.data.target_transform import TargetTransform

Y = np.array([[0.4, 3.0, -2.0], [7.0, 0.0, 5.0], [90.0, 1.2, 0.0]])


def test_the_inverse_and_the_slope_are_those_of_the_function():
    transform = TargetTransform.learn(("log", "sqrt", None), Y)
    assert transform.names == ("log", "sqrt", None)
    assert_allclose(transform.inverse(transform(Y)), Y, rtol=1e-12, atol=1e-12)
    inside, step = Y + 0.1, 1e-6
    slope = (transform(inside + step) - transform(inside - step)) / (2 * step)
    assert_allclose(transform.log_slope(inside), np.log(slope), atol=1e-6)
    assert TargetTransform.learn((None, None, None), Y) is None


def test_units_bring_targets_back():
    rows = Block(np.arange(3.0)[:, None], Y, np.ones(3))
    units = Standardizer.learn(rows, ard=True, bends=("log", "sqrt", None))
    unit = units.rows(rows).y
    assert_allclose(unit.mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(units.original_targets(unit), Y, rtol=1e-12, atol=1e-12)
    scale, slope = np.log(units.y.scale).sum(), units.transform.log_slope(Y).sum(axis=1)
    assert_allclose(units.log_slope(Y), slope - scale)


@pytest.mark.parametrize(
    ("bend", "y", "said"),
    [
        ("log", 0.0, "no logarithm.*target_transform='sqrt' or None"),
        ("log", -1.0, "no logarithm.*target_transform=None"),
        ("sqrt", -1.0, "no square root.*target_transform=None"),
    ],
)
def test_targets_without_a_transform_are_refused(bend, y, said):
    rows = Block(np.arange(3.0)[:, None], np.array([[2.0], [y], [3.0]]), np.ones(3))
    with pytest.raises(ValueError, match=said):
        Standardizer.learn(rows, ard=True, bends=(bend,))
