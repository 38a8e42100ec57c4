r"""The protocol of feature maps, and the maps that every model has: a trend, and a stack.

A map turns rows X, shape (n, d), into features Z, shape (n, p), and pulls a gradient with respect
to Z back to its own shape parameters θ. Inference uses nothing else, so wavelets, ridges and
Fourier features are interchangeable. Maps are frozen: a new θ gives a new map with the same base
draws.

Z is written into columns of a buffer that is used for block after block of rows: new memory would
cost more than the features, because the system has to clear it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Protocol, Self, cast, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rwf._types import Array, FloatArray, IntArray
from rwf.wavelets import Wavelet

LOG_LENGTH_BOUNDS = (-12.0, 9.0)  # for inputs of unit spread: from rounding errors to flat


class Features(Protocol):
    """What turns rows into Z: all that accumulating moments needs of a feature map."""

    @property
    def n_features(self) -> int:
        """p, the number of columns."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Z, shape (n, p), in the precision of X."""

    def into(self, X: FloatArray, out: FloatArray) -> None:
        """Write Z into ``out``, in its precision; its rows may stand apart, their entries not."""


class FeatureMap(Features, Protocol):
    """x ↦ z(x), with shape parameters θ on a log scale, of which the first are lengths."""

    @property
    def theta(self) -> Array:
        """θ, logarithms of the shape parameters."""

    @property
    def n_lengths(self) -> int:
        """How many leading entries of θ are logarithms of length-scales."""

    @property
    def local(self) -> bool:
        """Whether columns vanish far from their atoms, and the prior's variance with them."""

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of each entry of θ, shape (len(θ), 2)."""

    def with_theta(self, theta: Array) -> Self:
        """The same base draws with other shape parameters."""

    def pull_back(self, X: Array, R: Array) -> Array:
        r"""Σ R_nj ∂Z_nj/∂θ for a gradient R with respect to Z, shape (n, p)."""


class Fills:
    """A map that defines ``into`` or the call; the other follows from it."""

    def __call__(self: Features, X: FloatArray) -> FloatArray:
        """Z, shape (n, p), in the precision of X."""
        Z = np.empty((len(X), self.n_features), dtype=X.dtype)
        self.into(X, Z)
        return Z

    def into(self: Features, X: FloatArray, out: FloatArray) -> None:
        """Write Z into ``out``, in its precision."""
        out[:] = self(X)


class Shapeless(Fills):
    """What feature maps without shape parameters have in common."""

    n_lengths: ClassVar[int] = 0
    local: ClassVar[bool] = False

    @property
    def theta(self) -> Array:
        return np.empty(0)

    @property
    def bounds(self) -> Array:
        return np.empty((0, 2))

    def with_theta(self, theta: Array) -> Self:
        return self

    def pull_back(self, X: Array, R: Array) -> Array:
        return np.empty(0)


@runtime_checkable
class AtomMap(FeatureMap, Protocol):
    """A map whose columns belong to atoms, of which some can be taken.

    Column j belongs to atom j modulo m, and is :math:`m^{-1/2}` times a function of that atom.
    """

    @property
    def n_atoms(self) -> int:
        """m, the number of atoms."""

    def take(self, which: IntArray) -> Self:
        """Some of the atoms."""


@runtime_checkable
class PlacedMap(AtomMap, Protocol):
    """A map of atoms with places and widths, in standardised units."""

    @property
    def widths(self) -> Array:
        """The width of every atom in every column of X, shape (m, d)."""

    @property
    def shifts(self) -> Array:
        """t, shape (m, d)."""


@runtime_checkable
class WaveletMap(PlacedMap, Protocol):
    """A map of atoms that are one wavelet, shifted, stretched and multiplied."""

    @property
    def wavelet(self) -> Wavelet: ...

    @property
    def factors(self) -> Array:
        """What the wavelet is multiplied by, shape (m,)."""


class Family(Protocol):
    """A kind of features before any atom is drawn.

    ``sized`` families take a share of the requested columns; a trend has as many as it needs.
    ``start_log_prior`` is the initial log prior variance.
    """

    @property
    def sized(self) -> bool: ...

    @property
    def start_log_prior(self) -> float: ...

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> FeatureMap:
        """A map with about ``n_features`` columns, placed on the rows X."""


@dataclass(frozen=True)
class ConstantFeatures(Shapeless):
    """z(x) = 1."""

    n_features: int = 1

    def into(self, X: FloatArray, out: FloatArray) -> None:
        out[:] = 1.0


@dataclass(frozen=True)
class LinearFeatures(Shapeless):
    """z(x) = x/√d, so that E‖z‖² = 1 for standardised columns."""

    n_features: int

    def into(self, X: FloatArray, out: FloatArray) -> None:
        out[:] = X / np.sqrt(self.n_features)


@dataclass(frozen=True)
class ConstantFamily:
    """The constant column."""

    sized: ClassVar[bool] = False
    start_log_prior: ClassVar[float] = 0.0

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> ConstantFeatures:
        return ConstantFeatures()


@dataclass(frozen=True)
class LinearFamily:
    """One column per input."""

    sized: ClassVar[bool] = False
    start_log_prior: ClassVar[float] = -2.0

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> LinearFeatures:
        return LinearFeatures(X.shape[1])


@dataclass(frozen=True)
class Stack(Fills):
    """z(x) = [z_1(x), …, z_B(x)]: a sum of kernels, each with its own θ and prior variance."""

    maps: tuple[FeatureMap, ...]  # the blocks, in the order of their columns
    # for every block the cell of each of its columns, numbered from zero, if prior variances are
    # tied within cells and not within the whole block
    cells: tuple[Annotated[IntArray, "p"], ...] | None = None
    metric: Annotated[Array, "d d"] | None = None  # A, if the maps are functions of Ax

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


def memory(rows: FloatArray) -> tuple[FloatArray, int]:
    """The memory of a matrix from its first entry to its last, and how far apart its rows are."""
    n, m = rows.shape
    if rows.size == 0:
        return rows.reshape(0), m
    assert m == 1 or rows.strides[1] == rows.itemsize
    stride = rows.strides[0] // rows.itemsize if n > 1 else m
    flat = as_strided(rows, ((n - 1) * stride + m,), (rows.itemsize,))
    return cast(FloatArray, flat), int(stride)


def row_chunks(n: int, columns: int) -> Iterator[slice]:
    """Slices of rows whose blocks of ``columns`` doubles stay in a core's cache."""
    size = max(16, 2**17 // max(columns, 1))
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
