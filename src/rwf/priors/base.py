"""What a prior is: it learns from some rows, and what it learned is conditioned on all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from rwf._types import Array
from rwf.data.holdout import scored_rows
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.data.target_transform import Bend
from rwf.features.base import ConstantFamily, Family, FeatureMap, LinearFamily
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import LOW_DIMENSION, LeftOutRows, Model
from rwf.models.corrected import calibrate
from rwf.models.dense import FORMS, DenseModel, Hyperparameters, collect
from rwf.models.stacked import stack_with_line
from rwf.uncertainty.extrapolation import block_energies, support_levels
from rwf.uncertainty.noise import NOISE_MODELS, NOISE_OF_ROWS, NoiseTask

Solver = Literal["auto", "dense", "multifrontal"]
Metric = Literal["auto", "isotropic", "ard", "full"]
Trend = Literal["linear", "constant", "none"]
CalibrationMode = Literal["local", "global"] | None
Neighbors = Literal["auto"] | int | None

SAMPLE_ROWS = 2000  # rows on which hyperparameters are learned, and models scored
ALL_ROWS = 3000  # up to so many, all rows take part in learning: inducing inputs, polishing
CALIBRATION_ROWS = 3000  # rows whose errors calibrate predictions, at most
GROWTH = 1.5  # of variances, times the share of squared errors that Akaike's criterion adds

RESTARTS, ITERATIONS = 2, 60  # starting points after the first, and iterations, by default

NEAREST_ROWS = ("field",)  # priors whose models predict from the nearest rows, all alike

TRENDS: dict[str, tuple[Family, ...]] = {
    "linear": (ConstantFamily(), LinearFamily()),
    "constant": (ConstantFamily(),),
    "none": (),
}


@dataclass(frozen=True)
class FitConfig:
    """Parameters of a fit that every prior knows; the estimator documents them."""

    n_components: int | None
    solver: Solver
    metric: Metric
    neighbors: Neighbors
    trend: Trend
    noise: str
    calibration: CalibrationMode
    log_skewed: bool
    n_restarts: int | None = None  # those that are given, or None
    iterations: int | None = None
    # what is done to the targets: to be chosen, or the same or its own for each of them
    target_transform: Literal["auto"] | Bend | tuple[Bend, ...] = None
    grouped: bool = False  # whether rows come in groups

    @property
    def n_trials(self) -> int:
        """Starting points."""
        return 1 + (RESTARTS if self.n_restarts is None else self.n_restarts)

    @property
    def max_iter(self) -> int:
        """Iterations of L-BFGS."""
        return ITERATIONS if self.iterations is None else self.iterations

    @property
    def ard(self) -> bool:
        """Whether every input column has its own unit and length-scale."""
        return self.metric != "isotropic"

    def units(self, rows: Block) -> Standardizer:
        """Units learned from rows."""
        bends = self.target_transform
        assert bends != "auto"  # fit.targets has chosen
        each = bends if isinstance(bends, tuple) else (bends,) * rows.n_outputs
        return Standardizer.learn(rows, ard=self.ard, log_skewed=self.log_skewed, bends=each)


@dataclass(frozen=True)
class LearningTask:
    """What a prior learns from."""

    units: Standardizer  # of inputs and targets
    known: Block  # some rows, in standardised units
    complete: bool  # whether they are all there are
    n_components: int  # feature columns
    config: FitConfig  # parameters of the fit
    rng: np.random.Generator  # draws rows and atoms
    progress: Progress  # called with a line of text now and then
    start: LearnedPrior | None = None  # what the prior learned from some of these rows

    @cached_property
    def scored(self) -> Block:
        """At most SAMPLE_ROWS of the known rows, for leave-one-out errors; groups are whole."""
        return scored_rows(self.known, SAMPLE_ROWS, self.rng)

    @property
    def trend(self) -> Sequence[Family]:
        """The families of trend columns."""
        return TRENDS[self.config.trend]

    def draw_trend(self) -> list[FeatureMap]:
        """The trend columns."""
        return [family.draw(0, self.known.X, self.rng) for family in self.trend]


@dataclass(frozen=True, kw_only=True)
class LearnedPrior(ABC):
    """What a prior learned from some rows."""

    trials: tuple[Trial, ...]  # what was tried, and how it did
    at_bounds: tuple[str, ...] = ()  # parameters that ended on their bounds
    n_learned: int  # number of parameters learned
    why: str = ""  # why this solver is used, if there was a choice
    blends: bool = False  # whether a blend with nearest neighbours is worth trying by default
    finished: ClassVar[bool] = False
    """Whether the model is calibrated, and has its neighbors, when it is conditioned."""

    @property
    def conclusive(self) -> bool:
        """Whether model selection need not look further."""
        return False

    @abstractmethod
    def condition(self, task: LearningTask, rows: Rows) -> Model:
        """The model of all rows, in standardised units: one pass, and the noise of the config."""


class Prior(ABC):
    """What is assumed of the weights. See docs/extending.md for one of your own."""

    name: ClassVar[str]
    most_inputs: ClassVar[int | None] = None
    """Input columns up to which it can be used; ``None`` for any number."""
    solvers: ClassVar[tuple[str, ...]] = ("auto", "dense")
    sample_rows: ClassVar[int] = ALL_ROWS
    """Rows beyond which a larger sample teaches it nothing."""
    needs_all_rows: ClassVar[bool] = False
    """Whether all rows must be in memory."""
    for_edges: ClassVar[bool] = False
    """Whether its strength is what other priors leave as large errors."""

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        """The prior to use for n rows of d columns, after its constraints are checked."""
        if config.grouped and self.name in NEAREST_ROWS:
            raise ValueError(
                f"prior={self.name!r} predicts from the nearest rows and cannot leave groups or "
                "blocks out: use prior='auto' with groups= or blocks=."
            )
        self._check_noise_of_rows(config)
        if config.solver not in self.solvers:
            raise ValueError(
                f"solver={config.solver!r} is for prior='auto' or 'multiscale' and up to "
                f"{LOW_DIMENSION} input columns, not for prior={self.name!r} (X has {d}): leave "
                "the solver out, or use solver='dense'."
            )
        if self.most_inputs is not None and d > self.most_inputs:
            raise ValueError(
                f"prior={self.name!r} is for up to {self.most_inputs} input column(s), and X has "
                f"{d}: use prior='nystrom'."
            )
        return self

    def _check_noise_of_rows(self, config: FitConfig) -> None:
        if config.noise not in NOISE_OF_ROWS:
            return
        if self.name in NEAREST_ROWS:
            raise ValueError(
                f"prior={self.name!r} predicts from the nearest rows, which all count the same: "
                f"with noise={config.noise!r} use prior='multiscale'."
            )
        if config.neighbors not in ("auto", None):
            raise ValueError(
                f"noise={config.noise!r} has a factor for every row, which the nearest-neighbour "
                f"GP of neighbors={config.neighbors} lacks: use neighbors=None."
            )

    def units(self, rows: Block, config: FitConfig) -> Standardizer:
        """Units learned from rows."""
        return config.units(rows)

    @abstractmethod
    def n_components(self, n: int) -> int:
        """Feature columns for n rows, unless the user gave a number."""

    def cheap(self) -> Prior:
        """A cheaper version of it, for model selection."""
        return self

    @abstractmethod
    def learn(self, task: LearningTask) -> LearnedPrior:
        """Learn hyperparameters from some rows."""


def calibrated_model(learned: LearnedPrior, task: LearningTask, rows: Rows) -> Model:
    """The model of all rows, with its variances calibrated as the config says."""
    model = learned.condition(task, rows)
    if task.config.calibration is None or learned.finished:
        return model
    return calibrated(model, learned, task, left_out_rows(model, learned, task))


def left_out_rows(model: Model, learned: LearnedPrior, task: LearningTask) -> LeftOutRows:
    """Some known rows, predicted once without themselves for all that is made of their errors."""
    size = SAMPLE_ROWS if learned.finished else CALIBRATION_ROWS
    return LeftOutRows.of(model, model.unbiased_rows(scored_rows(task.known, size, task.rng)))


def calibrated(model: Model, learned: LearnedPrior, task: LearningTask, seen: LeftOutRows) -> Model:
    """A model with the density of its leave-one-out errors, and no worse than a straight line."""
    mode = task.config.calibration
    if mode is None or learned.finished:
        return model
    rows, p = seen.rows, model.left_out(seen)
    # Leave-one-out errors are those of parameters that were learned with these rows.
    hidden = 2.0 * learned.n_learned / len(task.known)
    counted = model.counted(rows), model.counted(task.known)
    stacked = stack_with_line(model, p, *counted, hidden)
    if stacked is not None:
        share = 100 * stacked.shares.mean()
        task.progress(f"averaged with a straight line, whose share is {100 - share:.0f} %")
        model, p = stacked, stacked.corrected(rows, p)
    growth = 1.0 + GROWTH * hidden
    return calibrate(model, rows, p, task.rng, local=mode == "local", growth=growth)


def some_rows(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` of the rows, at random."""
    if len(rows) <= size:
        return rows
    keep = np.sort(rng.permutation(len(rows))[:size])
    return rows.part(keep)


