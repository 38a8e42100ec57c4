"""The spike-and-slab fit: several chains, until they agree, and the draws for predictions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from rwf.data.rows import Block, blocks
from rwf.features.base import Stack
from rwf.inference.moments import Moments, accumulate
from rwf.inference.posterior import normal_log_density
from rwf.inference.spike_slab.chain import Chain, ChainState, Task
from rwf.inference.spike_slab.dense import Smooth
from rwf.inference.spike_slab.dictionary import Dictionary
from rwf.inference.spike_slab.mixture import Draw, Mixture
from rwf.linalg.threads import in_parallel

TOLERANCE = 0.02  # difference of scores, and relative one of σ, up to which chains agree
FEW = 50  # active atoms that are never too many: with few rows, chains overshoot during burn-in


@dataclass(frozen=True)
class Schedule:
    """How long to sample."""

    chains: int = 2  # independent chains
    sweeps: int = 12  # sweeps on one dictionary
    burn_in: int = 6  # dictionaries of every chain whose draws are thrown away, at most
    keeping: int = 5  # dictionaries whose draws are kept
    # how often the latter are done, each time instead of the former draws, until chains agree
    attempts: int = 4
    draws: int = 48  # states to keep in all
    # active atoms per row beyond which to give up with an error, but not while they are no more
    # than FEW
    most_active: float = np.inf


@dataclass(frozen=True)
class SamplerReport:
    """What happened while sampling."""

    sweeps: int  # of the longest chain
    dictionaries: int  # of the longest chain
    noise_deviations: tuple[float, ...]  # σ of every chain, in the mean over its draws
    scores: tuple[float, ...]  # log density of rows left out, in the mean over rows, of every chain
    active: float  # active atoms, in the mean over all draws
    converged: bool  # whether chains agree in both


@dataclass(frozen=True)
class SpikeSlabFit:
    """The atoms and states that were sampled; with moments over its features, it predicts."""

    features: Stack  # atoms of all draws, the constant, and the smooth part
    draws: tuple[Draw, ...]  # the states
    report: SamplerReport  # how they were found

    def same_as(self, other: SpikeSlabFit) -> bool:
        """Whether both have the same columns and states."""
        probe = np.random.default_rng(0).normal(size=(8, 1))
        if len(self.draws) != len(other.draws) or not np.array_equal(
            self.features(probe), other.features(probe)
        ):
            return False
        return all(
            a.noise_variance == b.noise_variance and np.array_equal(a.atoms, b.atoms)
            for a, b in zip(self.draws, other.draws, strict=True)
        )

    @property
    def last_states(self) -> list[ChainState]:
        """Where each chain ended."""
        dictionary = self.features.maps[0]
        assert isinstance(dictionary, Dictionary)
        chains = len(self.report.noise_deviations)
        ends = [draws[-1] for draws in np.array_split(np.array(self.draws, object), chains)]
        return [
            ChainState(dictionary.take(d.atoms), d.variances, d.noise_variance, d.ratios)
            for d in ends
        ]

    def collect(self, rows: Block) -> Moments:
        """Moments of rows over the features. They add."""
        parts = blocks(rows, self.features.n_features)
        return accumulate(self.features, parts, rows.y.shape[1])

    def posterior(self, moments: Moments, output: int = 0) -> Mixture:
        """The posterior that moments of any rows give with these draws."""
        return Mixture(self.draws, moments, output)


def fit_spike_slab(
    rows: Block,
    rng: np.random.Generator,
    smooth: Smooth | None = None,
    schedule: Schedule | None = None,
    start: Sequence[ChainState] = (),
) -> SpikeSlabFit:
    """Sample atoms for one input and output, beside ``smooth`` columns that are always in.

    Chains go on from the states of ``start``, if there are any.
    """
    plan, task = schedule or Schedule(), Task.of(rows, smooth)
    sources = zip(rng.spawn(plan.chains), itertools.cycle(start or [None]), strict=False)
    chains = [Chain(task, source, state) for source, state in sources]
    most = max(plan.most_active * len(task.rows), FEW)
    in_parallel(lambda chain: chain.burn_in(plan.burn_in, plan.sweeps, most), chains)
    # At least two draws of every chain are kept, so that there are halves to compare.
    sweeps = plan.keeping * plan.sweeps
    every = max(1, min(plan.chains * sweeps // plan.draws, sweeps // 2))
    for _ in range(plan.attempts):
        kept = in_parallel(lambda chain: chain.keep(plan.keeping, plan.sweeps, every), chains)
        middle = len(kept[0]) // 2
        parts = kept if len(kept) > 1 else [kept[0][:middle], kept[0][middle:]]
        noise = [float(np.mean([np.sqrt(s.noise_variance) for s in part])) for part in parts]
        scores = in_parallel(lambda part: score(part, task), parts)
        converged = agree(noise, scores, float(task.rows.weights.sum()))
        if converged:
            break
    dictionaries = max(chain.dictionaries for chain in chains)
    states = [state for part in kept for state in part]
    report = SamplerReport(
        sweeps=dictionaries * plan.sweeps,
        dictionaries=dictionaries,
        noise_deviations=tuple(noise),
        scores=tuple(scores),
        active=float(np.mean([len(state.variances) for state in states])),
        converged=converged,
    )
    return SpikeSlabFit(*gather(states, task), report)


def agree(noise: Sequence[float], scores: Sequence[float], n: float) -> bool:
    """Whether chains agree in σ and in their scores, as far as n rows can tell."""
    slack = TOLERANCE + 0.5 * n**-0.5
    return bool(max(noise) <= (1.0 + slack) * min(noise) and max(scores) - min(scores) <= slack)


def score(states: Sequence[ChainState], task: Task) -> float:
    """The log density of rows left out, in the mean over the rows."""
    features, draws = gather(states, task)
    rows = task.rows
    mixture = Mixture(draws, accumulate(features, [rows], 1))
    Z = np.asarray(features(rows.X), dtype=np.float64)
    p = mixture.leave_one_out(Z, rows.y[:, 0], rows.weights)
    log_density = normal_log_density(rows.y[:, 0] - p.mean, p.variance)
    return float(np.average(log_density, weights=rows.weights))


def gather(states: Sequence[ChainState], task: Task) -> tuple[Stack, tuple[Draw, ...]]:
    """One dictionary with the atoms of all states, and the states as indices into it."""
    atoms = Dictionary.join([state.atoms for state in states])
    table = np.column_stack([getattr(atoms, field.name) for field in fields(atoms)])
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    ends = np.cumsum([len(state.variances) for state in states])
    draws = [
        Draw(columns, state.variances, state.noise_variance, state.ratios)
        for columns, state in zip(np.split(which.ravel(), ends[:-1]), states, strict=True)
    ]
    return Stack((atoms.take(first), *task.dense.features.maps)), tuple(draws)
