r"""Log-mel spectrograms: 80 energies for every 10 ms of a recording, in decibels.

Samples are pre-emphasised, :math:`x_t - 0.97\, x_{t-1}`, and cut into Hamming windows of 25 ms,
every 10 ms. Triangles that are equally wide in mel, 2595 log₁₀(1 + f/700), weigh the power spectra.

Eighty triangles on [0, 8 kHz] begin with a base of 44 Hz. The usual 512-point transform has a bin
each 31 Hz, so that some of the lowest triangles would hold no bin, or the same one as their
neighbours. Windows are padded with zeros to 2048 points instead, a bin each 8 Hz: that interpolates
the spectrum, every triangle has at least five bins, and no two bands are the same.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import rfft

from experiments.data.speech.audio import RATE
from rwf._types import Array

PRE_EMPHASIS = 0.97
WINDOW = RATE * 25 // 1000
HOP = RATE * 10 // 1000
"""Samples in a window, and from one to the next."""

N_POINTS = 2048
N_BANDS = 80

FLOOR = 1 / 12
"""The variance of rounding to 16 bits, below which an energy is no sound."""


def log_mel(samples: Array) -> Array:
    """Mean power in each band, in dB over one step of the samples, shape (frames, 80).

    White noise of variance v has v in all bands, but for pre-emphasis. Only whole windows count,
    and there must be one.
    """
    emphasised = np.append(samples[:1], samples[1:] - PRE_EMPHASIS * samples[:-1])
    window = np.hamming(WINDOW)
    frames = sliding_window_view(emphasised, WINDOW)[::HOP] * window
    spectra = rfft(frames, N_POINTS, axis=1)
    power = (spectra.real**2 + spectra.imag**2) / (window @ window)
    decibels: Array = 10 * np.log10(np.maximum(power @ triangles(), FLOOR))
    return decibels


@cache
def triangles() -> Array:
    """The weights of bins in bands, shape (1025, 80); those of a band sum to one."""
    f = np.arange(N_POINTS // 2 + 1)[:, None] * (RATE / N_POINTS)
    low, middle, high = (corners()[k : k + N_BANDS] for k in range(3))
    heights = np.minimum((f - low) / (middle - low), (high - f) / (high - middle))
    weights = np.maximum(heights, 0)
    normalised: Array = weights / weights.sum(axis=0)
    return normalised


def corners() -> Array:
    """Where triangles begin, peak and end, in Hz: triangle b at corners b, b + 1 and b + 2."""
    highest = 2595 * np.log10(1 + RATE / 2 / 700)
    mels = np.linspace(0, highest, N_BANDS + 2)
    hertz: Array = 700 * (10 ** (mels / 2595) - 1)
    return hertz
