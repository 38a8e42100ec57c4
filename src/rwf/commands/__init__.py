"""The commands of ``rwf``: each parses, calls the library and prints.

What is slow to import is imported inside the command that needs it, so that help comes at once.
"""

from rwf.commands import demo, fit, models, predict, report, theory
from rwf.commands.application import app

__all__ = ["app", "demo", "fit", "models", "predict", "report", "theory"]
