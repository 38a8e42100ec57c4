"""Several feature maps side by side: a sum of kernels, each with its own θ and prior variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.base import FeatureMap, Fills


@dataclass(frozen=True)
class Stack(Fills):
    """z(x) = [z_1(x), …, z_B(x)]; itself a feature map."""

    maps: tuple[FeatureMap, ...]  # the blocks, in the order of their columns
    # for every block the cell of each of its columns, numbered from zero, if prior variances are
    # tied within cells and not within the whole block
    cells: tuple[Annotated[IntArray, "p"], ...] | None = None
    # A, if the maps are functions of Ax, shape (d, d)
    metric: Annotated[Array, "d d"] | None = None

    @property
    def n_features(self) -> int:
        return sum(part.n_features for part in self.maps)

    @property
    def blocks(self) -> IntArray:
        """The block of every column, shape (p,)."""
        return np.repeat(np.arange(len(self.maps)), [part.n_features for part in self.maps])

    @property
    def groups(self) -> IntArray:
        """The group of every column, shape (p,): its columns share one prior variance."""
        if self.cells is None:
            return self.blocks
        starts = np.cumsum([0, *(int(cells.max()) + 1 for cells in self.cells[:-1])])
        return np.concatenate([a + cells for a, cells in zip(starts, self.cells, strict=True)])

    @property
    def parents(self) -> IntArray:
        """The block of every group, shape (G,)."""
        if self.cells is None:
            return np.arange(len(self.maps))
        return np.repeat(np.arange(len(self.maps)), [int(c.max()) + 1 for c in self.cells])

    @property
    def local(self) -> bool:
        return any(part.local for part in self.maps)

    @property
    def local_blocks(self) -> Array:
        """Whether each block is local, shape (B,)."""
        return np.array([part.local for part in self.maps])

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

    def coordinates(self, X: Array) -> Array:
        """Ax of rows, or x without a metric: what the maps are functions of."""
        return X if self.metric is None else np.ascontiguousarray(X @ self.metric.T)

    def into(self, X: FloatArray, out: FloatArray) -> None:
        X, first = self.coordinates(np.asarray(X, dtype=np.float64)), 0
        for part in self.maps:
            part.into(X, out[:, first : first + part.n_features])
            first += part.n_features

    def pull_back(self, X: Array, R: Array) -> Array:
        X = self.coordinates(X)
        parts = self._split(R, [part.n_features for part in self.maps])
        return np.concatenate([p.pull_back(X, r) for p, r in zip(self.maps, parts, strict=True)])

    @staticmethod
    def _split(values: Array, sizes: Sequence[int]) -> list[Array]:
        return np.split(values, np.cumsum(sizes)[:-1], axis=-1)