@dataclass(frozen=True, kw_only=True)
class LearnedFeatures(LearnedPrior):
    """Features and the variances that go with them."""

    # features, and the variances from which empirical Bayes starts
    hyperparameters: Hyperparameters
    learn_variances: bool = True  # whether it moves the prior variances, or the noise alone

    def condition(self, task: LearningTask, rows: Rows) -> Model:
        model = self._with_constant_noise(task, rows)
        noise = NoiseTask(model, rows, task.scored, task.rng, task.progress)
        return NOISE_MODELS[task.config.noise].fit(noise)

    def _with_constant_noise(self, task: LearningTask, rows: Rows) -> DenseModel:
        """The model in Gram form, or in square-root form if the noise is too small for that."""
        levels = self._levels(task)
        for form in FORMS:
            model = DenseModel(
                units=task.units,
                hyperparameters=self.hyperparameters,
                statistics=collect(self.hyperparameters, rows, form),
                learn_variances=self.learn_variances,
                levels=levels,
            )
            if form == FORMS[-1] or model.resolved:
                break
            task.progress(f"{form}: the noise is below what it resolves, so another pass follows")
        return model

    def _levels(self, task: LearningTask) -> Array | None:
        """Σz² of local blocks among the data, where the variance is to revert to the prior's."""
        features, X = self.hyperparameters.features, task.scored.X
        if task.config.calibration is None or X.shape[1] > LOW_DIMENSION or not features.local:
            return None
        energies = block_energies(np.asarray(features(X)), features.blocks)
        return support_levels(energies, features.local_blocks)
