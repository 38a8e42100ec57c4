"""Fitted models: features, statistics, and the posterior that follows from them."""
