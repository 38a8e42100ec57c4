r"""Extrapolation on a line: the variance reverts to the prior's inside gaps and beyond the ends.

A step has one place inside a gap, however wide it is, and there is none beyond the ends. Where the
nearest row is farther away than rows commonly are from each other, the variance of the signal is
added again:

.. math:: \text{missing}(x) = V\,(1 - e^{-u^2/2}), \qquad u = \max(\delta(x) - g/2, 0)/2g

with the distance δ to the nearest row and g, the width that 99 % of the gaps do not exceed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from rwf._types import Array

COMMON = 0.99  # the quantile of the gaps' widths that counts as common: all but the unusual ones
WIDTHS = 2.0  # common widths within which the variance reverts, as fast as atoms decay


@dataclass(frozen=True)
class GapReversion:
    """Where rows are missing, and how far the variance reverts there."""

    starts: Annotated[Array, "g"]  # where each begins, ascending; the first is -∞, beyond the data
    ends: Annotated[Array, "g"]  # where each ends; the last is ∞
    common: float  # g

    @classmethod
    def between(cls, x: Array) -> Self:
        """From the inputs of all rows."""
        x = np.unique(x)
        widths = np.diff(x)
        span = float(x[-1] - x[0]) or 1.0
        common = float(np.quantile(widths, COMMON)) if len(widths) else span
        wide = np.flatnonzero(widths > common)
        starts = np.concatenate([[-np.inf], x[wide], x[-1:]])
        ends = np.concatenate([x[:1], x[wide + 1], [np.inf]])
        return cls(starts, ends, common)

    def prior_share(self, x: Array) -> Array:
        """The share of the prior variance that is added again, shape (n,): zero among rows."""
        index = np.clip(np.searchsorted(self.ends, x), 0, len(self.ends) - 1)
        inside = np.minimum(x - self.starts[index], self.ends[index] - x)
        u = np.maximum(inside - 0.5 * self.common, 0.0) / (WIDTHS * self.common)
        share: Array = -np.expm1(-0.5 * u**2)
        return share
