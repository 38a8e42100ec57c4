"""The library's own exceptions: numerical failures that a caller may want to catch."""


class RWFError(Exception):
    """Base class of every error that is neither a ValueError nor a TypeError of the caller."""


class NotPositiveDefiniteError(RWFError):
    """A matrix that must have a Cholesky factor has none, even with the largest jitter."""


class IncompatibleModelsError(RWFError, ValueError):
    """Two models cannot be merged, because their features or scalings differ."""


class NotSparseError(RWFError, ValueError):
    """The data need many nonzero weights, or are too few to select them: choose another prior."""


class ModelFileError(RWFError, ValueError):
    """A file cannot be loaded: it holds no model, is damaged or is inconsistent."""


class NewerModelFileError(ModelFileError):
    """A model file was written by a newer version of the library, in a newer format."""


class UnsavableModelError(RWFError, TypeError):
    """A model holds something that a model file cannot hold, such as a user's function."""


class NoSuchColumnError(RWFError, ValueError):
    """A column is not in the table, or is named in two roles."""


class CheckpointError(RWFError, ValueError):
    """A fit cannot continue from a checkpoint: it is damaged, of another fit, or none at all."""


class DamagedCheckpointWarning(UserWarning):
    """The last checkpoint of a fit is damaged, and the previous one was used."""


class UnknownCategoryWarning(UserWarning):
    """A category was not in the training data: it is encoded as zeros, or the mean target."""


class NoAtomsNearbyWarning(UserWarning):
    """A prediction is far from all atoms, where it reverts to the prior."""


class NoImprovementWarning(UserWarning):
    """The fitted model predicts no better than a constant or a straight line."""


class RepeatedInputsWarning(UserWarning):
    """Many rows have the inputs of another row: single held-out rows say little about new ones."""


class RowsInFileWarning(UserWarning):
    """A model file holds all training rows, and ``save`` was not told that this is intended."""


class DegreesAsPlaneWarning(UserWarning):
    """A map in degrees is treated as a plane at latitudes where it is none."""
