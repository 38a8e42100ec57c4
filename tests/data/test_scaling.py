"""Units: maps have inverses, and magnitudes and offsets do not matter."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf.data.rows import Block
from rwf.data.scaling import Affine, Standardizer


@given(exponent=st.integers(-150, 150), seed=st.integers(0, 20))
def test_standardised_columns_have_mean_zero_and_deviation_one_at_any_magnitude(exponent, seed):
    rng = np.random.default_rng(seed)
    values = 10.0**exponent * rng.normal(3.0, 2.0, (50, 2))
    weights = rng.integers(1, 5, 50).astype(float)
    unit = Affine.learn(values, weights)(values)
    assert_allclose(weights @ unit / weights.sum(), 0.0, atol=1e-12)
    assert_allclose(weights @ unit**2 / weights.sum(), 1.0, rtol=1e-12)


def test_inverse_undoes_the_map(rng):
    values = rng.normal(3.0, 2.0, (9, 3))
    for common in (False, True):
        affine = Affine.learn(values, np.ones(9), common_scale=common)
        assert_allclose(affine.inverse(affine(values)), values, rtol=1e-13)


def test_a_common_scale_keeps_the_ratio_of_distances(rng):
    values = rng.normal(3.0, [2.0, 0.5], (40, 2))
    unit = Affine.learn(values, np.ones(40), common_scale=True)(values)
    span = np.ptp(values, axis=0).max()
    assert_allclose(np.diff(unit, axis=0), np.diff(values, axis=0) / span, rtol=1e-12)
    assert_allclose(np.ptp(unit, axis=0).max(), 1.0)


def test_columns_that_vary_only_by_rounding_are_constant():
    third = 1.0 / 3.0
    values = np.array([[third, 1.0], [third * (1 + 2e-16), 2.0], [third, 4.0]])
    assert_array_equal(Affine.learn(values, np.ones(3)).varies, [False, True])


def test_constant_columns_are_dropped_and_come_back(rng):
    X = np.column_stack([np.full(20, 7.0), rng.normal(3.0, 2.0, 20)])
    scaler = Standardizer.learn(Block(X, rng.normal(5, 1, (20, 1)), np.ones(20)), ard=True)
    inputs = scaler.inputs(X)
    assert inputs.shape == (20, 1)
    assert_allclose(scaler.original_inputs(inputs), X, rtol=1e-12)


def test_one_column_is_kept_when_none_varies():
    rows = Block(np.full((4, 3), 2.5), np.arange(4.0)[:, None], np.ones(4))
    assert Standardizer.learn(rows, ard=True).inputs(rows.X).shape == (4, 1)


def test_skewed_columns_get_a_logarithm_and_come_back(rng):
    X = np.column_stack(
        [
            rng.lognormal(2.0, 1.0, 400),
            rng.normal(3.0, 2.0, 400),
            -rng.lognormal(1.0, 1.0, 400),
            rng.integers(0, 2, 400) ** 3 * (rng.uniform(size=400) < 0.1),
        ]
    )
    rows = Block(X, rng.normal(5, 1, (400, 1)), np.ones(400))
    scaler = Standardizer.learn(rows, ard=True, log_skewed=True)
    assert_array_equal(scaler.logarithm.chosen, [True, False, True, False])
    unit = scaler.inputs(X)
    assert_allclose(unit[:, :3].mean(0), 0.0, atol=1e-9)
    assert_allclose(unit[:, :3].std(0), 1.0, rtol=1e-9)
    # Order is kept, whichever way the tail points.
    for column in range(3):
        assert_array_equal(np.argsort(unit[:, column]), np.argsort(X[:, column]))
    # Left-skewed columns are bent as far as right-skewed ones, and not the wrong way.
    skewness = np.mean(((X - X.mean(axis=0)) / X.std(axis=0)) ** 3, axis=0)
    assert skewness[0] > 2
    assert skewness[2] < -2
    for column in (0, 2):
        assert abs(np.mean(unit[:, column] ** 3)) < 0.4 * abs(skewness[column])
    assert_allclose(scaler.original_inputs(unit), X, rtol=1e-8, atol=1e-8)
    assert abs(np.mean(unit[:, 0] ** 3)) < 0.5 * abs(
        np.mean(((X[:, 0] - X[:, 0].mean()) / X[:, 0].std()) ** 3)
    )


def test_logarithms_do_not_depend_on_units(rng):
    X = rng.lognormal(1.0, 1.2, (200, 1))
    y = rng.normal(size=(200, 1))
    a, b = (
        Standardizer.learn(Block(V, y, np.ones(200)), ard=True, log_skewed=True).inputs(V)
        for V in (X, 1e6 * X + 7e6)
    )
    assert_allclose(a, b, atol=1e-8)
