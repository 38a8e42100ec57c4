r"""How good a Gaussian prediction is: error, sharpness and calibration, each with its direction.

Every metric compares targets y with predictive means μ and standard deviations σ, the noise
included, in the units of y. :data:`METRICS` holds them under one call, ``metric(y, mean, std)``.
Reference: Gneiting and Raftery (2007), Strictly proper scoring rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from rwf.types import Array

LEVEL = 0.95
"""The nominal coverage of the intervals in :data:`METRICS`."""


@dataclass(frozen=True)
class Metric:
    """A named score of ``(y, mean, std)`` that says which way is better.

    Args:
        name: as printed in tables.
        better: "lower", "higher", or "nominal" where being close to :data:`LEVEL` is.
        function: the score, a mean over rows.
    """

    name: str
    better: Literal["lower", "higher", "nominal"]
    function: Callable[[ArrayLike, ArrayLike, ArrayLike], float]

    def __call__(self, y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
        return self.function(y, mean, std)


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Root mean squared error, :math:`\sqrt{\tfrac1n \sum_i (y_i - \mu_i)^2}`."""
    y, mean = _aligned(y=y, mean=mean)
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def crps(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Continuous ranked probability score of N(μ, σ²), in closed form.

    .. math::
        \int \bigl(F(x) - 1\{y \le x\}\bigr)^2 dx
        = \sigma \Bigl[ z\,(2\Phi(z) - 1) + 2\varphi(z) - \tfrac{1}{\sqrt\pi} \Bigr],
        \qquad z = \frac{y - \mu}{\sigma}.
    """
    z, std = _standardized(y, mean, std)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return float(np.mean(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))))


def nll(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Negative log predictive density, the mean of :math:`z^2/2 + \log\sigma\sqrt{2\pi}`."""
    z, std = _standardized(y, mean, std)
    return float(np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)))


def coverage(y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = LEVEL) -> float:
    r"""Share of targets inside the central interval that should hold ``level`` of them.

    .. math::
        \tfrac1n \sum_i 1\{ |y_i - \mu_i| \le q\,\sigma_i \},
        \qquad q = \Phi^{-1}\bigl(\tfrac{1 + \text{level}}{2}\bigr).
    """
    z, _ = _standardized(y, mean, std)
    return float(np.mean(np.abs(z) <= _half_width(level)))


def interval_width(std: ArrayLike, level: float = LEVEL) -> float:
    r"""Mean width :math:`2 q \sigma_i` of the central intervals that :func:`coverage` counts."""
    (std,) = _aligned(std=std)
    return float(np.mean(2 * _half_width(level) * _positive(std)))


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("rmse", "lower", lambda y, mean, std: rmse(y, mean)),
            Metric("crps", "lower", crps),
            Metric("nll", "lower", nll),
            Metric("coverage", "nominal", coverage),
            Metric("width", "lower", lambda y, mean, std: interval_width(std)),
        )
    }
)
"""Every metric by its name; coverage and width are those of :data:`LEVEL` intervals."""


def _standardized(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array]:
    """The residuals in standard deviations, z, and the standard deviations."""
    y, mean, std = _aligned(y=y, mean=mean, std=std)
    return (y - mean) / _positive(std), std


def _aligned(**named: ArrayLike) -> list[Array]:
    """The arguments as finite float64 arrays of one shape: nothing is broadcast."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        seen = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"Shapes differ: {seen}. Pass arrays of one shape, e.g. mean.ravel().")
    for name, array in arrays.items():
        if array.size == 0:
            raise ValueError(f"{name} is empty. Pass at least one row.")
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise ValueError(
                f"{name} has {bad.size} non-finite values, the first at {bad[0]}. "
                "Drop those rows, or mend what produced them."
            )
    return list(arrays.values())


def _positive(std: Array) -> Array:
    if np.any(std <= 0):
        raise ValueError(
            f"std must be positive; the smallest is {std.min():.3g}. "
            "Pass predictive standard deviations that include the noise, not variances of f."
        )
    return std


def _half_width(level: float) -> float:
    """q, the half-width of a central interval in standard deviations."""
    if not 0 < level < 1:
        raise ValueError(f"level={level} is not a probability. Pass one inside (0, 1), e.g. 0.95.")
    return float(ndtri((1 + level) / 2))
