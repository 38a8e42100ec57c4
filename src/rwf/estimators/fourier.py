"""Random Fourier features with the same solver: the stationary regressor to compare with."""

from __future__ import annotations

from rwf.estimators.base import FeatureRegressor
from rwf.estimators.validation import RandomState
from rwf.priors import Fourier, Prior
from rwf.priors.base import CalibrationMode, Metric, Trend
from rwf.priors.random_features import Variances


class RFFRegressor(FeatureRegressor):
    r"""Gaussian-process regression with random Fourier features of a stationary kernel.

    Args:
        n_components: feature columns, two per frequency; ``None`` takes as many as rows, within
            100 and 2000.
        kernel: "se", "matern12", "matern32" or "matern52".
        n_blocks: sums of kernels with their own length-scales and amplitude.
        metric: "ard" for one length-scale per column and block, which is also "auto", or
            "isotropic" for one in all.
        variances: "block" learns one prior variance per block, "unit" fixes all at one.

    All other parameters are those of :class:`~rwf.RWFRegressor`.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str = "se",
        n_blocks: int = 1,
        metric: Metric = "auto",
        trend: Trend = "linear",
        noise: str = "auto",
        calibration: CalibrationMode = "global",
        variances: Variances = "block",
        log_skewed: bool = True,
        max_iter: int = 60,
        n_restarts: int = 2,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.n_blocks = n_blocks
        self.metric = metric
        self.trend = trend
        self.noise = noise
        self.calibration = calibration
        self.variances = variances
        self.log_skewed = log_skewed
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _prior(self) -> Prior:
        return Fourier(self.kernel, self.n_blocks, self.variances)
