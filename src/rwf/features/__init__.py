"""Feature maps x ↦ z(x): wavelets, ridges, Fourier features and a trend, behind one protocol."""

from rwf.features.base import Family, FeatureMap
from rwf.features.fourier import FourierFamily, FourierFeatures
from rwf.features.ridge import RidgeFamily, RidgeFeatures
from rwf.features.stack import Stack
from rwf.features.trend import ConstantFamily, ConstantFeatures, LinearFamily, LinearFeatures
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
