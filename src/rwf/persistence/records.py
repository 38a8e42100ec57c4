"""The classes that a model file may hold: with their annotated fields, this is the format."""

from __future__ import annotations

from rwf.data.places import Places
from rwf.data.rows import Block
from rwf.data.scaling import Affine, Logarithm, Standardizer
from rwf.data.schema import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    Preparation,
    SpelledColumn,
    TableSchema,
    TargetEncodedColumn,
)
from rwf.data.target_transform import TargetTransform
from rwf.diagnostics.scores import Score, Scores
from rwf.features.atoms import Atoms
from rwf.features.base import ConstantFeatures, FeatureMap, LinearFeatures, Stack
from rwf.features.fourier import FourierFeatures
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.features.ridge import RidgeFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.fit.groups import GroupScores
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
from rwf.inference.optimize import Trial
from rwf.inference.posterior import Posterior
from rwf.inference.spike_slab.dictionary import Dictionary
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.inference.spike_slab.fit import SamplerReport, Schedule, SpikeSlabFit
from rwf.inference.spike_slab.mixture import Draw
from rwf.inference.spike_slab.windows import Window, WindowedFit, WindowMoments
from rwf.linalg.dense import Factor
from rwf.models.base import Model
from rwf.models.blended import NeighborBlend
from rwf.models.corrected import Calibrated
from rwf.models.dense import DenseModel, Hyperparameters
from rwf.models.field import FieldModel, FieldOutput
from rwf.models.spike_slab import SpikeSlabHyperparameters, SpikeSlabModel
from rwf.models.stacked import Line, Stacked
from rwf.models.tree import TreeHyperparameters, TreeModel
from rwf.persistence.checks import check
from rwf.persistence.derived import derivable, fill
from rwf.persistence.registry import Registry
from rwf.priors import Adaptive, Field, Fourier, Multiscale, Nystrom, RandomFeatures, SpikeSlab
from rwf.priors.base import LearnedFeatures, LearnedPrior
from rwf.priors.lattice import LearnedLattice
from rwf.uncertainty.blending import BlendWeights, Expert, LocalScale, OutputBlend
from rwf.uncertainty.error_density import ErrorDensity, ScaleFeatures, SmoothFeatures
from rwf.uncertainty.field_blend import FieldBlend, FieldScores
from rwf.uncertainty.kriging import FieldKernel
from rwf.uncertainty.row_noise import RowNoise
from rwf.uncertainty.variance_function import VarianceFunction
from rwf.uncertainty.vecchia import MaternKernel, VecchiaGP
from rwf.wavelets import (
    Cliff,
    CompactHat,
    ComplexMorlet,
    Daubechies,
    GaussianDerivative,
    Haar,
    MexicanHat,
    Morlet,
    Wavelet,
)
from rwf.wavelets.measure import Box, Hull, Rows, ShiftSampler
from rwf.wavelets.radial import Bump

WAVELETS = (
    MexicanHat, CompactHat, Bump, Morlet, ComplexMorlet, GaussianDerivative, Cliff, Haar,
    Daubechies,
)  # fmt: skip
SHIFTS = (Rows, Box, Hull)
UNITS = (Affine, Logarithm, TargetTransform, Standardizer)
MAPS = (
    WaveletFeatures, RidgeFeatures, LocalAtoms, NystromFeatures, FourierFeatures, Dictionary,
    ConstantFeatures, LinearFeatures,
)  # fmt: skip
FEATURES = (Atoms, HatMixture, *MAPS, Stack)
DENSE = (
    Moments, RootMoments, Factor, Posterior, Variances, EmpiricalBayes, Hyperparameters,
    VarianceFunction, RowNoise, DenseModel,
)  # fmt: skip
TREE = (
    ColumnSupports, Dissection, AtomTree, TreeMoments, TreeFactor, TreePosterior,
    TreeEmpiricalBayes, TreeHyperparameters, TreeModel,
)  # fmt: skip
SPIKE_SLAB = (
    Draw, SamplerReport, SpikeSlabFit, Window, WindowedFit, WindowMoments, GapReversion,
    SpikeSlabHyperparameters, SpikeSlabModel,
)  # fmt: skip
CORRECTIONS = (
    SmoothFeatures, ScaleFeatures, ErrorDensity, Calibrated, Line, Stacked, MaternKernel, VecchiaGP,
    LocalScale, BlendWeights, Expert, OutputBlend, NeighborBlend, FieldKernel, FieldScores,
    FieldBlend, FieldOutput, FieldModel,
)  # fmt: skip
MODELS = (
    DenseModel, TreeModel, SpikeSlabModel, Calibrated, Stacked, NeighborBlend, FieldModel,
)  # fmt: skip
PRIORS = (
    Adaptive, Field, Fourier, Multiscale, Nystrom, RandomFeatures, Schedule, SpikeSlab,
)  # fmt: skip
LEARNED = (LearnedFeatures, LearnedLattice)
REPORTS = (Trial, GroupScores, FitReport, Score, Scores)
TABLES = (
    NumberColumn, SpelledColumn, DateColumn, CategoryColumn, TargetEncodedColumn, TableSchema,
    Preparation, Places,
)  # fmt: skip

MODEL_FILE = Registry(
    classes=(
        *WAVELETS, *SHIFTS, *UNITS, *FEATURES, *DENSE, *TREE, *SPIKE_SLAB, *CORRECTIONS, *PRIORS,
        *REPORTS, *TABLES,
    ),
    families={Wavelet: WAVELETS, FeatureMap: MAPS, Model: MODELS, ShiftSampler: SHIFTS},
    cached={DenseModel: ("fits",), TreeModel: ("fits",)},
    check=check,
    derivable=derivable,
    fill=fill,
)  # fmt: skip

CHECKPOINT = Registry(
    classes=(
        *WAVELETS, *UNITS, *FEATURES, Variances, Hyperparameters, ColumnSupports, Dissection,
        AtomTree, TreeHyperparameters, Trial, Block, *LEARNED,
    ),
    families={Wavelet: WAVELETS, FeatureMap: MAPS, LearnedPrior: LEARNED},
    cached={},
    check=check,
)  # fmt: skip
"""An unfinished fit: rows, and what was learned from them. Spike and slab has no checkpoints."""
