"""What must fit together in a model, so that compiled loops, which check nothing, stay in bounds.

Lengths that fields of one object share are checked by its record; here is what concerns several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rwf.data.scaling import Standardizer
from rwf.data.schema import CategoryColumn, TableSchema
from rwf.features.base import FeatureMap
from rwf.features.fourier import FourierFeatures
from rwf.features.inducing import NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.features.ridge import RidgeFeatures
from rwf.features.stack import Stack
from rwf.features.trend import ConstantFeatures, LinearFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.inference.moments import Moments, RootMoments
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
from rwf.models.calibrated import LocalCalibration
from rwf.models.dense import DenseModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.tree import TreeModel
from rwf.persistence.codec import require
from rwf.uncertainty.blending import OutputBlend
from rwf.uncertainty.variance_function import VarianceFunction
from rwf.uncertainty.vecchia import TWICE_ORDERS, Kernel, VecchiaGP
from rwf.wavelets import CompactHat

HIGHEST_ORDER = 1000
"""Of a compact hat, whose powers are made one by one."""


def inputs_of(part: FeatureMap) -> int | None:
    """The input columns that a feature map is for; ``None`` if it takes any number."""
    if isinstance(part, WaveletFeatures | RidgeFeatures | LocalAtoms):
        return int(part.shifts.shape[1])
    if isinstance(part, NystromFeatures):
        return int(part.centers.shape[1])
    if isinstance(part, FourierFeatures):
        return int(part.frequencies.shape[1])
    if isinstance(part, LinearFeatures):
        return part.n_features
    return 1 if isinstance(part, Dictionary) else None


def fits_inputs(stack: Stack, d: int) -> None:
    for part in stack.maps:
        its = inputs_of(part)
        require(its in (None, d), f"features of {its} input columns are among those of {d}")


def check_compact_hat(wavelet: CompactHat) -> None:
    require(wavelet.order <= HIGHEST_ORDER, f"an order of {wavelet.order} is too high")


def check_wavelet_features(part: WaveletFeatures) -> None:
    require(part.directions.shape == part.atoms.shifts.shape, "atoms and directions differ")
    require(part.n_atoms > 0, "there are no atoms")


def check_ridge_features(part: RidgeFeatures) -> None:
    require(part.weights.shape == part.atoms.shifts.shape, "atoms and directions differ")
    require(part.n_atoms > 0, "there are no atoms")


def check_kernel_atoms(part: NystromFeatures) -> None:
    d = part.centers.shape[1]
    require(part.kernel.log_lengths.shape[1] == d, "kernel and centres differ in their inputs")


def check_constant(part: ConstantFeatures) -> None:
    require(part.n_features == 1, f"a constant has one column, and not {part.n_features}")


def check_dictionary(part: Dictionary) -> None:
    kinds = part.kinds
    require(bool(((kinds >= STEP) & (kinds <= GABOR)).all()), "an atom is of no known kind")


def check_stack(stack: Stack) -> None:
    require(len(stack.maps) > 0, "there are no features")
    for part in stack.maps:
        require(part.n_features >= 0, "a block has less than no columns")
    if stack.cells is not None:
        require(len(stack.cells) == len(stack.maps), "blocks and cells differ in number")
        for part, cells in zip(stack.maps, stack.cells, strict=True):
            require(cells.shape == (part.n_features,), "columns and cells differ in number")
            low, high = int(cells.min(initial=0)), int(cells.max(initial=-1))
            require(low >= 0 and high < part.n_features, "a cell has no valid number")


def check_standardizer(scaler: Standardizer) -> None:
    require(len(scaler.X.center) > 0 and len(scaler.y.center) > 0, "there are no columns")
    if scaler.logarithm is not None:
        d = len(scaler.X.center)
        require(len(scaler.logarithm.low) == d, "logarithms are of other columns")


def check_posterior(posterior: Posterior) -> None:
    p = len(posterior.prior_variances)
    require(len(posterior.factor.L) == p, "the factor has another size than the mean")


def check_variance_shape(shape: VarianceFunction) -> None:
    columns = shape.features.n_features
    require(len(shape.weights) == columns, "features and weights differ in number")


def check_fitted(model: DenseModel) -> None:
    d, k, stack = len(model.scaler.columns), len(model.scaler.y.center), model.shape.features
    fits_inputs(stack, d)
    p, statistics = stack.n_features, model.statistics
    if isinstance(statistics, RootMoments):
        size = len(statistics.R) - statistics.n_outputs
        require(statistics.n_outputs == k and size == p, "statistics are of other columns")
    else:
        check_moments(statistics, p, k)
    require(len(model.shape.log_noise) == k, "noise is of other outputs")
    require(len(model.shape.log_priors) == len(stack.parents), "variances are of other groups")
    check_noise(model.noise, d)
    check_scores(model, k)
    if model.levels is not None:
        require(len(model.levels) == len(stack.maps), "cover is of other blocks")
    if "fits" in vars(model):
        check_tuned([t.posterior for t in model.fits], p, k)


def check_moments(moments: Moments, p: int, k: int) -> None:
    require(moments.Zty.shape == (p, k), "statistics are of other columns")


def check_noise(noise: VarianceFunction | None, d: int) -> None:
    if noise is not None:
        fits_inputs(noise.features, d)


def check_scores(model: DenseModel | SpikeSlabModel | TreeModel | LocalCalibration, k: int) -> None:
    if model.calibration is not None:
        scores = model.calibration.scores
        require(scores.shape[1] == k, "leave-one-out errors are of other outputs")


def check_tuned(posteriors: Sequence[Posterior | TreePosterior], p: int, k: int) -> None:
    require(len(posteriors) == k, "posteriors are of other outputs")
    for posterior in posteriors:
        require(len(posterior.prior_variances) == p, "a posterior is of other columns")


def check_dissection(tree: Dissection) -> None:
    """A binary tree whose subtrees are ranges, and whose lists hold what its nodes can have."""
    n, p = tree.n_nodes, tree.n_columns
    require(n > 0, "a tree has no nodes")
    require(np.array_equal(np.sort(tree.order), np.arange(p)), "its order is no permutation")
    for starts, end in ((tree.own_starts, p), (tree.list_starts, len(tree.lists))):
        require(len(starts) == n + 1, "its nodes differ in number")
        rising = starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all()
        require(bool(rising), "the parts of its lists are in disorder")
    _check_nodes(tree)
    _check_lists(tree)


def _check_nodes(tree: Dissection) -> None:
    n = tree.n_nodes
    inner, parents = np.flatnonzero(tree.axes >= 0), tree.parents
    require(parents[0] == -1, "its root has a parent")
    above = parents[1:]
    require(bool(((above >= 0) & (above < np.arange(1, n))).all()), "a node is above its parent")
    require(bool((np.bincount(above, minlength=n) == 2 * (tree.axes >= 0)).all()), "a child lacks")
    require(bool((inner + 1 < n).all()), "a child lacks")
    require(bool((parents[inner + 1] == inner).all()), "a left child is not where it should be")
    # With two children each, this makes every subtree a range.
    right, expected = tree.right[inner], tree.ends[inner + 1]
    require(np.array_equal(right, expected), "a right child is not where it should be")
    require(bool((right < n).all() and (parents[right] == inner).all()), "a child has two parents")


def _check_lists(tree: Dissection) -> None:
    require(bool((tree.own <= tree.fronts).all()), "a node owns more than its list holds")
    node = np.repeat(np.arange(tree.n_nodes), tree.fronts)
    place = np.arange(len(tree.lists)) - tree.list_starts[node]
    own = place < tree.own[node]
    mine = tree.own_starts[node] + place
    require(bool((tree.lists[own] == mine[own]).all()), "a node does not list its own columns")
    require(bool((tree.places[own] == -1).all()), "an own column has a place above")
    others = np.flatnonzero(~own)
    require(bool((node[others] > 0).all()), "the root has columns from above")
    parent, where = tree.parents[node[others]], tree.places[others]
    require(bool(((where >= 0) & (where < tree.fronts[parent])).all()), "a place is out of bounds")
    same = tree.lists[others] == tree.lists[tree.list_starts[parent] + where]
    require(bool(same.all()), "a column is not where its place says")
    rises = (np.diff(where) > 0) | (np.diff(node[others]) > 0)
    require(bool(rises.all()), "the places of a node are in disorder")


def check_columns(columns: ColumnSupports) -> None:
    require(columns.n_inputs > 0, "there are no inputs")
    fits_inputs(columns.features, columns.n_inputs)


def check_tree(tree: AtomTree) -> None:
    columns, dissection = tree.columns, tree.dissection
    require(dissection.n_columns == columns.features.n_features, "the tree has other columns")
    require(int(dissection.axes.max()) < columns.n_inputs, "the tree is cut at other inputs")


def check_tree_moments(moments: TreeMoments) -> None:
    size = int(moments.tree.dissection.packed_starts[-1])
    require(len(moments.grams) == size, "Gram matrices are of another tree")
    require(len(moments.Zty) == moments.tree.n_features, "statistics are of other columns")


def check_tree_factor(factor: TreeFactor) -> None:
    size = int(factor.dissection.panel_starts[-1])
    require(len(factor.panels) == size, "the factor is of another tree")


def check_tree_posterior(posterior: TreePosterior) -> None:
    p = posterior.tree.n_features
    require(len(posterior.prior_variances) == p, "a posterior is of other columns")
    own = posterior.factor.dissection is posterior.tree.dissection
    require(own, "the factor is of another tree")


def check_tree_model(model: TreeModel) -> None:
    d, k, tree = len(model.scaler.columns), len(model.scaler.y.center), model.shape.tree
    require(tree.columns.n_inputs == d, "atoms have other inputs")
    require(model.statistics.tree is tree, "statistics are of another tree")
    require(model.statistics.n_outputs == k, "statistics are of other outputs")
    require(len(model.shape.variances) == k, "variances are of other outputs")
    groups = len(model.shape.features.parents)
    for variances in model.shape.variances:
        require(len(variances.log_priors) == groups, "variances are of other groups")
    check_noise(model.noise, d)
    check_scores(model, k)
    if model.levels is not None:
        require(len(model.levels) == len(model.maps), "cover is of other blocks")
    if "fits" in vars(model):
        for fits in model.fits:
            require(fits.posterior.tree is tree, "a posterior is of another tree")
        check_tuned([t.posterior for t in model.fits], model.n_features, k)


def check_sparse_fit(fit: SpikeSlabFit) -> None:
    fits_inputs(fit.features, 1)
    require(isinstance(fit.features.maps[0], Dictionary), "there is no dictionary of atoms")
    u, m = fit.features.n_features, fit.features.maps[0].n_features
    for draw in fit.draws:
        require(len(draw.ratios) == u - m, "a draw has other dense columns")
        low, high = int(draw.atoms.min(initial=0)), int(draw.atoms.max(initial=-1))
        require(low >= 0 and high < m, "a draw has atoms that are not there")


def check_windowed_fit(fit: WindowedFit) -> None:
    require(len(fit.windows) > 0, "there are no windows")
    for window in fit.windows:
        require(len(window.fit.draws) > 0, "a window has no draws")


def check_sparse_model(model: SpikeSlabModel) -> None:
    fits, k = model.shape.fits, len(model.scaler.y.center)
    require(len(model.scaler.columns) == 1, "sparse weights are for one input")
    require(len(fits) == k and len(model.moments) == k, "fits are of other outputs")
    for fit, moments in zip(fits, model.moments, strict=True):
        require(len(fit.windows) == len(moments.parts), "moments are of other windows")
        for window, part in zip(fit.windows, moments.parts, strict=True):
            check_moments(part, window.fit.features.n_features, 1)
    if model.shape.gaps is not None:
        require(len(model.shape.gaps.ends) > 0, "there are no gaps, not even beyond the ends")
    check_scores(model, k)


def check_kernel(kernel: Kernel) -> None:
    require(kernel.twice_order in TWICE_ORDERS, f"there is no order {kernel.twice_order}/2")


def check_neighbours(gp: VecchiaGP) -> None:
    require(len(gp.kernel.lengths) == gp.X.shape[1], "kernel and rows differ in their inputs")
    require(gp.n_neighbors > 0, "nobody is asked")


def check_layer(layer: OutputBlend) -> None:
    require(len(layer.squares) == len(layer.gp.X), "squares are of other rows")
    require(len(layer.experts) > 0, "a layer has no voice")
    require(all(expert.scale.nearby > 0 for expert in layer.experts), "nobody is asked")
    weights = [expert.weight for expert in layer.experts]
    require(min(weights) >= 0 and sum(weights) <= 1 + 1e-9, "weights of voices are no shares")


def check_correction(
    correction: LocalCalibration | NeighborBlend | None,
    model: DenseModel | SpikeSlabModel | TreeModel,
) -> None:
    """That a correction is of this model."""
    if correction is None:
        return
    d, k = len(model.scaler.columns), len(model.scaler.y.center)
    scores = correction.calibration.scores
    require(scores.shape[1] == k, "leave-one-out errors are of other outputs")
    scale = correction.scale if isinstance(correction, NeighborBlend) else correction
    if scale is not None:
        check_noise(scale.shape, d)
        check_scores(scale, k)
    if isinstance(correction, NeighborBlend):
        require(len(correction.layers) == k, "layers are of other outputs")
        for layer in correction.layers:
            if layer is not None:
                require(layer.gp.X.shape[1] == d, "a layer has other inputs")


def check_categories(column: CategoryColumn) -> None:
    texts = column.categories
    require(len(texts) > 0 and len(set(texts)) == len(texts), "categories are none, or repeated")
    require(column.fill is None or column.fill in texts, "a gap is filled by no category")


def check_schema(schema: TableSchema) -> None:
    names = [column.name for column in schema.columns]
    names += [name for name in (schema.target, schema.weight) if name is not None]
    require(len(schema.columns) > 0, "a table has no columns")
    require(len(set(names)) == len(names), "columns of a table are repeated")


def check_table(schema: TableSchema, estimator: object) -> None:
    """That a table's columns are those of an estimator."""
    attributes = vars(estimator)
    require(attributes["n_features_in_"] == len(schema.names), "a table has other columns")
    require(attributes["_single_output"], "a table has one target")


def check_estimator(estimator: object) -> None:
    """That the attributes of a fitted estimator go together."""
    attributes = vars(estimator)
    scaler = attributes["model_"].scaler
    d, k = len(scaler.X.center), len(scaler.y.center)
    require(attributes["n_features_in_"] == d, "units are of other input columns")
    require(not attributes["_single_output"] or k == 1, "one output has several columns")
    names = attributes.get("feature_names_in_")
    require(names is None or len(names) == d, "names are of other columns")
    check_correction(attributes["correction_"], attributes["model_"])
