"""Noise that varies with x, learned from a model's leave-one-out errors, where that is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rwf.fit_report import leave_one_out_scores
from rwf.model import FittedModel, collect
from rwf.moments import Moments, RootMoments
from rwf.noise import NoiseShape, learn_noise
from rwf.rows import Block
from rwf.scaling import Standardizer
from rwf.starts import Progress
from rwf.training import LOW_DIMENSION, Shape

NOISE_ROUNDS = 2
"""How often varying noise and the rest of the model are fitted in turn."""

Noise = Literal["auto", "constant", "varying"]


@dataclass(frozen=True)
class Source:
    """All rows: in standardised units, or in their own together with a scaler."""

    scaler: Standardizer | None
    rows: Block

    def statistics(
        self, shape: Shape, *, root: bool, noise: NoiseShape | None = None
    ) -> Moments | RootMoments:
        """The moments of all rows, in one pass."""
        return collect(self.scaler, shape, self.rows, root, noise)


def with_noise(
    model: FittedModel,
    source: Source,
    scored: Block,
    wanted: Noise,
    rng: np.random.Generator,
    progress: Progress,
) -> FittedModel:
    """The model with constant or varying noise, as is wanted, or as leave-one-out densities say."""
    few = scored.X.shape[1] <= LOW_DIMENSION
    if wanted == "constant" or (wanted == "auto" and not few):
        return model
    varying = _with_varying_noise(model, source, scored, rng)
    model = varying if wanted == "varying" else _better(model, varying, scored)
    progress(f"noise {'constant' if model.noise is None else 'varying'}")
    return model


def _with_varying_noise(
    model: FittedModel, source: Source, scored: Block, rng: np.random.Generator
) -> FittedModel:
    """The model with noise learned from its own leave-one-out errors, twice over."""
    plain, root = model, isinstance(model.statistics, RootMoments)
    for _ in range(NOISE_ROUNDS):
        judges = model.judges(scored)
        errors, variances = np.empty_like(judges.y), np.empty_like(judges.y)
        for output, tuned in enumerate(model.tuned):
            sigma2 = tuned.posterior.noise_variance
            own = sigma2 * (1.0 if model.noise is None else model.noise(judges.X))
            p = model.leave_one_out(judges, output)
            errors[:, output] = (judges.y[:, output] - p.mean) / np.sqrt(sigma2)
            variances[:, output] = np.maximum(p.variance - own, 0.0) / sigma2
        noise = learn_noise(judges.X, errors, variances, judges.weights, rng)
        statistics = source.statistics(plain.shape, root=root, noise=noise)
        model = replace(plain, noise=noise, statistics=statistics, calibration=None)
        model = model.calibrated(scored)
    return model


def _better(plain: FittedModel, varying: FittedModel, scored: Block) -> FittedModel:
    """The varying noise if leave-one-out densities are clearly in its favour."""
    assert varying.noise is not None
    judges = plain.judges(scored)
    gain = leave_one_out_scores(plain, judges) - leave_one_out_scores(varying, judges)
    gain -= len(varying.noise.weights) / len(judges)
    sure = float(gain.std()) / np.sqrt(len(gain))
    return varying if float(gain.mean()) > sure else plain
