"""Units: inputs and targets are brought to unit spread before anything is learned, and back.

With one length-scale per column (ARD) every column is standardised, and strongly skewed ones are
replaced by their logarithms. Without, all columns are divided by the one largest span, so that
distances keep their meaning, as for coordinates on a map. Targets may be transformed before they
are standardised, :mod:`rwf.data.target_transform`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from rwf._types import Array, BoolArray, IntArray
from rwf.data.rows import Block
from rwf.data.target_transform import Bend, TargetTransform

CONSTANT = 1e-13  # a column whose span is below this fraction of its largest magnitude is constant
FAR = 1e30  # largest distance of a row in standardised units, so that squares stay finite
LARGEST_INPUT = 1e300  # larger inputs are refused: their differences could overflow
LARGEST_TARGET = 1e151  # larger targets are refused: variances, their squares, would overflow
SMALLEST_SPAN = 1e-300  # targets that span less are constant: their deviation could underflow
SKEWED = 1.0  # columns of a larger skewness get a logarithm, if they have more than FEW values
FEW = 5
BEND = 5.0  # of v ↦ log(1 + 5v), v the distance from the end of the short tail in deviations


@dataclass(frozen=True)
class Affine:
    """v ↦ (v - center)/scale, column by column."""

    center: Annotated[Array, "d"]
    scale: Annotated[Array, "d"]  # positive
    varies: Annotated[BoolArray, "d"]  # which columns are not constant

    @classmethod
    def learn(
        cls,
        values: Array,
        weights: Array,
        *,
        common_scale: bool = False,
        spans: bool = False,
        least: float = 0.0,
    ) -> Self:
        """Weighted mean and deviation; or mid-range, and the largest span or that of each column.

        Columns that span less than ``least`` are constant.
        """
        low, high = values.min(axis=0), values.max(axis=0)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        varies = half > np.maximum(CONSTANT * np.maximum(np.abs(low), np.abs(high)), least / 2)
        if common_scale:
            span = float(half[varies].max()) * 2 if varies.any() else 1.0
            return cls(middle, np.full(len(middle), span), varies)
        if spans:
            return cls(middle, np.where(varies, 2 * half, 1.0), varies)
        # Statistics of values in [-1, 1], which can neither overflow nor lose small spreads.
        unit = (values - middle) / np.where(varies, half, 1.0)
        share = weights / weights.sum()
        mean = share @ unit
        spread = np.sqrt(share @ (unit - mean) ** 2)
        center = np.where(varies, middle + mean * half, values[0])
        magnitude = np.where(center != 0, np.maximum(np.abs(center), least), 1.0)
        return cls(center, np.where(varies, half * spread, magnitude), varies)

    def __call__(self, values: Array) -> Array:
        return np.ascontiguousarray((values - self.center) / self.scale)

    def inverse(self, values: Array) -> Array:
        return values * self.scale + self.center


@dataclass(frozen=True)
class Logarithm:
    r"""v ↦ ±log(1 + 5 (±v - low)) on chosen columns, standardised again; others stay."""

    chosen: Annotated[BoolArray, "d"]  # which columns
    sign: Annotated[Array, "d"]  # the direction of the long tail, +1 or -1
    low: Annotated[Array, "d"]  # the end of the short tail, after the sign
    unit: Affine  # center and scale of the logarithms

    @classmethod
    def learn(cls, values: Array, weights: Array) -> Self:
        """Choose the skewed columns among standardised ones."""
        share = weights / weights.sum()
        skewness = share @ values**3
        many = np.array([len(np.unique(column)) > FEW for column in values.T], dtype=bool)
        sign = np.where(skewness < 0, -1.0, 1.0)
        low = (sign * values).min(axis=0)
        chosen = (np.abs(skewness) > SKEWED) & many
        bent = np.log1p(BEND * (sign * values - low))
        return cls(chosen, sign, low, Affine.learn(bent, weights))

    def __call__(self, values: Array) -> Array:
        bent = np.log1p(BEND * np.maximum(self.sign * values - self.low, 0.0))
        return np.where(self.chosen, self.sign * self.unit(bent), values)

    def inverse(self, values: Array) -> Array:
        bent = self.unit.inverse(self.sign * values)
        return np.where(self.chosen, self.sign * (self.low + np.expm1(bent) / BEND), values)


@dataclass(frozen=True)
class Standardizer:
    """Units of inputs and targets."""

    X: Affine  # constant columns are dropped after it
    y: Affine
    logarithm: Logarithm | None = None  # of skewed inputs
    transform: TargetTransform | None = None  # of targets, before y

    @classmethod
    def learn(
        cls, rows: Block, *, ard: bool, log_skewed: bool = False, bends: tuple[Bend, ...] = ()
    ) -> Self:
        """Units of some rows, whose outputs get these transforms."""
        _refuse_beyond(LARGEST_INPUT, rows.X, "inputs", "differences")
        _refuse_beyond(LARGEST_TARGET, rows.y, "targets", "squares")
        X = Affine.learn(rows.X, rows.weights, common_scale=not ard)
        transform = TargetTransform.learn(bends, rows.y) if any(bends) else None
        targets = rows.y
        if transform is not None:
            transform.require_inside(targets)
            targets = transform(targets)
        y = Affine.learn(targets, rows.weights, least=SMALLEST_SPAN)
        logarithm = Logarithm.learn(X(rows.X), rows.weights) if log_skewed and ard else None
        return cls(X, y, logarithm, transform)

    @property
    def columns(self) -> IntArray:
        """Indices of the input columns in use: those that vary, or the first if none does."""
        return np.flatnonzero(self.X.varies) if self.X.varies.any() else np.array([0])

    def inputs(self, X: Array) -> Array:
        """Inputs in standardised units; those beyond :data:`FAR` are moved there."""
        with np.errstate(over="ignore"):
            unit = np.clip(self.X(X), -FAR, FAR)
        if self.logarithm is not None:
            unit = self.logarithm(unit)
        return np.ascontiguousarray(unit[:, self.columns])

    def rows(self, rows: Block) -> Block:
        """Rows in standardised units; targets beyond :data:`FAR` are refused."""
        targets = rows.y
        if self.transform is not None:
            self.transform.require_inside(targets)
            targets = self.transform(targets)
        with np.errstate(over="ignore"):
            y = self.y(targets)
        if np.abs(y).max(initial=0.0) > FAR:
            row, column = np.unravel_index(int(np.abs(y).argmax()), y.shape)
            raise ValueError(
                f"the target {rows.y[row, column]:.3g} is more than {FAR:.0e} times what targets "
                f"deviated by when units were learned, {self.y.scale[column]:.3g}: drop that row, "
                "or fit a new model to rows with targets of that size."
            )
        return replace(rows, X=self.inputs(rows.X), y=y)

    def original_inputs(self, X: Array) -> Array:
        """The inverse of :meth:`inputs`; dropped columns have their constant value."""
        unit = np.zeros((len(X), len(self.X.center)))
        unit[:, self.columns] = X
        if self.logarithm is not None:
            unit = self.logarithm.inverse(unit)
        return self.X.inverse(unit)

    def original_targets(self, y: Array) -> Array:
        """Targets, shape (…, k), of values in standardised units."""
        targets = self.y.inverse(y)
        return targets if self.transform is None else self.transform.inverse(targets)

    def log_slope(self, y: Array) -> Array:
        """log du/dy of u in standardised units, summed over outputs, at targets, shape (n, k)."""
        slopes = np.full(len(y), -float(np.log(self.y.scale).sum()))
        return (
            slopes if self.transform is None else slopes + self.transform.log_slope(y).sum(axis=1)
        )


def _refuse_beyond(most: float, values: Array, what: str, overflow: str) -> None:
    reach = np.maximum(values.max(axis=0), -values.min(axis=0))
    if reach.max() > most:
        column = int(reach.argmax())
        raise ValueError(
            f"{what} reach {reach[column]:.3g} in column {column}, and beyond {most:.0e} their "
            f"{overflow} overflow: give them in a larger unit, or drop those rows."
        )
