r"""The kernel's shape θ by maximal evidence: several starts on a sample of rows with few atoms.

The evidence is multi-modal for wavelets and Fourier features alike, so every method gets several
starts; each runs for a while, the best goes on, and all are reported. θ belongs to the measure and
not to its atoms, so it carries over to a larger draw of atoms on all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rwf.ascent import maximize
from rwf.evidence import evidence
from rwf.features.base import Family
from rwf.features.stack import Stack
from rwf.rows import Block
from rwf.threads import in_parallel
from rwf.tuning import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS, Variances, names_at_bounds
from rwf.types import Array

START_NOISE = 0.1
"""σ² to start from, for targets of unit variance."""

LOW_DIMENSION = 3
"""Up to here starts go down in length by two octaves each; above, they are jittered copies."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Shape:
    """Features with their shape parameters, and the variances that go with them.

    Args:
        features: the blocks.
        log_priors: log prior variance of each block, shape (B,).
        log_noise: log noise variance of each output, shape (k,).
    """

    features: Stack
    log_priors: Array
    log_noise: Array

    def variances(self, output: int) -> Variances:
        return Variances(self.log_priors, float(self.log_noise[output]))


@dataclass(frozen=True)
class Start:
    """What became of one start: log evidence per row, iterations, seconds, parameters at bounds."""

    log_evidence_per_row: float
    iterations: int
    seconds: float
    chosen: bool
    at_bounds: tuple[str, ...] = ()


def draw_stack(
    families: Sequence[Family], n_features: int, X: Array, rng: np.random.Generator
) -> Stack:
    """About ``n_features`` columns shared evenly among the sized families, and the trend's own."""
    count = max(1, sum(family.sized for family in families))
    share, rest = divmod(max(n_features, count), count)
    sizes = iter([share + (i < rest) for i in range(count)])
    return Stack(tuple(f.draw(next(sizes) if f.sized else 0, X, rng) for f in families))


def first_shape(families: Sequence[Family], features: Stack, n_outputs: int) -> Shape:
    """Where learning starts: unit variances, so that k(x, x) = O(1) at the data."""
    log_priors = np.array([family.start_log_prior for family in families])
    return Shape(features, log_priors, np.full(n_outputs, np.log(START_NOISE)))


def other_start(shape: Shape, index: int, d: int, rng: np.random.Generator) -> Shape:
    """The index-th start: shorter lengths in low dimension, jittered lengths otherwise."""
    if index == 0:
        return shape
    theta, mask = shape.features.theta.copy(), shape.features.length_mask
    if d <= LOW_DIMENSION:
        theta[mask] -= index * np.log(4.0)
    else:
        theta[mask] += 0.4 * rng.normal(size=int(mask.sum()))
    bounds = shape.features.bounds
    theta = np.clip(theta, bounds[:, 0], bounds[:, 1])
    return replace(shape, features=shape.features.with_theta(theta))


def climb(
    shape: Shape, rows: Block, max_iter: int, *, learn_priors: bool = True
) -> tuple[Shape, Start]:
    """L-BFGS on the evidence of the rows over σ², prior variances and θ."""
    begun = time.perf_counter()
    k, b = len(shape.log_noise), len(shape.log_priors)
    groups, n = shape.features.groups, float(rows.weights.sum())
    bounds = np.vstack(
        [
            np.tile(LOG_NOISE_BOUNDS, (k, 1)),
            np.tile(LOG_PRIOR_BOUNDS, (b if learn_priors else 0, 1)),
            shape.features.bounds,
        ]
    )

    def unpack(v: Array) -> Shape:
        noise, rest = v[:k], v[k:]
        priors, theta = (rest[:b], rest[b:]) if learn_priors else (shape.log_priors, rest)
        return Shape(shape.features.with_theta(theta), priors, noise)

    def objective(v: Array) -> tuple[float, Array]:
        s = unpack(v)
        e = evidence(s.features, rows, groups, s.log_priors, s.log_noise)
        gradient = [e.log_noise, e.log_priors, e.theta] if learn_priors else [e.log_noise, e.theta]
        return e.value / n, np.concatenate(gradient) / n

    priors = shape.log_priors if learn_priors else np.empty(0)
    v = np.concatenate([shape.log_noise, priors, shape.features.theta])
    top = maximize(objective, v, bounds, max_iter=max_iter, ftol=1e-9, gtol=1e-6, corrections=20)
    names = [f"noise variance {i}" for i in range(k)]
    names += [f"prior variance of block {g}" for g in range(b if learn_priors else 0)]
    names += [f"shape parameter {j}" for j in range(len(shape.features.theta))]
    report = Start(
        log_evidence_per_row=top.value,
        iterations=top.iterations,
        seconds=time.perf_counter() - begun,
        chosen=False,
        at_bounds=names_at_bounds(top.x, bounds, names),
    )
    return unpack(top.x), report


def learn_shape(
    families: Sequence[Family],
    rows: Block,
    rng: np.random.Generator,
    *,
    n_features: int,
    n_starts: int,
    max_iter: int,
    learn_priors: bool = True,
    progress: Progress = lambda message: None,
) -> tuple[Shape, list[Start]]:
    """The shape of highest evidence on these rows, among several starts with the same atoms."""
    d = rows.X.shape[1]
    first = first_shape(families, draw_stack(families, n_features, rows.X, rng), rows.y.shape[1])
    budget = max_iter if n_starts == 1 else max(1, max_iter // 4)

    def attempt(index: int) -> tuple[Shape, Start]:
        shape, report = climb(begin[index], rows, budget, learn_priors=learn_priors)
        progress(
            f"start {index + 1}/{n_starts}: "
            f"log evidence {report.log_evidence_per_row:.4f} per row, "
            f"{report.iterations} iterations, {report.seconds:.1f} s"
        )
        return shape, report

    begin = [other_start(first, index, d, rng) for index in range(n_starts)]
    tried = in_parallel(attempt, range(n_starts))
    best = int(np.argmax([report.log_evidence_per_row for _, report in tried]))
    shape, report = tried[best]
    if n_starts > 1 and report.iterations >= budget:
        shape, more = climb(shape, rows, max_iter - budget, learn_priors=learn_priors)
        report = replace(
            more,
            iterations=report.iterations + more.iterations,
            seconds=report.seconds + more.seconds,
        )
        progress(f"best start continued: log evidence {report.log_evidence_per_row:.4f} per row")
    reports = [r for _, r in tried]
    reports[best] = replace(report, chosen=True)
    return shape, reports
