"""Methods by name: each a factory of ``(settings, random_state)``.

A name with a colon, ``module:factory``, is imported: a method of your own needs no entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from experiments.baselines.boosting import Boosting
from experiments.baselines.celerite import CeleriteMatern32
from experiments.baselines.detrended import Detrended
from experiments.baselines.exact_gp import ExactGP
from experiments.baselines.interpolation import LinearInterpolation, ThinPlateSpline
from experiments.baselines.kernel_map import KernelMapRidge, Kind
from experiments.baselines.kriging import Kriging, TrueKriging
from experiments.baselines.nearest import Nearest
from experiments.baselines.shrinkage import Rule, Shrinkage, translation_invariant, visushrink
from experiments.baselines.sklearn_gp import SklearnGP
from experiments.baselines.standardized import Method, Scaled, Standardized
from experiments.baselines.trees import CatBoost, QuantileForest, XGBoost
from experiments.baselines.trivial import Constant, Linear
from experiments.baselines.with_logs import WithLogs
from experiments.baselines.xgpr import XGPR
from experiments.data.heaton import DEVIATION, LENGTH, NOISE
from experiments.runner.regressors import OURS, Factory, Settings
from experiments.runner.store import JSON


def _exact(kernel: str, conditioned: int | None = None, **fixed: int) -> Factory:
    return lambda settings, seed: Standardized(
        ExactGP(kernel, random_state=seed, **{"conditioned": conditioned, **fixed, **settings})
    )


def _with_logs(factory: Factory) -> Factory:
    """The same preprocessing for all: logarithms of skewed columns where a method gains."""
    return lambda settings, seed: WithLogs(lambda: factory(settings, seed), seed)


def _kriging(settings: Settings, seed: int) -> Method:
    return Standardized(Kriging(random_state=seed, **settings))


ALL_TO_10K = _exact("matern32", 5000, subset=2000, whole=10_000)
"""All rows up to 10 000 of them, and 5000 of more."""


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


METHODS: Mapping[str, Factory] = MappingProxyType(
    {
        **OURS,
        "exact-se": _exact("se"),
        "exact-matern12": _exact("matern12"),
        "exact-matern32": _exact("matern32"),
        "exact-matern52": _exact("matern52"),
        "exact5k-se": _exact("se", 5000),
        "exact5k-matern12": _exact("matern12", 5000),
        "exact5k-matern32": _exact("matern32", 5000),
        "celerite-matern32": lambda settings, seed: Standardized(CeleriteMatern32(**settings)),
        "exact10k-matern32": ALL_TO_10K,
        "exact10k-matern32-logs": _with_logs(ALL_TO_10K),
        "kriging": _kriging,
        "kriging-logs": _with_logs(_kriging),
        "kriging-true": lambda settings, seed: TrueKriging(
            **{"deviation": DEVIATION, "length": LENGTH, "noise": NOISE, **settings}
        ),
        "knn": lambda settings, seed: Scaled(Nearest(random_state=seed, **settings)),
        "linear-interpolation": lambda settings, seed: Scaled(
            LinearInterpolation(random_state=seed, **settings)
        ),
        "spline": lambda settings, seed: Scaled(ThinPlateSpline(random_state=seed, **settings)),
        "svgp": _on_torch("svgp", "SVGP"),
        "svgp-logs": _with_logs(_on_torch("svgp", "SVGP")),
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
        "catboost": lambda settings, seed: CatBoost(seed, **settings),
        "catboost-uncertainty": lambda settings, seed: CatBoost(
            seed, **{"uncertainty": True, **settings}
        ),
        "xgboost": lambda settings, seed: XGBoost(seed, **settings),
        "quantile-forest": lambda settings, seed: QuantileForest(seed, **settings),
        "visushrink-haar": _shrinkage(visushrink, "haar"),
        "visushrink-sym8": _shrinkage(visushrink, "sym8"),
        "ti-haar": _shrinkage(translation_invariant, "haar"),
        "ti-sym8": _shrinkage(translation_invariant, "sym8"),
        "linear": lambda settings, seed: Linear(**settings),
        "constant": lambda settings, seed: Constant(**settings),
    }
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
