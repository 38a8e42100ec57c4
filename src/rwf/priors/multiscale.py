"""Prior variances over scale and place: the measure p(s, t), learned on cells of a frame.

Variances are tied within an octave, or within its cells, a number of scales wide. Moments of all
rows but a few give the variances of every choice, the few decide between them (the evidence cannot:
it rises with every further variance), and then their moments are added to the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rwf.data.rows import Block, blocks, hold_out
from rwf.features.base import FeatureMap
from rwf.features.local import LocalAtoms
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances, mackay_fixed_point
from rwf.inference.moments import Moments, accumulate
from rwf.inference.posterior import Marginals, normal_log_density
from rwf.inference.trials import Progress, Trial
from rwf.linalg.threads import in_parallel
from rwf.models.hyperparameters import Hyperparameters
from rwf.priors.random_features import START_NOISE

WIDTHS = (None, 16.0, 4.0)
"""Cells to choose from, in scales; ``None`` ties whole octaves."""

HELD_OUT = 0.15
"""Share of the rows that decide."""


@dataclass(frozen=True)
class _Choice:
    stack: Stack
    fits: tuple[EmpiricalBayes, ...]
    report: Trial


def learn_cells(
    octaves: Sequence[LocalAtoms],
    trend: Sequence[FeatureMap],
    rows: Block,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Hyperparameters, list[Trial]]:
    """The frame with the cells that predict held-out rows best, and its variances."""
    k = rows.y.shape[1]
    plain = Stack((*octaves, *trend))
    kept, test = hold_out(rows, HELD_OUT, rng)
    moments = statistics_of(plain, kept)
    first = Variances(np.zeros(len(plain.maps)), float(np.log(START_NOISE)))
    by_octave = settled(moments, plain, [first] * k)

    def attempt(width: float | None) -> _Choice:
        begun = time.perf_counter()
        stack = plain if width is None else in_cells(plain, width)
        starts = [
            Variances(t.variances.log_priors[stack.parents], t.variances.log_noise)
            for t in by_octave
        ]
        fits = settled(moments, stack, starts)
        report = Trial(
            log_evidence_per_row=sum(t.posterior.log_evidence for t in fits) / moments.n,
            iterations=sum(t.evaluations for t in fits),
            seconds=time.perf_counter() - begun,
            name="one variance an octave" if width is None else f"cells of {width:g} scales",
            held_out=held_out_log_density(fits, stack, test),
        )
        shown = "" if report.held_out is None else f"held-out log density {report.held_out:.4f}"
        progress(f"{report.name}: {shown}")
        return _Choice(stack, fits, report)

    tried = in_parallel(attempt, WIDTHS if len(test) else WIDTHS[:1])
    best = max(tried, key=lambda choice: choice.report.held_out or 0.0) if len(test) else tried[0]
    everything = moments + statistics_of(plain, test) if len(test) else moments
    final = settled(everything, best.stack, [t.variances for t in best.fits])
    shape = Hyperparameters(
        best.stack,
        np.mean([t.variances.log_priors for t in final], axis=0),
        np.array([t.variances.log_noise for t in final]),
    )
    return shape, [replace(c.report, chosen=c is best) for c in tried]


def statistics_of(features: Stack, rows: Block) -> Moments:
    """The moments of rows in standardised units."""
    return accumulate(features, blocks(rows, features.n_features), rows.y.shape[1])


def settled(
    moments: Moments, stack: Stack, starts: Sequence[Variances]
) -> tuple[EmpiricalBayes, ...]:
    """Variances of every output."""
    return tuple(
        mackay_fixed_point(moments, output, stack.groups, stack.parents, start)
        for output, start in enumerate(starts)
    )


def in_cells(stack: Stack, width: float) -> Stack:
    """The stack with variances tied in cells of its octaves; a trend is one cell."""
    cells = tuple(
        part.cells(width)
        if isinstance(part, LocalAtoms)
        else np.zeros(part.n_features, dtype=np.intp)
        for part in stack.maps
    )
    return replace(stack, cells=cells)


def held_out_log_density(fits: Sequence[EmpiricalBayes], stack: Stack, rows: Block) -> float | None:
    """Mean log density of rows that were kept back, all outputs together, if there are any."""
    if len(rows) == 0:
        return None
    Z = np.asarray(stack(rows.X), dtype=np.float64)
    return mean_log_density([t.posterior.predict(Z) for t in fits], rows)


def mean_log_density(predictions: Sequence[Marginals], rows: Block) -> float:
    """The same from the predictions of each output."""
    total = np.zeros(len(rows))
    for output, p in enumerate(predictions):
        total += normal_log_density(rows.y[:, output] - p.mean, p.variance)
    return float(np.average(total, weights=rows.weights))
