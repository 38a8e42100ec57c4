"""The atoms of a model, as the terms of the sum that estimates its kernel.

A feature map, a transformer or a fitted regressor estimates k(x, y) by a sum over independent
atoms, from whose terms the error of the sum is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

import numpy as np

from rwf._types import Array
from rwf.features import (
    ConstantFeatures,
    FeatureMap,
    FourierFeatures,
    LinearFeatures,
    Stack,
    WaveletFeatures,
)
from rwf.features.inducing import NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.models.base import Model as FittedModel


@runtime_checkable
class Regressor(Protocol):
    """A fitted regressor."""

    model_: FittedModel


@runtime_checkable
class Transformer(Protocol):
    """A fitted transformer."""

    features_: FeatureMap


Model: TypeAlias = FeatureMap | Stack | Transformer | Regressor


@dataclass(frozen=True)
class AtomBlock:
    """Independent draws of one kind of atom: k̂(x, y) = Σ_i Σ_c Z_cxi Z_cyi."""

    features: FeatureMap  # the map that they come from
    Z: Array  # shape (c, n, m): columns of an atom, rows, atoms; prior deviations included
    prior_variance: float  # the largest prior variance of an atom

    @property
    def n_atoms(self) -> int:
        return int(self.Z.shape[2])

    def products(self, weights: Array | float = 1.0) -> Array:
        """Σ_i w_i a_i(x, y), with a_i the atom's term, at all pairs of rows, shape (n, n)."""
        total = np.zeros((self.Z.shape[1],) * 2)
        for z in self.Z:
            total += z * weights @ z.T
        return total

    def squares(self) -> Array:
        """Σ_i a_i(x, y)² at all pairs of rows: squares of z·z′, summed over columns in pairs."""
        total = np.zeros((self.Z.shape[1],) * 2)
        for left in self.Z:
            for right in self.Z:
                total += (left * right) @ (left * right).T
        return total


def atom_blocks(model: Model, X: Array) -> list[AtomBlock]:
    """The random part of a model's kernel at rows X, by block, without the trend.

    Of a fitted regressor, the kernel is that of its first output in units of the variance of y.
    """
    features, inputs, variances = _parts(model, np.asarray(X, dtype=np.float64))
    blocks = []
    start = 0
    for part in features.maps if isinstance(features, Stack) else (features,):
        stop = start + part.n_features
        if not isinstance(part, ConstantFeatures | LinearFeatures):
            deviations = np.sqrt(variances[start:stop])
            Z = np.asarray(part(inputs), dtype=np.float64) * deviations
            columns = _columns(part)
            stacked = np.stack(np.split(Z, columns, axis=1))
            blocks.append(AtomBlock(part, stacked, float(variances[start:stop].max())))
        start = stop
    return blocks


def _parts(model: Model, X: Array) -> tuple[FeatureMap | Stack, Array, Array]:
    """Features, inputs in their units, and the prior variance of every column."""
    if isinstance(model, Regressor):
        fitted = model.model_.gaussian
        if fitted is None or isinstance(fitted.maps[0], NystromFeatures):
            raise ValueError(
                "this model has no Monte-Carlo error: its kernel is in closed form, or its weights "
                "were sampled. Fit with prior='random_features'."
            )
        variances = fitted.fits[0].posterior.prior_variances
        return fitted.features, fitted.units.inputs(X), variances
    features = model.features_ if isinstance(model, Transformer) else model
    if isinstance(features, NystromFeatures):
        raise ValueError("Nyström features are not random: their kernel is in closed form.")
    return features, X, np.ones(features.n_features)


def is_model(candidate: object) -> TypeGuard[Model]:
    """Whether something has atoms, unlike a kernel in closed form."""
    return isinstance(candidate, Regressor | Transformer) or hasattr(candidate, "n_features")


def _columns(features: FeatureMap) -> int:
    """Columns per atom."""
    if isinstance(features, WaveletFeatures | LocalAtoms):
        return features.wavelet.columns
    return 2 if isinstance(features, FourierFeatures) else 1
