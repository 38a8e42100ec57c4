"""Sums over frames, and CMVN from training rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.data.speech.mel import log_mel
from experiments.data.speech.normalization import by_everyone, by_speaker
from experiments.data.speech.sums import GROUP, frame_sums, together
from harness import vowel


@pytest.fixture
def spectrograms(rng):
    """Frames of six recordings of different lengths, each band with its own level and spread."""
    level, spread = rng.normal(30, 8, 80), rng.uniform(2, 6, 80)
    return [rng.normal(level + rng.normal(0, 3), spread, (n, 80)) for n in (9, 4, 12, 7, 20, 5)]


def test_features_are_the_time_averages_of_normalised_frames(spectrograms):
    train = np.array([0, 2, 3])
    sums = together([frame_sums(L) for L in spectrograms])
    frames = np.concatenate([spectrograms[k] for k in train])
    expected = [((L - frames.mean(0)) / frames.std(0)).mean(0) for L in spectrograms]
    assert_allclose(by_everyone(sums, train).features(sums), expected, atol=1e-10)
    levels = [(L - frames.mean(0)).mean(0) for L in spectrograms]
    assert_allclose(by_everyone(sums, train).levels(sums), levels, atol=1e-10)
    assert_allclose(sums.covariance(train), np.cov(frames[:, GROUP].T, bias=True), atol=1e-9)


def test_by_speaker_only_the_training_frames_of_the_speaker_count(spectrograms):
    train, speakers = np.array([0, 2, 3]), list("abaaba")
    sums = together([frame_sums(L) for L in spectrograms])
    with pytest.raises(ValueError, match=r"speaker b has no training .* normalise by everyone"):
        by_speaker(sums, train, speakers)
    train = np.array([0, 4, 3])
    features = by_speaker(sums, train, speakers).features(sums)
    a = np.concatenate([spectrograms[0], spectrograms[3]])
    assert_allclose(features[5], ((spectrograms[5] - a.mean(0)) / a.std(0)).mean(0), atol=1e-10)
    b = spectrograms[4]
    assert_allclose(features[1], ((spectrograms[1] - b.mean(0)) / b.std(0)).mean(0), atol=1e-10)


def test_normalised_by_itself_a_recording_has_no_average_left(rng):
    L = log_mel(vowel(rng, 120.0))
    assert_allclose(((L - L.mean(0)) / L.std(0)).mean(0), 0, atol=1e-12)
    sums = frame_sums(L)
    assert_allclose(by_everyone(sums, np.array([0])).features(sums), 0, atol=1e-12)


def test_a_band_that_does_not_vary_is_not_divided_by_zero(spectrograms):
    for L in spectrograms:
        L[:, 79] = 10 * np.log10(1 / 12)
    sums = together([frame_sums(L) for L in spectrograms])
    features = by_everyone(sums, np.arange(6)).features(sums)
    assert_allclose(features[:, 79], 0, atol=1e-9)
