"""Variance functions, calibration, extrapolation, and nearest-neighbor (Vecchia) blending."""
