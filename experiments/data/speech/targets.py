r"""What is to be predicted from the time-averaged bands, and which bands are hidden for that.

The paper's targets are "the mean energy of a chosen Mel band" and "the mean of a PCA component of
the spectrogram", while its inputs are the time-averages of all bands. The first is then one of the
inputs. The second is a linear function of them, whatever the component v is, because averaging over
time is linear: the mean of :math:`v^\top L_t` is :math:`v^\top \bar L`. Here the bands of which a
target is made are not among its inputs, and components are those of a group of bands.

Targets are not divided by a standard deviation, so that they are in dB, for every split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from experiments.data.speech.mel import N_BANDS
from experiments.data.speech.sums import GROUP
from rwf._types import Array, IntArray


class Target(Protocol):
    """A linear function of time-averaged bands that inputs do not have."""

    @property
    def hidden(self) -> IntArray:
        """The bands it is made of, counted from zero."""

    def __call__(self, levels: Array, covariance: Array) -> Array:
        """The target, shape (n,), in dB.

        Args:
            levels: time-averaged bands, centred by training statistics, shape (n, 80).
            covariance: of the training frames' bands in the group, shape (16, 16).
        """


@dataclass(eq=False)
class MelBin:
    """``mel_bin_k_mean``: the mean log-energy of band k.

    k is 40 in all tasks: the middle band, at 1.8 kHz, where the second formant of front vowels
    goes, with neighbours on both sides.
    """

    k: int = N_BANDS // 2

    @property
    def hidden(self) -> IntArray:
        return np.array([self.k])

    def __call__(self, levels: Array, covariance: Array) -> Array:
        band: Array = levels[:, self.k]
        return band


@dataclass(eq=False)
class MelPCA:
    """``mel_pca_k``: the mean of principal component k of the hidden group's frames.

    The group is the middle fifth of the bands, all of which are hidden, so that a gap in the
    spectrum is to be filled. Components are those of training frames, and counted from zero; k is
    0 in all tasks, the one of most variance, which is well apart from the next and thus the same
    in all splits. Its sign makes louder groups higher.
    """

    k: int = 0

    @property
    def hidden(self) -> IntArray:
        return np.arange(N_BANDS)[GROUP]

    def __call__(self, levels: Array, covariance: Array) -> Array:
        _, vectors = np.linalg.eigh(covariance)  # in ascending order
        v = vectors[:, -1 - self.k]
        component: Array = levels[:, GROUP] @ (v if v.sum() > 0 else -v)
        return component
