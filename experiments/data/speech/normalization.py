r"""CMVN: cepstral, here spectral, mean and variance normalisation, from training rows.

.. math:: \tilde L_{tb} = (L_{tb} - \mu_b) / \sigma_b

with the mean and standard deviation of band b over all training frames, or over those of one
speaker. Statistics of the recording itself would not do: the mean over its time is what they take
away, and every row would be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.data.speech.sums import FrameSums
from rwf._types import Array, IntArray


@dataclass(frozen=True)
class Normalization:
    """μ and σ, each of shape (n, 80), a row per recording, or (1, 80) for all of them."""

    mean: Array
    deviation: Array

    def levels(self, sums: FrameSums) -> Array:
        """Time-averages above the mean, in dB, shape (n, 80)."""
        return sums.means - self.mean

    def features(self, sums: FrameSums) -> Array:
        """Time-averages of normalised frames, shape (n, 80)."""
        return self.levels(sums) / self.deviation


def by_everyone(sums: FrameSums, train: IntArray) -> Normalization:
    """The same statistics for all recordings: those of all training frames."""
    mean, deviation = sums.moments(train)
    return Normalization(mean[None, :], _positive(deviation)[None, :])


def by_speaker(sums: FrameSums, train: IntArray, speakers: Sequence[str]) -> Normalization:
    """For every recording the statistics of its speaker's training frames."""
    names = np.array(speakers)
    mean, deviation = np.empty_like(sums.sums), np.empty_like(sums.sums)
    for speaker in np.unique(names):
        own = train[names[train] == speaker]
        if not len(own):
            raise ValueError(
                f"speaker {speaker} has no training recording to be normalised by: split within "
                "speakers, or normalise by everyone."
            )
        mean[names == speaker], deviation[names == speaker] = sums.moments(own)
    return Normalization(mean, _positive(deviation))


def _positive(deviation: Array) -> Array:
    """A band that does not vary by more than rounding is left in dB."""
    return np.where(deviation > 1e-4, deviation, 1.0)
