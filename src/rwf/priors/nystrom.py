r"""Projected weights: the infinite wavelet kernel on D atoms, w ~ N(0, K_TT⁻¹) instead of iid.

Atoms sit at rows T, and f(x) = k_T(x)ᵀw. With this prior the model is the Gaussian process of the
kernel k projected on the span of its atoms: no Monte-Carlo error remains in the kernel, and with an
atom at every row it is the exact process. It is what the literature calls subset of regressors, or
Nyström. Whitened features :math:`z = L^{-1} k_T(x)`, :math:`K_{TT} = LL^\top`, have iid weights, so
all else is Bayesian linear regression, and its moments add as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.features.base import Family
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS
from rwf.inference.exact import exact_evidence
from rwf.inference.trials import Progress, Trial, best_of, maximize_log_evidence
from rwf.models.base import LOW_DIMENSION
from rwf.models.hyperparameters import Hyperparameters
from rwf.priors.random_features import START_NOISE

HIDDEN = 1e-3
"""Jitter of K_TT hides variances below this fraction of the noise."""

LENGTH_SPREAD, MANY_LENGTHS = 1.0, 16
"""Standard deviation a priori of the log length-scales of a block about their mean, where they are
more than so many: dozens of them would otherwise follow the noise of a thousand rows."""

MIXING_SPREAD = 0.3
"""Standard deviation a priori of how much of one column is added to another."""

LARGEST_JITTER, SMALLEST_JITTER = 1e-8, 1e-11
"""Bounds of that jitter, relative to k(x, x)."""


@dataclass(frozen=True)
class KernelParameters:
    """A kernel and the variances that go with it.

    Args:
        kernel: k.
        log_trend: log prior variance of each block of trend columns.
        log_noise: log noise variance of each output, shape (k,).
    """

    kernel: HatMixture
    log_trend: Array
    log_noise: Array


def first_kernel(
    n_blocks: int, d: int, trend: Sequence[Family], n_outputs: int, *, ard: bool, mix: bool = False
) -> KernelParameters:
    """Where learning starts: k(x, x) = 1, lengths √d (or one, in units of the largest span).

    With ``mix`` it also learns which columns act together.
    """
    kernel = HatMixture(
        log_variances=np.full(n_blocks, -np.log(n_blocks)),
        log_roughness=np.zeros(n_blocks),
        log_lengths=np.full((n_blocks, d), 0.5 * np.log(d) if ard else 0.0),
        ard=ard,
        mixing=np.zeros((n_blocks, d, d)) if mix else None,
    )
    log_trend = np.array([family.start_log_prior for family in trend])
    return KernelParameters(kernel, log_trend, np.full(n_outputs, np.log(START_NOISE)))


def other_kernel(first: KernelParameters, index: int, rng: np.random.Generator) -> KernelParameters:
    """The index-th start: other lengths, jittered so that blocks come apart."""
    lengths = first.kernel.log_lengths
    n_blocks, d = lengths.shape
    if n_blocks > 1 or (index > 0 and d > LOW_DIMENSION):
        width = d if first.kernel.ard else 1
        lengths = lengths + 0.3 * rng.normal(size=(n_blocks, width))
    if d <= LOW_DIMENSION:
        lengths = lengths - index * np.log(4.0)
    return replace(first, kernel=replace(first.kernel, log_lengths=lengths))


def kernel_prior(kernel: HatMixture) -> tuple[float, Array]:
    """log p of lengths and mixing, but for a constant, and its gradient by θ.

    In few columns the prior of lengths is flat.
    """
    theta, d = kernel.theta.reshape(kernel.n_blocks, -1), kernel.log_lengths.shape[1]
    value, by_theta, last = 0.0, np.zeros_like(theta), 2 + (d if kernel.ard else 1)
    if d > MANY_LENGTHS and kernel.ard:
        off = kernel.log_lengths - kernel.log_lengths.mean(axis=1, keepdims=True)
        value -= 0.5 * float(np.vdot(off, off)) / LENGTH_SPREAD**2
        by_theta[:, 2:last] = -off / LENGTH_SPREAD**2
    mixed = theta[:, last:]  # nothing, if columns are not mixed
    value -= 0.5 * float(np.vdot(mixed, mixed)) / MIXING_SPREAD**2
    by_theta[:, last:] = -mixed / MIXING_SPREAD**2
    return value, by_theta.ravel()


def climb_kernel(
    shape: KernelParameters, trend: Stack | None, rows: Block, max_iter: int
) -> tuple[KernelParameters, Trial]:
    """L-BFGS on the exact evidence of the rows over noise, trend and kernel.

    In more than MANY_LENGTHS columns a prior holds the length-scales of a block together, and where
    columns are mixed another keeps them apart; log densities of priors are then part of what is
    reported as evidence.
    """
    k, t, n = len(shape.log_noise), len(shape.log_trend), float(rows.weights.sum())
    Z = np.empty((len(rows), 0)) if trend is None else np.asarray(trend(rows.X), dtype=np.float64)
    groups = np.empty(0, dtype=np.intp) if trend is None else trend.groups

    def unpack(v: Array) -> KernelParameters:
        return KernelParameters(shape.kernel.with_theta(v[k + t :]), v[k : k + t], v[:k])

    def objective(v: Array) -> tuple[float, Array]:
        s = unpack(v)
        e = exact_evidence(s.kernel, rows, Z, groups, s.log_trend, s.log_noise)
        prior, by_theta = kernel_prior(s.kernel)
        gradient = np.concatenate([e.log_noise, e.log_priors, e.theta + by_theta])
        return (e.value + prior) / n, gradient / n

    start = np.concatenate([shape.log_noise, shape.log_trend, shape.kernel.theta])
    bounds = np.vstack(
        [
            np.tile(LOG_NOISE_BOUNDS, (k, 1)),
            np.tile(LOG_PRIOR_BOUNDS, (t, 1)),
            shape.kernel.bounds,
        ]
    )
    names = [f"noise variance {i}" for i in range(k)]
    names += [f"prior variance of trend block {i}" for i in range(t)]
    names += [f"kernel parameter {i}" for i in range(len(shape.kernel.theta))]
    v, report = maximize_log_evidence(objective, start, bounds, names, max_iter)
    return unpack(v), report


def learn_kernel(
    first: KernelParameters,
    trend: Stack | None,
    rows: Block,
    rng: np.random.Generator,
    *,
    n_starts: int,
    max_iter: int,
    progress: Progress,
) -> tuple[KernelParameters, list[Trial]]:
    """The kernel of highest evidence on these rows, among several starts."""
    return best_of(
        [other_kernel(first, index, rng) for index in range(n_starts)],
        lambda shape, iterations: climb_kernel(shape, trend, rows, iterations),
        max_iter=max_iter,
        share=3,
        progress=progress,
    )


def project(shape: KernelParameters, trend: Stack | None, centers: Array) -> Hyperparameters:
    """Features with an atom at every centre, and the variances to start tuning from."""
    kernel = shape.kernel
    hidden = HIDDEN * float(np.exp(shape.log_noise.min())) / kernel.diagonal
    jitter = float(np.clip(hidden, SMALLEST_JITTER, LARGEST_JITTER)) * kernel.diagonal
    atoms = NystromFeatures.at(kernel, centers, jitter)
    maps = (atoms, *(trend.maps if trend is not None else ()))
    return Hyperparameters(Stack(maps), np.concatenate([[0.0], shape.log_trend]), shape.log_noise)


def missing_variance(shape: Hyperparameters, rows: Block) -> float:
    """The mean over rows of k(x, x) - ‖z(x)‖², which the atoms of projected features miss."""
    atoms = shape.features.maps[0]
    assert isinstance(atoms, NystromFeatures)
    return float(atoms.missing(np.asarray(atoms(rows.X))).mean())
