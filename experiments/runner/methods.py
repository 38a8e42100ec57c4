"""Methods by name: each a factory of ``(settings, random_state)``.

A name with a colon, ``module:factory``, is imported: a method of your own needs no entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from experiments.baselines.boosting import Boosting
from experiments.baselines.celerite import CeleriteMatern32
from experiments.baselines.detrended import Detrended
from experiments.baselines.exact_gp import ExactGP
from experiments.baselines.interpolation import LinearInterpolation
from experiments.baselines.kernel_map import KernelMapRidge, Kind
from experiments.baselines.kriging import Kriging
from experiments.baselines.nearest import Nearest
from experiments.baselines.shrinkage import Rule, Shrinkage, translation_invariant, visushrink
from experiments.baselines.sklearn_gp import SklearnGP
from experiments.baselines.standardized import Method, Scaled, Standardized
from experiments.baselines.trivial import Constant, Linear
from experiments.baselines.xgpr import XGPR
from experiments.runner.store import JSON
from rwf import RFFRegressor, RWFRegressor
from rwf._types import Array

Settings = Mapping[str, Any]  # checked by the constructors that take them
Factory = Callable[[Settings, int], Method]

REPORTED = ("n_rows", "statistics", "at_bounds", "jitter", "seconds")
"""What of a fit report becomes a fact of the row."""


class Regressor:
    """One of ours, which scales by itself, behind the harness' interface."""

    def __init__(self, model: RWFRegressor | RFFRegressor) -> None:
        self.model = model

    def fit(self, X: Array, y: Array) -> Self:
        self.model.fit(X, y)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self.model.predict(X, return_std=True)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        """The regressor's own word on f if it has one, else the variance of y without σ².

        That is too small where σ² includes what atoms miss: see ``noise_variance_``.
        """
        own: Callable[[Array], tuple[Array, Array]] | None = getattr(
            self.model, "predict_function", None
        )
        if own is not None:
            return own(X)
        mean, std = self.predict(X)
        return mean, np.sqrt(np.maximum(std**2 - self.model.noise_variance_, 0))

    def facts(self) -> Mapping[str, object]:
        report = self.model.fit_report_
        return {
            "noise_variance": self.model.noise_variance_,
            "n_features": self.model.n_features_out_,
            "starts": len(report.trials),
            **{name: getattr(report, name) for name in REPORTED if hasattr(report, name)},
        }


def _rwf(**fixed: object) -> Factory:
    return lambda settings, seed: Regressor(
        RWFRegressor(**{**fixed, **settings, "random_state": seed})
    )


def _rff(**fixed: object) -> Factory:
    return lambda settings, seed: Regressor(
        RFFRegressor(**{**fixed, **settings, "random_state": seed})
    )


def _from_paper(settings: Settings, seed: int) -> Method:
    return Regressor(
        RWFRegressor.from_paper(**{"n_components": 1000, **settings, "random_state": seed})
    )


def _exact(kernel: str, conditioned: int | None = None) -> Factory:
    return lambda settings, seed: Standardized(
        ExactGP(kernel, random_state=seed, conditioned=conditioned, **settings)
    )


def _kernel_map(kind: Kind, **fixed: int) -> Factory:
    return lambda settings, seed: Standardized(
        KernelMapRidge(kind, random_state=seed, **{**fixed, **settings})
    )


def _on_torch(module: str, name: str, **fixed: float) -> Factory:
    """A baseline whose module needs torch, which is imported when the method is made."""

    def factory(settings: Settings, seed: int) -> Method:
        try:
            imported = import_module(f"experiments.baselines.{module}")
        except ImportError as error:
            raise ImportError(
                f"{name} needs torch and gpytorch: install the extra bench."
            ) from error
        model = getattr(imported, name)(random_state=seed, **{**fixed, **settings})
        return Detrended(Standardized(model))

    return factory


def _shrinkage(rule: Rule, wavelet: str) -> Factory:
    return lambda settings, seed: Shrinkage(rule, wavelet, **settings)


PLAIN: Settings = {"mix_columns": False, "second_opinion": False}
"""Wavelets alone, on the columns as they are."""

