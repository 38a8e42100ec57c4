"""A chain over dictionaries: sample on one, keep the active atoms, draw all others again.

Inactive atoms are draws of the prior and carry no information, so new ones are as good; over many
dictionaries the chain averages over what a single one happens to contain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rwf._types import Array, BoolArray
from rwf.data.rows import Block, distinct
from rwf.errors import NotSparseError
from rwf.inference.spike_slab.columns import CompressedColumns
from rwf.inference.spike_slab.dense import DensePart, Smooth
from rwf.inference.spike_slab.dictionary import NOTHING, Dictionary
from rwf.inference.spike_slab.drawing import Pool, in_blocks, moved_within_gaps, n_blocks, redraw
from rwf.inference.spike_slab.reduction import DenseRows, reduced
from rwf.inference.spike_slab.sampler import Levels, Sampler, VariancePrior
from rwf.inference.spike_slab.spread import neighbour_noise, spread

SLAB = 0.5  # scale of slab variances, in variances of y: atoms are as high as the signal
NOISE = 0.01  # scale of the prior of σ², as a share of what differences of neighbours suggest
COPIES = 2  # atoms drawn near each active one during burn-in, which refine its place and scale
EVENTS = 200  # births and deaths per sweep beyond which burn-in makes sweeps shorter
SETTLED = 0.98  # burn-in ends when a dictionary leaves more than this share of the noise variance
LONGEST = 3000  # most distinct inputs of one dictionary: its cost grows with their square


@dataclass(frozen=True)
class ChainState:
    """A kept state: active atoms with their slab variances, σ², and the ratios of dense columns."""

    atoms: Dictionary
    variances: Array
    noise_variance: float
    ratios: Array

    def take(self, which: BoolArray) -> ChainState:
        """The state with some of its atoms."""
        return replace(self, atoms=self.atoms.take(which), variances=self.variances[which])


@dataclass(frozen=True)
class Task:
    """What all chains have in common."""

    rows: Block  # sorted by their input, equal ones joined, y without its mean
    x: Array  # the distinct inputs, shape (n,)
    prior: VariancePrior  # of variances
    levels: Levels  # hyperparameters to start with
    dense: DensePart  # the columns that are always in
    always: DenseRows  # these columns at the rows

    @classmethod
    def of(cls, rows: Block, smooth: Smooth | None) -> Self:
        """From rows of one input and one output, in any order and units; y is centred."""
        if rows.X.shape[1] != 1 or rows.y.shape[1] != 1:
            raise ValueError(
                "the spike-and-slab prior is for one input and one output, not for "
                f"{rows.X.shape[1]} and {rows.y.shape[1]}. Fit each output by itself, or choose "
                "another prior."
            )
        if rows.weights.sum() < 2:
            raise NotSparseError(
                "the spike-and-slab prior needs at least two rows, counted by their weights. Add "
                "rows, or choose another prior."
            )
        rows = distinct(rows)
        # The prior of the constant is nearly flat, so that centring changes nothing but rounding.
        center = np.average(rows.y, axis=0, weights=rows.weights)
        rows = Block(rows.X, rows.y - center, rows.weights)
        x = np.unique(rows.X[:, 0])
        if len(x) > LONGEST:
            raise ValueError(
                f"{len(x)} distinct inputs are too many for one dictionary. Use fit_windows."
            )
        variance, noise, blocks = spread(rows), neighbour_noise(rows), np.ones(n_blocks(x))
        prior = VariancePrior(SLAB * variance, NOISE * noise)
        levels = Levels(noise, variance * blocks, 0.5 / len(x) * blocks)
        dense = DensePart.of(smooth, noise)
        return cls(rows, x, prior, levels, dense, DenseRows.of(dense.features, rows))


class Chain:
    """One chain, which holds nothing but the active atoms between dictionaries.

    It goes on from the state of another chain, on some of the rows, or begins with no atoms.
    """

    def __init__(
        self, task: Task, rng: np.random.Generator, start: ChainState | None = None
    ) -> None:
        self.task, self.rng, self.levels, self.duration = task, rng, task.levels, 1.0
        self.dictionaries = 0
        noise = task.levels.noise_variance
        self.state = ChainState(NOTHING, np.empty(0), noise, task.dense.ratios)
        if start is not None:
            atoms = in_blocks(start.atoms, task.x)
            slabs, counts = task.levels.slabs.copy(), np.zeros(len(task.levels.slabs))
            slabs[atoms.blocks] = start.variances
            np.add.at(counts, atoms.blocks, 1.0)
            odds = task.levels.odds + counts / len(task.x)
            self.levels = Levels(start.noise_variance, slabs, odds)
            self.state = replace(self.state, atoms=atoms, variances=start.variances)

    def burn_in(self, dictionaries: int, sweeps: int, most: float = np.inf) -> None:
        """Find the posterior, with the dense part fitted again for every dictionary.

        It ends when the noise falls no more. More active atoms than ``most`` are an error: their
        sweeps would take too long.
        """
        before = np.inf
        for _ in range(dictionaries):
            task, state = self.task, self.state
            dense = replace(task.dense, ratios=state.ratios).with_best_ratios(
                task.rows, state.atoms, state.variances, self.levels.noise_variance
            )
            self.state = replace(state, ratios=dense.ratios)
            pool, sampler = self.redraw(COPIES)
            if self.dictionaries == 1 and len(state.variances):
                # The start may have jumps in the wrong gaps: what they miss is noise at first.
                sampler.set_levels(sampler.draw_levels())
                before = sampler.levels.noise_variance
            elif self.dictionaries == 1:
                sampler.grow()
            noise = []
            for _ in range(sweeps):
                if len(sampler.active) > most:
                    raise NotSparseError(f"more than {most:.0f} atoms are active.")
                events = sampler.sweep(self.duration)
                noise.append(sampler.levels.noise_variance)
                if events > EVENTS:
                    self.duration *= EVENTS / events
            self.remember(pool, sampler)
            after = float(np.mean(noise[sweeps // 2 :]))
            if after > SETTLED * before:
                break
            before = after

    def keep(self, dictionaries: int, sweeps: int, every: int) -> list[ChainState]:
        """Draw from the posterior, and keep one state of so many."""
        kept, count = [], 0
        for _ in range(dictionaries):
            pool, sampler = self.redraw(0)
            for _ in range(sweeps):
                sampler.sweep(self.duration)
                count += 1
                if count % every == 0:
                    kept.append(self.remember(pool, sampler))
            self.remember(pool, sampler)
        return kept

    def redraw(self, copies: int) -> tuple[Pool, Sampler]:
        """Another dictionary around the active atoms, and a sampler on it."""
        task = self.task
        self.dictionaries += 1
        pool = redraw(task.x, self.state.atoms, copies, self.rng)
        columns = CompressedColumns.of(pool.dictionary, task.rows.X[:, 0], task.rows.weights)
        moments = reduced(columns, task.always, self.state.ratios)
        blocks = pool.dictionary.blocks
        return pool, Sampler(moments, blocks, task.prior, self.levels, pool.active, self.rng)

    def remember(self, pool: Pool, sampler: Sampler) -> ChainState:
        """The state of the sampler, from which the next dictionary goes on."""
        self.levels = sampler.levels
        self.state = ChainState(
            moved_within_gaps(pool.dictionary.take(sampler.active), self.task.x, self.rng),
            sampler.levels.slabs[sampler.blocks[sampler.active]],
            sampler.levels.noise_variance,
            self.state.ratios,
        )
        return self.state
