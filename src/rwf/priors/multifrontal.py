"""Variances of a tree's atoms over scale and place; rows that are kept back choose the cells."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rwf.data.rows import Block, hold_out
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import Variances
from rwf.inference.multifrontal import (
    AtomTree,
    TreeEmpiricalBayes,
    TreeMoments,
    accumulate_tree,
    power_law,
    tree_fixed_point,
)
from rwf.inference.trials import Progress, Trial
from rwf.models.tree import TreeHyperparameters
from rwf.priors.multiscale import in_cells, mean_log_density

WIDTHS = (None, 16.0)
"""Cells to choose from, in scales; ``None`` ties whole octaves."""

HELD_OUT, MOST_HELD_OUT = 0.1, 20_000
"""Share of the rows that decide, and their largest number."""


def learn_tree(
    tree: AtomTree, rows: Block, rng: np.random.Generator, progress: Progress
) -> tuple[TreeHyperparameters, list[Trial]]:
    """Variances per octave, or per octave and cell, whichever predicts held-out rows better."""
    k = rows.y.shape[1]
    share = min(HELD_OUT, MOST_HELD_OUT / max(len(rows), 1))
    kept, held = hold_out(rows, share, rng)
    moments = accumulate_tree(tree, [kept], k)
    first = power_law(tree.columns.features)
    by_octave = _settled(moments, tree.columns.features, [first] * k)
    tried: list[tuple[AtomTree, list[TreeEmpiricalBayes], Trial]] = []
    for width in WIDTHS if len(held) else WIDTHS[:1]:
        begun = time.perf_counter()
        stack = tree.columns.features if width is None else in_cells(tree.columns.features, width)
        fits = by_octave
        if width is not None:
            starts = [
                Variances(t.variances.log_priors[stack.parents], t.variances.log_noise)
                for t in by_octave
            ]
            fits = _settled(moments, stack, starts)
        report = Trial(
            log_evidence_per_row=sum(t.posterior.log_evidence for t in fits) / moments.n,
            iterations=sum(t.evaluations for t in fits),
            seconds=time.perf_counter() - begun,
            name="one variance an octave" if width is None else f"cells of {width:g} scales",
            held_out=mean_log_density([t.posterior.predict(held.X) for t in fits], held)
            if len(held)
            else None,
        )
        progress(f"{report.name}: held-out log density {report.held_out}")
        tried.append((replace(tree, columns=replace(tree.columns, features=stack)), fits, report))
    best = max(tried, key=lambda t: -np.inf if t[2].held_out is None else t[2].held_out)
    shape = TreeHyperparameters(best[0], tuple(t.variances for t in best[1]))
    return shape, [replace(t[2], chosen=t is best) for t in tried]


def _settled(
    moments: TreeMoments, stack: Stack, starts: Sequence[Variances]
) -> list[TreeEmpiricalBayes]:
    return [
        tree_fixed_point(moments, output, stack.groups, start, parents=stack.parents)
        for output, start in enumerate(starts)
    ]
