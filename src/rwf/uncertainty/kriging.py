r"""Kriging of fields: a Gaussian process in a full metric, from rows near and, in gaps, far.

.. math::
    k(x, x') = a_1 \kappa_\nu(r) + a_2 e^{-r/\rho}, \qquad r = \|A(x - x')\|,

with κ a Matérn kernel, a lower triangular A, which stretches and shears, and a nugget. Near other
rows a prediction depends on its nearest neighbors alone. In a gap these are all on one side, so
that rows are chosen greedily there, by how much of the variance each explains, from the nearest
rows and from nested random subsets, whose nearest rows are farther and farther away. References:
Gramacy and Apley (2015), Local Gaussian process approximation for large computer experiments;
Stein, Chi and Welty (2004), Approximating likelihoods for large spatial data sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.linalg.threads import in_parallel

NEIGHBORS = 16  # rows that a prediction near others depends on
AROUND = 24  # rows that are chosen in a gap
GAP = 2.5  # median distances of neighbors from which on a place is in a gap
NEAREST, THINNED = 32, 24  # rows of a pool from all rows, and from each subset of them
THINNING = 8  # by which every subset is smaller than the one before
SPACING_ROWS = 2000  # rows whose nearest neighbors give the spacing
FORGOTTEN = 0.1  # correlation of neighbors below which a component is noise
ROWS_AT_ONCE = 4096  # rows of one task in the thread pool
LARGEST_INPUT = 1e100  # in lengths: kernels are zero long before, and squares do not overflow


@dataclass(frozen=True)
class FieldKernel:
    """A covariance of fields, in the units of their inputs and values."""

    metric: Annotated[Array, "d d"]  # A, lower triangular
    twice_order: int  # 2ν: 1, 3 or 5
    short: float  # a₁
    long: float  # a₂; zero if there is one component
    ratio: float  # ρ
    nugget: float

    @property
    def parameters(self) -> Array:
        """As the compiled loops expect them."""
        return np.array([self.short, self.twice_order, self.long, self.ratio, self.nugget])

    @property
    def n_parameters(self) -> int:
        """How many parameters are learned."""
        d = len(self.metric)
        return d * (d + 1) // 2 + (4 if self.long > 0 else 2)

    @property
    def described(self) -> str:
        """The kernel in words, for progress."""
        components = "two components" if self.long > 0 else "one component"
        return f"Matérn-{self.twice_order}/2, {components}, nugget {self.nugget:.2g}"

    def coordinates(self, X: Array) -> Array:
        """Ax of rows, shape (n, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            U = np.ascontiguousarray(X @ self.metric.T)
        return np.clip(np.nan_to_num(U), -LARGEST_INPUT, LARGEST_INPUT)


@dataclass(frozen=True)
class KrigingPrediction:
    """Kriging of n places, and what it was based on."""

    mean: Array  # shape (n,)
    variance: Array  # the nugget included, shape (n,)
    total: Array  # sum of the kriging weights, shape (n,): one among rows, zero far away
    gap: Array  # distance to the nearest row, in median distances of neighbors, shape (n,)
    # rows that it was based on, shape (n, AROUND), -1 for none
    chosen: IntArray
    near: IntArray  # rows nearby, or around a gap, shape (n, k) for k of at most AROUND

    @classmethod
    def joined(cls, parts: list[KrigingPrediction]) -> KrigingPrediction:
        names = ("mean", "variance", "total", "gap", "chosen", "near")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Kriging:
    """Rows, their values, of mean zero, and a kernel."""

    kernel: FieldKernel
    X: Array  # shape (n, d)
    values: Array  # shape (n,)
    n_neighbors: int = NEIGHBORS

    @cached_property
    def _U(self) -> Array:
        return self.kernel.coordinates(self.X)

    @cached_property
    def _subsets(self) -> list[tuple[cKDTree, IntArray]]:
        """All rows, and nested random subsets of them, each with its tree."""
        order, size = np.random.default_rng(0).permutation(len(self.X)), len(self.X)
        found: list[tuple[cKDTree, IntArray]] = []
        while size >= AROUND or not found:
            rows = order[:size]
            tree = cKDTree(self._U[rows], balanced_tree=False, compact_nodes=False)
            found.append((tree, rows))
            size //= THINNING
        return found

    @cached_property
    def spacing(self) -> float:
        """Median distance of a row to its nearest neighbor, in lengths."""
        tree, rows = self._subsets[0]
        distances = np.asarray(tree.query(self._U[rows[:SPACING_ROWS]], k=[2])[0])
        finite = distances[np.isfinite(distances) & (distances > 0)]
        return float(np.median(finite)) if len(finite) else 1.0

    @cached_property
    def noise(self) -> float:
        """The variance that no neighbor explains, however rows are placed: the nugget.

        A short component that is forgotten within the distance of neighbors is noise, too.
        """
        kernel = self.kernel
        r = float(np.sqrt(kernel.twice_order)) * self.spacing
        polynomial = {1: 1.0, 3: 1.0 + r, 5: 1.0 + r + r * r / 3.0}[kernel.twice_order]
        forgotten = polynomial * float(np.exp(-r)) < FORGOTTEN
        return kernel.nugget + (kernel.short if forgotten else 0.0)

    def predict(self, X: Array) -> KrigingPrediction:
        """Kriging at inputs X."""
        return self._in_parallel(X, np.full(len(X), -1))

    def leave_one_out(self, rows: IntArray) -> KrigingPrediction:
        """Kriging of rows from all others."""
        return self._in_parallel(self.X[rows], rows)

    def _in_parallel(self, X: Array, own: IntArray) -> KrigingPrediction:
        V, _ = self.kernel.coordinates(X), self.spacing
        starts = range(0, max(len(X), 1), ROWS_AT_ONCE)
        slices = [slice(start, start + ROWS_AT_ONCE) for start in starts]
        return KrigingPrediction.joined(in_parallel(lambda its: self._at(V[its], own[its]), slices))

    def _at(self, V: Array, own: IntArray) -> KrigingPrediction:
        """Kriging at coordinates V without rows of the numbers ``own``, -1 for none."""
        distances, near = self._nearest(V, own)
        gap = distances[:, 0] / self.spacing
        mean, variance, total = np.empty((3, len(V)))
        chosen = np.full((len(V), max(AROUND, self.n_neighbors)), -1)
        in_gap = gap > GAP
        for among, most in ((False, self.n_neighbors), (True, AROUND)):
            its = np.flatnonzero(in_gap == among)
            if len(its) == 0:
                continue
            pool = self._pool(V[its], own[its]) if among else near[its, :most]
            found = np.empty((3, len(its)))
            used = np.full((len(its), most), -1)
            self._condition(V[its], pool, *found, used)
            mean[its], variance[its], total[its] = found
            chosen[its, :most] = used
        # Around a gap, the rows nearby are those chosen; the first stands for those not needed.
        k = min(AROUND, near.shape[1])
        around = np.where(chosen[:, :k] < 0, np.maximum(chosen[:, :1], 0), chosen[:, :k])
        return KrigingPrediction(
            mean, variance, total, gap, chosen, np.where(in_gap[:, None], around, near[:, :k])
        )

    def _condition(self, V: Array, pool: IntArray, *found: Array) -> None:
        from rwf.uncertainty import _kriging

        pool, kernel = np.ascontiguousarray(pool), self.kernel.parameters
        _kriging.condition(self._U, self.values, V, pool, kernel, *found)

    def _nearest(self, V: Array, own: IntArray) -> tuple[Array, IntArray]:
        """Distances and numbers of the nearest rows, without a place's own, shape (m, k)."""
        tree, rows = self._subsets[0]
        with_own = bool((own >= 0).any())  # of all places, or of none
        k = min(max(AROUND, self.n_neighbors) + with_own, len(rows))
        found = tree.query(V, k=np.arange(1, k + 1))
        distances, near = np.asarray(found[0]), rows[np.minimum(found[1], len(rows) - 1)]
        if not with_own:
            return distances, near
        drop = near == own[:, None]
        # A row that is not found among many coincident ones loses its last neighbor.
        drop[~drop.any(axis=1), -1] = True
        return distances[~drop].reshape(len(V), k - 1), near[~drop].reshape(len(V), k - 1)

    def _pool(self, V: Array, own: IntArray) -> IntArray:
        """Rows near and far, each once, -1 in the place of others."""
        parts = []
        for level, (tree, rows) in enumerate(self._subsets):
            k = min(THINNED if level else NEAREST, len(rows))
            parts.append(rows[tree.query(V, k=np.arange(1, k + 1))[1]])
        pool = np.concatenate(parts, axis=1)
        order = np.argsort(pool, axis=1, kind="stable")
        ordered = np.take_along_axis(pool, order, axis=1)
        repeated = np.zeros(pool.shape, dtype=bool)
        again = np.zeros_like(repeated)
        again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        np.put_along_axis(repeated, order, again, axis=1)
        return np.where(repeated | (pool == own[:, None]), -1, pool)
