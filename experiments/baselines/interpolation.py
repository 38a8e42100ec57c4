"""Interpolation between the rows: linear on Delaunay's triangles, or by a thin-plate spline.

Outside the hull of the rows, linear interpolation takes the nearest one. It believes every target:
rows at one place are averaged, and there is no other smoothing. The standard deviation is that of
the errors at a tenth of the training rows, kept back, the same everywhere.

The triangulation takes n log n time in two columns: seconds for 500 000 rows. In three it has some
seven tetrahedra a row where rows are scattered, and takes seconds for tens of thousands of them.

The spline has the Green's functions of the biharmonic equation, as verde's ``Spline``, and a
damping that is chosen on a tenth of the training rows. It takes the cube of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.interpolate import LinearNDInterpolator, RBFInterpolator
from scipy.spatial import cKDTree

from experiments.data.splits import random_tenth
from rwf._types import Array

SMALLEST_STD = 1e-6
"""Of an error bar, in standard deviations of the targets: a straight line leaves no errors."""


@dataclass(eq=False)
class LinearInterpolation:
    """The interpolant of the rows, in standardised units, with one error bar.

    Args:
        random_state: seed of the rows that are kept back.
    """

    random_state: int

    def fit(self, X: Array, y: Array) -> Self:
        kept = random_tenth(X, self.random_state)
        errors = y[kept.test] - interpolant(X[kept.train], y[kept.train])(X[kept.test])
        self._std = max(float(np.sqrt(np.mean(errors**2))), SMALLEST_STD)
        self._interpolant = interpolant(X, y)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._interpolant(X), np.full(len(X), self._std)

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._std**2,
            "std": "errors of rows that were kept back, the same for all rows",
        }


DAMPINGS = (0.0, *np.logspace(-6, 1, 8))
"""What a spline adds to the diagonal of its system, in standardised units."""


@dataclass(eq=False)
class ThinPlateSpline:
    """A damped thin-plate spline, in standardised units, with one error bar.

    Args:
        random_state: seed of the rows that choose the damping.
    """

    random_state: int

    def fit(self, X: Array, y: Array) -> Self:
        kept = random_tenth(X, self.random_state)
        errors = {}
        for damping in DAMPINGS:
            spline = _spline(X[kept.train], y[kept.train], damping)
            errors[damping] = float(np.mean((y[kept.test] - spline(X[kept.test])) ** 2))
        self._damping = min(errors, key=lambda damping: errors[damping])
        self._std = max(float(np.sqrt(errors[self._damping])), SMALLEST_STD)
        self._spline = _spline(X, y, self._damping)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._spline(X), np.full(len(X), self._std)

    def facts(self) -> Mapping[str, object]:
        return {"noise_variance": self._std**2, "damping": self._damping}


def _spline(X: Array, y: Array, damping: float) -> RBFInterpolator:
    # Of rows at one place the first is taken: with several the system would be singular.
    places, number = np.unique(X, axis=0, return_index=True)
    return RBFInterpolator(places, y[number], smoothing=damping)


def interpolant(X: Array, y: Array) -> Callable[[Array], Array]:
    """The function that is y at the rows, linear between them and constant beyond."""
    places, place, times = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    values: Array = np.bincount(place.ravel(), weights=y) / times
    if X.shape[1] == 1:
        return lambda new: np.interp(new[:, 0], places[:, 0], values)
    inside, tree = LinearNDInterpolator(places, values), cKDTree(places)

    def at(new: Array) -> Array:
        found: Array = np.array(inside(new), dtype=np.float64)
        outside = np.isnan(found)
        found[outside] = values[tree.query(new[outside])[1]]
        return found

    return at
