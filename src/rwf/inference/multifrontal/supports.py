"""The columns of a stack: where they differ from zero, and their values.

Placed atoms have a centre and a radius. All other columns, such as a trend, are everywhere. Values
of the usual formulas come from compiled loops, those of any other wavelet from its feature map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array, IntArray
from rwf.features.base import ConstantFeatures, FeatureMap, LinearFeatures, Stack
from rwf.features.local import LocalAtoms
from rwf.wavelets import CompactHat, MexicanHat, Wavelet
from rwf.wavelets.base import TAIL
from rwf.wavelets.radial import Bump, RadialWavelet

if TYPE_CHECKING:
    from rwf.inference.multifrontal._rows import ColumnTable

MARGIN = 1e-9  # supports are widened by this share, so that rounding at their rim cannot miss a row


def support_radius(wavelet: Wavelet, d: int) -> float:
    """Distance in scales beyond which features are exactly zero; Gaussian envelopes are cut off."""
    radius = wavelet.radius(d) if isinstance(wavelet, RadialWavelet) else np.inf
    radius = radius if np.isfinite(radius) else wavelet.constants(d).radius
    return float(min(radius, np.sqrt(TAIL)))


@dataclass(frozen=True)
class ColumnSupports:
    """The columns of a stack of feature maps over d inputs."""

    features: Stack  # the stack
    n_inputs: int  # d

    @cached_property
    def centres(self) -> Array:
        """t of every column, zero where it has none, shape (p, d)."""
        return np.vstack([self._centres(part) for part in self.features.maps])

    def _centres(self, part: FeatureMap) -> Array:
        if not isinstance(part, LocalAtoms):
            return np.zeros((part.n_features, self.n_inputs))
        if part.shifts.shape[1] != self.n_inputs:
            raise ValueError(
                f"atoms have {part.shifts.shape[1]} inputs, but {self.n_inputs} were expected."
            )
        return np.tile(part.shifts, (part.wavelet.columns, 1))

    @cached_property
    def radii(self) -> Array:
        """Radius of every column's support, infinite for those without, shape (p,)."""
        return np.concatenate([self._radii(part) for part in self.features.maps])

    def _radii(self, part: FeatureMap) -> Array:
        if not isinstance(part, LocalAtoms):
            return np.full(part.n_features, np.inf)
        widest = (1 + MARGIN) * support_radius(part.wavelet, self.n_inputs)
        return np.tile(widest * part.scales, part.wavelet.columns)

    def table(self, order: IntArray) -> ColumnTable:
        """The columns for the compiled loops, in another order."""
        from rwf.inference.multifrontal import _rows

        p = self.features.n_features
        kinds, orders = np.full(p, _rows.OTHER), np.zeros(p, dtype=np.intp)
        inverse, factors, curvatures = np.ones(p), np.ones(p), np.zeros(p)
        start = 0
        for part in self.features.maps:
            its = slice(start, start + part.n_features)
            start = its.stop
            if isinstance(part, ConstantFeatures):
                kinds[its] = _rows.CONSTANT
            elif isinstance(part, LinearFeatures):
                kinds[its], orders[its] = _rows.LINEAR, np.arange(part.n_features)
                factors[its] = part.n_features**-0.5
            elif isinstance(part, LocalAtoms):
                w, d = part.wavelet, self.n_inputs
                # A compiled formula is for the class itself: a subclass may have another.
                if type(w) is CompactHat:
                    kinds[its], orders[its] = _rows.COMPACT_HAT, w.order
                    curvatures[its] = w.curvature(d)
                elif type(w) is MexicanHat:
                    kinds[its], curvatures[its] = _rows.HAT, w.curvature(d)
                elif type(w) is Bump:
                    kinds[its] = _rows.BUMP
                inverse[its] = np.tile(1.0 / part.scales, w.columns)
                factors[its] = len(part.scales) ** -0.5
        return _rows.ColumnTable(
            np.ascontiguousarray(self.centres[order]),
            np.minimum(self.radii, _rows.EVERYWHERE)[order],
            kinds[order],
            inverse[order],
            factors[order],
            curvatures[order],
            orders[order],
            TAIL,
        )

    def values(self, X: Array, columns: IntArray) -> Array:
        """Z of some columns by their feature maps, shape (n, len(columns))."""
        Z = np.empty((len(X), len(columns)))
        block, start = self.features.blocks[columns], 0
        for index, part in enumerate(self.features.maps):
            its = np.flatnonzero(block == index)
            if len(its):
                Z[:, its] = _values(part, X, columns[its] - start)
            start += part.n_features
        return Z


def _values(part: FeatureMap, X: Array, columns: IntArray) -> Array:
    if not isinstance(part, LocalAtoms):
        return np.asarray(part(X), dtype=np.float64)[:, columns]
    m = len(part.scales)
    atoms, which = np.unique(columns % m, return_inverse=True)
    # A map of fewer atoms divides by the root of their own number.
    Z: Array = np.asarray(part.take(atoms)(X), dtype=np.float64) * np.sqrt(len(atoms) / m)
    chosen: Array = Z[:, which + columns // m * len(atoms)]
    return chosen
