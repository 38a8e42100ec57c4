"""Sums over the frames of recordings, which is all that normalising and averaging need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rwf._types import Array, IntArray

GROUP = slice(32, 48)
"""The middle fifth of the bands, 1.2 to 2.5 kHz, whose principal components are a target."""


@dataclass(frozen=True)
class FrameSums:
    """One entry per recording.

    Args:
        counts: frames, shape (n,).
        sums: of the frames, shape (n, 80).
        squares: of their squares, shape (n, 80).
        products: of the products of bands in :data:`GROUP`, shape (n, 16, 16); those of all bands
            would take a quarter of a gigabyte for TIMIT.
    """

    counts: Array
    sums: Array
    squares: Array
    products: Array

    @cached_property
    def means(self) -> Array:
        """The average over time, shape (n, 80)."""
        return self.sums / self.counts[:, None]

    def moments(self, rows: IntArray) -> tuple[Array, Array]:
        """Mean and standard deviation of all frames of these recordings, each of shape (80,)."""
        n = self.counts[rows].sum()
        mean = self.sums[rows].sum(axis=0) / n
        variance = self.squares[rows].sum(axis=0) / n - mean**2
        return mean, np.sqrt(np.maximum(variance, 0))  # rounding, for a band that does not vary

    def covariance(self, rows: IntArray) -> Array:
        """The covariance of the bands in :data:`GROUP` over these frames, shape (16, 16)."""
        n = self.counts[rows].sum()
        mean = self.sums[rows, GROUP].sum(axis=0) / n
        covariance: Array = self.products[rows].sum(axis=0) / n - np.outer(mean, mean)
        return covariance


def frame_sums(spectrogram: Array) -> FrameSums:
    """The sums of one recording, of shape (frames, 80)."""
    group = spectrogram[:, GROUP]
    return FrameSums(
        counts=np.array([float(len(spectrogram))]),
        sums=spectrogram.sum(axis=0)[None],
        squares=(spectrogram**2).sum(axis=0)[None],
        products=(group.T @ group)[None],
    )


def together(parts: Sequence[FrameSums]) -> FrameSums:
    """The recordings of all parts, one after the other."""
    return FrameSums(
        *(
            np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(FrameSums)
        )
    )
