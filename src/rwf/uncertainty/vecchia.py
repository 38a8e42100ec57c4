r"""A nearest-neighbor (Vecchia) Gaussian process: the cost is linear in the number of rows.

.. math::
    y(x) \mid y_{N(x)} \sim N\!\left(k^\top K^{-1} y_N,\; k(x, x) + a^2\nu - k^\top K^{-1} k\right),
    \qquad k(x, x') = a^2 \kappa(r), \quad r^2 = \sum_j (x_j - x'_j)^2 / \ell_j^2,

with κ a Matérn kernel, N(x) the nearest rows in this metric, and K their covariance with the nugget
a²ν. Parameters maximise the conditional log-likelihood of some target rows given their neighbors.
Most targets have neighbors among all rows, at distances as short as in predictions; some have
theirs in a subsample, at the larger distances on which predictions far from the data depend.
References: Vecchia (1988), Estimation and model identification for continuous spatial processes;
Datta et al. (2016), Hierarchical nearest-neighbor Gaussian process models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.inference.optimize import maximize
from rwf.inference.posterior import Marginals
from rwf.linalg.threads import in_parallel, one_blas_thread

if TYPE_CHECKING:
    from sklearn.neighbors import NearestNeighbors

NEIGHBORS = 16  # neighbors of a row: the cost is cubic in them, and more hardly change a prediction
TWICE_ORDERS = (1, 3, 5)  # twice the candidate orders of the Matérn kernel

TARGETS_BY_FRACTION = {1: 6000, 16: 100, 256: 50}
"""Most target rows, by the n in 1/n: the fraction of rows that their neighbors are taken from."""

MOST_TARGETS = 150_000  # most target rows times columns: the cost is proportional to it
STEPS = 60  # of L-BFGS, in the round that chooses the order and in the metric that it finds
FIRST_LENGTH, FIRST_NUGGET = 3.0, 0.01  # initial ℓ over the distance of neighbors, and ν

RANGES = {"length": (1e-3, 1e3), "amplitude": (1e-4, 10.0), "nugget": (1e-8, 1e3)}
"""Bounds of ℓ relative to its initial value, of a² relative to the variance of the values, and of
ν, which is positive so that K has a Cholesky factor where neighbors coincide."""

TREE_COLUMNS = 16  # up to which a k-d tree is used; with more, brute force is ten times as fast
LARGEST_INPUT = 1e100  # in length-scales: κ is zero long before, and squares do not overflow
SMALL_GROUP = 64  # rows of a group among which neighbors are found in one query for all groups
ROWS_AT_ONCE = 2048  # rows of one task in the thread pool: far more work than its overhead


@dataclass(frozen=True)
class MaternKernel:
    """a²κ(r), and the nugget of every row."""

    twice_order: int  # 1, 3 or 5
    lengths: Annotated[Array, "d"]  # ℓ, shape (d,)
    amplitude: float  # a²
    nugget: float  # ν, in units of a²

    @property
    def theta(self) -> Array:
        """Logarithms of the d lengths, of the amplitude and of the nugget."""
        theta: Array = np.log([*self.lengths, self.amplitude, self.nugget])
        return theta

    def at(self, theta: Array) -> Self:
        """The kernel of this order with other parameters."""
        *lengths, amplitude, nugget = np.exp(theta).tolist()
        return replace(self, lengths=np.array(lengths), amplitude=amplitude, nugget=nugget)

    def in_lengths(self, X: Array) -> Array:
        """x/ℓ, shape (n, d), clipped at :data:`LARGEST_INPUT`."""
        with np.errstate(over="ignore"):
            U = np.ascontiguousarray(X / self.lengths)
        return np.clip(U, -LARGEST_INPUT, LARGEST_INPUT, out=U)


@dataclass(frozen=True)
class VecchiaGP:
    """Training rows and their kernel; predictions condition on the nearest rows."""

    kernel: MaternKernel  # in the units of X and of the values
    X: Annotated[Array, "n d"]  # inputs, shape (n, d)
    values: Annotated[Array, "n"]  # shape (n,), of mean zero
    n_neighbors: int = NEIGHBORS  # most neighbors of a row
    # the groups of rows; those of one group are not each other's neighbors. None without groups
    groups: Annotated[IntArray, "n"] | None = None

    def part(self, which: IntArray | slice) -> VecchiaGP:
        """The process with some of its rows."""
        groups = None if self.groups is None else self.groups[which]
        return replace(self, X=self.X[which], values=self.values[which], groups=groups)

    @cached_property
    def _U(self) -> Array:
        return self.kernel.in_lengths(self.X)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._U, balanced_tree=False, compact_nodes=False)

    @cached_property
    def _list(self) -> NearestNeighbors:
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors(algorithm="brute").fit(self._U)

    def nearest(self, X: Array, k: int) -> tuple[Array, IntArray]:
        """Distances, in lengths, and numbers of the k nearest rows, nearest first, shape (m, k)."""
        U, k = self.kernel.in_lengths(X), min(k, len(self.X))
        if U.shape[1] <= TREE_COLUMNS:
            distances, near = self._tree.query(U, k=np.arange(1, k + 1))
        else:
            distances, near = self._list.kneighbors(U, k)
        return np.asarray(distances), np.asarray(near, dtype=np.intp)

    def nearest_others(self, rows: IntArray, k: int) -> tuple[Array, IntArray]:
        """As :meth:`nearest`, of training rows and without the rows themselves, or their groups."""
        if self.groups is not None:
            return self.nearest_elsewhere(self.X[rows], self.groups[rows], k)
        distances, near = self.nearest(self.X[rows], k + 1)
        own = near == rows[:, None]
        # Among more than k coincident rows a row may not be found itself: then drop the last one.
        own[~own.any(axis=1), -1] = True
        return distances[~own].reshape(len(rows), -1), near[~own].reshape(len(rows), -1)

    def nearest_elsewhere(self, X: Array, groups: IntArray, k: int) -> tuple[Array, IntArray]:
        """As :meth:`nearest`, among training rows of other groups than those of the rows X."""
        assert self.groups is not None
        codes, counts = np.unique(self.groups, return_counts=True)
        k = min(k, len(self.X) - int(counts.max()))
        distances, near = np.empty((len(X), k)), np.empty((len(X), k), dtype=np.intp)
        size = dict(zip(codes.tolist(), counts.tolist(), strict=True))
        few = np.array([size.get(code, 0) <= SMALL_GROUP for code in groups.tolist()], dtype=bool)
        if few.any():
            far, found = self.nearest(X[few], k + SMALL_GROUP)
            own = self.groups[found] == groups[few, None]
            first = np.argsort(own, axis=1, kind="stable")[:, :k]
            distances[few] = np.take_along_axis(far, first, axis=1)
            near[few] = np.take_along_axis(found, first, axis=1)
        for code in np.unique(groups[~few]):
            its, others = np.flatnonzero(groups == code), np.flatnonzero(self.groups != code)
            distances[its], found = self.part(others).nearest(X[its], k)
            near[its] = others[found]
        return distances, near

    def predict(self, X: Array) -> Marginals:
        """Mean and variance of the values at rows, the nugget included."""
        return self._condition_on(lambda its: self.nearest(X[its], self.n_neighbors)[1], X)

    def leave_one_out(self, rows: IntArray) -> Marginals:
        """Leave-one-out predictions of training rows."""
        return self._condition_on(
            lambda its: self.nearest_others(rows[its], self.n_neighbors)[1], self.X[rows]
        )

    def leave_groups_out(self, X: Array, groups: IntArray) -> Marginals:
        """Predictions at rows X from training rows of other groups."""
        near = self.nearest_elsewhere(X, groups, self.n_neighbors)[1]
        return self._condition_on(lambda its: near[its], X)

    def _condition_on(self, neighbors: Callable[[slice], IntArray], X: Array) -> Marginals:
        from rwf.uncertainty import _vecchia

        kernel, V = self.kernel, self.kernel.in_lengths(X)
        mean, variance = np.empty((2, len(X)))

        def fill(its: slice) -> None:
            given = V[its], neighbors(its), kernel.twice_order, kernel.nugget
            _vecchia.condition(self._U, self.values, *given, mean[its], variance[its])

        in_parallel(fill, _slices(len(X)))
        return Marginals(mean, kernel.amplitude * variance)

    def log_density(
        self, rows: IntArray, neighbors: IntArray, kernel: MaternKernel
    ) -> tuple[float, Array]:
        """Mean log density of rows given their neighbors under a kernel, and its gradient by θ."""
        from rwf.uncertainty import _vecchia

        U = kernel.in_lengths(self.X)
        parameters = kernel.twice_order, kernel.amplitude, kernel.nugget

        def part(its: slice) -> Array:
            gradient = np.zeros(len(kernel.lengths) + 2)
            value = _vecchia.log_density(
                U, self.values, rows[its], neighbors[its], *parameters, gradient
            )
            return np.append(value, gradient)

        value, *gradient = np.sum(in_parallel(part, _slices(len(rows))), axis=0) / len(rows)
        return float(value), np.array(gradient)


def learn_vecchia_gp(
    X: Array,
    values: Array,
    rng: np.random.Generator,
    n_neighbors: int = NEIGHBORS,
    groups: IntArray | None = None,
) -> VecchiaGP:
    """All parameters that maximise the density of target rows given their neighbors.

    There are two or more rows, whose values have mean zero. Neighbors are in other groups.
    """
    d, order = X.shape[1], rng.permutation(len(X))
    spread = float(values.std()) or 1.0
    unit = VecchiaGP(MaternKernel(1, np.ones(d), 1.0, 1.0), X, values / spread, n_neighbors, groups)
    farthest = unit.nearest(X[order[: TARGETS_BY_FRACTION[1]]], n_neighbors + 1)[0][:, -1]
    length = FIRST_LENGTH * float(farthest.mean()) or 1.0
    bounds = np.log([*[RANGES["length"]] * d, RANGES["amplitude"], RANGES["nugget"]])
    bounds[:d] += np.log(length)
    start = replace(unit, kernel=MaternKernel(1, np.full(d, length), 1.0, FIRST_NUGGET))
    targets = _targets(start, order)
    with one_blas_thread():  # set once: setting it takes longer than many a density
        rough = [
            _maximized(replace(start, kernel=replace(start.kernel, twice_order=o)), targets, bounds)
            for o in TWICE_ORDERS
        ]
        best = max(rough, key=lambda pair: pair[1])[0]
        kernel = _maximized(best, _targets(best, order), bounds)[0].kernel
    found = replace(kernel, amplitude=kernel.amplitude * spread**2)
    return VecchiaGP(found, X, values, n_neighbors, groups)


def _maximized(
    gp: VecchiaGP, targets: tuple[IntArray, IntArray], bounds: Array
) -> tuple[VecchiaGP, float]:
    """The process with parameters of maximal density for fixed neighbors, and this density."""
    rows, neighbors = targets
    top = maximize(
        lambda theta: gp.log_density(rows, neighbors, gp.kernel.at(theta)),
        gp.kernel.theta,
        bounds,
        max_iter=STEPS,
        ftol=1e-7,
        gtol=1e-4,
        corrections=10,
    )
    return replace(gp, kernel=gp.kernel.at(top.x)), top.value


def _targets(gp: VecchiaGP, order: IntArray) -> tuple[IntArray, IntArray]:
    """Target rows and their neighbors, among all rows and among the first of a random order."""
    rows: list[IntArray] = []
    neighbors: list[IntArray] = []
    affordable = max(MOST_TARGETS // gp.X.shape[1], 1)
    for fraction, most in TARGETS_BY_FRACTION.items():
        among = order[: len(order) // fraction]
        if fraction == 1 or len(among) > gp.n_neighbors:
            part = gp.part(among)
            size = min(most, affordable, len(among))
            first = np.arange(size)
            near = part.nearest_others(first, gp.n_neighbors)[1]
            if fraction == 1 or near.shape[1] == neighbors[0].shape[1]:  # else a group has them all
                rows.append(among[first])
                neighbors.append(among[near])
    return np.concatenate(rows), np.concatenate(neighbors)


def _slices(n: int) -> list[slice]:
    return [slice(i, min(i + ROWS_AT_ONCE, n)) for i in range(0, n, ROWS_AT_ONCE)]
