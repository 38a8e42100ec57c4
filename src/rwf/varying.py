"""Noise that varies with x, learned from a model's leave-one-out errors, where that is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from rwf.fit_report import leave_one_out_scores
from rwf.model import FittedModel
from rwf.rows import Block
from rwf.scaling import Standardizer
from rwf.starts import Progress
from rwf.training import LOW_DIMENSION
from rwf.tree_model import TreeModel
from rwf.variance import learn_variance

WORSE = 1.1
"""By what factor squared leave-one-out errors may grow for the sake of densities."""

NOISE_ROUNDS = 2
"""How often varying noise and the rest of the model are fitted in turn."""

Noise = Literal["auto", "constant", "varying"]

Noisy = TypeVar("Noisy", FittedModel, TreeModel)
"""Models whose noise can vary."""


@dataclass(frozen=True)
class Source:
    """All rows: in standardised units, or in their own together with a scaler."""

    scaler: Standardizer | None
    rows: Block


def with_noise(
    model: Noisy,
    source: Source,
    scored: Block,
    wanted: Noise,
    rng: np.random.Generator,
    progress: Progress,
) -> Noisy:
    """The model with constant or varying noise, as is wanted, or as leave-one-out densities say."""
    few = scored.X.shape[1] <= LOW_DIMENSION
    if wanted == "constant" or (wanted == "auto" and not few):
        return model
    varying = _with_varying_noise(model, source, scored, rng)
    model = varying if wanted == "varying" else _better(model, varying, scored)
    progress(f"noise {'constant' if model.noise is None else 'varying'}")
    return model


def _with_varying_noise(
    model: Noisy, source: Source, scored: Block, rng: np.random.Generator
) -> Noisy:
    """The model with noise learned from its own leave-one-out errors, twice over."""
    plain, least = model, model.least_noise
    for _ in range(NOISE_ROUNDS):
        judges = model.judges(scored)
        errors, variances = np.empty_like(judges.y), np.empty_like(judges.y)
        for output, tuned in enumerate(model.tuned):
            sigma2 = tuned.posterior.noise_variance
            own = sigma2 * (1.0 if model.noise is None else model.noise(judges.X))
            p = model.leave_one_out(judges, output)
            errors[:, output] = (judges.y[:, output] - p.mean) / np.sqrt(sigma2)
            variances[:, output] = np.maximum(p.variance - own, 0.0) / sigma2
        noise = learn_variance(judges, errors, variances, rng, least=least).relative(judges)
        model = plain.refitted(source.scaler, source.rows, noise).calibrated(scored)
    return model


def _better(plain: Noisy, varying: Noisy, scored: Block) -> Noisy:
    """The varying noise if leave-one-out densities are clearly in its favour, and means no worse.

    What a model misses of a signal passes for noise, and given up as such it is missed even more.
    """
    assert varying.noise is not None
    judges = plain.judges(scored)
    if _squared_error(varying, judges) > WORSE * _squared_error(plain, judges):
        return plain
    gain = leave_one_out_scores(plain, judges) - leave_one_out_scores(varying, judges)
    gain -= len(varying.noise.weights) / len(judges)
    sure = float(gain.std()) / np.sqrt(len(gain))
    return varying if float(gain.mean()) > sure else plain


def _squared_error(model: FittedModel | TreeModel, rows: Block) -> float:
    """Of leave-one-out predictions, over all outputs."""
    errors = [
        rows.y[:, output] - model.leave_one_out(rows, output).mean
        for output in range(model.n_outputs)
    ]
    return float(np.square(errors).sum())
