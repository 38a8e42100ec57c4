"""Scores, plots, decompositions and reports of fitted models."""
