"""Temperatures seen by a satellite, with the clouds of another day: the contest of Heaton et al.

``heaton_satellite`` has 105 569 cells for training and 42 740 under clouds for testing; it has one
split. ``heaton_exponential`` is a Gaussian field with an exponential covariance on the same cells
and under the same clouds, drawn anew for every split, so that the best prediction is known:
kriging with the true kernel. Reference: Heaton et al. (2019), A case study competition among
methods for analyzing large spatial data.
"""

from __future__ import annotations

import csv
import gzip

import numpy as np

from experiments.data.splits import Split
from experiments.data.table import DataError, Table, file_name, local_file
from rwf._types import Array

PROBLEMS = ("heaton_satellite", "heaton_exponential")

DEVIATION, LENGTH, NOISE = 4.0, 30.0, 0.5
"""Standard deviation and length, in cells, of the simulated field, and that of its noise."""


def problem(name: str, index: int) -> tuple[Table, Split]:
    """The table and its split: cells under clouds are for testing."""
    X, observed, truth = _cells()
    covered = np.isnan(observed)
    split = Split(np.flatnonzero(~covered), np.flatnonzero(covered))
    if name == "heaton_satellite":
        return Table(name, X, np.where(covered, truth, observed)), split
    f = exponential_field(X, np.random.default_rng(1000 + index))
    noise = NOISE * np.random.default_rng(2000 + index).normal(size=len(X))
    return Table(name, _in_cells(X), f + noise, f), split


def _cells() -> tuple[Array, Array, Array]:
    """Coordinates, observed temperatures, NaN under clouds, and true ones of all known cells."""
    path = local_file("heaton_satellite")
    if path is None:
        raise DataError(f"set RWF_DATA to a directory that holds {file_name('heaton_satellite')}.")
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = [
            [float(row[name] or "nan") for name in ("lon", "lat", "masked_temp_c", "true_temp_c")]
            for row in csv.DictReader(file)
        ]
    table = np.array(rows)
    table = table[~np.isnan(table[:, 3])]
    return table[:, :2], table[:, 2], table[:, 3]


def _in_cells(X: Array) -> Array:
    """Coordinates in cells: the column and the row of every cell."""
    return np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T]).astype(np.float64)


def exponential_field(X: Array, rng: np.random.Generator) -> Array:
    """A draw on a grid, by the fast Fourier transform of its covariance on a torus."""
    place = _in_cells(X).astype(np.intp)
    shape = 2 * (place.max(axis=0) + 1)
    distances = np.hypot(*np.meshgrid(*[np.minimum(np.arange(n), n - np.arange(n)) for n in shape]))
    spectrum = np.fft.fft2(DEVIATION**2 * np.exp(-distances.T / LENGTH)).real
    # On a torus of this size the covariance is not quite positive definite.
    white = np.fft.fft2(rng.normal(size=tuple(shape)))
    field: Array = np.fft.ifft2(white * np.sqrt(np.maximum(spectrum, 0.0))).real
    return field[place[:, 0], place[:, 1]]
