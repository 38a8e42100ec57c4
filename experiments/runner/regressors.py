"""The estimators of this library as methods of the experiments.

This is the one place where experiments set parameters of ``RWFRegressor`` and ``RFFRegressor``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.standardized import Method
from rwf import RandomFeatures, RFFRegressor, RWFRegressor
from rwf._types import Array
from rwf.features.base import ConstantFeatures, LinearFeatures
from rwf.features.fourier import FourierFeatures
from rwf.features.ridge import RidgeFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.models.dense import DenseModel
from rwf.theory import stationarity_index
from rwf.uncertainty.transformed import Predictive

Settings = Mapping[str, Any]  # checked by the constructors that take them
Factory = Callable[[Settings, int], Method]

REPORTED = ("n_rows", "statistics", "at_bounds", "jitter", "seconds")
"""The fields of a fit report that rows keep."""


RANDOM = WaveletFeatures | RidgeFeatures | FourierFeatures
TREND = ConstantFeatures | LinearFeatures

SOME_ROWS = 200
"""Rows between which the stationarity of a kernel is measured."""


def stationarity(model: RWFRegressor | RFFRegressor, X: Array) -> float | None:
    """The index of the prior's kernel at some rows: zero, if it is stationary.

    It is that of the Nyström prior's kernel in closed form, or of random atoms; ``None`` for the
    other priors, which have no kernel at hand.
    """
    base = model.model_.base
    if not isinstance(base, DenseModel):
        return None
    if base.nystrom is None:
        random = all(isinstance(f, RANDOM | TREND) for f in base.hyperparameters.features.maps)
        return stationarity_index(model, X).value if random else None
    mixture = base.nystrom.kernel

    def kernel(X: Array, Y: Array) -> Array:
        return mixture(X, Y)

    return stationarity_index(kernel, base.units.inputs(X)).value


@dataclass(eq=False)
class Regressor:
    """An estimator of this library, which scales its data itself, as a method."""

    model: RWFRegressor | RFFRegressor

    def fit(self, X: Array, y: Array) -> Self:
        self.model.fit(X, y)
        self._some = X[:SOME_ROWS]
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self.model.predict(X, return_std=True)

    def predict_distribution(self, X: Array) -> Predictive:
        return self.model.predict_distribution(X)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        return self.model.predict_function(X)

    def facts(self) -> Mapping[str, object]:
        report = self.model.fit_report_
        return {
            "noise_variance": self.model.noise_variance_,
            "n_features": self.model.n_features_out_,
            "starts": len(report.trials),  # the name in stored rows
            "stationarity": stationarity(self.model, self._some),
            **{name: getattr(report, name) for name in REPORTED if hasattr(report, name)},
        }


@dataclass(eq=False)
class GroupRegressor(Regressor):
    """The same, with the groups of the task."""

    def fit_groups(self, X: Array, y: Array, groups: NDArray[np.generic]) -> Self:
        self.model.fit(X, y, groups=groups)
        self._some = X[:SOME_ROWS]
        return self

    def facts(self) -> Mapping[str, object]:
        scores = self.model.fit_report_.group_scores
        assert scores is not None
        own = {f"group_{name}": value for name, value in vars(scores).items()}
        return {**super().facts(), **own, "metric": self._metric()}

    def _metric(self) -> str:
        """The metric that held-out groups chose, if there was a choice."""
        tried = [t for t in self.model.fit_report_.trials if t.name.startswith("metric")]
        return next((t.name for t in tried if t.chosen), "")


def _method(
    make: Callable[..., RWFRegressor | RFFRegressor],
    kind: type[Regressor] = Regressor,
    **fixed: object,
) -> Factory:
    def build(settings: Settings, seed: int) -> Regressor:
        given: dict[str, Any] = {**fixed, **settings}
        # Suites name these fields of a prior beside parameters: rows are keyed by that.
        atoms = {name: given.pop(name) for name in OF_ATOMS & given.keys()}
        if atoms:
            given["prior"] = RandomFeatures(**atoms)
        return kind(make(**given, random_state=seed))

    return build


OF_ATOMS = {"wavelet", "shifts", "normalization"}

PLAIN: Settings = {"metric": "ard", "neighbors": None}
"""An ARD metric, and no neighbour blend."""

OURS: Mapping[str, Factory] = MappingProxyType(
    {
        "rwf": _method(RWFRegressor),
        "rwf-groups": _method(RWFRegressor, GroupRegressor),
        "rwf-alone": _method(RWFRegressor, neighbors=None),
        "rwf-plain": _method(RWFRegressor, **PLAIN),
        "rwf-nolog": _method(RWFRegressor, log_skewed=False, **PLAIN),
        "rwf-independent": _method(RWFRegressor, prior="random_features"),
        "rwf-projected": _method(RWFRegressor, prior="nystrom"),
        "rwf-cells": _method(RWFRegressor, prior="multiscale"),
        "rwf-adaptive": _method(RWFRegressor, prior="adaptive"),
        "rwf-sparse": _method(RWFRegressor, prior="spike_slab"),
        "rwf-tree": _method(RWFRegressor, solver="multifrontal"),
        "rwf-tree-plain": _method(
            RWFRegressor, solver="multifrontal", noise="constant", calibration="global"
        ),
        "rwf-second": _method(RWFRegressor, solver="multifrontal", neighbors=16),
        "rwf-2000": _method(RWFRegressor, n_components=2000, solver="dense", prior="multiscale"),
        "rwf-quick": _method(RWFRegressor, n_restarts=0, max_iter=30, **PLAIN),
        "rwf-morlet": _method(RWFRegressor, wavelet="complex_morlet"),
        "rwf-paper": _method(RWFRegressor.from_paper, n_components=1000),
        "rwf-timit": _method(RWFRegressor.from_paper, n_components=1000, speech=True),
        "rff": _method(RFFRegressor),
        "rff-2000": _method(RFFRegressor, n_components=2000),
        "rff-3": _method(RFFRegressor, n_blocks=3),
        "rff-matern12": _method(RFFRegressor, kernel="matern12"),
        "rff-matern32": _method(RFFRegressor, kernel="matern32"),
        "rff-matern52": _method(RFFRegressor, kernel="matern52"),
    }
)
"""By the names of stored rows, some of which are older than the names of the parameters."""
