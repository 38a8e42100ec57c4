"""Prior variances that columns share, and how well they predict held-out rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rwf.data.rows import Block, blocks
from rwf.features.base import Stack
from rwf.features.local import LocalAtoms
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances, mackay_fixed_point
from rwf.inference.moments import Moments, accumulate
from rwf.inference.multifrontal import TreeEmpiricalBayes
from rwf.inference.optimize import Trial
from rwf.inference.posterior import Marginals, normal_log_density

AnyFit: TypeAlias = EmpiricalBayes | TreeEmpiricalBayes


def moments_of(features: Stack, rows: Block) -> Moments:
    """The moments of rows in standardised units."""
    return accumulate(features, blocks(rows, features.n_features), rows.y.shape[1])


def tied_variances(
    moments: Moments, stack: Stack, first: Sequence[Variances]
) -> tuple[EmpiricalBayes, ...]:
    """Variances of every output."""
    return tuple(
        mackay_fixed_point(moments, output, stack.groups, stack.parents, start)
        for output, start in enumerate(first)
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
    """Mean log density of held-out rows, all outputs together, if there are any."""
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


def in_parents(fits: Sequence[AnyFit], stack: Stack) -> list[Variances]:
    """Variances of octaves as starting points for those of their cells, of each output."""
    return [Variances(t.variances.log_priors[stack.parents], t.variances.log_noise) for t in fits]


def trial_of(
    fits: Sequence[AnyFit], n: float, width: float | None, begun: float, held_out: float | None
) -> Trial:
    """What became of cells of a width, in scales, from fits to n rows."""
    return Trial(
        log_evidence_per_row=sum(t.posterior.log_evidence for t in fits) / n,
        iterations=sum(t.evaluations for t in fits),
        seconds=time.perf_counter() - begun,
        name="one variance an octave" if width is None else f"cells of {width:g} scales",
        held_out=held_out,
    )
