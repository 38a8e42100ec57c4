"""Fixed atoms: every one has its own scale, place and direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.atoms import Atoms
from rwf.features.base import Shapeless
from rwf.features.wavelet import WaveletFeatures
from rwf.wavelets import Wavelet


@dataclass(frozen=True)
class LocalAtoms(Shapeless):
    """z(x) of placed atoms, without shape parameters."""

    local: ClassVar[bool] = True

    wavelet: Wavelet  # ψ
    scales: Annotated[Array, "m"]  # s, shape (m,)
    shifts: Annotated[Array, "m d"]  # t, shape (m, d)
    directions: Annotated[Array, "m d"]  # unit vectors e, shape (m, d); used by oriented wavelets

    @classmethod
    def of_scale(cls, wavelet: Wavelet, scale: float, shifts: Array) -> Self:
        """Atoms of one scale, all in the direction of the diagonal."""
        m, d = shifts.shape
        return cls(wavelet, np.full(m, scale), shifts, np.full((m, d), d**-0.5))

    @property
    def n_atoms(self) -> int:
        return len(self.scales)

    @property
    def n_features(self) -> int:
        return self.wavelet.columns * self.n_atoms

    @property
    def widths(self) -> Array:
        return np.repeat(self.scales[:, None], self.shifts.shape[1], axis=1)

    @property
    def factors(self) -> Array:
        return self._features.factors

    @cached_property
    def _features(self) -> WaveletFeatures:
        d = self.shifts.shape[1]
        # In the terms of a scale range: s = exp(v - ½), with a middle and a log-width of one.
        atoms = Atoms(np.log(self.scales) + 0.5, self.shifts, 1.0, np.zeros(d), 0.0, ard=False)
        return WaveletFeatures(self.wavelet, atoms, self.directions)

    def into(self, X: FloatArray, out: FloatArray) -> None:
        self._features.into(X, out)

    def take(self, which: IntArray) -> Self:
        """Some of the atoms."""
        return replace(
            self,
            scales=self.scales[which],
            shifts=self.shifts[which],
            directions=self.directions[which],
        )

    def joined(self, other: LocalAtoms) -> LocalAtoms:
        """These atoms and others of the same wavelet."""
        return LocalAtoms(
            self.wavelet,
            np.concatenate([self.scales, other.scales]),
            np.concatenate([self.shifts, other.shifts]),
            np.concatenate([self.directions, other.directions]),
        )

    def cells(self, width: float) -> IntArray:
        """The cell of every column, on a grid of cells ``width`` scales wide."""
        size = width * float(np.median(self.scales))
        place = np.floor((self.shifts - self.shifts.min(axis=0)) / size).astype(np.intp)
        labels = np.unique(place, axis=0, return_inverse=True)[1].ravel().astype(np.intp)
        return np.tile(labels, self.wavelet.columns)
