r"""The kernel's shape θ by maximal evidence: several starts on a sample of rows with few atoms.

θ belongs to the measure and not to its atoms, so it carries over to a larger draw of atoms on all
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.features.base import Family
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS
from rwf.inference.evidence import evidence
from rwf.inference.trials import Progress, Trial, best_of, maximize_log_evidence
from rwf.models.base import LOW_DIMENSION
from rwf.models.hyperparameters import Hyperparameters

START_NOISE = 0.1
"""σ² to start from, for targets of unit variance."""


def draw_stack(
    families: Sequence[Family], n_features: int, X: Array, rng: np.random.Generator
) -> Stack:
    """About ``n_features`` columns shared evenly among the sized families, and the trend's own."""
    count = max(1, sum(family.sized for family in families))
    share, rest = divmod(max(n_features, count), count)
    sizes = iter([share + (i < rest) for i in range(count)])
    return Stack(tuple(f.draw(next(sizes) if f.sized else 0, X, rng) for f in families))


def first_hyperparameters(
    families: Sequence[Family], features: Stack, n_outputs: int
) -> Hyperparameters:
    """Where learning starts: unit variances, so that k(x, x) = O(1) at the data."""
    log_priors = np.array([family.start_log_prior for family in families])
    return Hyperparameters(features, log_priors, np.full(n_outputs, np.log(START_NOISE)))


def restart(
    shape: Hyperparameters, index: int, d: int, rng: np.random.Generator
) -> Hyperparameters:
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


def maximize_evidence(
    shape: Hyperparameters, rows: Block, max_iter: int, *, learn_priors: bool = True
) -> tuple[Hyperparameters, Trial]:
    """L-BFGS on the evidence of the rows over σ², prior variances and θ."""
    k, b = len(shape.log_noise), len(shape.log_priors) if learn_priors else 0
    groups, n = shape.features.groups, float(rows.weights.sum())

    def unpack(v: Array) -> Hyperparameters:
        priors = v[k : k + b] if learn_priors else shape.log_priors
        return Hyperparameters(shape.features.with_theta(v[k + b :]), priors, v[:k])

    def objective(v: Array) -> tuple[float, Array]:
        s = unpack(v)
        e = evidence(s.features, rows, groups, s.log_priors, s.log_noise)
        return e.value / n, np.concatenate([e.log_noise, e.log_priors[:b], e.theta]) / n

    start = np.concatenate([shape.log_noise, shape.log_priors[:b], shape.features.theta])
    bounds = np.vstack(
        [
            np.tile(LOG_NOISE_BOUNDS, (k, 1)),
            np.tile(LOG_PRIOR_BOUNDS, (b, 1)),
            shape.features.bounds,
        ]
    )
    names = [f"noise variance {i}" for i in range(k)]
    names += [f"prior variance of block {g}" for g in range(b)]
    names += [f"shape parameter {j}" for j in range(len(shape.features.theta))]
    v, report = maximize_log_evidence(objective, start, bounds, names, max_iter)
    return unpack(v), report


def learn_hyperparameters(
    families: Sequence[Family],
    rows: Block,
    rng: np.random.Generator,
    *,
    n_features: int,
    n_starts: int,
    max_iter: int,
    learn_priors: bool = True,
    progress: Progress = lambda message: None,
) -> tuple[Hyperparameters, list[Trial]]:
    """The shape of highest evidence on these rows, among several starts with the same atoms."""
    d = rows.X.shape[1]
    first = first_hyperparameters(
        families, draw_stack(families, n_features, rows.X, rng), rows.y.shape[1]
    )
    return best_of(
        [restart(first, index, d, rng) for index in range(n_starts)],
        lambda shape, iterations: maximize_evidence(
            shape, rows, iterations, learn_priors=learn_priors
        ),
        max_iter=max_iter,
        share=4,
        progress=progress,
    )
