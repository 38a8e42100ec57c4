"""Random Fourier features on the same engine: the stationary regressor to compare with."""

from __future__ import annotations

import numpy as np

from rwf.data.scaling import Standardizer
from rwf.estimators.base import ErrorBars, FeatureRegressor, Trend, Variances, is_count
from rwf.estimators.random_state import RandomState
from rwf.features import Family, FourierFamily
from rwf.models.noise import Noise


class RFFRegressor(FeatureRegressor):
    r"""Gaussian-process regression with random Fourier features: stationary, on the same engine.

    Args:
        n_components: feature columns, two per frequency; ``None`` takes as many as rows, within
            100 and 2000.
        kernel: "se", "matern12", "matern32" or "matern52".
        n_blocks: sums of kernels with their own length-scales and amplitude.
        ard: one length-scale per column and block, instead of one in all.
        log_skewed: with ``ard``, replace strongly skewed input columns by their logarithms.
        trend: "linear", "constant" or "none".
        noise: "constant", "varying" for a variance that changes with x, or "auto", which decides by
            leave-one-out densities for up to three columns and takes "constant" for more.
        error_bars: "local" lets error bars follow the size of leave-one-out errors by place, in up
            to three columns and where that raises their density; "global", as is usual for a
            stationary model, does not.
        variances: "block" learns one prior variance per block, "unit" fixes all at one.
        max_iter: iterations of L-BFGS for the shape.
        n_restarts: further starts; the one of highest evidence wins.
        random_state: seed of all draws.
        verbose: 1 reports progress on standard error.
    """

    fill = False  # cosines do not vanish anywhere

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str = "se",
        n_blocks: int = 1,
        ard: bool = True,
        log_skewed: bool = True,
        trend: Trend = "linear",
        noise: Noise = "auto",
        error_bars: ErrorBars = "global",
        variances: Variances = "block",
        max_iter: int = 60,
        n_restarts: int = 2,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.n_blocks = n_blocks
        self.ard = ard
        self.log_skewed = log_skewed
        self.trend = trend
        self.noise = noise
        self.error_bars = error_bars
        self.variances = variances
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.verbose = verbose

    def _families(self, scaler: Standardizer) -> list[Family]:
        if not is_count(self.n_blocks):
            raise ValueError(f"n_blocks={self.n_blocks!r} must be a positive integer.")
        length = float(np.sqrt(len(scaler.columns))) if self.ard else 1.0
        family: Family = FourierFamily(self.kernel, length, self.ard)
        return [family] * self.n_blocks
