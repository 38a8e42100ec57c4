"""Sparse weights for one input: spike and slab over a mixed dictionary, sampled from moments.

A :class:`Dictionary` of steps, cusps, hats and Gabor atoms is drawn; a chain decides which of them
are active, by moments alone, and redraws the others; several chains give the :class:`SparseFit`,
whose draws and moments make a :class:`Mixture` that predicts. Long series are fitted in windows.
"""

from rwf.sparse.dense import Smooth
from rwf.sparse.dictionary import Dictionary
from rwf.sparse.fit import Schedule, SparseFit, SparseReport, fit_sparse
from rwf.sparse.mixture import Draw, Mixture
from rwf.sparse.windows import WindowedFit, WindowedMixture, WindowMoments, fit_windows

__all__ = [
    "Dictionary",
    "Draw",
    "Mixture",
    "Schedule",
    "Smooth",
    "SparseFit",
    "SparseReport",
    "WindowMoments",
    "WindowedFit",
    "WindowedMixture",
    "fit_sparse",
    "fit_windows",
]
