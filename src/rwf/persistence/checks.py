"""What must hold between the parts of a model, so that compiled loops stay within their arrays.

Types and shapes within one object follow from annotations, and are checked before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rwf._types import IntArray
from rwf.data.scaling import Standardizer
from rwf.data.target_transform import BENDS, TargetTransform
from rwf.features.base import ConstantFeatures, FeatureMap, LinearFeatures, Stack
from rwf.features.fourier import FourierFeatures
from rwf.features.inducing import NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.features.ridge import RidgeFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.inference.moments import RootMoments
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.factor import TreeFactor
from rwf.inference.multifrontal.moments import TreeMoments
from rwf.inference.multifrontal.posterior import TreePosterior
from rwf.inference.multifrontal.supports import ColumnSupports
from rwf.inference.posterior import Posterior
from rwf.inference.spike_slab.dictionary import GABOR, STEP, Dictionary
from rwf.inference.spike_slab.fit import SpikeSlabFit
from rwf.inference.spike_slab.windows import WindowedFit
from rwf.models.blended import NeighborBlend
from rwf.models.corrected import Calibrated, CorrectedModel
from rwf.models.dense import DenseModel
from rwf.models.field import FieldModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.stacked import Stacked
from rwf.models.tree import TreeModel
from rwf.persistence.dissection import check_dissection
from rwf.persistence.registry import require
from rwf.persistence.table_checks import check_table
from rwf.uncertainty.blending import OutputBlend
from rwf.uncertainty.error_density import ErrorDensity
from rwf.uncertainty.field_blend import FieldBlend
from rwf.uncertainty.kriging import FieldKernel
from rwf.uncertainty.row_noise import RowNoise
from rwf.uncertainty.variance_function import VarianceFunction
from rwf.uncertainty.vecchia import TWICE_ORDERS, MaternKernel, VecchiaGP
from rwf.wavelets import CompactHat

HIGHEST_ORDER = 1000  # of a compact hat, whose powers are computed one by one


def check(value: object) -> None:
    """Raise a mismatch if the parts of an object do not go together; most classes need no check."""
    _check_features(value)
    _check_model(value)
    _check_tree(value)
    _check_neighbors(value)
    _check_correction(value)
    check_table(value)


def _check_features(part: object) -> None:
    match part:
        case CompactHat():
            require(part.order <= HIGHEST_ORDER, f"an order of {part.order} is too high")
        case WaveletFeatures() | RidgeFeatures():
            directions = part.directions if isinstance(part, WaveletFeatures) else part.weights
            require(directions.shape == part.atoms.shifts.shape, "atoms and directions differ")
            require(part.n_atoms > 0, "there are no atoms")
        case NystromFeatures(kernel=kernel, centers=centers):
            same = kernel.log_lengths.shape[1] == centers.shape[1]
            require(same, "kernel and centers differ in their inputs")
        case ConstantFeatures():
            require(part.n_features == 1, f"a constant has one column, not {part.n_features}")
        case Dictionary(kinds=kinds):
            require(((kinds >= STEP) & (kinds <= GABOR)).all(), "an atom is of no known kind")
        case Stack(maps=maps, cells=cells):
            require(len(maps) > 0, "there are no features")
            counts = [block.n_features for block in maps]
            require(min(counts) >= 0, "a block has a negative number of columns")
            require(cells is None or len(cells) == len(maps), "blocks and cells differ in number")
            for own, count in zip(cells or (), counts, strict=False):
                require(own.shape == (count,), "columns and cells differ in number")
                check_indices(own, count, "a cell has no valid number")


def check_indices(indices: IntArray, count: int, otherwise: str) -> None:
    require(((indices >= 0) & (indices < count)).all(), otherwise)


def check_inputs(stack: Stack, d: int) -> None:
    """That features are functions of d input columns."""
    if stack.metric is not None:
        require(len(stack.metric) == d, "the metric is of other input columns")
    for part in stack.maps:
        own = inputs_of(part)
        require(own in (None, d), f"features of {own} input columns are among those of {d}")


def inputs_of(part: FeatureMap) -> int | None:
    """The input columns of a feature map; ``None`` if it takes any number."""
    match part:
        case WaveletFeatures() | RidgeFeatures() | LocalAtoms():
            return int(part.shifts.shape[1])
        case NystromFeatures():
            return int(part.centers.shape[1])
        case FourierFeatures():
            return int(part.frequencies.shape[1])
        case LinearFeatures():
            return part.n_features
        case Dictionary():
            return 1
    return None


def _check_model(model: object) -> None:
    match model:
        case TargetTransform(powers=powers, offsets=offsets):
            require(set(powers.tolist()) <= set(BENDS), "a transform of targets is unknown")
            require((offsets >= 0).all(), "the offset of a square root is negative")
        case Standardizer(X=X, y=y, logarithm=logarithm, transform=transform):
            require(len(X.center) > 0 and len(y.center) > 0, "there are no columns")
            own = transform is None or len(transform.powers) == len(y.center)
            require(own, "transforms are of other outputs")
            same = logarithm is None or len(logarithm.low) == len(X.center)
            require(same, "logarithms are of other columns")
        case Posterior(prior_variances=variances, factor=factor):
            require(len(factor.L) == len(variances), "the factor and the mean differ in length")
        case VarianceFunction(features=features, weights=weights):
            same = len(weights) == features.n_features
            require(same, "features and weights differ in number")
        case RowNoise(keys=keys, factors=factors):
            require(len(keys) == len(factors), "factors are of other rows")
            require((np.diff(keys) > 0).all(), "rows are not in order")
            require((factors > 0).all(), "factors of rows are not positive")
        case SpikeSlabFit():
            check_draws(model)
        case WindowedFit(windows=windows):
            require(len(windows) > 0, "there are no windows")
            require(all(len(w.fit.draws) > 0 for w in windows), "a window has no draws")
        case DenseModel():
            check_dense_model(model)
        case TreeModel():
            check_tree_model(model)
        case SpikeSlabModel():
            check_spike_slab_model(model)


def check_dense_model(model: DenseModel) -> None:
    k, found, statistics = len(model.units.y.center), model.hyperparameters, model.statistics
    stack = found.features
    p = stack.n_features
    check_inputs(stack, len(model.units.columns))
    if isinstance(statistics, RootMoments):
        size = len(statistics.R) - statistics.n_outputs
        require(statistics.n_outputs == k and size == p, "statistics are of other columns")
    else:
        require(statistics.Zty.shape == (p, k), "statistics are of other columns")
    require(len(found.log_noise) == k, "noise is of other outputs")
    require(len(found.log_priors) == len(stack.parents), "variances are of other groups")
    check_extras(model)
    if "fits" in vars(model):
        check_fits([fit.posterior for fit in model.fits], p, k)


def check_extras(model: DenseModel | TreeModel) -> None:
    """That noise and extrapolation are of this model."""
    if isinstance(model.noise, VarianceFunction):
        check_inputs(model.noise.features, len(model.units.columns))
    if model.levels is not None:
        require(len(model.levels) == len(model.maps), "extrapolation is of other blocks")


def check_fits(posteriors: Sequence[Posterior | TreePosterior], p: int, k: int) -> None:
    require(len(posteriors) == k, "posteriors are of other outputs")
    for posterior in posteriors:
        require(len(posterior.prior_variances) == p, "a posterior is of other columns")


def check_tree_model(model: TreeModel) -> None:
    k, tree = len(model.units.y.center), model.hyperparameters.tree
    require(tree.columns.n_inputs == len(model.units.columns), "atoms have other inputs")
    require(model.statistics.tree is tree, "statistics are of another tree")
    require(model.statistics.n_outputs == k, "statistics are of other outputs")
    require(len(model.hyperparameters.variances) == k, "variances are of other outputs")
    groups = len(model.hyperparameters.features.parents)
    for variances in model.hyperparameters.variances:
        require(len(variances.log_priors) == groups, "variances are of other groups")
    check_extras(model)
    if "fits" in vars(model):
        for fit in model.fits:
            require(fit.posterior.tree is tree, "a posterior is of another tree")
        check_fits([fit.posterior for fit in model.fits], model.features.n_features, k)


def check_draws(fit: SpikeSlabFit) -> None:
    check_inputs(fit.features, 1)
    require(isinstance(fit.features.maps[0], Dictionary), "there is no dictionary of atoms")
    m = fit.features.maps[0].n_features
    for draw in fit.draws:
        dense = fit.features.n_features - m
        require(len(draw.ratios) == dense, "a draw has other dense columns")
        check_indices(draw.atoms, m, "a draw has atoms that do not exist")


def check_spike_slab_model(model: SpikeSlabModel) -> None:
    fits, k = model.hyperparameters.fits, len(model.units.y.center)
    require(len(model.units.columns) == 1, "spike-and-slab weights are for one input")
    require(len(fits) == k and len(model.moments) == k, "fits are of other outputs")
    for fit, moments in zip(fits, model.moments, strict=True):
        require(len(fit.windows) == len(moments.parts), "moments are of other windows")
        for window, part in zip(fit.windows, moments.parts, strict=True):
            shape = (window.fit.features.n_features, 1)
            require(part.Zty.shape == shape, "statistics are of other columns")
    gaps = model.hyperparameters.gaps
    require(gaps is None or len(gaps.ends) > 0, "there are no gaps, not even beyond the ends")


def _check_tree(part: object) -> None:
    match part:
        case Dissection():
            check_dissection(part)
        case ColumnSupports(features=features, n_inputs=n_inputs):
            require(n_inputs > 0, "there are no inputs")
            check_inputs(features, n_inputs)
        case AtomTree(columns=columns, dissection=cut):
            require(cut.n_columns == columns.features.n_features, "the tree has other columns")
            require(cut.axes.max() < columns.n_inputs, "the tree is cut at other inputs")
        case TreeMoments(tree=tree):
            same = len(part.grams) == tree.dissection.packed_starts[-1]
            require(same, "Gram matrices are of another tree")
            require(len(part.Zty) == tree.n_features, "statistics are of other columns")
        case TreeFactor(dissection=cut, panels=panels):
            require(len(panels) == cut.panel_starts[-1], "the factor is of another tree")
        case TreePosterior(tree=tree, factor=factor, prior_variances=variances):
            require(len(variances) == tree.n_features, "a posterior is of other columns")
            require(factor.dissection is tree.dissection, "the factor is of another tree")


def _check_neighbors(part: object) -> None:
    match part:
        case MaternKernel(twice_order=order):
            require(order in TWICE_ORDERS, f"there is no order {order}/2")
        case VecchiaGP(kernel=kernel, X=X):
            require(len(kernel.lengths) == X.shape[1], "kernel and rows differ in their inputs")
            require(part.n_neighbors > 0, "there are no neighbors")
        case FieldKernel(metric=A, twice_order=order):
            require(order in TWICE_ORDERS, f"there is no order {order}/2")
            require((np.diag(A) > 0).all() and (np.triu(A, 1) == 0).all(), "this is no metric")
            sizes = np.array([part.short, part.ratio, part.nugget])
            require((sizes > 0).all() and part.long >= 0, "a kernel has no variance")
        case FieldBlend(weights=weights, nearby=nearby):
            require(len(weights) in (2, 3), "there are other experts")
            require((weights >= 0).all(), "weights of experts are no shares")
            require(np.allclose(weights.sum(axis=0), 1.0), "weights of experts are no shares")
            require((nearby > 0).all(), "there are no neighbors")
        case OutputBlend(gp=gp, experts=experts):
            require(len(part.counts) == len(gp.X), "squares are of other rows")
            require(len(experts) > 0, "a blend has no expert")
            require(all(e.scale.nearby > 0 for e in experts), "there are no neighbors")
            shares = min(e.weight for e in experts) >= 0
            shares &= sum(e.weight for e in experts) <= 1 + 1e-9
            require(shares, "weights of experts are no shares")


def _check_correction(part: object) -> None:
    if isinstance(part, ErrorDensity):
        same = len(part.weights) == part.features.n_columns
        require(same, "columns and weights of a density differ in number")
        require(part.dof > 2, f"errors of {part.dof} degrees of freedom have no variance")
    if not isinstance(part, CorrectedModel):
        return
    d, k = len(part.units.columns), len(part.units.y.center)
    match part:
        case Calibrated(densities=densities):
            require(len(densities) == k, "densities are of other outputs")
            own = [density.features.of_inputs.centers for density in densities]
            same = all(len(C) == 0 or C.shape[1] == d for C in own)
            require(same, "a density has other inputs")
        case Stacked(line=line, shares=shares):
            require(line.coefficients.shape[1] == len(shares) == k, "a line has other outputs")
            require(len(line.root) in (1, d + 1), "a line has other inputs")
        case FieldModel(outputs=outputs, X=X, scores=scores):
            require(len(outputs) == len(scores) == part.y.shape[1] == k, "outputs differ in number")
            kernels = [kernel for o in outputs for kernel in (o.values, o.residuals)]
            require(X.shape[1] == d, "rows have other inputs")
            require(all(len(kernel.metric) == d for kernel in kernels), "a kernel has other inputs")
            require(all(len(s.squares) == len(X) for s in scores), "scores are of other rows")
            counts = {len(o.blend.weights) for o in outputs}
            require(counts == {2 + len(part.larger)}, "experts differ in number")
            require(all(m.n_outputs == k for m in part.larger), "a lattice has other outputs")
            require(part.n_neighbors > 0, "there are no neighbors")
        case NeighborBlend(blends=blends):
            require(len(blends) == len(part.levels) == k, "blends are of other outputs")
            for blend in blends:
                require(blend is None or blend.gp.X.shape[1] == d, "a blend has other inputs")
