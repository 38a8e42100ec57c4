"""The Monte Carlo error of a kernel of D random atoms: constants, bounds and estimates.

*Bounds* hold a priori, from the constants of a wavelet and its measure alone. *Estimates* use the
drawn atoms and the rows at hand, and are far tighter. docs/theory.md states the theorems, and
where the paper's printed forms are wrong.
"""

from rwf.theory.bounds import ErrorBound, Version, on_rows, pointwise, uniform, variance_bound
from rwf.theory.comparison import Comparison, Reading, Setting, compare
from rwf.theory.constants import (
    FeatureConstants,
    constants_of,
    diameter,
    drawn_lipschitz,
    wavelet_constants,
)
from rwf.theory.estimates import KernelEstimate, kernel_error_bars, required_features, sup_error
from rwf.theory.stationarity import StationarityIndex, stationarity_index

__all__ = [
    "Comparison",
    "ErrorBound",
    "FeatureConstants",
    "KernelEstimate",
    "Reading",
    "Setting",
    "StationarityIndex",
    "Version",
    "compare",
    "constants_of",
    "diameter",
    "drawn_lipschitz",
    "kernel_error_bars",
    "on_rows",
    "pointwise",
    "required_features",
    "stationarity_index",
    "sup_error",
    "uniform",
    "variance_bound",
    "wavelet_constants",
]
