r"""Nyström: the GP of the wavelet kernel on D inducing rows (subset of regressors).

With inducing inputs T, f(x) = k_T(x)ᵀw and w ~ N(0, K_TT⁻¹): the Gaussian process of the kernel k
restricted to the span of its inducing functions. No Monte-Carlo error remains in the kernel, and
with every row as an inducing input it is the exact process. Whitened
features :math:`z = L^{-1} k_T(x)`, :math:`K_{TT} = LL^\top`, have iid weights, so all else is
Bayesian linear regression, and its moments add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.features.base import Family, Stack
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.inference.empirical_bayes import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS
from rwf.inference.evidence import exact_evidence
from rwf.inference.optimize import Progress, Trial, best_of, maximize_log_evidence
from rwf.models.base import LOW_DIMENSION
from rwf.models.dense import Hyperparameters
from rwf.priors.base import ALL_ROWS, LearnedFeatures, LearningTask, Prior, some_rows
from rwf.priors.random_features import START_NOISE

HIDDEN = 1e-3  # jitter of K_TT hides variances below this fraction of the noise

LENGTH_SPREAD, MANY_LENGTHS = 1.0, 16
"""Standard deviation a priori of the log length-scales of a block about their mean, where they are
more than so many: dozens of them would otherwise follow the noise of a thousand rows."""

MIXING_SPREAD = 0.3  # standard deviation a priori of how much of one column is added to another
LARGEST_JITTER, SMALLEST_JITTER = 1e-8, 1e-11  # bounds of that jitter, relative to k(x, x)


EXACT_ROWS, CHEAP_ROWS = 1000, 500  # rows of the exact evidence, finally and in model selection
COMPONENTS = 2500  # inducing inputs for more than ALL_ROWS rows
MORE_COMPONENTS, MORE_ROWS = 4000, 20_000  # if COMPONENTS miss too much, and for up to so many rows
PROBES = 500  # rows at which the missing variance is measured
ONE_START = 40  # iterations from one starting point: more raise the evidence, not the accuracy
MANY_BLOCKS = 3  # blocks of the kernel for few rows; many rows tell one block precisely


@dataclass(frozen=True)
class Nystrom(Prior):
    """GP with the wavelet kernel on inducing rows; exact with as many of these as rows.

    Args:
        n_blocks: blocks of the kernel; ``None`` takes three for up to 3000 rows and one for more.
        exact_rows: rows whose exact evidence gives the kernel.
        most: inducing inputs where there is hardly any noise, unless ``n_components`` is given.
    """

    n_blocks: int | None = None
    exact_rows: int = EXACT_ROWS
    most: int = MORE_COMPONENTS
    name: ClassVar[str] = "nystrom"
    sample_rows: ClassVar[int] = 10_000  # more than half of them no inducing inputs, for scores

    def n_components(self, n: int) -> int:
        if n <= ALL_ROWS:
            return n
        return min(n, self.most) if n <= MORE_ROWS else COMPONENTS

    def cheap(self) -> Prior:
        return replace(self, exact_rows=CHEAP_ROWS, most=COMPONENTS)

    def learn(self, task: LearningTask) -> LearnedFeatures:
        known, config, rng = task.known, task.config, task.rng
        d, k = known.X.shape[1], known.y.shape[1]
        n_blocks = self.n_blocks or (MANY_BLOCKS if len(known) <= ALL_ROWS else 1)
        maps = tuple(task.draw_trend())
        trend = Stack(maps) if maps else None
        # Few rows have several blocks, for which a full metric would overfit.
        full = d > 1 and config.metric == "full"
        full |= config.metric == "auto" and n_blocks == 1 and LOW_DIMENSION < d <= MANY_LENGTHS
        first = first_kernel(n_blocks, d, task.trend, k, ard=config.ard, full=full)
        search = config
        if d > LOW_DIMENSION and config.n_restarts is None:
            search = replace(config, n_restarts=0, iterations=config.iterations or ONE_START)
        parameters, trials = learn_kernel(
            first,
            trend,
            some_rows(known, self.exact_rows, rng),
            rng,
            n_trials=search.n_trials,
            max_iter=search.max_iter,
            progress=task.progress,
        )
        return LearnedFeatures(
            trials=tuple(trials),
            at_bounds=next(trial.at_bounds for trial in trials if trial.chosen),
            n_learned=len(parameters.kernel.theta) + len(parameters.log_trend) + k,
            blends=True,
            hyperparameters=self._induce(parameters, trend, task),
        )

    def _induce(
        self, parameters: KernelParameters, trend: Stack | None, task: LearningTask
    ) -> Hyperparameters:
        """The inducing inputs: ``n_components`` of them, or fewer that do as well."""
        known, rng = task.known, task.rng
        if task.config.n_components is None and task.n_components > ALL_ROWS:
            few = induced(parameters, trend, some_rows(known, COMPONENTS, rng).X)
            missing = missing_variance(few, some_rows(known, PROBES, rng))
            noise = float(np.exp(parameters.log_noise.min()))
            task.progress(
                f"{COMPONENTS} inducing rows miss a variance of {missing:.2g}; noise {noise:.2g}"
            )
            if missing <= noise:
                return few
        return induced(parameters, trend, some_rows(known, task.n_components, rng).X)


@dataclass(frozen=True)
class KernelParameters:
    """A kernel and the variances that go with it."""

    kernel: HatMixture  # k
    log_trend: Array  # log prior variance of each block of trend columns
    log_noise: Array  # log noise variance of each output, shape (k,)


def first_kernel(
    n_blocks: int, d: int, trend: Sequence[Family], n_outputs: int, *, ard: bool, full: bool = False
) -> KernelParameters:
    """Initial values: k(x, x) = 1, lengths √d (or one, in units of the largest span)."""
    kernel = HatMixture(
        log_variances=np.full(n_blocks, -np.log(n_blocks)),
        log_roughness=np.zeros(n_blocks),
        log_lengths=np.full((n_blocks, d), 0.5 * np.log(d) if ard else 0.0),
        ard=ard,
        mixing=np.zeros((n_blocks, d, d)) if full else None,
    )
    log_trend = np.array([family.start_log_prior for family in trend])
    return KernelParameters(kernel, log_trend, np.full(n_outputs, np.log(START_NOISE)))


def other_kernel(first: KernelParameters, index: int, rng: np.random.Generator) -> KernelParameters:
    """Initial values of the index-th trial: other lengths, jittered so that blocks come apart."""
    lengths = first.kernel.log_lengths
    n_blocks, d = lengths.shape
    if n_blocks > 1 or (index > 0 and d > LOW_DIMENSION):
        width = d if first.kernel.ard else 1
        lengths = lengths + 0.3 * rng.normal(size=(n_blocks, width))
    if d <= LOW_DIMENSION:
        lengths = lengths - index * np.log(4.0)
    return replace(first, kernel=replace(first.kernel, log_lengths=lengths))


def kernel_prior(kernel: HatMixture) -> tuple[float, Array]:
    """log p of lengths, flat for a few of them, and of the full metric, and its gradient by θ."""
    theta, d = kernel.theta.reshape(kernel.n_blocks, -1), kernel.log_lengths.shape[1]
    value, by_theta, last = 0.0, np.zeros_like(theta), 2 + (d if kernel.ard else 1)
    if d > MANY_LENGTHS and kernel.ard:
        off = kernel.log_lengths - kernel.log_lengths.mean(axis=1, keepdims=True)
        value -= 0.5 * float(np.vdot(off, off)) / LENGTH_SPREAD**2
        by_theta[:, 2:last] = -off / LENGTH_SPREAD**2
    mixed = theta[:, last:]  # nothing, unless the metric is full
    value -= 0.5 * float(np.vdot(mixed, mixed)) / MIXING_SPREAD**2
    by_theta[:, last:] = -mixed / MIXING_SPREAD**2
    return value, by_theta.ravel()


def theta_names(kernel: HatMixture) -> list[str]:
    """What the entries of θ are, block after block."""
    n_lengths = kernel.log_lengths.shape[1] if kernel.ard else 1
    block = ["kernel variance", "roughness", *["length-scale"] * n_lengths]
    n_rotations = len(kernel.theta) // kernel.n_blocks - len(block)
    return (block + ["rotation"] * n_rotations) * kernel.n_blocks


def climb_kernel(
    shape: KernelParameters, trend: Stack | None, rows: Block, max_iter: int
) -> tuple[KernelParameters, Trial]:
    """L-BFGS on the exact evidence of the rows, times the kernel's prior, over all parameters."""
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

    v, report = maximize_log_evidence(
        objective,
        max_iter,
        ("noise variance", shape.log_noise, LOG_NOISE_BOUNDS),
        ("prior variance of trend block", shape.log_trend, LOG_PRIOR_BOUNDS),
        (theta_names(shape.kernel), shape.kernel.theta, shape.kernel.bounds),
    )
    return unpack(v), report


