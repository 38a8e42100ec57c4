"""Targets from time-averaged bands."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data.speech.targets import MelBin, MelPCA


def test_a_bin_is_its_band_and_a_component_that_of_the_group(rng):
    levels = rng.normal(3.0, 2.0, (30, 80))
    frames = rng.normal(size=(500, 16)) @ rng.normal(size=(16, 16)) + 5
    covariance = np.cov(frames.T, bias=True)
    assert_array_equal(MelBin().hidden, [40])
    assert_allclose(MelBin()(levels, covariance), levels[:, 40])
    assert_array_equal(MelPCA().hidden, np.arange(32, 48))
    _, _, V = np.linalg.svd(frames - frames.mean(0))
    for k in (0, 1):
        v = V[k] * np.sign(V[k].sum())
        assert_allclose(MelPCA(k)(levels, covariance), levels[:, 32:48] @ v, atol=1e-9)
