"""The spike-and-slab prior for one input: a mixed dictionary, sampled from moments.

A :class:`Dictionary` of steps, cusps, hats and Gabor atoms is drawn; a chain decides which of them
are active, by moments alone, and redraws the others; several chains give the :class:`SpikeSlabFit`,
whose draws and moments make a :class:`Mixture` that predicts. Long series are fitted in windows.
"""

from rwf.inference.spike_slab.dense import Smooth
from rwf.inference.spike_slab.dictionary import Dictionary
from rwf.inference.spike_slab.fit import SamplerReport, Schedule, SpikeSlabFit, fit_spike_slab
from rwf.inference.spike_slab.mixture import Draw, Mixture
from rwf.inference.spike_slab.windows import (
    WindowedFit,
    WindowedMixture,
    WindowMoments,
    fit_windows,
)

__all__ = [
    "Dictionary",
    "Draw",
    "Mixture",
    "SamplerReport",
    "Schedule",
    "Smooth",
    "SpikeSlabFit",
    "WindowMoments",
    "WindowedFit",
    "WindowedMixture",
    "fit_spike_slab",
    "fit_windows",
]
