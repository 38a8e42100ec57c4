r"""The columns that are always in: a constant, and a smooth part if one is given.

Their weights are N(0, σ²R). The ratios R stay as they are while atoms are sampled; in between, each
group of the smooth part is rescaled by one factor, which maximises the evidence given the active
atoms, together with the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.features.base import ConstantFeatures, Stack
from rwf.inference.empirical_bayes import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import accumulate
from rwf.inference.optimize import maximize
from rwf.inference.spike_slab.dictionary import Dictionary
from rwf.inference.spike_slab.spread import spread

CONSTANT_RATIO = 1e8  # prior variance of the constant over σ²: nearly flat


@dataclass(frozen=True)
class Smooth:
    """A smooth part under the atoms."""

    features: Stack  # its columns
    prior_variances: Array  # initial ones, shape (p,), in the units of y²
    groups: IntArray  # columns of a group keep the proportions of their variances, shape (p,)


@dataclass(frozen=True)
class DensePart:
    """Constant and smooth columns."""

    features: Stack  # the constant first
    ratios: Array  # the diagonal of R, shape (1 + p,)
    groups: IntArray  # shape (1 + p,); group 0 is the constant, whose ratio stays

    @classmethod
    def of(cls, smooth: Smooth | None, noise_variance: float) -> Self:
        """The constant, and the smooth part with its own prior variances."""
        if smooth is None:
            constant, group = Stack((ConstantFeatures(),)), np.zeros(1, dtype=np.intp)
            return cls(constant, np.array([CONSTANT_RATIO]), group)
        ratios = np.append(CONSTANT_RATIO, smooth.prior_variances / noise_variance)
        groups = np.append(0, 1 + smooth.groups)
        return cls(Stack((ConstantFeatures(), *smooth.features.maps)), ratios, groups)

    def with_best_ratios(
        self, rows: Block, atoms: Dictionary, variances: Array, noise_variance: float
    ) -> Self:
        """Ratios of highest evidence, given active atoms and their slab variances, shape (k,)."""
        n_groups, k = int(self.groups.max()), atoms.n_features
        if n_groups == 0:
            return self
        unit = spread(rows)  # so that y has unit variance, for which the bounds are meant
        scaled = Block(rows.X, rows.y / np.sqrt(unit), rows.weights)
        moments = accumulate(Stack((atoms, *self.features.maps)), [scaled], 1)
        groups = np.append(np.zeros(k, dtype=np.intp), 1 + self.groups)

        def objective(v: Array) -> tuple[float, Array]:
            noise = float(np.exp(v[0]))
            dense = noise * self.ratios * np.append(1.0, np.exp(v[1:]))[self.groups]
            posterior = moments.posterior(0, np.append(variances / unit, dense), noise)
            by = variance_gradient(posterior, groups, n_groups + 2)
            # The variances of dense columns follow σ², those of the atoms do not.
            slope = np.append(by.log_noise + by.log_priors[1:].sum(), by.log_priors[2:])
            return posterior.log_evidence / moments.n, slope / moments.n

        start = np.append(np.log(noise_variance / unit), np.zeros(n_groups))
        bounds = np.array([LOG_NOISE_BOUNDS] + [LOG_PRIOR_BOUNDS] * n_groups)
        top = maximize(objective, start, bounds, max_iter=15, ftol=1e-6, gtol=1e-6, corrections=10)
        factors = np.append(1.0, np.exp(top.x[1:]))
        return replace(self, ratios=self.ratios * factors[self.groups])
