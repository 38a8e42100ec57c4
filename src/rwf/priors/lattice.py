"""The multiscale prior on the multifrontal solver: tens of thousands of local atoms.

Variances are tied within octaves, or within cells of them; held-out rows choose.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from rwf.data.holdout import hold_out
from rwf.data.rows import Block, Rows
from rwf.features.base import Stack
from rwf.inference.empirical_bayes import Variances
from rwf.inference.multifrontal import (
    AtomTree,
    TreeEmpiricalBayes,
    TreeMoments,
    accumulate_tree,
    draw_multifrontal_lattice,
    draw_within,
    power_law,
    tree_fixed_point,
)
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.tree import TreeHyperparameters, TreeModel
from rwf.priors.base import FitConfig, LearnedPrior, LearningTask, Prior
from rwf.priors.tied_variances import in_cells, in_parents, mean_log_density, trial_of
from rwf.uncertainty.extrapolation import support_levels
from rwf.uncertainty.noise import NOISE_MODELS, NoiseTask
from rwf.wavelets import CompactHat, Wavelet
from rwf.wavelets.radial import Bump

WIDTHS = (None, 16.0)  # widths of cells to choose from, in scales; ``None`` ties whole octaves
MOST_DENSE = 8000  # feature columns beyond which one Gram matrix is too large
MANY_ROWS = 20_000  # beyond which, in one or two columns, this solver is the default

ROWS_PER_ATOM, MOST_COMPONENTS = {1: 1, 2: 2, 3: 4}, {1: 250_000, 2: 100_000, 3: 20_000}
"""Rows for every atom, and most atoms, by input columns: atoms in more of them cost more."""

LEAST_COMPONENTS = 100
STEPS = 8  # of the fixed point, at most

FREE_SHARE, UNKNOWN_MEMORY = 0.6, 4 * 2**30  # of free memory to use; bytes where it is unknown


def reason_for_multifrontal(n: int, d: int, config: FitConfig) -> str:
    """Why the multifrontal solver is used for n rows of d columns; empty if it is not."""
    if config.solver == "multifrontal":
        return "solver='multifrontal' was given"
    if config.solver == "dense" or d > LOW_DIMENSION:
        return ""
    if config.n_components is None and d <= 2 and n > MANY_ROWS:
        return f"{n} rows are more than {MANY_ROWS}, on {d} input column(s)"
    if config.n_components is not None and config.n_components > MOST_DENSE:
        return f"{config.n_components} columns are more than {MOST_DENSE}"
    return ""


@dataclass(frozen=True)
class Lattice(Prior):
    """Local atoms on a lattice, with variances over scale and place, on the multifrontal solver."""

    n_inputs: int  # columns of X
    why: str = ""  # why this solver is used
    # bytes that it may take; ``None`` for most of what the machine has free
    memory: int | None = None
    name: ClassVar[str] = "multiscale"
    solvers: ClassVar[tuple[str, ...]] = ("auto", "dense", "multifrontal")
    sample_rows: ClassVar[int] = sys.maxsize

    def n_components(self, n: int) -> int:
        wanted = n // ROWS_PER_ATOM[self.n_inputs]
        return int(np.clip(wanted, LEAST_COMPONENTS, MOST_COMPONENTS[self.n_inputs]))

    def learn(self, task: LearningTask) -> LearnedLattice:
        known, rng = task.known, task.rng
        d, k = known.X.shape[1], known.y.shape[1]
        wavelet: Wavelet = CompactHat() if d == 1 else Bump()
        trend = task.draw_trend()

        def draw(size: int) -> AtomTree:
            atoms = draw_multifrontal_lattice(wavelet, known.X, size, rng)
            return AtomTree.of(Stack((*atoms, *trend)), d)

        tree = draw_within(draw, task.n_components, self.memory or int(FREE_SHARE * free_memory()))
        task.progress(f"multifrontal solver: {tree.n_features:,} columns")
        parameters, trials = learn_tree(tree, known, rng, task.progress)
        return LearnedLattice(
            trials=tuple(trials),
            n_learned=len(parameters.features.maps) + k,
            why=self.why,
            hyperparameters=parameters,
        )


@dataclass(frozen=True, kw_only=True)
class LearnedLattice(LearnedPrior):
    """Atoms on a tree, and the variances that go with them."""

    hyperparameters: TreeHyperparameters

    def condition(self, task: LearningTask, rows: Rows) -> Model:
        model = lattice_model(task, self.hyperparameters, rows)
        noise = NoiseTask(model, rows, task.scored, task.rng, task.progress)
        return NOISE_MODELS[task.config.noise].fit(noise)


def lattice_model(task: LearningTask, found: TreeHyperparameters, rows: Rows) -> TreeModel:
    """The model of rows with constant noise; away from them its variance reverts to the prior's."""
    levels = None
    if task.config.calibration is not None:
        energies = found.tree.block_energies(task.scored.X)
        levels = support_levels(energies, found.features.local_blocks)
    return TreeModel(
        units=task.units, hyperparameters=found, statistics=found.collect(rows), levels=levels
    )


def learn_tree(
    tree: AtomTree, rows: Block, rng: np.random.Generator, progress: Progress
) -> tuple[TreeHyperparameters, list[Trial]]:
    """Variances per octave, or per octave and cell, whichever predicts held-out rows better."""
    k = rows.y.shape[1]
    kept, held = hold_out(rows, rng)
    moments = accumulate_tree(tree, [kept], k)
    by_octave = tied_on_tree(moments, tree.columns.features, [power_law(tree.columns.features)] * k)
    tried: list[tuple[AtomTree, list[TreeEmpiricalBayes], Trial]] = []
    for width in WIDTHS if len(held) else WIDTHS[:1]:
        begun = time.perf_counter()
        stack = tree.columns.features if width is None else in_cells(tree.columns.features, width)
        fits = by_octave
        if width is not None:
            fits = tied_on_tree(moments, stack, in_parents(by_octave, stack))
        density = None
        if len(held):
            density = mean_log_density([t.posterior.predict(held.X) for t in fits], held)
        report = trial_of(fits, moments.n, width, begun, density)
        progress(report.line)
        tried.append((replace(tree, columns=replace(tree.columns, features=stack)), fits, report))
    best = max(tried, key=lambda t: -np.inf if t[2].held_out is None else t[2].held_out)
    found = TreeHyperparameters(best[0], tuple(t.variances for t in best[1]))
    return found, [replace(t[2], chosen=t is best) for t in tried]


def tied_on_tree(
    moments: TreeMoments, stack: Stack, first: Sequence[Variances], max_iter: int = STEPS
) -> list[TreeEmpiricalBayes]:
    """Variances of every output."""
    return [
        tree_fixed_point(
            moments, output, stack.groups, start, parents=stack.parents, max_iter=max_iter
        )
        for output, start in enumerate(first)
    ]


def free_memory() -> int:
    """Bytes that are free, or can be made so."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(line for line in lines if line.startswith("MemAvailable"))
        return 1024 * int(free.split()[1])
    except (OSError, StopIteration):
        return UNKNOWN_MEMORY
