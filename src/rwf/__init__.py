"""Random wavelet features: non-stationary regression with calibrated uncertainty, at scale.

>>> from rwf import RWFRegressor
>>> model = RWFRegressor(random_state=0).fit(X, y)
>>> mean, std = model.predict(X_new, return_std=True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rwf.errors import IncompatibleModelsError, NoImprovementWarning, NotPositiveDefiniteError
    from rwf.estimators import RFFRegressor, RWFRegressor
    from rwf.measures import Box, Hull, Rows
    from rwf.transformers import RandomFourierFeatures, RandomWaveletFeatures
    from rwf.wavelets import (
        CompactHat,
        ComplexMorlet,
        Daubechies,
        GaussianDerivative,
        Haar,
        MexicanHat,
        Morlet,
        RadialWavelet,
    )

__version__ = "0.1.0"

_HOMES = {
    "RWFRegressor": "rwf.estimators",
    "RFFRegressor": "rwf.estimators",
    "RandomWaveletFeatures": "rwf.transformers",
    "RandomFourierFeatures": "rwf.transformers",
    "MexicanHat": "rwf.wavelets",
    "CompactHat": "rwf.wavelets",
    "Morlet": "rwf.wavelets",
    "ComplexMorlet": "rwf.wavelets",
    "GaussianDerivative": "rwf.wavelets",
    "Haar": "rwf.wavelets",
    "Daubechies": "rwf.wavelets",
    "RadialWavelet": "rwf.wavelets",
    "Rows": "rwf.measures",
    "Box": "rwf.measures",
    "Hull": "rwf.measures",
    "NotPositiveDefiniteError": "rwf.errors",
    "IncompatibleModelsError": "rwf.errors",
    "NoImprovementWarning": "rwf.errors",
}

__all__ = [
    "Box",
    "CompactHat",
    "ComplexMorlet",
    "Daubechies",
    "GaussianDerivative",
    "Haar",
    "Hull",
    "IncompatibleModelsError",
    "MexicanHat",
    "Morlet",
    "NoImprovementWarning",
    "NotPositiveDefiniteError",
    "RFFRegressor",
    "RWFRegressor",
    "RadialWavelet",
    "RandomFourierFeatures",
    "RandomWaveletFeatures",
    "Rows",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that ``import rwf`` costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rwf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
