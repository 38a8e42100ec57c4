"""Feature maps x ↦ z(x): wavelets, ridges, Fourier features and a trend, behind one protocol."""

from rwf.features.base import (
    ConstantFamily,
    ConstantFeatures,
    Family,
    FeatureMap,
    LinearFamily,
    LinearFeatures,
    Stack,
)
from rwf.features.fourier import FourierFamily, FourierFeatures
from rwf.features.ridge import RidgeFamily, RidgeFeatures
from rwf.features.wavelet import WaveletFamily, WaveletFeatures

__all__ = [
    "ConstantFamily",
    "ConstantFeatures",
    "Family",
    "FeatureMap",
    "FourierFamily",
    "FourierFeatures",
    "LinearFamily",
    "LinearFeatures",
    "RidgeFamily",
    "RidgeFeatures",
    "Stack",
    "WaveletFamily",
    "WaveletFeatures",
]
