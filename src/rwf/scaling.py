"""Units: inputs and targets are brought to unit spread before learning, and back afterwards.

With one length-scale per column (ARD) every column is standardised. Without, all columns are
divided by the one largest span, so that distances keep their meaning, as for coordinates on a map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf.rows import Block
from rwf.types import Array, IntArray

CONSTANT = 1e-13
"""A column whose span is below this part of its largest magnitude is constant up to rounding."""

FAR = 1e30
"""Largest distance of an input in standardised units, so that squares stay finite."""


@dataclass(frozen=True)
class Affine:
    """v ↦ (v - center)/scale, column by column, on the columns that vary.

    Args:
        center: shape (d,).
        scale: shape (d,), positive.
        varies: which columns are not constant, shape (d,).
    """

    center: Array
    scale: Array
    varies: Array

    @classmethod
    def learn(cls, values: Array, weights: Array, *, common_scale: bool = False) -> Self:
        """Weighted mean and standard deviation, or mid-range and largest span, without overflow."""
        low, high = values.min(axis=0), values.max(axis=0)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        varies = half > CONSTANT * np.maximum(np.abs(low), np.abs(high))
        if common_scale:
            span = float(half[varies].max()) * 2 if varies.any() else 1.0
            return cls(middle, np.full(len(middle), span), varies)
        # Statistics of values in [-1, 1], which can neither overflow nor lose small spreads.
        unit = (values - middle) / np.where(varies, half, 1.0)
        share = weights / weights.sum()
        mean = share @ unit
        spread = np.sqrt(share @ (unit - mean) ** 2)
        center = np.where(varies, middle + mean * half, values[0])
        magnitude = np.where(center != 0, np.abs(center), 1.0)
        return cls(center, np.where(varies, half * spread, magnitude), varies)

    def __call__(self, values: Array) -> Array:
        return np.ascontiguousarray((values - self.center) / self.scale)

    def inverse(self, values: Array) -> Array:
        return values * self.scale + self.center


@dataclass(frozen=True)
class Standardizer:
    """Units of inputs and targets.

    Args:
        X: the inputs' map; constant columns are dropped after it.
        y: the targets' map.
    """

    X: Affine
    y: Affine

    @classmethod
    def learn(cls, rows: Block, *, ard: bool) -> Self:
        X = Affine.learn(rows.X, rows.weights, common_scale=not ard)
        return cls(X, Affine.learn(rows.y, rows.weights))

    @property
    def columns(self) -> IntArray:
        """Indices of the input columns in use: those that vary, or the first if none does."""
        return np.flatnonzero(self.X.varies) if self.X.varies.any() else np.array([0])

    def inputs(self, X: Array) -> Array:
        """Inputs in standardised units; those beyond :data:`FAR` are moved there."""
        with np.errstate(over="ignore"):
            unit = self.X(X)[:, self.columns]
        return np.ascontiguousarray(np.clip(unit, -FAR, FAR))

    def rows(self, rows: Block) -> Block:
        return Block(self.inputs(rows.X), self.y(rows.y), rows.weights)

    def original_inputs(self, X: Array) -> Array:
        """The inverse of :meth:`inputs`; dropped columns have their constant value."""
        full = np.tile(self.X.center, (len(X), 1))
        columns = self.columns
        full[:, columns] = X * self.X.scale[columns] + self.X.center[columns]
        return full
