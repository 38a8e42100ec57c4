"""Priors over the weights, by name."""

from collections.abc import Callable

from rwf.priors.adaptive import Adaptive
from rwf.priors.auto import Auto
from rwf.priors.base import Prior
from rwf.priors.field import Field
from rwf.priors.fourier import Fourier
from rwf.priors.multiscale import Multiscale
from rwf.priors.nystrom import Nystrom
from rwf.priors.random_features import RandomFeatures
from rwf.priors.spike_slab import SpikeSlab

__all__ = [
    "PRIORS",
    "Adaptive",
    "Auto",
    "Field",
    "Fourier",
    "Multiscale",
    "Nystrom",
    "Prior",
    "RandomFeatures",
    "SpikeSlab",
]

PRIORS: dict[str, Callable[[], Prior]] = {
    "auto": Auto,
    "nystrom": Nystrom,
    "field": Field,
    "multiscale": Multiscale,
    "adaptive": Adaptive,
    "spike_slab": SpikeSlab,
    "random_features": RandomFeatures,
    "fourier": Fourier,
}
"""What ``prior=`` of an estimator accepts as a name. A new prior is one more line here."""
