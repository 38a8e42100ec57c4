"""What a model's means are made of, and nothing else: features, one weight for each, and units.

The file is small, O(D): neither a Gram matrix nor a factor is in it. Projected weights are written
for the atoms themselves, :math:`z(x)^\\top m = k_T(x)^\\top L^{-\\top} m`, so that L is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import Tags

from rwf.errors import MeanOnlyError
from rwf.features.linear import Shapeless
from rwf.features.mixture import HatMixture
from rwf.features.stack import Stack
from rwf.model import FittedModel
from rwf.rows import block_rows
from rwf.scaling import Standardizer
from rwf.sparse.windows import Window
from rwf.sparse_model import SparseModel
from rwf.tree import AtomTree
from rwf.tree_model import ROWS_AT_ONCE, TreeModel
from rwf.types import Array, FloatArray
from rwf.validation import check_inputs

REFUSED = (
    "coverage", "fit", "fit_report_", "length_scales_", "log_marginal_likelihood",
    "log_marginal_likelihood_value_", "merge", "noise_variance_", "partial_fit",
    "predict_function", "predict_interval", "prior_variances_", "prune", "sample_y", "save",
    "without_rows",
)  # fmt: skip
"""What a whole model has and this one has not."""


@dataclass(frozen=True)
class KernelAtoms(Shapeless):
    """z(x) = k_T(x), the atoms of projected weights before they are whitened."""

    local: ClassVar[bool] = True

    kernel: HatMixture
    centers: Array

    @property
    def n_features(self) -> int:
        return len(self.centers)

    def __call__(self, X: FloatArray) -> FloatArray:
        return self.kernel(X, self.centers)


@dataclass(frozen=True)
class WeightedColumns:
    """f = ZW, block by block of rows.

    Args:
        features: Z.
        weights: W, shape (p, k).
    """

    features: Stack
    weights: Array

    def __call__(self, X: Array) -> Array:
        size = block_rows(self.features.n_features)
        parts = [X[i : i + size] for i in range(0, len(X), size)]
        return np.concatenate([_values(self.features, part) @ self.weights for part in parts])


def _values(features: Stack, X: Array) -> Array:
    return np.asarray(features(X), dtype=np.float64)


@dataclass(frozen=True)
class WeightedTree:
    """The same for very many local atoms, of which few reach a row.

    Args:
        features: Z.
        weights: W, shape (p, k).
        n_inputs: d.
    """

    features: Stack
    weights: Array
    n_inputs: int

    @cached_property
    def _tree(self) -> AtomTree:
        return AtomTree.of(self.features, self.n_inputs)

    def __call__(self, X: Array) -> Array:
        parts = [X[i : i + ROWS_AT_ONCE] for i in range(0, len(X), ROWS_AT_ONCE)]
        return np.concatenate([self._tree.times(part, self.weights) for part in parts])


@dataclass(frozen=True)
class WeightedWindows:
    """Means of windows, joined as they fade.

    Args:
        windows: of each output, their fits without draws.
        weights: of each output and window, shape (p,).
    """

    windows: tuple[tuple[Window, ...], ...]
    weights: tuple[tuple[Array, ...], ...]

    def __call__(self, X: Array) -> Array:
        mean = np.zeros((len(X), len(self.windows)))
        for output, (windows, weights) in enumerate(zip(self.windows, self.weights, strict=True)):
            for window, w in zip(windows, weights, strict=True):
                share, features = window.share(X[:, 0]), window.fit.features
                used, size = np.flatnonzero(share > 0), block_rows(features.n_features)
                for rows in (used[i : i + size] for i in range(0, len(used), size)):
                    mean[rows, output] += share[rows] * (_values(features, X[rows]) @ w)
        return mean


@dataclass(frozen=True)
class MeanModel:
    """Means in the units of the data.

    Args:
        scaler: units.
        function: f in standardised units.
    """

    scaler: Standardizer
    function: WeightedColumns | WeightedTree | WeightedWindows

    @classmethod
    def of(cls, model: FittedModel | SparseModel | TreeModel) -> MeanModel:
        """The means of a whole model."""
        return cls(model.scaler, _function(model))

    def __call__(self, X: Array) -> Array:
        """Predictive means, shape (n, k)."""
        return self.scaler.y.inverse(self.function(self.scaler.inputs(X)))


def _function(
    model: FittedModel | SparseModel | TreeModel,
) -> WeightedColumns | WeightedTree | WeightedWindows:
    if isinstance(model, SparseModel):
        posteriors = model._posteriors
        return WeightedWindows(
            tuple(tuple(map(_without_draws, posterior.windows)) for posterior in posteriors),
            tuple(tuple(m.mean for m in posterior.mixtures) for posterior in posteriors),
        )
    W = np.column_stack([t.posterior.mean for t in model.tuned])
    if isinstance(model, TreeModel):
        columns = model.shape.tree.columns
        return WeightedTree(columns.features, W, columns.n_inputs)
    stack, atoms = Stack(model.shape.features.maps), model.projected
    if atoms is not None:
        m = atoms.n_features
        W[:m] = solve_triangular(atoms.L, W[:m], lower=True, trans="T")
        stack = Stack((KernelAtoms(atoms.kernel, atoms.centers), *stack.maps[1:]))
    return WeightedColumns(stack, W)


def _without_draws(window: Window) -> Window:
    return replace(window, fit=replace(window.fit, draws=()))


class MeanRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted model that predicts means and nothing else, as :func:`rwf.load` makes it."""

    model_: MeanModel
    _single_output: bool

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Array:
        """Predictive mean of y."""
        if return_std or return_cov:
            _refuse("error bars")
        mean = self.model_(check_inputs(self, X, reset=False))  # type: ignore[arg-type]
        return mean[:, 0] if self._single_output else mean

    def __getattr__(self, name: str) -> NoReturn:
        if name in REFUSED:
            _refuse(name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _refuse(what: str) -> NoReturn:
    raise MeanOnlyError(
        f"this model has no {what}: it was saved with mean_only=True, which keeps what means are "
        "made of, and neither variances nor statistics of the rows. Save the whole model, without "
        "mean_only, and load that."
    )
