"""Rows, their units, and where they come from."""
