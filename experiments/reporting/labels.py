"""What tables and figures call the methods, and the footnotes of tables.

Stored rows name methods as :data:`experiments.runner.methods.METHODS` does; readers see these
labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "rwf": "**RWF (default)** ᵍ",
        "rwf-alone": "RWF (no neighbour blend)",
        "rwf-plain": "RWF (ARD metric, no neighbour blend)",
        "rwf-nolog": "RWF (ARD metric, no neighbour blend, no log of skewed columns)",
        "rwf-independent": "RWF (random-features prior)",
        "rwf-projected": "RWF (Nyström prior)",
        "rwf-cells": "RWF (multiscale prior)",
        "rwf-adaptive": "RWF (adaptive prior)",
        "rwf-sparse": "RWF (spike-and-slab prior)",
        "rwf-tree": "**RWF (multifrontal solver)**",
        "rwf-tree-plain": "RWF (multifrontal solver, constant noise, global calibration)",
        "rwf-second": "**RWF (multifrontal solver, neighbour blend)**",
        "rwf-groups": "RWF (groups given)",
        "rwf-2000": "RWF (multiscale prior, D = 2000)",
        "rwf-quick": "RWF (ARD metric, no neighbour blend, one trial of 30 iterations)",
        "rwf-morlet": "RWF (random-features prior, complex Morlet wavelet)",
        "rwf-paper": "RWF as printed in the paper ³",
        "rwf-timit": "RWF as printed for TIMIT ³",
        "rff": "RFF (this library)",
        "rff-2000": "RFF (this library, D = 2000)",
        "rff-3": "RFF (this library, three blocks)",
        "rff-matern12": "RFF (this library, Matérn-1/2)",
        "rff-matern32": "RFF (this library, Matérn-3/2)",
        "rff-matern52": "RFF (this library, Matérn-5/2)",
        "exact-se": "exact GP, squared exponential ¹",
        "exact-matern12": "exact GP, Matérn-1/2 ¹",
        "exact-matern32": "exact GP, Matérn-3/2 ¹",
        "exact-matern52": "exact GP, Matérn-5/2 ¹",
        "exact5k-se": "exact GP, squared exponential ⁵",
        "exact5k-matern12": "exact GP, Matérn-1/2 ⁵",
        "exact5k-matern32": "exact GP, Matérn-3/2 ⁵",
        "exact10k-matern32": "exact GP, Matérn-3/2, all rows ⁱ",
        "exact10k-matern32-logs": "exact GP, Matérn-3/2, all rows, logs ⁱ ʲ",
        "kriging-logs": "kriging, 16 nearest rows, logs ⁶ ʲ",
        "kriging": "kriging, 16 nearest rows ⁶",
        "kriging-true": "kriging with the true kernel",
        "celerite-matern32": "Matérn-3/2 by celerite2 ⁹",
        "knn": "K nearest neighbours ⁷",
        "linear-interpolation": "linear interpolation ⁸",
        "spline": "thin-plate spline ʰ",
        "svgp": "SVGP, Matérn-3/2 ᵃ",
        "svgp-logs": "SVGP, Matérn-3/2, logs ᵃ ʲ",
        "sm": "spectral mixture, stationary ᵇ",
        "dgp": "deep GP, two layers ᶜ",
        "ns-gp": "NS-GP, length scales vary in space ᵈ",
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
        "catboost": "CatBoost, 2000 rounds ᵏ",
        "catboost-uncertainty": "CatBoost, 2000 rounds, mean and variance ᵏ",
        "xgboost": "XGBoost, 2000 rounds ᵏ",
        "quantile-forest": "quantile forest, 500 trees ᵏ",
        "visushrink-haar": "VisuShrink, Haar ⁴",
        "visushrink-sym8": "VisuShrink, sym8 ⁴",
        "ti-haar": "translation-invariant thresholding, Haar ⁴",
        "ti-sym8": "translation-invariant thresholding, sym8 ⁴",
        "best-printed": "*best number in papers* ˡ",
        "exact-printed": "*exact GP, in papers* ˡ",
        "linear": "linear least squares",
        "constant": "constant",
    }
)
"""Labels of the methods in tables; :data:`NOTES` explain the marks ¹ to ⁹, ᵃ onwards, † and ‡."""

NOTES = (
    "¹ ARD, with linear and constant terms; fitted to a random subset of 1000 training rows if "
    "there are more than 2048.",
    "² Default settings. One standard deviation for all rows, from 5-fold cross-validated "
    "residuals.",
    "³ D = 1000 unless the table gives another number.",
    "⁴ Applied to the sorted sequence as if it were a regular grid. It gives no error bars: the "
    "estimated noise is the standard deviation of all predictions.",
    "⁵ ARD, with linear and constant terms. Hyperparameters maximise the evidence of at most 1000 "
    "training rows (best of three restarts, of six with more than three columns); the posterior "
    "uses at most 5000.",
    "⁶ Matérn of order 1/2, 3/2 or 5/2, ARD. Order and hyperparameters maximise the Vecchia "
    "likelihood of at most 6150 training rows.",
    "⁷ The number of neighbours, weights of 1 or 1/distance, and the scale of the error bar (the "
    "local spread of targets) are selected on a tenth of the training rows.",
    "⁸ Delaunay triangulation; the nearest row outside the convex hull. One standard deviation for "
    "all rows, from a tenth of the training rows.",
    "⁹ Length scale, amplitude, noise and mean maximise the marginal likelihood of all training "
    "rows.",
    "ᵃ 500 inducing points, ARD. Up to 50 000 rows: optimal variational posterior in closed form, "
    "L-BFGS. More rows: natural gradients on batches, and Adam. Until the bound converges, or for "
    "360 s.",
    "ᵇ Four components, exact inference; the best of five restarts by evidence, in at most 360 s. "
    "A random subset of 1000 training rows if there are more than 2048.",
    "ᶜ 100 inducing points per layer; Adam on batches of 256 rows (1024 with at most three "
    "columns) until the bound converges, or for 360 s. A prediction is a mixture of 100 normals.",
    "ᵈ Matérn-3/2; the length scale of each column is interpolated from 20 places, a common factor "
    "with more than 16 columns. Hyperparameters maximise the posterior density of at most 1000 "
    "training rows (best of five restarts in at most 360 s); the posterior uses at most 2000.",
    "ᵉ An ensemble of five networks with two or four layers of 1000 cosines, in at most 360 s. "
    "Length scale, amplitude, depth, noise and early stopping use a tenth of the training rows.",
    "ᶠ Matérn-3/2, additive: a process for each column and each of up to 16 hidden units, with 20 "
    "frequencies (50 with at most three columns); Adam on batches until the bound converges, or "
    "for 360 s. A prediction is a mixture of 100 normals.",
    "ᵍ With four or more columns, a GP of the 16 nearest neighbours is blended in if that improves "
    "the held-out log-likelihood. With 4 to 16 columns and more than 3000 rows, the metric is a "
    "full matrix.",
    "ʰ The Green's functions of verde's Spline. Damping and one standard deviation for all rows "
    "from a tenth of the training rows.",
    "ⁱ ARD, with linear and constant terms. Hyperparameters maximise the evidence of at most 2000 "
    "training rows; the posterior uses all rows up to 10 000 of them, and 5000 of more.",
    "ʲ Logarithms of skewed columns, as RWF uses them, where the method predicts a held-out tenth "
    "of (at most 2000) training rows better with them.",
    "ᵏ A tenth of the training rows stops the boosting, and scales standard deviations so that its "
    "mean squared score is one. They are constant, learned by the loss RMSEWithUncertainty "
    "(CatBoost), or half the distance of the quantiles at 16 and 84 % (forest).",
    "ˡ For these splits, as far as we know them: the best of all methods, or an exact GP with all "
    "rows on many GPUs. In the units that the papers use, without powers of ten.",
    "† Training had not converged on some split when its time was over.",
    "‡ Some of these rows were made with an older default of this library, or older baselines.",
)
"""Footnotes by their marks; a table is followed by those that it uses."""


def plain_label(name: str) -> str:
    """The label of a method without Markdown and footnote marks."""
    return LABELS[name].replace("**", "").rstrip("¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏ ")
