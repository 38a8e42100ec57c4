"""Several feature maps side by side: a sum of kernels, each with its own θ and prior variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from rwf.features.base import FeatureMap
from rwf.types import Array, FloatArray, IntArray


@dataclass(frozen=True)
class Stack:
    """z(x) = [z_1(x), …, z_B(x)]; itself a feature map.

    Args:
        maps: the blocks, in the order of their columns.
    """

    maps: tuple[FeatureMap, ...]

    @property
    def n_features(self) -> int:
        return sum(part.n_features for part in self.maps)

    @property
    def groups(self) -> IntArray:
        """The block of every column, shape (p,): columns of a block share one prior variance."""
        return np.repeat(np.arange(len(self.maps)), [part.n_features for part in self.maps])

    @property
    def theta(self) -> Array:
        return np.concatenate([part.theta for part in self.maps])

    @property
    def length_mask(self) -> Array:
        """Which entries of θ are logarithms of length-scales."""
        return np.concatenate([np.arange(len(part.theta)) < part.n_lengths for part in self.maps])

    @property
    def bounds(self) -> Array:
        return np.concatenate([part.bounds for part in self.maps])

    def with_theta(self, theta: Array) -> Self:
        parts = self._split(theta, [len(part.theta) for part in self.maps])
        return replace(
            self, maps=tuple(p.with_theta(t) for p, t in zip(self.maps, parts, strict=True))
        )

    def __call__(self, X: FloatArray) -> FloatArray:
        return cast(FloatArray, np.hstack([part(X) for part in self.maps]))

    def pull_back(self, X: Array, R: Array) -> Array:
        parts = self._split(R, [part.n_features for part in self.maps])
        return np.concatenate([p.pull_back(X, r) for p, r in zip(self.maps, parts, strict=True)])

    @staticmethod
    def _split(values: Array, sizes: Sequence[int]) -> list[Array]:
        return np.split(values, np.cumsum(sizes)[:-1], axis=-1)
