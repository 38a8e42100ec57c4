"""Bayesian linear regression on features Z: it knows columns, and never wavelets."""
