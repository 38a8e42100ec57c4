"""Extrapolation: the prior variance comes back where atoms carry less than among the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf.uncertainty.extrapolation import PriorReversion, block_energies, support_levels

BLOCKS = np.array([0, 0, 0, 1, 1, 2])


@pytest.fixture
def columns(rng):
    """Z at rows, of which the last block is a trend, and prior variances."""
    return rng.normal(1.0, 1.0, (40, 6)), rng.uniform(0.5, 3.0, 6)


@pytest.fixture
def reversion(columns):
    Z, priors = columns
    levels = support_levels(block_energies(Z, BLOCKS), np.array([True, True, False]))
    return PriorReversion.learn(BLOCKS, levels, np.mean(Z**2, axis=0), priors)


def test_energies_are_sums_of_squares_by_block(columns):
    Z, _ = columns
    expected = [np.sum(Z[:, block == BLOCKS] ** 2, axis=1) for block in range(3)]
    assert_allclose(block_energies(Z, BLOCKS), np.transpose(expected))


def test_among_the_data_nothing_is_missing(columns, reversion):
    energies = block_energies(columns[0], BLOCKS)
    assert_allclose(reversion.missing(energies), 0.0, atol=1e-14)
    assert_allclose(reversion.support(energies), 1.0)


def test_without_atoms_the_prior_variance_of_local_blocks_comes_back(columns, reversion):
    Z, priors = columns
    far = np.array([[0.0, 0.0, 7.0]])
    expected = np.mean(Z[:, :5] ** 2, axis=0) @ priors[:5]  # without the trend
    assert_allclose(reversion.missing(far), expected)
    assert_array_equal(reversion.support(far), 0.0)


def test_the_missing_variance_is_linear_in_the_lacking_share(reversion):
    shares = np.array([[0.3, 1.0], [1.0, 0.2], [2.0, 0.5]])
    energies = np.column_stack([shares * reversion.levels[:2], np.ones(3)])
    lacking = np.maximum(1.0 - shares, 0.0)
    assert_allclose(reversion.missing(energies), lacking @ reversion.variances[:2])
    share = 1.0 - reversion.missing(energies) / reversion.variances.sum()
    assert_allclose(reversion.support(energies), share)


def test_blocks_that_miss_a_row_are_left_out(columns):
    Z, priors = columns
    Z = Z.copy()
    Z[3, :3] = 0.0
    levels = support_levels(block_energies(Z, BLOCKS), np.ones(3, dtype=bool))
    found = PriorReversion.learn(BLOCKS, levels, np.mean(Z**2, axis=0), priors)
    assert levels[0] == found.variances[0] == 0.0
    assert (levels[1:] > 0).all()
    none = PriorReversion.learn(BLOCKS, np.zeros(3), np.mean(Z**2, axis=0), priors)
    assert_array_equal(none.missing(np.zeros((2, 3))), 0.0)
    assert_array_equal(none.support(np.zeros((2, 3))), 1.0)
