"""Wavelet thresholding as its papers define it."""

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose, assert_array_equal

from experiments.baselines.shrinkage import (
    Shrinkage,
    n_levels,
    noise_deviation,
    translation_invariant,
    visushrink,
)
from experiments.runner.methods import make
from experiments.runner.run import Run, measure
from rwf.datasets import blocks

WAVELETS = pytest.mark.parametrize("wavelet", ["haar", "sym8"])


@WAVELETS
@pytest.mark.parametrize("rule", [visushrink, translation_invariant])
@pytest.mark.parametrize("n", [64, 101])
def test_without_a_threshold_nothing_changes(rng, wavelet, rule, n):
    y = rng.normal(3.0, 2.0, n)
    assert_allclose(rule(y, wavelet, 0.0), y, rtol=1e-9)


@WAVELETS
def test_translation_invariant_is_the_average_over_shifts(rng, wavelet):
    y, levels, threshold = rng.normal(3.0, 2.0, 64), n_levels(64), 2.5
    periodic = np.concatenate([y[:32][::-1], y, y[32:][::-1]])

    def shifted(shift):
        coarse, *details = pywt.wavedec(np.roll(periodic, shift), wavelet, "periodization", levels)
        kept = [pywt.threshold(d, threshold, "hard") for d in details]
        return np.roll(pywt.waverec([coarse, *kept], wavelet, "periodization"), -shift)

    average = np.mean([shifted(shift) for shift in range(2**levels)], axis=0)
    assert_allclose(translation_invariant(y, wavelet, threshold), average[32:96], rtol=1e-9)
    assert not np.allclose(shifted(0), average)


@WAVELETS
def test_soft_thresholding_of_a_constant_in_noise_leaves_almost_the_constant(rng, wavelet):
    y = 3 + 0.5 * rng.standard_normal(4096)
    sigma = noise_deviation(y, wavelet)
    assert abs(sigma / 0.5 - 1) < 5 * 1.17 / np.sqrt(2048)  # of a median size of 2048 normals
    estimate = visushrink(y, wavelet, sigma * np.sqrt(2 * np.log(4096)))
    assert np.sqrt(np.mean((estimate - 3) ** 2)) < 0.5 * 1.5 * np.sqrt(64 / 4096)  # 64 stay


def test_the_noise_is_not_fooled_by_jumps():
    x = np.arange(1, 2049) / 2048
    y = 20 * blocks(x) + np.random.default_rng(5).standard_normal(2048)
    assert abs(noise_deviation(y, "haar") - 1) < 5 * 1.17 / np.sqrt(1024)


@pytest.mark.parametrize(
    "task, method, low, high",
    [
        ("blocks", "ti-haar", 0.15, 0.18),
        ("blocks", "visushrink-haar", 0.6, 0.72),
        ("doppler", "ti-sym8", 0.21, 0.26),
        ("doppler-irregular", "ti-sym8", 0.38, 0.47),
        ("heavisine", "ti-sym8", 0.17, 0.23),
    ],
)
def test_errors_of_thresholding_are_those_that_are_known(task, method, low, high):
    errors = [measure(Run(task, method, split))["rmse_f"] for split in range(3)]
    assert low < np.mean(errors) < high


def test_rows_may_come_in_any_order_and_repeat(rng):
    x, y = np.sort(rng.uniform(5, 9, 100)), rng.normal(3.0, 2.0, 100)
    order = rng.permutation(120) % 100  # twenty of them twice
    once = Shrinkage(translation_invariant, "haar").fit(x[:, None], y)
    again = Shrinkage(translation_invariant, "haar").fit(x[order][:, None], y[order])
    at = rng.uniform(4, 10, (30, 1))
    assert_allclose(once.predict(at), again.predict(at))
    assert_array_equal(once.predict(x[:, None])[0], once._estimate)
    assert once.facts()["n_points"] == 100


GRID = np.stack(np.meshgrid(np.arange(30.0), 5 + 2 * np.arange(25.0)), axis=-1).reshape(-1, 2)


def test_thresholding_of_fields_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"X has 2 columns\. Give it one"):
        make("ti-haar", {}, 0).fit(GRID, GRID[:, 0])
