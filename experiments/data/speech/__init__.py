"""Regression on speech, as in the paper's experiment on TIMIT: one row per recording.

The modules are the path from files to rows::

    corpus (which files) ─ audio (samples) ─ alignment (whole?) ─ mel (80 log-energies a frame)
        ─ sums (over frames) ─ normalization (CMVN) ─ targets (what is hidden) ─ problems (by name)

Sums over frames are the hinge: normalising a band is an affine map, so the time-average of
normalised frames, the statistics of any training rows and the principal components of their frames
all follow from them. A new split reads no audio.
"""

from experiments.data.speech.loading import TIMIT_VARIABLE
from experiments.data.speech.problems import PROBLEMS, UNIT, problem

__all__ = ["PROBLEMS", "TIMIT_VARIABLE", "UNIT", "problem"]
