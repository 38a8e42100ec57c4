"""Which classes a model file may hold, and what their fields are: this is the format."""

from __future__ import annotations

from rwf.data.scaling import Affine, Logarithm, Standardizer
from rwf.data.schema import CategoryColumn, NumberColumn, TableSchema
from rwf.diagnostics.scores import Score, Scores
from rwf.features.atoms import Atoms
from rwf.features.fourier import FourierFeatures
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.features.ridge import RidgeFeatures
from rwf.features.stack import Stack
from rwf.features.trend import ConstantFeatures, LinearFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.fit.report import FitReport
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances
from rwf.inference.moments import Moments, RootMoments
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.empirical_bayes import TreeEmpiricalBayes
from rwf.inference.multifrontal.factor import TreeFactor
from rwf.inference.multifrontal.moments import TreeMoments
from rwf.inference.multifrontal.posterior import TreePosterior
from rwf.inference.multifrontal.supports import ColumnSupports
from rwf.inference.posterior import Posterior
from rwf.inference.spike_slab.dictionary import Dictionary
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.inference.spike_slab.fit import SamplerReport, SpikeSlabFit
from rwf.inference.spike_slab.mixture import Draw
from rwf.inference.spike_slab.windows import Window, WindowedFit, WindowMoments
from rwf.inference.trials import Trial
from rwf.linalg.cholesky import Factor
from rwf.models.blended import NeighborBlend
from rwf.models.calibrated import LocalCalibration
from rwf.models.dense import DenseModel
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.spike_slab import SpikeSlabHyperparameters, SpikeSlabModel
from rwf.models.tree import TreeHyperparameters, TreeModel
from rwf.persistence import checks
from rwf.persistence.codec import (
    BOOL,
    FLOAT,
    INT,
    TEXT,
    Instance,
    Kind,
    Many,
    Maybe,
    Record,
    Table,
    bools,
    floats,
    ints,
)
from rwf.uncertainty.blending import BlendWeights, Expert, LocalScale, OutputBlend
from rwf.uncertainty.calibration import Calibration
from rwf.uncertainty.variance_function import VarianceFunction
from rwf.uncertainty.vecchia import Kernel, VecchiaGP
from rwf.wavelets import (
    Cliff,
    CompactHat,
    ComplexMorlet,
    Daubechies,
    GaussianDerivative,
    Haar,
    MexicanHat,
    Morlet,
)
from rwf.wavelets.measure import Box, Hull, Rows
from rwf.wavelets.radial import Bump

PAIR = Many(FLOAT, 2)

WAVELETS = [
    Record(MexicanHat, {"form": TEXT}),
    Record(CompactHat, {"order": INT}, checks.check_compact_hat),
    Record(Bump, {}),
    Record(Morlet, {"frequency": FLOAT}),
    Record(ComplexMorlet, {"frequency": FLOAT}),
    Record(GaussianDerivative, {}),
    Record(Cliff, {"aspect": FLOAT}),
    Record(Haar, {}),
    Record(Daubechies, {"order": INT}),
]
WAVELET = Instance(*(record.cls for record in WAVELETS))

SHIFTS = [Record(Rows, {}), Record(Box, {"pad": FLOAT}), Record(Hull, {})]

UNITS = [
    Record(Affine, {"center": floats("d"), "scale": floats("d"), "varies": bools("d")}),
    Record(
        Logarithm,
        {
            "chosen": bools("d"),
            "sign": floats("d"),
            "low": floats("d"),
            "unit": Instance(Affine),
        },
    ),
    Record(
        Standardizer,
        {"X": Instance(Affine), "y": Instance(Affine), "logarithm": Maybe(Instance(Logarithm))},
        checks.check_standardizer,
    ),
]

MAPS = [
    Record(
        WaveletFeatures,
        {
            "wavelet": WAVELET,
            "atoms": Instance(Atoms),
            "directions": floats("m", "d"),
            "normalization": TEXT,
        },
        checks.check_wavelet_features,
    ),
    Record(
        RidgeFeatures,
        {"wavelet": WAVELET, "atoms": Instance(Atoms), "weights": floats("m", "d")},
        checks.check_ridge_features,
    ),
    Record(
        LocalAtoms,
        {
            "wavelet": WAVELET,
            "scales": floats("m"),
            "shifts": floats("m", "d"),
            "directions": floats("m", "d"),
        },
    ),
    Record(
        NystromFeatures,
        {
            "kernel": Instance(HatMixture),
            "centers": floats("m", "d"),
            "L": floats("m", "m"),
            "jitter": FLOAT,
        },
        checks.check_kernel_atoms,
    ),
    Record(
        FourierFeatures,
        {"frequencies": floats("m", "d"), "log_lengths": floats("d"), "ard": BOOL},
    ),
    Record(
        Dictionary,
        {
            "kinds": ints("m"),
            "scales": floats("m"),
            "shifts": floats("m"),
            "frequencies": floats("m"),
            "phases": floats("m"),
            "blocks": ints("m"),
        },
        checks.check_dictionary,
    ),
    Record(ConstantFeatures, {"n_features": INT}, checks.check_constant),
    Record(LinearFeatures, {"n_features": INT}),
]

