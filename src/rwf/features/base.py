r"""The protocol of feature maps.

A map turns rows X, shape (n, d), into features Z, shape (n, p), and pulls a gradient with respect
to Z back to its own shape parameters θ. Inference uses nothing else, so wavelets, ridges and
Fourier features are interchangeable. Maps are frozen: a new θ gives a new map with the same base
draws.

Z is written into columns of a buffer that is used for block after block of rows: new memory would
cost more than the features, because the system has to clear it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, cast, runtime_checkable

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
