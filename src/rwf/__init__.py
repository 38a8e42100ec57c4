"""Random wavelet features: non-stationary regression with calibrated uncertainty, at scale.

>>> from rwf import RWFRegressor
>>> model = RWFRegressor(random_state=0).fit(X, y)
>>> mean, std = model.predict(X_new, return_std=True)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rwf.errors import (
        IncompatibleModelsError,
        NoAtomsNearbyWarning,
        NoImprovementWarning,
        NotPositiveDefiniteError,
    )
    from rwf.estimators.fourier import RFFRegressor
    from rwf.estimators.regressor import RWFRegressor
    from rwf.estimators.table import TableRegressor
    from rwf.estimators.transformers import RandomFourierFeatures, RandomWaveletFeatures
    from rwf.integrations import maps as maps
    from rwf.integrations.maps import MapModel
    from rwf.kernels import ExpectedKernel, HatKernel, WaveletKernel
    from rwf.persistence import load
    from rwf.priors import (
        Adaptive,
        Field,
        Fourier,
        Multiscale,
        Nystrom,
        RandomFeatures,
        SpikeSlab,
    )
    from rwf.theory import required_features, stationarity_index
    from rwf.wavelets import (
        Cliff,
        CompactHat,
        ComplexMorlet,
        Daubechies,
        GaussianDerivative,
        Haar,
        MexicanHat,
        Morlet,
        RadialWavelet,
    )
    from rwf.wavelets.measure import Box, Hull, Rows

__version__ = "0.1.0"

_HOMES = {
    "RWFRegressor": "rwf.estimators.regressor",
    "RFFRegressor": "rwf.estimators.fourier",
    "RandomFeatures": "rwf.priors",
    "Nystrom": "rwf.priors",
    "Field": "rwf.priors",
    "Multiscale": "rwf.priors",
    "Adaptive": "rwf.priors",
    "SpikeSlab": "rwf.priors",
    "Fourier": "rwf.priors",
    "RandomWaveletFeatures": "rwf.estimators.transformers",
    "RandomFourierFeatures": "rwf.estimators.transformers",
    "MexicanHat": "rwf.wavelets",
    "CompactHat": "rwf.wavelets",
    "Morlet": "rwf.wavelets",
    "ComplexMorlet": "rwf.wavelets",
    "GaussianDerivative": "rwf.wavelets",
    "Cliff": "rwf.wavelets",
    "Haar": "rwf.wavelets",
    "Daubechies": "rwf.wavelets",
    "RadialWavelet": "rwf.wavelets",
    "ExpectedKernel": "rwf.kernels",
    "WaveletKernel": "rwf.kernels",
    "HatKernel": "rwf.kernels",
    "Rows": "rwf.wavelets.measure",
    "Box": "rwf.wavelets.measure",
    "Hull": "rwf.wavelets.measure",
    "load": "rwf.persistence",
    "MapModel": "rwf.integrations.maps",
    "TableRegressor": "rwf.estimators.table",
    "required_features": "rwf.theory",
    "stationarity_index": "rwf.theory",
    "NotPositiveDefiniteError": "rwf.errors",
    "IncompatibleModelsError": "rwf.errors",
    "NoAtomsNearbyWarning": "rwf.errors",
    "NoImprovementWarning": "rwf.errors",
}

__all__ = [
    "Adaptive",
    "Box",
    "Cliff",
    "CompactHat",
    "ComplexMorlet",
    "Daubechies",
    "ExpectedKernel",
    "Field",
    "Fourier",
    "GaussianDerivative",
    "Haar",
    "HatKernel",
    "Hull",
    "IncompatibleModelsError",
    "MapModel",
    "MexicanHat",
    "Morlet",
    "Multiscale",
    "NoAtomsNearbyWarning",
    "NoImprovementWarning",
    "NotPositiveDefiniteError",
    "Nystrom",
    "RFFRegressor",
    "RWFRegressor",
    "RadialWavelet",
    "RandomFeatures",
    "RandomFourierFeatures",
    "RandomWaveletFeatures",
    "Rows",
    "SpikeSlab",
    "TableRegressor",
    "WaveletKernel",
    "load",
    "required_features",
    "stationarity_index",
]


def __getattr__(name: str) -> object:
    """Load a public name when it is first used, so that ``import rwf`` costs nothing."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "maps":
        return import_module("rwf.integrations.maps")
    raise AttributeError(f"module 'rwf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
