r"""Fields at many places given the rows of a kriging, jointly, as errors of kriging.

With f drawn at rows and places without regard to y, and w the weights of the kriging,

.. math:: \delta(x) = f(x) - \sum_r w_r(x)\,(f(x_r) + \varepsilon_r)

has the variance that kriging states at x, whichever rows it took there, and the covariance of its
errors. Rows and places follow each other in a random order. The first ones are drawn by a Cholesky
factor, each later one given the nearest earlier ones. This is a linear map of independent normal
numbers that takes time in proportion to the places, and gives draws, covariances and variances of
linear combinations. References: Journel (1974), Geostatistics for conditional simulation of ore
bodies; Katzfuss and Guinness (2021), A general framework for Vecchia approximations of Gaussian
processes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.linalg.dense import factor_matrix
from rwf.linalg.threads import in_parallel
from rwf.uncertainty.kriging import FieldKernel, Kriging

EXACT = 2000  # rows and places that are drawn by a Cholesky factor
EARLIER = 40  # rows and places that a later one is drawn given
CANDIDATES = 60  # among which these are found: some are later
GROWTH = 1.25  # of the places among which they are searched, from batch to batch
AT_ONCE = 4096  # places of one task in the thread pool


@dataclass(frozen=True)
class PriorField:
    """f at n places as Lz, for independent standard normal z; most of L are its zeros."""

    order: IntArray  # which place is drawn when
    exact: Array  # the Cholesky factor of the covariance of the first places
    earlier: IntArray  # numbers in this order, shape (n, EARLIER), -1 for none
    weights: Array  # of these
    deviations: Array  # given these

    @classmethod
    def at(cls, kernel: FieldKernel, U: Array) -> PriorField:
        """At coordinates U in the metric of a kernel, of which the nugget is no part."""
        from rwf.uncertainty import _conditional

        order = np.random.default_rng(0).permutation(len(U))
        V, first = np.ascontiguousarray(U[order]), min(len(U), EXACT)
        K = np.empty((first, first))
        _conditional.covariances(V[:first], kernel.parameters, K)
        earlier = _nearest_earlier(V, first)
        weights, variances = kriging_weights(replace(kernel, nugget=0.0), V, V, earlier)
        return cls(order, factor_matrix(K).L, earlier, weights, np.sqrt(variances))

    @classmethod
    def independent(cls, n: int) -> PriorField:
        """Independent standard normal numbers at n places."""
        none = np.full((n, 1), -1)
        return cls(np.arange(n), np.empty((0, 0)), none, np.zeros((n, 1)), np.ones(n))

    def times(self, Z: Array) -> Array:
        """LZ, for Z of shape (n, q)."""
        from rwf.uncertainty import _conditional

        values, first = np.ascontiguousarray(Z), len(self.exact)
        values[:first] = self.exact @ values[:first]
        _conditional.forward(self.weights, self.earlier, self.deviations, first, values)
        found = np.empty_like(values)
        found[self.order] = values
        return found

    def transposed(self, A: Array) -> Array:
        """LᵀA, for A of shape (n, q)."""
        from rwf.uncertainty import _conditional

        values, first = np.ascontiguousarray(A[self.order]), len(self.exact)
        _conditional.backward(self.weights, self.earlier, self.deviations, first, values)
        values[:first] = self.exact.T @ values[:first]
        return values


@dataclass(frozen=True)
class ConditionalField:
    """What is unknown of f at n places, over its standard deviation, given the rows of a kriging.

    It is a linear map of independent standard normal numbers.
    """

    field: PriorField  # at rows and places
    kriging: csr_array  # the weights of rows, shape (n, rows)
    noise: float  # standard deviation of the rows
    variances: Array  # given the rows, shape (n,)

    @classmethod
    def at(cls, kriging: Kriging, X: Array, rows: IntArray) -> ConditionalField:
        """The field of a kriging, without its noise, at places whose rows are known."""
        kernel = without_noise(kriging)
        if not kernel.short + kernel.long > 0:  # nothing is unknown
            alone = PriorField.independent(len(X))
            return cls(alone, csr_array((len(X), 0)), 0.0, np.zeros(len(X)))
        used, place = np.unique(rows, return_inverse=True)
        numbers = place.reshape(rows.shape) - np.count_nonzero(used < 0)
        U, V = (kernel.coordinates(x) for x in (kriging.X[used[used >= 0]], X))
        weights, variances = kriging_weights(kernel, U, V, numbers)
        known = numbers >= 0
        starts = np.append(0, np.cumsum(known.sum(axis=1)))
        W = csr_array((weights[known], numbers[known], starts), shape=(len(V), len(U)))
        field = PriorField.at(kernel, np.concatenate([U, V]))
        return cls(field, W, np.sqrt(kernel.nugget), variances)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Independent draws, shape (n, count)."""
        return self.times(rng.normal(size=(self.n_inputs, count)))

    @property
    def n_inputs(self) -> int:
        """Normal numbers that a draw depends on."""
        return len(self.field.order) + self._n_rows

    @property
    def _n_rows(self) -> int:
        return int(self.kriging.shape[1])

    def times(self, Z: Array) -> Array:
        """The map of Z, shape (n_inputs, q)."""
        drawn, noise = np.split(Z, [len(self.field.order)])
        f = self.field.times(drawn)
        at_rows, f = f[: self._n_rows], f[self._n_rows :]
        f -= self.kriging @ (at_rows + self.noise * noise)
        found: Array = self._scale[:, None] * f
        return found

    def transposed(self, A: Array) -> Array:
        """The factor B of the covariance BBᵀ of combinations, for A of shape (q, n)."""
        scaled = (A * self._scale).T
        by_rows = -(self.kriging.T @ scaled)
        inputs = self.field.transposed(np.concatenate([by_rows, scaled]))
        return np.concatenate([inputs, self.noise * by_rows]).T

    @property
    def _scale(self) -> Array:
        return 1.0 / np.sqrt(np.where(self.variances > 0, self.variances, 1.0))


def kriging_weights(
    kernel: FieldKernel, U: Array, V: Array, numbers: IntArray
) -> tuple[Array, Array]:
    """Weights of some of the rows U, -1 for none, in the kriging of f at V, and its variances."""
    from rwf.uncertainty import _conditional

    weights, variances = np.zeros(numbers.shape), np.empty(len(V))

    def work(start: int) -> None:
        its = slice(start, start + AT_ONCE)
        _conditional.condition(
            U, V[its], numbers[its], kernel.parameters, weights[its], variances[its]
        )

    in_parallel(work, range(0, len(V), AT_ONCE))
    return weights, variances


def without_noise(kriging: Kriging) -> FieldKernel:
    """The kernel with all that is noise in its nugget."""
    kernel, noise = kriging.kernel, kriging.noise
    return replace(kernel, short=0.0, nugget=noise) if noise > kernel.nugget else kernel


def _nearest_earlier(V: Array, start: int) -> IntArray:
    """The nearest earlier places, -1 for none, of the places from ``start`` on."""
    n = len(V)
    earlier = np.full((n, EARLIER), -1)
    while start < n:
        end = min(n, max(start + 1, int(GROWTH * start)))
        tree = cKDTree(V[:end], balanced_tree=False, compact_nodes=False)
        near = np.asarray(tree.query(V[start:end], k=np.arange(min(CANDIDATES, end)) + 1)[1])
        later = near >= np.arange(start, end)[:, None]
        first = np.argsort(later, axis=1, kind="stable")[:, :EARLIER]
        near[later] = -1
        earlier[start:end, : first.shape[1]] = np.take_along_axis(near, first, axis=1)
        start = end
    return earlier
