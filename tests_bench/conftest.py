"""What the tests of the baselines on torch share: a generator, and rows of a known function."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20261116)


@pytest.fixture
def surface(rng):
    """Waves over two columns of very different units, in noise of known size: X, y, f."""
    X = rng.uniform([3, -800], [7, 200], (500, 2))
    f = 40 + 10 * np.sin(2 * X[:, 0]) + 8 * np.cos(X[:, 1] / 120)
    return X, f + rng.normal(0, 1.0, 500), f
