"""The library's own exceptions: numerical failures that a caller may want to catch."""


class RWFError(Exception):
    """Base class of every error that is neither a ValueError nor a TypeError of the caller."""


class NotPositiveDefiniteError(RWFError):
    """A matrix that must have a Cholesky factor has none, even with the largest jitter."""


class IncompatibleModelsError(RWFError, ValueError):
    """Two models cannot be merged, because their features or scalings differ."""


class NotSparseError(RWFError, ValueError):
    """The data ask for many weights, or are too few to say which are zero: choose another prior."""


class ModelFileError(RWFError, ValueError):
    """A file cannot be loaded: it holds no model, or is damaged, or makes no sense."""


class NewerModelFileError(ModelFileError):
    """A model file was written by a newer version of the library, in a format of its own."""


class UnsavableModelError(RWFError, TypeError):
    """A model holds something that a model file cannot hold, such as a function of the user's."""


class NoSuchColumnError(RWFError, ValueError):
    """A table was asked for a column that it has not, or for one in two roles."""


class CheckpointError(RWFError, ValueError):
    """A fit cannot go on from a checkpoint: it is damaged, or of another fit, or none at all."""


class DamagedCheckpointWarning(UserWarning):
    """The last checkpoint of a fit is damaged, and the one before it was taken."""


class UnknownCategoryWarning(UserWarning):
    """A category was not seen in the fit, and is encoded as zeros."""


class NoAtomsNearbyWarning(UserWarning):
    """A prediction was asked for where the model has no atoms, and knows nothing but its prior."""


class NoImprovementWarning(UserWarning):
    """The fitted model predicts no better than a constant or a straight line."""


class RowsInFileWarning(UserWarning):
    """A model file holds all training rows, and nobody said that this is meant."""
