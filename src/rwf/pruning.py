r"""A fitted model with fewer columns, from its moments: no rows are needed.

Columns that are kept have sub-blocks of the moments, and the variances that they had, so the
smaller posterior is exact. What dropped columns knew of the variance is kept apart, see
:mod:`rwf.dropped`. Projected weights are pruned by their centres: atoms :math:`k(\cdot, t)` at some
of the centres T are combinations of the whitened features, :math:`z' = L'^{-1}L_{T'}z`, so that the
moments of the smaller projection are known as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial import cKDTree

from rwf.dropped import Dropped
from rwf.features.base import PlacedMap
from rwf.features.thinning import Thinned, column_owners, thinned
from rwf.model import FittedModel
from rwf.selection import Columns, Target, fewest, so_many
from rwf.training import LOW_DIMENSION, Shape
from rwf.tuning import Tuned, Variances
from rwf.types import Array, IntArray

OUTWARD = (1.0, 2.0, 4.0, 8.0)
"""Widths of the coarsest atoms, beyond the outermost, at which further anchors stand."""


LATTICE = 500
"""About so many anchors stand on a lattice over the box of the atoms."""


@dataclass(frozen=True)
class Pruning:
    """What was dropped.

    Args:
        columns: columns that there were, trend included.
        kept: columns that are left.
        change: mean square change of f over the rows, in squared units of y, shape (k,).
        relative: the same over the mean posterior variance of f, shape (k,).
    """

    columns: int
    kept: int
    change: Array
    relative: Array


def prune(
    model: FittedModel, n_components: int | None, tolerance: float
) -> tuple[FittedModel, Pruning]:
    """The model with fewer columns.

    Args:
        model: with all columns.
        n_components: columns to keep beside the trend; ``None`` leaves it to the tolerance.
        tolerance: how much f may change: its mean square change over the rows, in units of its
            mean posterior variance over the rows.
    """
    columns = _columns(model)
    keep = fewest(columns, tolerance) if n_components is None else so_many(columns, n_components)
    p = len(columns.owners)
    if len(keep) == p:
        return model, Pruning(p, p, np.zeros(model.n_outputs), np.zeros(model.n_outputs))
    pruned, C = _with_columns(model, keep)
    change = np.array(
        [
            model.statistics.squared_norm(a.posterior.mean - C @ b.posterior.mean) / model.n_rows
            for a, b in zip(model.tuned, pruned.tuned, strict=True)
        ]
    )
    tuned = pruned.tuned
    pruned = replace(pruned, dropped=_dropped(model, pruned, change))
    pruned.__dict__["tuned"] = tuned
    relative = change / np.array([target.variance for target in columns.targets])
    return pruned, Pruning(p, len(keep), change * model.scaler.y.scale**2, relative)


def _columns(model: FittedModel) -> Columns:
    """The columns of atoms: k(·, t) for projected weights, z_j for others."""
    G, n = model.statistics.ZtZ, max(model.n_rows, 1e-300)
    targets = []
    for tuned in model.tuned:
        p = tuned.posterior
        A = G / p.noise_variance
        A[np.diag_indices_from(A)] += 1.0 / p.prior_variances
        variance = max(p.noise_variance * _determined(tuned) / n, 1e-300)
        targets.append(Target(_of_atoms(model, A), _weights_of_atoms(model, p.mean), variance))
    return Columns(_of_atoms(model, G / n), tuple(targets), column_owners(model.shape.features))


def _of_atoms(model: FittedModel, M: Array) -> Array:
    """BMBᵀ, with B = L for the block of projected weights, whose atoms are k_T = Lz."""
    if model.projected is not None:
        L, m = model.projected.L, model.projected.n_features
        M[:m] = L @ M[:m]
        M[:, :m] = M[:, :m] @ L.T
    return M


def _weights_of_atoms(model: FittedModel, mean: Array) -> Array:
    """B⁻ᵀm."""
    if model.projected is None:
        return mean
    L, m = model.projected.L, model.projected.n_features
    return np.append(solve_triangular(L, mean[:m], lower=True, trans="T"), mean[m:])


def _with_columns(model: FittedModel, keep: IntArray) -> tuple[FittedModel, Array]:
    """The model with these columns, and C with Z′ = ZC."""
    left = thinned(model.shape.features, keep)
    groups = left.stack.groups
    start = [_variances(tuned, left, keep) for tuned in model.tuned]
    plain = -np.log(model.inflation)  # tuning enlarges variances by itself
    shape = Shape(
        left.stack,
        np.mean([v.log_priors + f for v, f in zip(start, plain, strict=True)], axis=0),
        np.array([v.log_noise + f for v, f in zip(start, plain, strict=True)]),
    )
    statistics = model.statistics.combined(left.C)
    # Not tuned again: that the columns were chosen by the data would pass for less noise.
    tuned = tuple(
        Tuned(v, statistics.posterior(k, v.prior_variances(groups), v.noise_variance), 0, ())
        for k, v in enumerate(start)
    )
    nothing = Dropped.everywhere(np.zeros(model.n_outputs), len(model.scaler.columns))
    pruned = replace(model, shape=shape, statistics=statistics, cover=None, dropped=nothing)
    pruned.__dict__["tuned"] = tuned
    return pruned, left.C


def _variances(tuned: Tuned, left: Thinned, keep: IntArray) -> Variances:
    """The variances that there were, of the groups that are left."""
    log_columns = np.log(tuned.posterior.prior_variances[keep]) - 2 * np.log(left.growth)
    log_priors = np.empty(len(left.stack.parents))
    log_priors[left.stack.groups] = log_columns
    return Variances(log_priors, tuned.variances.log_noise)


def _dropped(model: FittedModel, pruned: FittedModel, change: Array) -> Dropped:
    """The variance that the pruned model lacks, where the atoms of the model were."""
    unit = anchors(model)
    if unit is None:  # waves are everywhere, and what they lack is taken to be
        mean = [
            a.posterior.noise_variance * (_determined(a) - _determined(b)) / model.n_rows
            for a, b in zip(model.tuned, pruned.tuned, strict=True)
        ]
        return Dropped.everywhere(np.maximum(mean, 0.0) + change, len(model.scaler.columns))
    with np.errstate(over="ignore"):  # where X is taken by its logarithm, far away is very far
        X = model.scaler.original_inputs(unit)
    (f, std), (f_kept, std_kept) = model.predict(X), pruned.predict(X)
    lost = np.maximum(std**2 - std_kept**2, 0.0) / model.scaler.y.scale**2
    # Between rows f may change more than at them; where it happens not to, the mean is safer.
    moved = np.maximum(((f - f_kept) / model.scaler.y.scale) ** 2, change)
    return Dropped(unit, lost + moved, model.coverage(X))


def _determined(tuned: Tuned) -> float:
    """γ, the number of well-determined weights: σ²γ/n is the mean variance of f over rows."""
    return float(np.sum(1.0 - tuned.posterior.factor.inverse_diagonal()))


def anchors(model: FittedModel) -> Array | None:
    """Where atoms are, between them, and ever farther beyond, in standardised units, (m, d)."""
    placed = [part for part in model.maps if isinstance(part, PlacedMap)]
    if not placed:
        return None
    shifts = np.concatenate([part.shifts for part in placed])
    width = np.max([np.median(part.widths, axis=0) for part in placed], axis=0)
    ways = _directions(shifts.shape[1])
    outermost = shifts[np.argmax(shifts @ ways.T, axis=0)]
    beyond = [outermost + step * width * ways for step in OUTWARD]
    return np.concatenate([_midway(shifts), _lattice(shifts), *beyond])


def _midway(shifts: Array) -> Array:
    """A place by every atom, midway to one of its neighbours, to all sides in turn.

    At atoms themselves f may be known better than anywhere else, if they sit at rows.
    """
    m, d = shifts.shape
    count = min(2 * d + 1, m)
    near = np.asarray(cKDTree(shifts).query(shifts, k=np.arange(1, count + 1))[1])
    which = 1 + np.arange(m) % (count - 1) if count > 1 else np.zeros(m, dtype=np.intp)
    places: Array = 0.5 * (shifts + shifts[near[np.arange(m), which]])
    return places


def _lattice(shifts: Array) -> Array:
    """A lattice over few input columns, so that gaps without atoms have anchors as well."""
    d = shifts.shape[1]
    if d > LOW_DIMENSION:
        return np.empty((0, d))
    side = np.linspace(0.0, 1.0, int(LATTICE ** (1 / d)))
    points = np.stack(np.meshgrid(*[side] * d), axis=-1).reshape(-1, d)
    lattice: Array = shifts.min(axis=0) + points * np.ptp(shifts, axis=0)
    return lattice


def _directions(d: int) -> Array:
    """Both ways along every axis, and along the diagonals of few axes, as unit vectors."""
    axes = np.eye(d)
    if d > LOW_DIMENSION:
        return np.concatenate([axes, -axes])
    ways = np.array([way for way in product((-1.0, 0.0, 1.0), repeat=d) if any(way)])
    lengths: Array = np.linalg.norm(ways, axis=1, keepdims=True)
    return ways / lengths
