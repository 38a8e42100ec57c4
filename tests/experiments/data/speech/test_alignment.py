"""Recordings that lost a byte."""

import numpy as np

from experiments.data.speech.alignment import is_misaligned


def test_a_lost_byte_is_noticed(rng):
    t = np.arange(8000)
    speech = np.round(800 * np.sin(t / 9) * np.exp(-(((t - 4000) / 2000) ** 2)))
    speech += rng.integers(-5, 6, 8000)
    content = speech.astype("<i2").tobytes()
    shifted = content[:5001] + content[5002:9000] + content[9001:]  # two bytes: an even number
    assert not is_misaligned(speech)
    assert is_misaligned(np.frombuffer(shifted, "<i2").astype(float))
    assert not is_misaligned(np.zeros(8000))
    assert not is_misaligned(speech[:10])