METHODS: Mapping[str, Factory] = MappingProxyType(
    {
        "rwf": _rwf(),
        "rwf-plain": _rwf(**PLAIN),
        "rwf-nolog": _rwf(log_skewed=False, **PLAIN),
        "rwf-independent": _rwf(prior="random_features"),
        "rwf-projected": _rwf(prior="nystrom"),
        "rwf-cells": _rwf(prior="multiscale"),
        "rwf-adaptive": _rwf(prior="adaptive"),
        "rwf-sparse": _rwf(prior="spike_slab"),
        "rwf-tree": _rwf(solver="multifrontal"),
        "rwf-tree-plain": _rwf(solver="multifrontal", noise="constant", error_bars="global"),
        "rwf-second": _rwf(solver="multifrontal", second_opinion=True),
        "rwf-2000": _rwf(n_components=2000, solver="dense", prior="multiscale"),
        "rwf-quick": _rwf(n_restarts=0, max_iter=30, **PLAIN),
        "rwf-morlet": _rwf(wavelet="complex_morlet"),
        "rwf-paper": _from_paper,
        "rff": _rff(),
        "rff-2000": _rff(n_components=2000),
        "rff-3": _rff(n_blocks=3),
        "rff-matern12": _rff(kernel="matern12"),
        "rff-matern32": _rff(kernel="matern32"),
        "rff-matern52": _rff(kernel="matern52"),
        "exact-se": _exact("se"),
        "exact-matern12": _exact("matern12"),
        "exact-matern32": _exact("matern32"),
        "exact-matern52": _exact("matern52"),
        "exact5k-se": _exact("se", 5000),
        "exact5k-matern12": _exact("matern12", 5000),
        "exact5k-matern32": _exact("matern32", 5000),
        "celerite-matern32": lambda settings, seed: Standardized(CeleriteMatern32(**settings)),
        "kriging": lambda settings, seed: Standardized(Kriging(random_state=seed, **settings)),
        "knn": lambda settings, seed: Scaled(Nearest(random_state=seed, **settings)),
        "linear-interpolation": lambda settings, seed: Scaled(
            LinearInterpolation(random_state=seed, **settings)
        ),
        "svgp": _on_torch("svgp", "SVGP"),
        "sm": _on_torch("spectral_mixture", "SpectralMixture"),
        "dgp": _on_torch("deep_gp", "DeepGP"),
        "ns-gp": _on_torch("ns_gp", "NonStationaryGP"),
        "drf": _on_torch("drf", "DeepRandomFeatures"),
        "idd-gp": _on_torch("idd_gp", "IDDGP"),
        "a-rkhs": _on_torch("a_rkhs", "AdaptiveRKHS"),
        "rbfsampler": _kernel_map("rbfsampler"),
        "nystroem": _kernel_map("nystroem"),
        "rbfsampler-500": _kernel_map("rbfsampler", n_components=500),
        "nystroem-500": _kernel_map("nystroem", n_components=500),
        "sklearn-gp": lambda settings, seed: Standardized(SklearnGP(random_state=seed, **settings)),
        "gpytorch-svgp": _on_torch("svgp", "SVGP", batch=1024, budget=180.0),
        "gpytorch-exact": _on_torch("gpytorch_exact", "GPyTorchExact"),
        "xgpr": lambda settings, seed: Standardized(XGPR(random_state=seed, **settings)),
        "boosting": lambda settings, seed: Boosting(random_state=seed, **settings),
        "visushrink-haar": _shrinkage(visushrink, "haar"),
        "visushrink-sym8": _shrinkage(visushrink, "sym8"),
        "ti-haar": _shrinkage(translation_invariant, "haar"),
        "ti-sym8": _shrinkage(translation_invariant, "sym8"),
        "linear": lambda settings, seed: Linear(**settings),
        "constant": lambda settings, seed: Constant(**settings),
    }
)

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "rwf": "**RWF, the default** ᵍ",
        "rwf-plain": "RWF, columns not mixed, nearest rows not asked",
        "rwf-nolog": "the same, without the log of skewed columns",
        "rwf-independent": "RWF, independent weights",
        "rwf-projected": "RWF, projected weights",
        "rwf-cells": "RWF, weights by cells",
        "rwf-adaptive": "RWF, adaptive weights",
        "rwf-sparse": "RWF, sparse weights",
        "rwf-tree": "**RWF, a tree of local atoms**",
        "rwf-tree-plain": "RWF, a tree, one noise and one scale of errors",
        "rwf-second": "**RWF, a tree, and the nearest rows**",
        "rwf-2000": "RWF, weights by cells, D = 2000",
        "rwf-quick": "RWF, one start of 30 iterations, wavelets alone",
        "rwf-morlet": "RWF, independent weights, complex Morlet wavelet",
        "rwf-paper": "RWF as printed in the paper ³",
        "rff": "RFF on our engine",
        "rff-2000": "RFF on our engine, D = 2000",
        "rff-3": "RFF on our engine, three blocks",
        "rff-matern12": "RFF on our engine, Matérn-1/2",
        "rff-matern32": "RFF on our engine, Matérn-3/2",
        "rff-matern52": "RFF on our engine, Matérn-5/2",
        "exact-se": "exact GP, squared exponential ¹",
        "exact-matern12": "exact GP, Matérn-1/2 ¹",
        "exact-matern32": "exact GP, Matérn-3/2 ¹",
        "exact-matern52": "exact GP, Matérn-5/2 ¹",
        "exact5k-se": "exact GP, squared exponential ⁵",
        "exact5k-matern12": "exact GP, Matérn-1/2 ⁵",
        "exact5k-matern32": "exact GP, Matérn-3/2 ⁵",
        "kriging": "kriging, 16 nearest rows ⁶",
        "celerite-matern32": "Matérn-3/2 by celerite2 ⁹",
        "knn": "K nearest neighbours ⁷",
        "linear-interpolation": "linear interpolation ⁸",
        "svgp": "SVGP, Matérn-3/2 ᵃ",
        "sm": "spectral mixture, stationary ᵇ",
        "dgp": "deep GP, two layers ᶜ",
        "ns-gp": "NS-GP, lengths vary with place ᵈ",
        "drf": "deep random features ᵉ",
        "idd-gp": "IDD-GP, two layers of Fourier features ᶠ",
        "a-rkhs": "A-RKHS, two layers of filtered Fourier features ᶠ",
        "rbfsampler": "RBFSampler + BayesianRidge",
        "nystroem": "Nystroem + BayesianRidge",
        "rbfsampler-500": "RBFSampler(500) + BayesianRidge",
        "nystroem-500": "Nystroem(500) + BayesianRidge",
        "sklearn-gp": "scikit-learn's GaussianProcessRegressor, 1000 rows",
        "gpytorch-svgp": "GPyTorch's SVGP, 500 inducing points",
        "gpytorch-exact": "GPyTorch's ExactGP, 2000 rows",
        "xgpr": "xGPR, 4096 features",
        "boosting": "HistGradientBoosting ²",
        "visushrink-haar": "VisuShrink, Haar ⁴",
        "visushrink-sym8": "VisuShrink, sym8 ⁴",
        "ti-haar": "translation-invariant thresholding, Haar ⁴",
        "ti-sym8": "translation-invariant thresholding, sym8 ⁴",
        "linear": "linear least squares",
        "constant": "constant",
    }
)
"""What tables call the methods; :data:`NOTES` explain the marks ¹ to ⁹ and ᵃ onwards, and †."""

