"""Calibration by standardised leave-one-out errors: one factor of the variances, and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rwf.uncertainty.calibration import ENOUGH_SCORES, Calibration


def test_the_factor_brings_the_mean_square_of_scores_to_one(rng):
    scores = rng.uniform(-1.0, 1.0, (400, 2)) * [5.0, 7.0]
    calibration = Calibration(scores)
    assert_allclose(calibration.inflation, np.mean(scores**2, axis=0))
    again = Calibration(scores / np.sqrt(calibration.inflation))
    assert_allclose(again.inflation, 1.0)


def test_the_factor_brings_95_percent_of_scores_into_95_percent_intervals():
    scores = np.where(np.arange(100) < 10, 4.0, 0.1)[:, None]  # heavy tails, small mean square
    calibration = Calibration(scores)
    assert_allclose(calibration.inflation, (4.0 / norm.ppf(0.975)) ** 2)
    assert calibration.inflation > np.mean(scores**2)


@pytest.mark.parametrize("size", [0.01, 0.5, 1.0])
def test_variances_are_never_reduced(size):
    assert_array_equal(Calibration(np.full((200, 3), size)).inflation, 1.0)


def test_few_scores_do_not_calibrate():
    few, enough = (Calibration(np.full((n, 1), 3.0)) for n in (ENOUGH_SCORES - 1, ENOUGH_SCORES))
    assert_array_equal(few.inflation, 1.0)
    assert_allclose(enough.inflation, 9.0)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_the_reach_is_the_split_conformal_quantile(coverage, rng):
    scores = rng.standard_t(3, (199, 2)) * [1.0, 3.0]
    calibration = Calibration(scores)
    rank = int(np.ceil(200 * coverage))
    sizes = np.sort(np.abs(scores), axis=0) / np.sqrt(calibration.inflation)
    reach = calibration.reach(coverage)
    assert_allclose(reach, sizes[rank - 1])


def test_the_reach_covers_new_scores_of_any_distribution(rng):
    coverage, inside = 0.9, []
    for _ in range(400):
        scores = rng.standard_t(2, (60, 1))
        calibration = Calibration(scores[:50])
        reach = calibration.reach(coverage) * np.sqrt(calibration.inflation)
        inside.append(np.mean(np.abs(scores[50:]) <= reach))
    assert np.mean(inside) > coverage - 5 * np.std(inside) / np.sqrt(400)
    assert np.mean(inside) < coverage + 2 / 51 + 5 * np.std(inside) / np.sqrt(400)


def test_the_reach_of_few_scores_is_their_largest():
    assert_allclose(Calibration(np.array([[1.0], [-2.5], [0.3]])).reach(0.95), 2.5)
