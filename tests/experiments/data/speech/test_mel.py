"""Log-mel spectrograms against their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data.speech.mel import corners, log_mel, triangles


@pytest.fixture
def samples(rng):
    """Integers of both signs and all sizes, whose bytes differ."""
    return np.concatenate([rng.integers(-32768, 32768, 900), [-32768, 32767, 1, -2, 256]])


def by_definition(samples):
    """The same spectrogram, an energy at a time."""
    x = [samples[0]]
    for t in range(1, len(samples)):
        x.append(samples[t] - 0.97 * samples[t - 1])
    window = [0.54 - 0.46 * np.cos(2 * np.pi * t / 399) for t in range(400)]
    hertz = [k * 16_000 / 2048 for k in range(1025)]
    wave_table = np.exp(-2j * np.pi * np.outer(range(1025), range(400)) / 2048)
    corner = [
        700 * (10 ** (b * 2595 * np.log10(1 + 8000 / 700) / 81 / 2595) - 1) for b in range(82)
    ]
    rows = []
    for start in range(0, len(samples) - 399, 160):
        frame = [window[t] * x[start + t] for t in range(400)]
        power = np.abs(wave_table @ frame) ** 2 / sum(w * w for w in window)
        row = []
        for b in range(80):
            total = weights = 0.0
            for f, p in zip(hertz, power, strict=True):
                if corner[b] < f <= corner[b + 1]:
                    weight = (f - corner[b]) / (corner[b + 1] - corner[b])
                elif corner[b + 1] < f < corner[b + 2]:
                    weight = (corner[b + 2] - f) / (corner[b + 2] - corner[b + 1])
                else:
                    continue
                total, weights = total + weight * p, weights + weight
            row.append(10 * np.log10(max(total / weights, 1 / 12)))
        rows.append(row)
    return np.array(rows)


def test_spectrograms_are_their_definition(rng):
    t = np.arange(1000) / 16_000
    samples = 900 * np.sin(2 * np.pi * (300 + 20_000 * t) * t) + rng.normal(3.0, 40.0, 1000)
    samples[600:] *= np.linspace(1, 0, 400) ** 4  # quiet, so that decibels of all sizes occur
    expected = by_definition(samples)
    assert expected.shape == (4, 80)
    assert np.ptp(expected) > 30
    assert_allclose(log_mel(samples), expected, atol=1e-9)


def test_silence_is_the_rounding_of_sixteen_bits():
    assert_allclose(log_mel(np.zeros(560)), np.full((2, 80), 10 * np.log10(1 / 12)))


def test_no_band_is_empty_and_no_two_are_the_same():
    weights = triangles()
    assert weights.shape == (1025, 80)
    assert_allclose(weights.sum(axis=0), 1)
    assert np.sum(weights > 0, axis=0).min() >= 5
    assert np.linalg.matrix_rank(weights) == 80
    assert_allclose(corners()[[0, 41, 81]], [0, 1806.48, 8000], atol=0.01)


@pytest.mark.parametrize("band", [3, 40, 76])
def test_a_tone_is_in_its_band(band):
    t = np.arange(4000) / 16_000
    frames = log_mel(2000 * np.sin(2 * np.pi * corners()[band + 1] * t))
    assert_array_equal(frames.argmax(axis=1), band)
