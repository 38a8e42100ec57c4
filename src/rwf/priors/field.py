"""A field prior for two or three columns: multiscale lattices, and kriging of what one leaves.

Everything is learned from rows that are held out alone and in blobs of several sizes: the metric,
how much every row counts for the lattice, both kernels, the weights of the experts and the
variance at every distance from data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf.data.holdout import FieldHoldOut, HeldOutBlobs
from rwf.data.rows import Block, Rows
from rwf.features.base import Stack
from rwf.inference.multifrontal import (
    AtomTree,
    TreeEmpiricalBayes,
    TreeMoments,
    accumulate_tree,
    draw_multifrontal_lattice,
    power_law,
)
from rwf.inference.optimize import Trial
from rwf.inference.posterior import normal_log_density
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.corrected import calibrate_scores
from rwf.models.field import FieldModel, FieldOutput, experts, leave_one_out_scores
from rwf.models.tree import TreeHyperparameters, TreeModel
from rwf.priors.base import FitConfig, LearnedPrior, LearningTask, Prior
from rwf.priors.lattice import lattice_model, tied_on_tree
from rwf.uncertainty.field_blend import FieldErrors, learn_field_blend
from rwf.uncertainty.field_kernel import learn_field_kernel
from rwf.uncertainty.kriging import NEIGHBORS, FieldKernel, Kriging
from rwf.wavelets.radial import Bump

FEWEST_ROWS = 200  # below, the blobs that are held out are too few to judge by
ROWS_PER_ATOM, LEAST_COMPONENTS, MOST_COMPONENTS = 4, 50, 16_000
LARGER, LARGER_STEPS = 30_000, 3  # atoms of the larger lattice, and steps of its fixed point
FOLDS = 2  # hold-outs from which weights and variances are learned
EFFECTIVE = (3.0, 1.0, 0.3)  # effective rows per atom to choose from, the usual number first
TINY = 1e-300
FINE = 0.15  # share of squared errors from which on the lattice leaves more than noise
CLEAR = 0.03  # nats per row by which fewer of them must predict blobs better
FIRST_STEPS, NEXT_STEPS = 5, 2  # of the fixed point, for the first number and for the others
SMALL = 3  # size of blobs up to which they teach the kernel of residuals: larger ones are smooth
RESIDUAL_STEPS = (15, 8)  # of L-BFGS: there is one component, in a metric that is nearly known


@dataclass(frozen=True)
class Field(Prior):
    """A multiscale lattice for what is coarse, kriging of what it leaves for what is fine.

    For up to three input columns. Such a model stores its training rows.
    """

    name: ClassVar[str] = "field"
    most_inputs: ClassVar[int] = LOW_DIMENSION
    solvers: ClassVar[tuple[str, ...]] = ("auto", "multifrontal")
    sample_rows: ClassVar[int] = sys.maxsize
    needs_all_rows: ClassVar[bool] = True

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        super().for_rows(n, d, config)
        if n < FEWEST_ROWS:
            raise ValueError(
                f"prior='field' holds out blobs of rows, and needs {FEWEST_ROWS} of them, but X "
                f"has {n}: leave the prior out."
            )
        return self

    def n_components(self, n: int) -> int:
        return int(np.clip(n // ROWS_PER_ATOM, LEAST_COMPONENTS, MOST_COMPONENTS))

    def learn(self, task: LearningTask) -> LearnedField:
        return _Learner(task).learn()


Kernels = tuple[FieldKernel, FieldKernel]  # of y, and of what the lattice leaves of it


@dataclass(frozen=True, kw_only=True)
class LearnedField(LearnedPrior):
    """A tempered lattice, the kernels, and errors of held-out rows to blend and calibrate by."""

    finished: ClassVar[bool] = True
    hyperparameters: TreeHyperparameters
    larger: tuple[TreeHyperparameters, ...]  # of a lattice of more atoms, or none
    kernels: tuple[Kernels, ...]  # of each output
    errors: tuple[FieldErrors, ...]  # of each output
    explained: float  # share of the lattice's squared errors that kriging of residuals explains

    @property
    def conclusive(self) -> bool:
        """Kriging explains what the lattice leaves: no smooth prior could do better."""
        return self.explained >= FINE

    def condition(self, task: LearningTask, rows: Rows) -> Model:
        assert isinstance(rows, Block)  # as it needs all rows
        rows, mode = rows.part(rows.weights > 0), task.config.calibration
        wanted = task.config.neighbors
        n_neighbors = wanted if isinstance(wanted, int) else NEIGHBORS
        outputs, scores, z = [], [], []
        for i, (pair, errors) in enumerate(zip(self.kernels, self.errors, strict=True)):
            center = float(rows.y[:, i].mean())
            own = leave_one_out_scores(pair[0], rows.X, rows.y[:, i] - center, n_neighbors)
            blend = learn_field_blend(errors, own, mode)
            outputs.append(FieldOutput(center, *pair, blend))
            scores.append(own)
            z.append(blend.scores(errors, own)[errors.alone])
        lattice, *larger = (
            lattice_model(task, found, rows) for found in (self.hyperparameters, *self.larger)
        )
        of_rows = (rows.X, rows.y, rows.weights, tuple(scores))
        model = FieldModel(lattice, tuple(larger), tuple(outputs), *of_rows, n_neighbors)
        return model if mode is None else calibrate_scores(model, z, task.rng)


class _Learner:
    """Learns the parts of a field one after the other; later ones use the earlier."""

    def __init__(self, task: LearningTask) -> None:
        self.task, self.rng = task, task.rng
        self.rows = task.known.part(task.known.weights > 0)
        self.n_outputs = self.rows.n_outputs
        self.centers = self.rows.y.mean(axis=0)
        self.metric = "full" if task.config.metric == "auto" else task.config.metric
        self.trials: list[Trial] = []

    def learn(self) -> LearnedField:
        first = FieldHoldOut(self.rows, self.rng)
        of_y = [self._kernel_of_y(first, output) for output in range(self.n_outputs)]
        tree = self._draw(of_y, self.task.n_components)
        found = self._temper(self._moments(tree, first), first)
        larger = self._larger(of_y, first)
        lattices = (found, *larger)
        kernels, errors, explained = self._residuals(lattices, first, of_y)
        folds = [errors]
        for _ in range(1, FOLDS):
            other = FieldHoldOut(self.rows, self.rng)
            folds.append(self._errors(self._lattices(lattices, other), other, kernels))
        return LearnedField(
            trials=tuple(self.trials),
            n_learned=len(found.features.maps)
            + self.n_outputs * sum(k.n_parameters for k in kernels[0]),
            why="a field of two or three columns",
            hyperparameters=found,
            larger=larger,
            kernels=kernels,
            errors=tuple(FieldErrors.joined(parts) for parts in zip(*folds, strict=True)),
            explained=explained,
        )

    def _kernel_of_y(self, held: FieldHoldOut, output: int) -> FieldKernel:
        values = self.rows.y[:, output] - self.centers[output]
        kernel = learn_field_kernel(self.rows.X, values, held.blobs, self.rng, metric=self.metric)
        self.task.progress(f"kernel of output {output}: {kernel.described}")
        return kernel

    def _draw(self, kernels: Sequence[FieldKernel], size: int) -> AtomTree:
        """A lattice of so many atoms that are round in the mean metric of all outputs."""
        tensors = [k.metric.T @ k.metric for k in kernels]
        d = len(tensors[0])
        tensors = [T / np.linalg.det(T) ** (1 / d) for T in tensors]
        A = np.linalg.cholesky(np.mean(tensors, axis=0)).T
        U = self.rows.X @ A.T
        span = float(np.ptp(U, axis=0).max()) or 1.0
        atoms = draw_multifrontal_lattice(Bump(), U / span, size, self.rng)
        stack = Stack((*atoms, *self.task.draw_trend()), metric=A / span)
        return AtomTree.of(stack, U.shape[1])

    def _moments(self, tree: AtomTree, held: FieldHoldOut) -> TreeMoments:
        return accumulate_tree(tree, [self.rows.part(held.kept)], self.n_outputs)

    def _larger(
        self, kernels: Sequence[FieldKernel], held: FieldHoldOut
    ) -> tuple[TreeHyperparameters, ...]:
        """A lattice for which every row counts, where rows determine more than the usual atoms."""
        if len(self.rows) <= ROWS_PER_ATOM * MOST_COMPONENTS:
            return ()
        tree = self._draw(kernels, LARGER)
        features = tree.columns.features
        starts = [power_law(features)] * self.n_outputs
        fits = tied_on_tree(self._moments(tree, held), features, starts, LARGER_STEPS)
        variances = tuple(t.variances for t in fits)
        return (TreeHyperparameters(tree, variances, learn_variances=False),)

    def _temper(self, moments: TreeMoments, held: FieldHoldOut) -> TreeHyperparameters:
        """Variances, and how many rows all count as: fewer only if that predicts blobs better."""
        tree, share = moments.tree, len(held.kept) / len(self.rows)
        features = tree.columns.features
        starts, steps = [power_law(features)] * self.n_outputs, FIRST_STEPS
        found, highest = None, -np.inf
        for ratio in EFFECTIVE:
            begun, wanted = time.perf_counter(), ratio * tree.n_features
            fits = tied_on_tree(moments.tempered(share * wanted), features, starts, steps)
            density = self._density(fits, held)
            name = f"lattice with {ratio:g} effective rows per atom"
            self.task.progress(f"{name}: held-out log density {density:.4f}")
            evaluations = sum(t.evaluations for t in fits)
            trial = Trial(
                np.nan, evaluations, time.perf_counter() - begun, name=name, held_out=density
            )
            self.trials.append(trial)
            if found is not None and density < highest + CLEAR:
                break
            starts, steps, highest, best = [t.variances for t in fits], NEXT_STEPS, density, trial
            found = TreeHyperparameters(tree, tuple(starts), wanted, learn_variances=False)
        assert found is not None
        self.trials = [replace(t, chosen=t is best) for t in self.trials]
        return found

    def _density(self, fits: Sequence[TreeEmpiricalBayes], held: FieldHoldOut) -> float:
        """Mean log density of rows in large blobs."""
        rows, weights = held.in_large_blobs()
        total = np.zeros(len(rows))
        for output, t in enumerate(fits):
            p = t.posterior.predict(self.rows.X[rows])
            total += normal_log_density(self.rows.y[rows, output] - p.mean, p.variance)
        return float(np.average(total, weights=weights))

    def _lattices(
        self, found: Sequence[TreeHyperparameters], held: FieldHoldOut
    ) -> list[TreeModel]:
        kept = self.rows.part(held.kept)
        return [lattice_model(self.task, own, kept) for own in found]

    def _residuals(
        self,
        found: Sequence[TreeHyperparameters],
        held: FieldHoldOut,
        of_y: Sequence[FieldKernel],
    ) -> tuple[tuple[Kernels, ...], list[FieldErrors], float]:
        """Kernels, held-out errors, and how much of these the kriging of residuals explains."""
        lattices = self._lattices(found, held)
        lattice = lattices[0]
        of_rest = self._kernels_of_residuals(lattice, held, of_y)
        kernels = tuple(zip(of_y, of_rest, strict=True))
        errors = self._errors(lattices, held, kernels)
        alone = self.rows.part(held.scored[errors[0].alone])
        y, mean = alone.y, lattice.mean(alone.X)
        with_rest = np.column_stack([e.experts[1].mean[e.alone] for e in errors])
        squares = np.maximum(((y - mean) ** 2).mean(axis=0), TINY)
        explained = 1.0 - float((((y - with_rest) ** 2).mean(axis=0) / squares).mean())
        self.task.progress(f"kriging explains {explained:.2f} of the lattice's squared errors")
        return kernels, errors, explained

    def _kernels_of_residuals(
        self, lattice: TreeModel, held: FieldHoldOut, of_y: Sequence[FieldKernel]
    ) -> list[FieldKernel]:
        X, y, blobs = self.rows.X, self.rows.y, held.blobs
        variance = np.zeros_like(y)
        variance[held.scored] = lattice.predict(X[held.scored]).function_variance
        use = blobs.kept.copy()
        use[held.scored[blobs.size[held.scored] <= SMALL]] = True
        part = HeldOutBlobs(blobs.size[use], blobs.blob[use])
        rest = y[use] - lattice.mean(X[use])
        found = []
        for output, kernel in enumerate(of_y):
            other = 5 if kernel.twice_order == 3 else 3
            found.append(
                learn_field_kernel(
                    X[use],
                    rest[:, output],
                    part,
                    self.rng,
                    orders=((kernel.twice_order, False), (other, False)),
                    extra=variance[use, output],
                    metric=self.metric,
                    steps=RESIDUAL_STEPS,
                )
            )
            self.task.progress(f"kernel of residuals of output {output}: {found[-1].described}")
        return found

    def _errors(
        self, lattices: Sequence[TreeModel], held: FieldHoldOut, kernels: Sequence[Kernels]
    ) -> list[FieldErrors]:
        """Errors of the experts on held-out rows, of each output."""
        kept, scored = self.rows.part(held.kept), self.rows.part(held.scored)
        rest = kept.y - lattices[0].mean(kept.X)
        p, *larger = (lattice.predict(scored.X) for lattice in lattices)
        found = []
        for i, (of_y, of_rest) in enumerate(kernels):
            center = float(self.centers[i])
            near = Kriging(of_y, kept.X, kept.y[:, i] - center).predict(scored.X)
            left = Kriging(of_rest, kept.X, np.ascontiguousarray(rest[:, i])).predict(scored.X)
            each = experts(center, near, p, left, larger, i)
            numbers, blob = held.kept[near.near], held.blobs.blob[held.scored]
            found.append(FieldErrors(scored.y[:, i], each, near.gap, numbers, blob))
        return found
