"""Pictures: each function draws on the Axes it is given, and returns it. Nothing is saved."""

from rwf.diagnostics.plots.checks import calibration, predicted_and_actual, standardized_residuals
from rwf.diagnostics.plots.models import (
    learned_variances,
    local_scales,
    prior_deviations,
    scalogram,
)
from rwf.diagnostics.plots.predictions import (
    BLACK,
    BLUE,
    BOUND_STYLES,
    GREEN,
    GREY,
    VERMILION,
    error_by_atoms,
    predictive_band,
)

__all__ = [
    "BLACK",
    "BLUE",
    "BOUND_STYLES",
    "GREEN",
    "GREY",
    "VERMILION",
    "calibration",
    "error_by_atoms",
    "learned_variances",
    "local_scales",
    "predicted_and_actual",
    "predictive_band",
    "prior_deviations",
    "scalogram",
    "standardized_residuals",
]
