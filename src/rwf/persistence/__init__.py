"""Saved models: one file of numbers and JSON, without any code in it. See docs/model-files.md."""

from rwf.persistence.estimators import SKOPS_TYPES, load, save

__all__ = ["SKOPS_TYPES", "load", "save"]