FEATURES = [
    Record(
        Atoms,
        {
            "draws": floats("m"),
            "shifts": floats("m", "d"),
            "middle": FLOAT,
            "log_lengths": floats("d"),
            "log_width": Maybe(FLOAT),
            "ard": BOOL,
        },
    ),
    Record(
        HatMixture,
        {
            "log_variances": floats("b"),
            "log_roughness": floats("b"),
            "log_lengths": floats("b", "d"),
            "ard": BOOL,
            "mixing": Maybe(floats("b", "d", "d")),
        },
    ),
    *MAPS,
    Record(
        Stack,
        {
            "maps": Many(Instance(*(record.cls for record in MAPS))),
            "cells": Maybe(Many(ints("p"))),
        },
        checks.check_stack,
    ),
]
STACK = Instance(Stack)

POSTERIOR: dict[str, Kind] = {
    "whitened_mean": floats("p"),
    "prior_variances": floats("p"),
    "noise_variance": FLOAT,
    "rss": FLOAT,
    "n": FLOAT,
    "log_volume": FLOAT,
}
TUNED: dict[str, Kind] = {
    "variances": Instance(Variances),
    "evaluations": INT,
    "at_bounds": Many(TEXT),
}

GRAM: dict[str, Kind] = {
    "ZtZ": floats("p", "p"),
    "Zty": floats("p", "k"),
    "yty": floats("k"),
    "n": FLOAT,
    "log_volume": FLOAT,
}

DENSE = [
    Record(Moments, GRAM),
    Record(RootMoments, {"R": floats("q", "q"), "n": FLOAT, "n_outputs": INT, "log_volume": FLOAT}),
    Record(Factor, {"L": floats("p", "p"), "jitter": FLOAT}),
    Record(Posterior, {**POSTERIOR, "factor": Instance(Factor)}, checks.check_posterior),
    Record(Variances, {"log_priors": floats("g"), "log_noise": FLOAT}),
    Record(EmpiricalBayes, {**TUNED, "posterior": Instance(Posterior)}),
    Record(
        Hyperparameters, {"features": STACK, "log_priors": floats("g"), "log_noise": floats("k")}
    ),
    Record(Calibration, {"scores": floats("n", "k")}),
    Record(
        VarianceFunction,
        {"features": STACK, "weights": floats("q"), "level": FLOAT, "bounds": PAIR},
        checks.check_variance_shape,
    ),
    Record(
        DenseModel,
        {
            "scaler": Instance(Standardizer),
            "shape": Instance(Hyperparameters),
            "statistics": Instance(Moments, RootMoments),
            "learn_priors": BOOL,
            "calibration": Maybe(Instance(Calibration)),
            "noise": Maybe(Instance(VarianceFunction)),
            "levels": Maybe(floats("b")),
        },
        checks.check_fitted,
        {"fits": Many(Instance(EmpiricalBayes))},
    ),
]

TREE = [
    Record(ColumnSupports, {"features": STACK, "n_inputs": INT}, checks.check_columns),
    Record(
        Dissection,
        {
            "order": ints("p"),
            "axes": ints("v"),
            "cuts": floats("v"),
            "right": ints("v"),
            "parents": ints("v"),
            "own_starts": ints("w"),
            "list_starts": ints("w"),
            "lists": ints("l"),
            "places": ints("l"),
        },
        checks.check_dissection,
    ),
    Record(
        AtomTree,
        {"columns": Instance(ColumnSupports), "dissection": Instance(Dissection)},
        checks.check_tree,
    ),
    Record(
        TreeMoments,
        {
            "tree": Instance(AtomTree),
            "grams": floats("g"),
            "Zty": floats("p", "k"),
            "yty": floats("k"),
            "n": FLOAT,
            "log_volume": FLOAT,
        },
        checks.check_tree_moments,
    ),
    Record(
        TreeFactor,
        {"dissection": Instance(Dissection), "panels": floats("g"), "jitter": FLOAT},
        checks.check_tree_factor,
    ),
    Record(
        TreePosterior,
        {**POSTERIOR, "tree": Instance(AtomTree), "factor": Instance(TreeFactor)},
        checks.check_tree_posterior,
    ),
    Record(TreeEmpiricalBayes, {**TUNED, "posterior": Instance(TreePosterior)}),
    Record(
        TreeHyperparameters, {"tree": Instance(AtomTree), "variances": Many(Instance(Variances))}
    ),
    Record(
        TreeModel,
        {
            "scaler": Instance(Standardizer),
            "shape": Instance(TreeHyperparameters),
            "statistics": Instance(TreeMoments),
            "calibration": Maybe(Instance(Calibration)),
            "levels": Maybe(floats("b")),
            "noise": Maybe(Instance(VarianceFunction)),
        },
        checks.check_tree_model,
        {"fits": Many(Instance(TreeEmpiricalBayes))},
    ),
]

