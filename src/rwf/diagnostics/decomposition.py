r"""Decomposition of a fitted model over scale and place.

The posterior mean is a sum over atoms, and so over rows of atoms of about one scale,

.. math:: \hat f(x) = \text{trend} + \sum_r f_r(x), \qquad f_r(x) = \sum_{j \in r} m_j z_j(x).

The energy of scale s at x is :math:`f_r^2` around x, in a Gaussian window as wide as the scale. It
is that of the sum, because large weights of overlapping atoms may cancel. Scales are in units of X,
all else in units of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rwf._types import Array, IntArray
from rwf.features.base import AtomMap, PlacedMap, Stack, WaveletMap
from rwf.models.base import Model
from rwf.models.gaussian import GaussianModel

FEW_SCALES = 16  # most distinct scales with a row each; more are binned by half octaves
NARROW = 0.1  # share of the range of shifts below which an atom is narrow, and lies at the data


@dataclass(frozen=True)
class AtomTable:
    """One entry for every column of an atom."""

    columns: IntArray  # index of the feature column, shape (m,)
    scales: Array  # s, the geometric mean over input columns
    shifts: Array  # t, shape (m, d)
    weights: Array  # m_j, the posterior mean
    heights: Array  # prior standard deviation of the factor of ψ
    groups: IntArray  # entries of one group share a prior variance
    blocks: IntArray  # index of the block of features


def atom_table(model: Model, output: int = 0) -> AtomTable:
    """The atoms of a model whose weights are independent a priori."""
    fitted = _with_atoms(model)
    units, stack = fitted.units, fitted.features
    y_unit, x_unit = float(units.y.scale[output]), units.X.scale[units.columns]
    posterior = fitted.fits[output].posterior
    columns, scales, shifts, factors = [], [], [], []
    for block, part in enumerate(stack.maps):
        if isinstance(part, WaveletMap):
            copies = part.n_features // part.n_atoms
            columns.append(np.flatnonzero(stack.blocks == block))
            widths, own = _in_inputs(stack, part.widths, part.shifts)
            scales.append(np.tile(np.exp(np.log(widths * x_unit).mean(axis=1)), copies))
            places = units.original_inputs(own)[:, units.columns]
            shifts.append(np.tile(places, (copies, 1)))
            factors.append(np.tile(part.factors, copies))
    which = np.concatenate(columns)
    return AtomTable(
        columns=which,
        scales=np.concatenate(scales),
        shifts=np.concatenate(shifts),
        weights=y_unit * posterior.mean[which],
        heights=np.sqrt(model.summary.prior_variances[which, output]) * np.concatenate(factors),
        groups=stack.groups[which],
        blocks=stack.blocks[which],
    )


def _in_inputs(stack: Stack, widths: Array, shifts: Array) -> tuple[Array, Array]:
    """Widths, as means over all angles, and shifts in x of atoms that are functions of Ax."""
    if stack.metric is None:
        return widths, shifts
    stretch = float(np.linalg.det(stack.metric)) ** (-1 / len(stack.metric))
    return stretch * widths, np.asarray(shifts @ np.linalg.inv(stack.metric).T, dtype=np.float64)


def _with_atoms(model: Model) -> GaussianModel:
    """The model, if its weights belong to single atoms and its inputs keep their units."""
    found = model.gaussian
    if found is None or not any(isinstance(part, WaveletMap) for part in found.maps):
        raise ValueError(
            "the weights of this model do not belong to wavelets of one scale and place each: "
            "fit with prior='multiscale', 'adaptive' or 'random_features' to see scale and place."
        )
    logarithm = found.units.logarithm
    if logarithm is not None and logarithm.chosen[found.units.columns].any():
        raise ValueError(
            "a skewed input column was replaced by its logarithm, where one scale has many "
            "widths: fit with log_skewed=False to see scales in the units of X."
        )
    return found


def scale_edges(scales: Array) -> Array:
    """Edges between bins: around every scale if they are few, else every half octave."""
    logs = np.unique(np.round(np.log2(scales), 6))
    if len(logs) > FEW_SCALES:
        halves: Array = np.arange(np.floor(2 * logs[0]), np.ceil(2 * logs[-1]) + 1) / 2
        return 2.0**halves
    steps = np.diff(logs) if len(logs) > 1 else np.ones(1)
    middles = (logs[1:] + logs[:-1]) / 2
    ends = logs[0] - steps[0] / 2, logs[-1] + steps[-1] / 2
    edges: Array = 2.0 ** np.concatenate([[ends[0]], middles, [ends[1]]])
    return edges


def components(model: Model, table: AtomTable, X: Array) -> tuple[Array, Array]:
    """Edges of the rows in scale, shape (r + 1,), and f_r at places, shape (r, n)."""
    edges = scale_edges(table.scales)
    row = np.clip(np.searchsorted(edges, table.scales, side="right") - 1, 0, len(edges) - 2)
    fitted = _with_atoms(model)
    weights = np.zeros((fitted.features.n_features, len(edges) - 1))
    weights[table.columns, row] = table.weights
    return edges, fitted.times(fitted.units.inputs(X), weights).T


@dataclass(frozen=True)
class Scalogram:
    """Energy over scale and place."""

    edges: Array  # of the rows in scale, ascending, shape (r + 1,)
    energy: Array  # in units of y², shape (r, n) on a line and (r, n₂, n₁) on a plane

    @property
    def scales(self) -> Array:
        """The middle of every row."""
        middles: Array = np.sqrt(self.edges[1:] * self.edges[:-1])
        return middles

    @property
    def local_scale(self) -> Array:
        """The geometric mean of scales at every place, weighted by their energy."""
        share = self.energy / np.maximum(self.energy.sum(axis=0), 1e-300)
        mean: Array = np.exp(np.tensordot(np.log(self.scales), share, axes=1))
        return mean


def scalogram(model: Model, axes: Sequence[Array], output: int = 0) -> Scalogram:
    """The energy of every scale at places on a line, or at all pairs of places on two axes."""
    edges, found = components(model, atom_table(model, output), grid(axes))
    energy = found.reshape(len(found), *(len(x) for x in reversed(axes))) ** 2
    result = Scalogram(edges, energy)
    for axis, x in enumerate(reversed(axes)):
        windows = [_window(x, s) for s in result.scales]
        energy = np.stack(
            [
                np.moveaxis(np.tensordot(W, e, axes=(1, axis)), 0, axis)
                for W, e in zip(windows, energy, strict=True)
            ]
        )
    return Scalogram(edges, energy)


def _window(x: Array, scale: float) -> Array:
    """Weights of places around each place, a Gaussian of this scale, shape (n, n)."""
    W = np.exp(-(((x[:, None] - x) / scale) ** 2))
    share: Array = W / W.sum(axis=1, keepdims=True)
    return share


def grid(axes: Sequence[Array]) -> Array:
    """All combinations of places, those along the first column changing fastest, shape (n, d)."""
    places = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
    return np.column_stack([place.ravel() for place in places])


def prior_deviation(model: Model, X: Array, output: int = 0) -> Array:
    r"""The prior standard deviation of f about its trend, shape (n,).

    .. math:: \sqrt{\sum_j\lambda_j z_j(x)^2}
    """
    fitted = model.gaussian
    if fitted is None or fitted.solver != "dense":
        raise ValueError(
            "a spike-and-slab prior has no prior variance of its own, and a lattice on the "
            "multifrontal solver no feature matrix: fit with solver='dense' and "
            "prior='multiscale', 'adaptive', 'random_features' or 'nystrom'."
        )
    counts = np.array([isinstance(part, AtomMap) for part in fitted.maps])
    variances = model.summary.prior_variances[:, output] * counts[fitted.features.blocks]
    Z = np.asarray(fitted.features(fitted.units.inputs(X)), dtype=np.float64)
    deviation: Array = np.sqrt(Z**2 @ variances)
    return deviation


@dataclass(frozen=True)
class VarianceRow:
    """The prior standard deviations of one block."""

    low: float  # the finest scale, less half a step if there is one only
    high: float  # the coarsest, likewise
    heights: Array  # prior standard deviation of the height of atoms in every cell, shape (c,)
    edges: Array  # of the cells along the first input column, shape (c + 1,)


def variances_by_scale(table: AtomTable) -> list[VarianceRow]:
    """The learned variances of every block of atoms, cell by cell, from fine scales to coarse."""
    rows = [_row(table, np.flatnonzero(table.blocks == block)) for block in np.unique(table.blocks)]
    return sorted(rows, key=lambda row: row.low)


def _row(table: AtomTable, mine: IntArray) -> VarianceRow:
    x, scales = table.shifts[mine, 0], table.scales[mine]
    cells = [np.flatnonzero(table.groups[mine] == g) for g in np.unique(table.groups[mine])]
    cells = sorted(cells, key=lambda cell: float(x[cell].min()))
    heights = np.array([table.heights[mine][cell[0]] for cell in cells])
    first = np.array([x[cell].min() for cell in cells])
    last = np.array([x[cell].max() for cell in cells])
    margin = 0.5 * float(np.median(scales))
    edges = [[first[0] - margin], (first[1:] + last[:-1]) / 2, [last[-1] + margin]]
    low, high = float(scales.min()), float(scales.max())
    spread = 2**0.5 if high < 1.01 * low else 1.0
    return VarianceRow(low / spread, high * spread, heights, np.concatenate(edges))


def usual_range(model: Model) -> Array:
    """The approximate range of the data by the narrow atoms, in units of X, shape (d, 2)."""
    placed = [part for part in model.maps if isinstance(part, PlacedMap)]
    if not placed:
        raise ValueError("the model has no local atoms to find the range of the data by: pass x.")
    stack = Stack(()) if model.gaussian is None else model.gaussian.features
    widths = np.concatenate([part.widths for part in placed])
    widths, shifts = _in_inputs(stack, widths, np.concatenate([part.shifts for part in placed]))
    narrow = (widths < NARROW * np.ptp(shifts, axis=0)).all(axis=1)
    if narrow.sum() > 1:
        # Atoms begin about their own width beyond the data.
        low, high = (shifts + widths)[narrow].min(axis=0), (shifts - widths)[narrow].max(axis=0)
    else:
        low, high = shifts.min(axis=0), shifts.max(axis=0)
    ends = model.units.original_inputs(np.stack([low, high]))
    return ends[:, model.units.columns].T
