r"""Atoms of one variable of several kinds: steps, cusps, compact hats and Gabor atoms.

.. math::
    z_j(x) = \psi_{k_j}\!\left(\frac{x - t_j}{s_j}\right), \qquad
    \begin{aligned}
    \text{step: } & \tfrac12 \operatorname{sign} u, &
    \text{hat: } & (1 - u^2/8)_+^2\,(1 - 7u^2/8), \\
    \text{cusp: } & (1 - |u|/8)_+^8, &
    \text{Gabor: } & (1 - u^2/8)_+^4 \cos(Fu + P).
    \end{aligned}

All have unit height, so that one slab variance means the same for every atom of a block. All but
steps are exactly zero far from their shift. A block is a kind and an octave of scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Self

import numpy as np

from rwf._types import Array, BoolArray, FloatArray, IntArray
from rwf.features.base import Shapeless, row_chunks

STEP, CUSP, HAT, GABOR = 0, 1, 2, 3
REACH = np.array([np.inf, 8.0, 8.0**0.5, 8.0**0.5])  # where |u| is beyond this, ψ(u) = 0, by kind


@dataclass(frozen=True)
class Dictionary(Shapeless):
    """z(x) of m atoms, as a feature map without shape parameters."""

    kinds: Annotated[IntArray, "m"]  # shape (m,)
    scales: Annotated[Array, "m"]  # s, shape (m,), positive; one for steps
    shifts: Annotated[Array, "m"]  # t, shape (m,)
    frequencies: Annotated[Array, "m"]  # F, shape (m,); used by Gabor atoms, as is P
    phases: Annotated[Array, "m"]  # P, shape (m,)
    blocks: Annotated[IntArray, "m"]  # shape (m,): atoms of a block share one slab

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The atoms of all parts, one part after another."""
        return cls(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(cls)))

    def take(self, index: IntArray | BoolArray) -> Self:
        """Some of the atoms, by their indices or by a mask."""
        return type(self)(*(getattr(self, f.name)[index] for f in fields(self)))

    def jittered(self, copies: int, rng: np.random.Generator) -> Self:
        """Copies of the local atoms nearby: a little moved, wider or narrower, out of phase."""
        near = self.take(np.repeat(np.flatnonzero(self.kinds != STEP), copies))
        m = near.n_features
        return type(self)(
            near.kinds,
            near.scales * np.exp(0.25 * rng.normal(size=m)),
            near.shifts + 0.3 * near.scales * rng.normal(size=m),
            near.frequencies * np.exp(0.1 * rng.normal(size=m)),
            near.phases + 0.5 * rng.normal(size=m),
            near.blocks,
        )

    @property
    def n_features(self) -> int:
        return len(self.kinds)

    def __call__(self, X: FloatArray) -> FloatArray:
        from rwf.inference.spike_slab import _atoms

        Z = np.empty((len(X), self.n_features), dtype=X.dtype)
        x = np.ascontiguousarray(X[:, 0], dtype=np.float64)
        atoms = (self.kinds, self.scales, self.shifts, self.frequencies, self.phases)
        for rows in row_chunks(len(X), self.n_features):
            _atoms.features(x[rows], *atoms, Z[rows])
        return Z

    def runs(self, x: Array) -> tuple[IntArray, IntArray]:
        """The rows [first, last) of sorted inputs where each atom may be nonzero, shape (m,)."""
        reach = REACH[self.kinds] * self.scales
        first = np.searchsorted(x, self.shifts - reach, side="left")
        return first, np.searchsorted(x, self.shifts + reach, side="right")


NOTHING = Dictionary(
    *(np.empty(0, dtype=dtype) for dtype in (np.intp, float, float, float, float, np.intp))
)
"""The dictionary without atoms."""
