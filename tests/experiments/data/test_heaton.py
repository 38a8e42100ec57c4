"""The simulated field of the contest has the covariance that kriging is told."""

import numpy as np
import pytest

from experiments.data.heaton import DEVIATION, LENGTH, exponential_field


def test_draws_have_an_exponential_covariance():
    east, north = np.meshgrid(np.linspace(0, 1, 60), np.linspace(5, 6, 40))
    X = np.column_stack([east.ravel(), north.ravel()])
    rng = np.random.default_rng(0)
    draws = np.stack([exponential_field(X, rng).reshape(40, 60) for _ in range(400)])
    assert np.mean(draws**2) == pytest.approx(DEVIATION**2, rel=0.1)
    for lag in (5, 20):
        along = np.mean(draws[:, :, lag:] * draws[:, :, :-lag])
        across = np.mean(draws[:, lag:] * draws[:, :-lag])
        wanted = DEVIATION**2 * np.exp(-lag / LENGTH)
        assert along == pytest.approx(wanted, rel=0.15)
        assert across == pytest.approx(wanted, rel=0.15)
