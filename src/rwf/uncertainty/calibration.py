"""Calibration of variances by standardised leave-one-out errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtri

from rwf._types import Array

ENOUGH_SCORES = 30  # with fewer, their 95 % quantile is little more than the maximum


@dataclass(frozen=True)
class Calibration:
    """Scores of a model: leave-one-out errors over their standard deviations, shape (n, k)."""

    scores: Annotated[Array, "n k"]

    @property
    def inflation(self) -> Array:
        """The factor, one or more, that calibrates mean squares and 95 % intervals, shape (k,)."""
        if len(self.scores) < ENOUGH_SCORES:
            return np.ones(self.scores.shape[1])
        squares: Array = np.mean(self.scores**2, axis=0)
        tails: Array = np.quantile(np.abs(self.scores), 0.95, axis=0) / ndtri(0.975)
        return np.maximum(np.maximum(squares, tails**2), 1.0)

    def reach(self, coverage: float) -> Array:
        """Calibrated deviations that hold this share, by split-conformal quantiles, shape (k,)."""
        n = len(self.scores)
        rank = min(n, int(np.ceil((n + 1) * coverage)))
        sizes = np.sort(np.abs(self.scores) / np.sqrt(self.inflation), axis=0)
        reach: Array = sizes[rank - 1]
        return reach
