"""Empirical Bayes on a tree, by MacKay's fixed point: rows are not read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from rwf._types import IntArray
from rwf.features.base import Stack
from rwf.inference.empirical_bayes import Variances, mackay_fixed_point
from rwf.inference.moments import Statistics
from rwf.inference.multifrontal.moments import TreeMoments
from rwf.inference.multifrontal.posterior import TreePosterior

# Initial variances: of the coarsest atoms, by which factor they fall per octave, and of the noise.
# They only save steps: the fixed point hardly depends on them.
COARSEST, FALL, NOISE = 4.0, 3.0, 1e-2


@dataclass(frozen=True)
class TreeEmpiricalBayes:
    """The variances found, the posterior they give, and how they were found."""

    variances: Variances
    posterior: TreePosterior
    evaluations: int
    at_bounds: tuple[str, ...]


def power_law(features: Stack) -> Variances:
    """Initial variances that fall from octave to octave, which halves the steps needed."""
    level, log_priors = 0, []
    for part in features.maps:
        if part.local:
            # Features are divided by the root of their number, so weights are as much larger.
            log_priors.append(np.log(COARSEST * part.n_features) - level * np.log(FALL))
            level += 1
        else:
            log_priors.append(0.0)
    parents = features.parents
    return Variances(np.array(log_priors)[parents], float(np.log(NOISE)))


def tree_fixed_point(
    moments: TreeMoments,
    output: int,
    groups: IntArray,
    start: Variances,
    *,
    parents: IntArray | None = None,
    max_iter: int = 8,
    tol: float = 2e-2,
) -> TreeEmpiricalBayes:
    """:func:`mackay_fixed_point` on a tree; without ``parents``, every group is its own block."""
    blocks = np.arange(len(start.log_priors)) if parents is None else parents
    # The fixed point needs no more than all forms of moments have.
    found = mackay_fixed_point(
        cast(Statistics, moments), output, groups, blocks, start, max_iter=max_iter, tol=tol
    )
    posterior = cast(TreePosterior, found.posterior)
    return TreeEmpiricalBayes(found.variances, posterior, found.evaluations, found.at_bounds)