NOTES = (
    "¹ ARD, with linear and constant terms; a random subset of 1000 training rows where there are "
    "more than 2048.",
    "² Default settings. Its error bar is one standard deviation for all rows, from 5-fold "
    "cross-validated residuals.",
    "³ D = 1000 where the table names no other.",
    "⁴ On the sorted sequence, as if it were a regular grid. It has no error bars: the estimated "
    "noise is the standard deviation of all predictions.",
    "⁵ ARD, with linear and constant terms; parameters by the evidence of at most 1000 training "
    "rows, the best of three starts, or of six in more than three columns; then the posterior of "
    "at most 5000.",
    "⁶ Matérn of order 1/2, 3/2 or 5/2, ARD; order and parameters by the densities of at most 6150 "
    "training rows given their nearest ones.",
    "⁷ Number of neighbours, weights of 1 or 1/distance, and the scale of its error bar, the local "
    "spread of targets, by a tenth of the training rows.",
    "⁸ On Delaunay's triangles or tetrahedra, the nearest row outside their hull. Its error bar is "
    "one standard deviation for all rows, from a tenth of the training rows.",
    "⁹ Length, amplitude, noise and mean by the marginal likelihood of all training rows.",
    "ᵃ 500 inducing points, ARD. The best posterior of up to 50 000 rows in closed form, L-BFGS; "
    "of more, natural gradients on batches and Adam; until the bound settles, and for 360 s at "
    "most.",
    "ᵇ Four components, exact; the best of five starts by evidence, in 360 s at most. A random "
    "subset of 1000 training rows where there are more than 2048.",
    "ᶜ 100 inducing points a layer; Adam on batches of 256 rows, of 1024 where there are at most "
    "three columns, until the bound settles, and for 360 s at most. Its Gaussian has the mean and "
    "the variance of a mixture of 100 draws.",
    "ᵈ Matérn-3/2, a length for each column from 20 places, which vary together in more than 16 "
    "columns; parameters by the posterior density of at most 1000 training rows, the best of five "
    "starts in 360 s at most; then the posterior of at most 2000.",
    "ᵉ Five members of two or four layers of 1000 cosines, in 360 s at most. Length, amplitude, "
    "depth and noise by a tenth of the training rows, which also stop the training.",
    "ᶠ Matérn-3/2, 20 frequencies a column, additive in columns that a hidden layer mixes; Adam on "
    "batches, until the bound settles, and for 360 s at most. Its Gaussian has the mean and the "
    "variance of a mixture of 100 draws.",
    "ᵍ In four or more columns it asks the 16 nearest rows too, where held-out rows gain by it; in "
    "4 to 16 columns, of more than 3000 rows, it learns which columns act together.",
    "† On some split the training had not settled when its time was over.",
)


def make(name: str, settings: Mapping[str, JSON], random_state: int) -> Method:
    """A method, ready to fit."""
    if ":" in name:
        module, factory = name.split(":")
        made: Method = getattr(import_module(module), factory)(settings, random_state)
        return made
    if name not in METHODS:
        raise ValueError(f"no method {name!r}: use one of {', '.join(METHODS)}, or module:factory.")
    return METHODS[name](settings, random_state)


def plain_label(name: str) -> str:
    """The label of a method without the marks of Markdown and of notes."""
    return LABELS[name].replace("**", "").rstrip("¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉᶠᵍ ")