def learn_kernel(
    first: KernelParameters,
    trend: Stack | None,
    rows: Block,
    rng: np.random.Generator,
    *,
    n_trials: int,
    max_iter: int,
    progress: Progress,
) -> tuple[KernelParameters, list[Trial]]:
    """The kernel of highest evidence on these rows, among several trials."""
    return best_of(
        [other_kernel(first, index, rng) for index in range(n_trials)],
        lambda shape, iterations: climb_kernel(shape, trend, rows, iterations),
        max_iter=max_iter,
        share=3,
        progress=progress,
    )


def induced(shape: KernelParameters, trend: Stack | None, centers: Array) -> Hyperparameters:
    """Features with an atom at every centre, and initial variances."""
    kernel = shape.kernel
    hidden = HIDDEN * float(np.exp(shape.log_noise.min())) / kernel.diagonal
    jitter = float(np.clip(hidden, SMALLEST_JITTER, LARGEST_JITTER)) * kernel.diagonal
    atoms = NystromFeatures.at(kernel, centers, jitter)
    maps = (atoms, *(trend.maps if trend is not None else ()))
    return Hyperparameters(Stack(maps), np.concatenate([[0.0], shape.log_trend]), shape.log_noise)


def missing_variance(shape: Hyperparameters, rows: Block) -> float:
    """The mean over rows of k(x, x) - ‖z(x)‖², which the inducing rows miss."""
    atoms = shape.features.maps[0]
    assert isinstance(atoms, NystromFeatures)
    return float(atoms.missing(np.asarray(atoms(rows.X))).mean())
