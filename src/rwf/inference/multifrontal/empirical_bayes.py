"""Noise and prior variances of a tree's columns by the fixed point: rows are not touched again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from rwf._types import IntArray
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import Variances, mackay_fixed_point
from rwf.inference.moments import Statistics
from rwf.inference.multifrontal.moments import TreeMoments
from rwf.inference.multifrontal.posterior import TreePosterior

COARSEST, FALL, NOISE = 4.0, 3.0, 1e-2
"""Where to start for targets of unit variance: the variance of coarsest atoms' weights for atoms of
unit peak, the factor by which it falls from octave to octave, and that of the noise."""


@dataclass(frozen=True)
class TreeEmpiricalBayes:
    """The variances found, the posterior they give, and how they were found."""

    variances: Variances
    posterior: TreePosterior
    evaluations: int
    at_bounds: tuple[str, ...]

    def rescaled(self, factor: float) -> TreeEmpiricalBayes:
        """The same with all variances larger by a factor."""
        log = float(np.log(factor))
        variances = Variances(self.variances.log_priors + log, self.variances.log_noise + log)
        return replace(self, variances=variances, posterior=self.posterior.rescaled(factor))


def power_law(features: Stack) -> Variances:
    """Variances to start from: they fall from octave to octave, as those of most functions do.

    From a constant, the fixed point needs twice as many steps and drives coarse octaves that hardly
    matter to extremes first.
    """
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
    """Tied prior variances and noise by MacKay's fixed point: one factor and inverse a step.

    Args:
        moments: all that is known of the rows.
        output: which output.
        groups: the group of every column, shape (p,).
        start: variances to start from.
        parents: the block of every group, shape (G,); each is its own if not given.
        max_iter: most steps.
        tol: mean change of log prior variances at which to stop.
    """
    blocks = np.arange(len(start.log_priors)) if parents is None else parents
    # The fixed point asks for no more than both forms of moments have.
    found = mackay_fixed_point(
        cast(Statistics, moments), output, groups, blocks, start, max_iter=max_iter, tol=tol
    )
    posterior = cast(TreePosterior, found.posterior)
    return TreeEmpiricalBayes(found.variances, posterior, found.evaluations, found.at_bounds)
