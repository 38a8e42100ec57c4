"""Bayesian linear regression on features Z, whatever they are made of."""
