"""Learn the kernel of a field: the density of held-out rows, alone and in blobs, given the others.

Most of the parameters of a metric cannot be told apart until its size is right, so that all lengths
are learned together first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from rwf._types import Array, IntArray
from rwf.data.holdout import HeldOutBlobs
from rwf.inference.optimize import maximize
from rwf.linalg.threads import in_parallel, one_blas_thread
from rwf.uncertainty.kriging import FieldKernel, Kriging

TARGETS, MORE_ALONE = 400, 3  # held-out rows of each size, and how many times as many alone
NEIGHBORS = 20  # of every target
ROUNDS = 2  # how often neighbors are found, each time in the metric learned before
SIZE_STEPS, STEPS = 10, (25, 12)  # of L-BFGS, for the size first, then for all in each round
DEFICIT = 0.02  # nats per row behind the best at which an order is dropped after a round
FIRST_LENGTH = 3.0  # initial length, in distances of the 16th neighbor
FIRST_SIZES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)  # of it, of which the most likely one starts
LENGTH_RANGE, SHEAR_RANGE, RATIO_RANGE = 5.0, 3.0, (0.5, 300.0)
AMPLITUDE_RANGE, NUGGET_RANGE = (1e-5, 4.0), (1e-7, 10.0)  # over the variance of the values
JOBS = 8  # into which the targets are divided for threads


@dataclass(frozen=True)
class _Point:
    """A kernel as a vector: log lengths, shears, log(ratio - 1), log amplitudes, log nugget."""

    d: int
    twice_order: int
    two: bool  # whether there is a long component

    @property
    def _low(self) -> tuple[IntArray, IntArray]:
        return np.tril_indices(self.d, -1)

    @property
    def n_metric(self) -> int:
        return self.d * (self.d + 1) // 2

    def of(self, kernel: FieldKernel) -> Array:
        lengths = 1.0 / np.diag(kernel.metric)
        shears = (kernel.metric * lengths[:, None])[self._low]
        long = kernel.long if self.two else 1.0
        rest = [kernel.ratio - 1.0, kernel.short, long, kernel.nugget]
        return np.concatenate([np.log(lengths), shears, np.log(rest)])

    def metric(self, theta: Array) -> Array:
        unit = np.eye(self.d)
        unit[self._low] = theta[self.d : self.n_metric]
        return unit / np.exp(theta[: self.d])[:, None]

    def kernel(self, theta: Array) -> FieldKernel:
        over, short, long, nugget = np.exp(theta[self.n_metric :]).tolist()
        return FieldKernel(
            self.metric(theta), self.twice_order, short, long if self.two else 0.0, 1 + over, nugget
        )

    def gradient(self, theta: Array, by_metric: Array, by_rest: Array) -> Array:
        """From the gradients by A, and by the logarithms of a₁, a₂, ρ and the nugget."""
        A, ratio = self.metric(theta), 1 + np.exp(theta[self.n_metric])
        lengths = np.exp(theta[: self.d])
        short, long, by_ratio, nugget = by_rest
        rest = [by_ratio * (ratio - 1) / ratio, short, long, nugget]
        if not self.two:
            rest[0] = rest[2] = 0.0
        shears = (by_metric / lengths[:, None])[self._low]
        return np.concatenate([-(by_metric * A).sum(axis=1), shears, rest])

    def bounds(self, theta: Array, variance: float) -> Array:
        d, m = self.d, self.n_metric
        bounds = np.empty((len(theta), 2))
        bounds[:d] = theta[:d, None] + [-LENGTH_RANGE, LENGTH_RANGE]
        bounds[d:m] = [-SHEAR_RANGE, SHEAR_RANGE]
        bounds[m] = np.log(RATIO_RANGE)
        bounds[m + 1 : m + 3] = np.log(AMPLITUDE_RANGE) + np.log(variance)
        if not self.two:
            bounds[m + 2] = [-1.0, 1.0]
        bounds[m + 3] = np.log(NUGGET_RANGE) + np.log(variance)
        return bounds

    def bases(self, metric: str) -> tuple[Array, Array]:
        """Directions for the size of the metric and the rest, and for all that may vary."""
        p, d = self.n_metric + 4, self.d
        rest = np.eye(p)[:, self.n_metric :]
        size = np.zeros((p, 1))
        size[:d] = 1.0
        small = np.hstack([size, rest])
        if metric == "isotropic":
            return small, small
        return small, np.hstack([np.eye(p)[:, : d if metric == "ard" else self.n_metric], rest])


@dataclass(frozen=True)
class _Targets:
    """Held-out rows, the rows they are predicted from, and variances beside the kernel's."""

    X: Array
    values: Array
    targets: Array
    observed: Array
    neighbors: IntArray
    extra: Array

    def log_density(self, kernel: FieldKernel) -> tuple[float, Array, Array]:
        """Mean over the targets, and its gradients by the metric and by the other parameters."""
        from rwf.uncertainty import _kriging

        d = self.X.shape[1]

        def part(its: slice) -> tuple[float, Array, Array]:
            by_metric, by_rest = np.zeros((d, d)), np.zeros(4)
            value = _kriging.log_density(
                self.X, self.values, self.targets[its], self.observed[its], self.neighbors[its],
                kernel.metric, kernel.parameters, self.extra[its], by_rest, by_metric,
            )  # fmt: skip
            return value, by_metric, by_rest

        n = len(self.targets)
        size = -(-n // JOBS)
        parts = in_parallel(part, [slice(i, i + size) for i in range(0, n, size)])
        values, matrices, vectors = zip(*parts, strict=True)
        return (
            float(np.sum(values)) / n,
            np.sum(matrices, axis=0) / n,
            np.sum(vectors, axis=0) / n,
        )


def learn_field_kernel(
    X: Array,
    values: Array,
    held: HeldOutBlobs,
    rng: np.random.Generator,
    *,
    orders: Sequence[tuple[int, bool]] = ((1, False), (3, True), (5, True)),
    extra: Array | None = None,
    metric: str = "full",
    steps: tuple[int, int] = STEPS,
) -> FieldKernel:
    """The kernel under which held-out values, of mean zero, are most likely given the kept ones.

    ``orders`` are twice the Matérn order and whether there is a long component; ``extra`` variances
    of a mean function, which count as far as the kriging weights do not sum to one.
    """
    kept = held.kept
    alone = held.sample(MORE_ALONE * TARGETS, rng)
    chosen = held.sample(TARGETS, rng)
    chosen = np.union1d(alone[held.size[alone] == 0], chosen)
    others, its = np.ascontiguousarray(X[kept]), values[kept]
    spread = float(values.var()) or 1.0
    length = _first_length(X, X[chosen])
    start = FieldKernel(
        np.eye(X.shape[1]) / length, 1, 0.5 * spread, 0.5 * spread, 11.0, 0.01 * spread
    )

    def targets(kernel: FieldKernel) -> _Targets:
        p = Kriging(kernel, others, its, NEIGHBORS).predict(X[chosen])
        own = np.zeros(len(chosen)) if extra is None else (1.0 - p.total) ** 2 * extra[chosen]
        near = np.ascontiguousarray(p.chosen[:, :NEIGHBORS])
        return _Targets(others, its, np.ascontiguousarray(X[chosen]), values[chosen], near, own)

    found: list[tuple[float, FieldKernel]] = []
    with one_blas_thread():
        for twice_order, two in orders:
            first = replace(start, twice_order=twice_order, long=start.long if two else 0.0)
            if found:  # the directions of the first one
                A = found[0][1].metric
                first = replace(first, metric=A / np.exp(np.log(np.diag(A)).mean()) / length)
            first = _sized(first, targets(first))
            found.append(_maximized(first, targets(first), spread, metric, SIZE_STEPS, steps[0]))
        for round_steps in steps[1:]:
            best = max(value for value, _ in found)
            near = [kernel for value, kernel in found if value >= best - DEFICIT]
            found = [_maximized(k, targets(k), spread, metric, 0, round_steps) for k in near]
    return max(found, key=lambda pair: pair[0])[1]


def _first_length(X: Array, targets: Array) -> float:
    k = min(17, len(X))
    distances = np.asarray(cKDTree(X).query(targets, k=[k])[0])
    return FIRST_LENGTH * float(np.median(distances)) or 1.0


def _sized(kernel: FieldKernel, targets: _Targets) -> FieldKernel:
    """The kernel with the best of a few sizes of its metric."""
    sized = [replace(kernel, metric=kernel.metric / size) for size in FIRST_SIZES]
    return max(sized, key=lambda k: targets.log_density(k)[0])


def _maximized(
    kernel: FieldKernel,
    targets: _Targets,
    variance: float,
    metric: str,
    size_steps: int,
    steps: int,
) -> tuple[float, FieldKernel]:
    """The log density reached and the kernel that reaches it, for fixed neighbors."""
    point = _Point(len(kernel.metric), kernel.twice_order, kernel.long > 0)
    theta = point.of(kernel)
    bounds = point.bounds(theta, variance)
    theta = np.clip(theta, *bounds.T)

    def objective(theta: Array) -> tuple[float, Array]:
        value, by_metric, by_rest = targets.log_density(point.kernel(theta))
        return value, point.gradient(theta, by_metric, by_rest)

    small, large = point.bases(metric)
    value = -np.inf
    for basis, max_iter in ((small, size_steps), (large, steps)):
        if max_iter:
            theta, value = _along(objective, theta, basis, bounds, max_iter)
    return value, point.kernel(theta)


def _along(
    objective: Callable[[Array], tuple[float, Array]],
    theta: Array,
    basis: Array,
    bounds: Array,
    max_iter: int,
) -> tuple[Array, float]:
    """The maximum over θ + Bz within bounds, where each entry of θ is moved by one of z at most."""
    low = np.array([np.max(bounds[b > 0, 0] - theta[b > 0]) for b in basis.T])
    high = np.array([np.min(bounds[b > 0, 1] - theta[b > 0]) for b in basis.T])

    def along(z: Array) -> tuple[float, Array]:
        value, gradient = objective(theta + basis @ z)
        return value, gradient @ basis

    limits = np.column_stack([np.minimum(low, 0.0), np.maximum(high, 0.0)])
    top = maximize(
        along, np.zeros(basis.shape[1]), limits, max_iter=max_iter, ftol=1e-5, gtol=1e-5,
        corrections=10,
    )  # fmt: skip
    return theta + basis @ top.x, top.value
