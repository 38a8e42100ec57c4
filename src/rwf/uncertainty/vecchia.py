r"""A Gaussian process that asks only the nearest rows: local, and linear in their number.

.. math::
    y(x) \mid y_{N(x)} \sim N\!\left(k^\top K^{-1} y_N,\; k(x, x) + a^2\nu - k^\top K^{-1} k\right),
    \qquad k(x, x') = a^2 \kappa(r), \quad r^2 = \sum_j (x_j - x'_j)^2 / \ell_j^2,

with κ a Matérn kernel, N(x) the nearest rows in this metric, and K their covariance with the nugget
a²ν. Parameters maximise the densities of some rows given their neighbours, most among all rows and
some among a few of them: the first see distances as short as predictions need, which a sample of
rows does not have, and the others see the far ones, on which predictions in gaps depend.
References: Vecchia (1988), Estimation and model identification for continuous spatial processes;
Datta et al. (2016), Hierarchical nearest-neighbor Gaussian process models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.inference.optimize import maximize
from rwf.inference.posterior import Marginals
from rwf.linalg.threads import in_parallel, one_blas_thread

if TYPE_CHECKING:
    from sklearn.neighbors import NearestNeighbors

NEIGHBORS = 16
"""How many rows are asked: more cost their third power, and hardly change a prediction."""

TWICE_ORDERS = (1, 3, 5)
"""Twice the orders of the Matérn kernels that compete: 0, 1 and 2 derivatives."""

TARGETS_BY_FRACTION = {1: 6000, 16: 100, 256: 50}
"""Rows whose densities are maximised, at most, by which fraction of all rows is asked."""

MOST_TARGETS = 150_000
"""Most rows times columns among them: what a density costs grows with both."""

ROUNDS = 2
"""How often neighbours are found anew, in the metric learned with those before."""

HOPELESS = 1.0
"""Nats a row by which an order is so far behind the best that its neighbours are not found anew."""

FIRST_LENGTH, FIRST_NUGGET = 3.0, 0.01
"""Where climbing starts: ℓ in mean distances of the farthest neighbour that is asked, and ν."""

RANGES = {"length": (1e-3, 1e3), "amplitude": (1e-4, 10.0), "nugget": (1e-8, 1e3)}
"""Bounds of a length, relative to where it starts, of a², relative to the variance of the values,
and of ν. The last is positive, so that neighbours at one place have a factor."""

TREE_COLUMNS = 16
"""Columns up to which a tree finds the nearest rows: in more, it looks at nearly all of them, and
products of matrices do that ten times as fast."""

FAR = 1e100
"""Lengths, from zero, beyond which all is equally far from all rows."""

ROWS_AT_ONCE = 2048
"""Rows of one job."""


@dataclass(frozen=True)
class Kernel:
    """a²κ(r), and the nugget of every row.

    Args:
        twice_order: 1, 3 or 5.
        lengths: ℓ, shape (d,).
        amplitude: a².
        nugget: ν, in units of a².
    """

    twice_order: int
    lengths: Array
    amplitude: float
    nugget: float

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
        """x/ℓ, shape (n, d), and at most FAR: there κ is zero, and squares do not overflow yet."""
        with np.errstate(over="ignore"):
            U = np.ascontiguousarray(X / self.lengths)
        return np.clip(U, -FAR, FAR, out=U)


@dataclass(frozen=True)
class VecchiaGP:
    """Rows that are asked, and the kernel that joins them to others.

    Args:
        kernel: in the units of X and of the values.
        X: inputs, shape (n, d).
        values: shape (n,), of mean zero.
        n_neighbours: how many rows are asked at most.
    """

    kernel: Kernel
    X: Array
    values: Array
    n_neighbors: int = NEIGHBORS

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
        """Distances, in lengths, and numbers of the k nearest rows, or of all if there are fewer.

        Both have shape (m, k), nearest first.
        """
        U, k = self.kernel.in_lengths(X), min(k, len(self.X))
        if U.shape[1] <= TREE_COLUMNS:
            distances, near = self._tree.query(U, k=np.arange(1, k + 1))
        else:
            distances, near = self._list.kneighbors(U, k)
        return np.asarray(distances), np.asarray(near, dtype=np.intp)

    def nearest_others(self, rows: IntArray) -> IntArray:
        """The rows that some of the rows ask, and that are not themselves, shape (m, k)."""
        _, near = self.nearest(self.X[rows], self.n_neighbors + 1)
        own = near == rows[:, None]
        # Among more than k rows at one place a row may be missing: then the last one goes.
        own[~own.any(axis=1), -1] = True
        others: IntArray = near[~own].reshape(len(rows), -1)
        return others

    def predict(self, X: Array) -> Marginals:
        """Mean and variance of the values at rows, the nugget included."""
        return self._condition_on(lambda its: self.nearest(X[its], self.n_neighbors)[1], X)

    def leave_one_out(self, rows: IntArray) -> Marginals:
        """Predictions of some of the rows as if each were unseen."""
        return self._condition_on(lambda its: self.nearest_others(rows[its]), self.X[rows])

    def _condition_on(self, neighbors: Callable[[slice], IntArray], X: Array) -> Marginals:
        from rwf.uncertainty import _vecchia as _vecchia

        kernel, V = self.kernel, self.kernel.in_lengths(X)
        mean, variance = np.empty((2, len(X)))

        def tell(its: slice) -> None:
            _vecchia.condition(
                self._U,
                self.values,
                V[its],
                neighbors(its),
                kernel.twice_order,
                kernel.nugget,
                mean[its],
                variance[its],
            )

        in_parallel(tell, _slices(len(X)))
        return Marginals(mean, kernel.amplitude * variance)

    def log_density(
        self, rows: IntArray, neighbors: IntArray, kernel: Kernel
    ) -> tuple[float, Array]:
        """Mean log density of rows given their neighbours, under a kernel; its gradient by θ."""
        from rwf.uncertainty import _vecchia as _vecchia

        U = kernel.in_lengths(self.X)

        def part(its: slice) -> Array:
            gradient = np.zeros(len(kernel.lengths) + 2)
            value = _vecchia.log_density(
                U,
                self.values,
                rows[its],
                neighbors[its],
                kernel.twice_order,
                kernel.amplitude,
                kernel.nugget,
                gradient,
            )
            return np.append(value, gradient)

        value, *gradient = np.sum(in_parallel(part, _slices(len(rows))), axis=0) / len(rows)
        return float(value), np.array(gradient)


def learn_vecchia_gp(
    X: Array, values: Array, rng: np.random.Generator, n_neighbors: int = NEIGHBORS
) -> VecchiaGP:
    """The process of rows, at least two, of mean zero; all parameters are learned from them.

    For every order, lengths, amplitude and nugget climb the mean log density of a sample of rows
    given their neighbours; the order of the highest one is taken. Orders far behind after the first
    round climb no more.
    """
    d, order = X.shape[1], rng.permutation(len(X))
    spread = float(values.std()) or 1.0
    unit = VecchiaGP(Kernel(1, np.ones(d), 1.0, 1.0), X, values / spread, n_neighbors)
    farthest = unit.nearest(X[order[: TARGETS_BY_FRACTION[1]]], n_neighbors + 1)[0][:, -1]
    length = FIRST_LENGTH * float(farthest.mean()) or 1.0
    bounds = np.log([*[RANGES["length"]] * d, RANGES["amplitude"], RANGES["nugget"]])
    bounds[:d] += np.log(length)
    start = replace(unit, kernel=Kernel(1, np.full(d, length), 1.0, FIRST_NUGGET))
    first, learned = _targets(start, order), []
    with one_blas_thread():  # to ask for it anew takes longer than many a density
        for twice_order in TWICE_ORDERS:
            gp = replace(start, kernel=replace(start.kernel, twice_order=twice_order))
            learned.append(_maximized(gp, first, bounds))
        for _ in range(1, ROUNDS):
            least = max(value for _, value in learned) - HOPELESS
            near = [gp for gp, value in learned if value >= least]
            learned = [_maximized(gp, _targets(gp, order), bounds) for gp in near]
    kernel = max(learned, key=lambda pair: pair[1])[0].kernel
    found = replace(kernel, amplitude=kernel.amplitude * spread**2)
    return VecchiaGP(found, X, values, n_neighbors)


def _maximized(
    gp: VecchiaGP, targets: tuple[IntArray, IntArray], bounds: Array
) -> tuple[VecchiaGP, float]:
    """The process whose parameters suit rows and the neighbours that they have now."""
    rows, neighbors = targets
    top = maximize(
        lambda theta: gp.log_density(rows, neighbors, gp.kernel.at(theta)),
        gp.kernel.theta,
        bounds,
        max_iter=60,
        ftol=1e-7,
        gtol=1e-4,
        corrections=10,
    )
    return replace(gp, kernel=gp.kernel.at(top.x)), top.value


def _targets(gp: VecchiaGP, order: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and their neighbours, among all rows and among the first few of an order."""
    rows, neighbors = [], []
    affordable = max(MOST_TARGETS // gp.X.shape[1], 1)
    for fraction, most in TARGETS_BY_FRACTION.items():
        asked = order[: len(order) // fraction]
        if fraction == 1 or len(asked) > gp.n_neighbors:
            part = replace(gp, X=gp.X[asked], values=gp.values[asked])
            first = np.arange(min(most, affordable, len(asked)))
            rows.append(asked[first])
            neighbors.append(asked[part.nearest_others(first)])
    return np.concatenate(rows), np.concatenate(neighbors)


def _slices(n: int) -> list[slice]:
    return [slice(i, min(i + ROWS_AT_ONCE, n)) for i in range(0, n, ROWS_AT_ONCE)]
