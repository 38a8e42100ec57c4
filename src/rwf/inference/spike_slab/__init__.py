"""The spike-and-slab prior for one input: a mixed dictionary, sampled from moments.

A dictionary of steps, cusps, hats and Gabor atoms is drawn; a chain decides which of them are
active, by moments alone, and redraws the others; several chains give a fit, whose draws and moments
make a mixture that predicts. Long series are fitted in windows.
"""

from rwf.inference.spike_slab.dense import Smooth
from rwf.inference.spike_slab.fit import Schedule, fit_spike_slab
from rwf.inference.spike_slab.windows import (
    WindowedFit,
    WindowedMixture,
    WindowMoments,
    fit_windows,
)

__all__ = [
    "Schedule",
    "Smooth",
    "WindowMoments",
    "WindowedFit",
    "WindowedMixture",
    "fit_spike_slab",
    "fit_windows",
]
