"""Rows of arrays, which may be memory maps: they are read and converted in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rwf._types import Array
from rwf.data.readers.base import SPACED_ROWS, Reader, RowLayout, checked, digest, piece_rows
from rwf.data.rows import Block


@dataclass(frozen=True)
class ArrayReader(Reader):
    """Rows of arrays of any numbers."""

    X: NDArray[np.generic]  # shape (n, d)
    y: NDArray[np.generic]  # shape (n,) or (n, k); (n, 0) if there are no targets
    weights: Array | None = None  # how many times each row counts, shape (n,)

    @property
    def layout(self) -> RowLayout:
        single = self.y.ndim == 1
        return RowLayout(self.X.shape[1], 1 if single else self.y.shape[1], single)

    @property
    def n_rows(self) -> int:
        return len(self.X)

    def read(self, start: int = 0) -> Iterator[Block]:
        size = piece_rows(self.n_inputs + self.n_outputs + 1)
        for first in range(start, len(self.X), size):
            yield self._piece(slice(first, first + size), first)

    def _piece(self, which: slice, first: int) -> Block:
        # A copy: pages of a memory map could change, or be read again for every product.
        X = np.array(self.X[which], dtype=np.float64, order="C")
        y = np.array(self.y[which], dtype=np.float64).reshape(len(X), self.n_outputs)
        weights = np.ones(len(X)) if self.weights is None else self.weights[which]
        return checked(X, y, weights, lambda row: f"X and y, row {first + row}")

    def fingerprint(self) -> dict[str, str]:
        step = max(1, len(self.X) // SPACED_ROWS)
        some = [np.ascontiguousarray(values[::step]).tobytes() for values in (self.X, self.y)]
        if self.weights is not None:
            some.append(self.weights[::step].tobytes())
        return {
            "X": f"{self.X.dtype} of shape {self.X.shape}",
            "y": f"{self.y.dtype} of shape {self.y.shape}",
            "content": digest(some),
        }
