"""A learned stack of features, conditioned on all rows by the dense solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rwf._types import Array
from rwf.data.rows import Rows
from rwf.errors import NotPositiveDefiniteError
from rwf.models.base import LOW_DIMENSION, Model
from rwf.models.dense import DenseModel
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.statistics import FORMS, collect
from rwf.priors.base import LearnedPrior, LearningTask
from rwf.uncertainty.extrapolation import block_energies, support_levels
from rwf.uncertainty.noise import NOISE_MODELS, NoiseTask


@dataclass(frozen=True, kw_only=True)
class LearnedFeatures(LearnedPrior):
    """Features and the variances that go with them."""

    # features, and the variances from which empirical Bayes starts
    hyperparameters: Hyperparameters
    learn_variances: bool = True  # whether it moves the prior variances, or the noise alone
    screened: ClassVar[bool] = True

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
            if form == FORMS[-1] or _resolved(model):
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


def _resolved(model: DenseModel) -> bool:
    """Whether the statistics resolve the noise that was found with them."""
    try:
        return model.least_noise < 1.0
    except NotPositiveDefiniteError:
        return False
