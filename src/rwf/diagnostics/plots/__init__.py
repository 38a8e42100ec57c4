"""Plots: each function draws on the Axes it is given, and returns it. Nothing is saved."""

from rwf.diagnostics.plots.models import (
    learned_variances,
    local_scales,
    prior_deviations,
    scalogram,
)
from rwf.diagnostics.plots.predictions import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    calibration,
    error_by_atoms,
    importance_bars,
    pit_histogram,
    predicted_and_actual,
    predictive_band,
    standardized_residuals,
    usual_range,
)

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "VERMILION",
    "calibration",
    "error_by_atoms",
    "importance_bars",
    "learned_variances",
    "local_scales",
    "pit_histogram",
    "predicted_and_actual",
    "predictive_band",
    "prior_deviations",
    "scalogram",
    "standardized_residuals",
    "usual_range",
]
