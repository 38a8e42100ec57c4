"""Random Fourier features: the prior of a stationary kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rwf.data.scaling import Standardizer
from rwf.features import FourierFamily
from rwf.features.base import Family
from rwf.priors.base import FitConfig, Prior
from rwf.priors.random_features import FeaturePrior, Variances, check_choice, first_length


@dataclass(frozen=True)
class Fourier(FeaturePrior):
    """Random Fourier features of a stationary kernel.

    Args:
        kernel: "se", "matern12", "matern32" or "matern52".
        n_blocks: sums of kernels with their own length-scales and amplitude.
        variances: "block" learns one prior variance per block, "unit" fixes all at one.
    """

    kernel: str = "se"
    n_blocks: int = 1
    variances: Variances = "block"
    name: ClassVar[str] = "fourier"

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        check_choice("variances", self.variances, ("block", "unit"))
        count: object = self.n_blocks
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"n_blocks={self.n_blocks!r} must be a positive integer.")
        return super().for_rows(n, d, config)

    def families(self, units: Standardizer, config: FitConfig) -> list[Family]:
        family: Family = FourierFamily(self.kernel, first_length(units, config), config.ard)
        return [family] * self.n_blocks
