"""The library's own exceptions: numerical failures that a caller may want to catch."""


class RWFError(Exception):
    """Base class of every error that is neither a ValueError nor a TypeError of the caller."""


class NotPositiveDefiniteError(RWFError):
    """A matrix that must have a Cholesky factor has none, even with the largest jitter."""


class IncompatibleModelsError(RWFError, ValueError):
    """Two models cannot be merged, because their features or scalings differ."""


class NotSparseError(RWFError):
    """Sparse weights were to be few, and the data ask for many: another prior is better."""


class NoAtomsNearbyWarning(UserWarning):
    """A prediction was asked for where the model has no atoms, and knows nothing but its prior."""


class NoImprovementWarning(UserWarning):
    """The fitted model predicts no better than a constant or a straight line."""