SPARSE = [
    Record(
        Draw,
        {
            "atoms": ints("a"),
            "variances": floats("a"),
            "noise_variance": FLOAT,
            "ratios": floats("p"),
        },
    ),
    Record(
        SamplerReport,
        {
            "sweeps": INT,
            "dictionaries": INT,
            "noise_deviations": Many(FLOAT),
            "scores": Many(FLOAT),
            "active": FLOAT,
            "converged": BOOL,
        },
    ),
    Record(
        SpikeSlabFit,
        {"features": STACK, "draws": Many(Instance(Draw)), "report": Instance(SamplerReport)},
        checks.check_sparse_fit,
    ),
    Record(
        Window,
        {"low": FLOAT, "high": FLOAT, "rise": PAIR, "fall": PAIR, "fit": Instance(SpikeSlabFit)},
    ),
    Record(WindowedFit, {"windows": Many(Instance(Window))}, checks.check_windowed_fit),
    Record(WindowMoments, {"parts": Many(Instance(Moments))}),
    Record(GapReversion, {"starts": floats("g"), "ends": floats("g"), "common": FLOAT}),
    Record(
        SpikeSlabHyperparameters,
        {"fits": Many(Instance(WindowedFit)), "gaps": Maybe(Instance(GapReversion))},
    ),
    Record(
        SpikeSlabModel,
        {
            "scaler": Instance(Standardizer),
            "shape": Instance(SpikeSlabHyperparameters),
            "moments": Many(Instance(WindowMoments)),
            "n_rows": FLOAT,
            "calibration": Maybe(Instance(Calibration)),
        },
        checks.check_sparse_model,
    ),
]

CORRECTIONS = [
    Record(
        LocalCalibration,
        {
            "shape": Instance(VarianceFunction),
            "calibration": Instance(Calibration),
            "gain": FLOAT,
            "usual": floats("k"),
        },
    ),
    Record(
        Kernel,
        {"twice_order": INT, "lengths": floats("d"), "amplitude": FLOAT, "nugget": FLOAT},
        checks.check_kernel,
    ),
    Record(
        VecchiaGP,
        {
            "kernel": Instance(Kernel),
            "X": floats("n", "d"),
            "values": floats("n"),
            "n_neighbors": INT,
        },
        checks.check_neighbours,
    ),
    Record(LocalScale, {"nearby": INT, "prior_rows": FLOAT, "radius": FLOAT}),
    Record(BlendWeights, {"model": FLOAT, "neighbors": FLOAT, "correlation": FLOAT}),
    Record(
        Expert,
        {"weight": FLOAT, "scale": Instance(LocalScale), "mixing": Instance(BlendWeights)},
    ),
    Record(
        OutputBlend,
        {
            "gp": Instance(VecchiaGP),
            "center": FLOAT,
            "squares": floats("n"),
            "experts": Many(Instance(Expert)),
            "gain": FLOAT,
        },
        checks.check_layer,
    ),
    Record(
        NeighborBlend,
        {
            "layers": Many(Maybe(Instance(OutputBlend))),
            "calibration": Instance(Calibration),
            "scale": Maybe(Instance(LocalCalibration)),
        },
    ),
]

REPORTS = [
    Record(
        Trial,
        {
            "log_evidence_per_row": FLOAT,
            "iterations": INT,
            "seconds": FLOAT,
            "chosen": BOOL,
            "at_bounds": Many(TEXT),
            "name": TEXT,
            "held_out": Maybe(FLOAT),
        },
    ),
    Record(
        FitReport,
        {
            "trials": Many(Instance(Trial)),
            "seconds": Table(FLOAT),
            "n_rows": INT,
            "n_features": INT,
            "statistics": TEXT,
            "at_bounds": Many(TEXT),
            "jitter": FLOAT,
            "nll": FLOAT,
            "constant_nll": FLOAT,
            "linear_nll": FLOAT,
            "solver": TEXT,
        },
    ),
]

TABLES = [
    Record(NumberColumn, {"name": TEXT, "dtype": TEXT, "fill": Maybe(FLOAT)}),
    Record(
        CategoryColumn,
        {"name": TEXT, "dtype": TEXT, "categories": Many(TEXT), "fill": Maybe(TEXT)},
        checks.check_categories,
    ),
    Record(
        TableSchema,
        {
            "columns": Many(Instance(NumberColumn, CategoryColumn)),
            "target": Maybe(TEXT),
            "weight": Maybe(TEXT),
        },
        checks.check_schema,
    ),
    Record(Score, {"rmse": FLOAT, "nll": FLOAT, "coverage": FLOAT}),
    Record(
        Scores,
        {
            "method": TEXT,
            "n_rows": INT,
            "model": Instance(Score),
            "constant": Instance(Score),
            "linear": Maybe(Instance(Score)),
        },
    ),
]

RECORDS: dict[str, Record] = {
    record.cls.__name__: record
    for group in (
        WAVELETS, SHIFTS, UNITS, FEATURES, DENSE, TREE, SPARSE, CORRECTIONS, REPORTS, TABLES,
    )
    for record in group
}  # fmt: skip
"""By name. Any change here that older readers do not understand is a new version of the format."""
