"""All commands of ``rwf``, gathered on one application.

What is slow to import is imported inside the command that needs it, so that help comes at once.
"""

from rwf.cli import demo, fit, models, predict, report, theory
from rwf.cli.app import app

__all__ = ["app", "demo", "fit", "models", "predict", "report", "theory"]
