"""Feature maps as scikit-learn transformers, for pipelines and for other linear models."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array, FloatArray
from rwf.data.rows import Block, distinct
from rwf.data.scaling import Affine
from rwf.estimators.base import is_count
from rwf.estimators.validation import RandomState, check_inputs, generator
from rwf.features import Family, FeatureMap, FourierFamily, WaveletFamily
from rwf.features.wavelet import Normalization
from rwf.wavelets import Wavelet, as_wavelet
from rwf.wavelets.measure import Measure, ShiftSampler, as_shifts


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the transformers have in common: draw on ``fit``, evaluate on ``transform``."""

    features_: FeatureMap

    n_components: int
    length_scale: float | ArrayLike | None
    random_state: RandomState

    @abstractmethod
    def _family(self) -> Family:
        """The kind of features, for unit length-scales."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Draw the features' atoms; X places them and gives the default length-scale."""
        if not is_count(self.n_components):
            raise ValueError(f"n_components={self.n_components!r} must be a positive integer.")
        checked = check_inputs(self, X, reset=True, keep_float32=True)
        inputs = checked.astype(np.float64)
        known = distinct(Block(inputs, np.empty((len(inputs), 0)), np.ones(len(inputs))))
        rng = generator(self.random_state)
        drawn = self._family().draw(self.n_components, known.X, rng)
        lengths = self._lengths(known.X)
        theta = drawn.theta.copy()
        theta[: drawn.n_lengths] = np.log(lengths)
        self.features_ = drawn.with_theta(theta)
        return self

    def _lengths(self, X: Array) -> Array:
        d = X.shape[1]
        if self.length_scale is None:
            return np.multiply(np.sqrt(d), Affine.learn(X, np.ones(len(X))).scale)
        lengths = np.asarray(self.length_scale, dtype=np.float64)
        if lengths.shape not in ((), (d,)) or not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ValueError(
                f"length_scale={self.length_scale!r}: give one positive number, or {d} of them, "
                "one per column."
            )
        return np.broadcast_to(lengths, (d,)).copy()

    def transform(self, X: ArrayLike) -> FloatArray:
        """Z, shape (n, n_features_out), in the precision of X."""
        check_is_fitted(self)
        return self.features_(check_inputs(self, X, reset=False, keep_float32=True))

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_features

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RandomWaveletFeatures(RandomFeatures):
    r"""Random wavelet features :math:`z(x)` with :math:`E[z(x)^\top z(x')] = k(x, x')`.

    Args:
        n_components: feature columns.
        wavelet: the mother wavelet, by name or as an object.
        scales: lowest and highest scale s, relative to the length-scale.
        shifts: where atoms sit: "data" (training rows), "box", "hull", or a function
            ``(X, m, rng) -> (m, d)``.
        normalization: "peak", or "energy" for the paper's :math:`s^{-d/2}`.
        length_scale: unit of length, one for all columns or one for each; ``None`` takes √d
            standard deviations of each column.
        random_state: seed of all draws.
    """

    def __init__(
        self,
        n_components: int = 300,
        *,
        wavelet: str | Wavelet = "mexican_hat",
        scales: tuple[float, float] = (0.5, 2.0),
        shifts: str | ShiftSampler = "data",
        normalization: Normalization = "peak",
        length_scale: float | ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.wavelet = wavelet
        self.scales = scales
        self.shifts = shifts
        self.normalization = normalization
        self.length_scale = length_scale
        self.random_state = random_state

    def _family(self) -> Family:
        low, high = self.scales
        measure = Measure(low, high, as_shifts(self.shifts))
        return WaveletFamily(as_wavelet(self.wavelet), measure, 1.0, True, self.normalization)


class RandomFourierFeatures(RandomFeatures):
    r"""Random Fourier features :math:`z(x)` with :math:`E[z(x)^\top z(x')] = k(x - x')`.

    Args:
        n_components: feature columns, two per frequency; an odd number is rounded up.
        kernel: "se", "matern12", "matern32" or "matern52".
        length_scale: length-scale of the kernel, one for all columns or one for each; ``None``
            takes √d standard deviations of each column.
        random_state: seed of all draws.
    """

    def __init__(
        self,
        n_components: int = 300,
        *,
        kernel: str = "se",
        length_scale: float | ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.length_scale = length_scale
        self.random_state = random_state

    def _family(self) -> Family:
        return FourierFamily(self.kernel, 1.0)
