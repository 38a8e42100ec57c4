r"""Fields at many places given the rows of a kriging, jointly.

Places follow each other in a random order, each given its rows and the nearest earlier places N(i):

.. math:: \delta_i = \sum_{j \in N(i)} b_{ij} \delta_j + \sqrt{d_i}\, \xi_i, \qquad
    \operatorname{cov} \delta = LL^\top, \quad L = (I - B)^{-1} D^{1/2}.

L has few entries, so that draws, covariances and variances of linear combinations take time in
proportion to the places. Reference: Katzfuss and Guinness (2021), A general framework for Vecchia
approximations of Gaussian processes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.linalg.threads import in_parallel
from rwf.uncertainty.kriging import FieldKernel, Kriging

EARLIER = 24  # places that a place is drawn given, at most
MOST_EXACT = 5000  # places up to which variances are exact; beyond, they are some per cent less
COLUMNS_AT_ONCE = 256  # of L
CANDIDATES = 60  # among which these are found: some are later
GROWTH = 1.5  # of the places among which they are searched, from batch to batch
PLACES_AT_ONCE = 4096  # of one task in the thread pool


@dataclass(frozen=True)
class ConditionalField:
    """The factor L of the correlations of f at n places, given the rows of a kriging."""

    order: IntArray  # which place is drawn when
    earlier: IntArray  # numbers in this order, shape (n, EARLIER), -1 for none
    weights: Array  # b
    deviations: Array  # √d
    scale: Array  # over deviations, so that variances are one, in the order of drawing
    variances: Array  # given the rows alone, in the order of the places

    @classmethod
    def at(cls, kriging: Kriging, X: Array, rows: IntArray) -> ConditionalField:
        """The field of a kriging, without its noise, at places whose rows are known."""
        from rwf.uncertainty import _conditional

        kernel = without_noise(kriging)
        order = np.random.default_rng(0).permutation(len(X))
        U, V = (np.ascontiguousarray(kernel.coordinates(x)) for x in (kriging.X, X[order]))
        earlier, given = _nearest_earlier(V), np.ascontiguousarray(rows[order])
        weights = np.zeros(earlier.shape)
        all_, alone = np.ones((2, len(X)))
        if kernel.short + kernel.long > 0:

            def work(start: int) -> None:
                its = slice(start, start + PLACES_AT_ONCE)
                _conditional.factor(
                    U, V, given[its], earlier[its], start, kernel.parameters, weights[its],
                    all_[its], alone[its],
                )  # fmt: skip

            in_parallel(work, range(0, len(X), PLACES_AT_ONCE))
        found = cls(order, earlier, weights, np.sqrt(all_), 1 / np.sqrt(alone), np.empty(len(X)))
        found.variances[order] = alone if kernel.short + kernel.long > 0 else 0.0
        return found._normalized() if len(X) <= MOST_EXACT else found

    def _normalized(self) -> ConditionalField:
        """With variances of exactly one: earlier places know rows that a place does not."""
        from rwf.uncertainty import _conditional

        squares, n = np.zeros(len(self.order)), len(self.order)
        for start in range(0, n, COLUMNS_AT_ONCE):
            columns = np.eye(n, min(COLUMNS_AT_ONCE, n - start), -start)
            _conditional.forward(self.weights, self.earlier, self.deviations, columns)
            squares += (columns**2).sum(axis=1)
        return replace(self, scale=1 / np.sqrt(squares))

    def times(self, draws: Array) -> Array:
        """L times independent draws of shape (n, count), each place with variance one."""
        from rwf.uncertainty import _conditional

        values = np.ascontiguousarray(draws[self.order])
        _conditional.forward(self.weights, self.earlier, self.deviations, values)
        found = np.empty_like(values)
        found[self.order] = self.scale[:, None] * values
        return found

    def transposed(self, A: Array) -> Array:
        """AL for combinations of shape (q, n): their covariance is (AL)(AL)ᵀ."""
        from rwf.uncertainty import _conditional

        values = np.ascontiguousarray(A[:, self.order].T) * self.scale[:, None]
        _conditional.backward(self.weights, self.earlier, self.deviations, values)
        found = np.empty_like(values)
        found[self.order] = values
        return found.T


def without_noise(kriging: Kriging) -> FieldKernel:
    """The kernel with all that is noise in its nugget."""
    kernel, noise = kriging.kernel, kriging.noise
    return replace(kernel, short=0.0, nugget=noise) if noise > kernel.nugget else kernel


def _nearest_earlier(V: Array) -> IntArray:
    """The nearest earlier places, -1 for none: all of them for the first few."""
    n = len(V)
    earlier = np.full((n, EARLIER), -1)
    for i in range(min(n, EARLIER + 1)):
        earlier[i, :i] = np.arange(i)
    start = EARLIER + 1
    while start < n:
        end = min(n, max(start + 1, int(GROWTH * start)))
        tree = cKDTree(V[:end], balanced_tree=False, compact_nodes=False)
        near = np.asarray(tree.query(V[start:end], k=min(CANDIDATES, end))[1])
        later = near >= np.arange(start, end)[:, None]
        first = np.argsort(later, axis=1, kind="stable")[:, :EARLIER]
        near[later] = -1
        earlier[start:end] = np.take_along_axis(near, first, axis=1)
        start = end
    return earlier
