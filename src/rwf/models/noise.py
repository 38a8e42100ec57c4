"""Noise that varies with x, learned from a model's leave-one-out errors, where that is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.inference.posterior import normal_log_density
from rwf.inference.trials import Progress
from rwf.models.base import LOW_DIMENSION, leave_one_out_scores
from rwf.models.dense import DenseModel
from rwf.models.tree import TreeModel
from rwf.uncertainty.variance_function import VarianceFunction, learn_variance

WORSE = 1.1
"""By what factor squared leave-one-out errors may grow for the sake of densities."""

Noise = Literal["auto", "constant", "varying"]

Noisy = TypeVar("Noisy", DenseModel, TreeModel)
"""Models whose noise can vary."""


@dataclass(frozen=True)
class Source:
    """All rows, so many: in standardised units, or in their own together with a scaler."""

    scaler: Standardizer | None
    rows: Rows
    n_rows: int


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
    if wanted == "constant" or (wanted == "auto" and (not few or model.noise_free)):
        return model
    noise, promised = _noise_from_errors(model, scored, rng, model.least_noise)
    # Passes over all rows are dear; where errors promise nothing, none is made.
    if wanted == "varying" or _clear(promised, noise):
        varying = _with_varying_noise(model, noise, source, scored, rng)
        model = varying if wanted == "varying" else _better(model, varying, scored)
    progress(f"noise {'constant' if model.noise is None else 'varying'}")
    return model


def _with_varying_noise(
    plain: Noisy, noise: VarianceFunction, source: Source, scored: Block, rng: np.random.Generator
) -> Noisy:
    """The model with this noise, which is then learned anew from the errors that it leaves."""
    model = plain.refitted(source.scaler, source.rows, noise).calibrated(scored)
    again, _ = _noise_from_errors(model, scored, rng, plain.least_noise)
    return plain.refitted(source.scaler, source.rows, again).calibrated(scored)


def _noise_from_errors(
    model: Noisy, scored: Block, rng: np.random.Generator, least: float
) -> tuple[VarianceFunction, Array]:
    """v that suits a model's leave-one-out errors, and the log density that each would gain.

    The model would stay as it is, apart from its noise.
    """
    calibration_rows = model.calibration_rows(scored)
    errors, variances = np.empty_like(calibration_rows.y), np.empty_like(calibration_rows.y)
    own = np.ones(len(calibration_rows)) if model.noise is None else model.noise(calibration_rows.X)
    for output, fits in enumerate(model.fits):
        sigma2 = fits.posterior.noise_variance
        p = model.leave_one_out(calibration_rows, output)
        errors[:, output] = (calibration_rows.y[:, output] - p.mean) / np.sqrt(sigma2)
        variances[:, output] = np.maximum(p.variance / sigma2 - own, 0.0)
        if model.noise is None:
            # Where rows are calm, one noise for all makes f vary more than errors do there: beside
            # such variances v would run to nothing. So at first all of an error counts as noise.
            errors[:, output] /= np.sqrt(1.0 + variances[:, output])
            variances[:, output] = 0.0
    noise = learn_variance(calibration_rows, errors, variances, rng, least=least)
    before, after = (
        normal_log_density(errors, variances + v[:, None]) for v in (own, noise(calibration_rows.X))
    )
    return noise.relative(calibration_rows), (after - before).sum(axis=1)


def _clear(gain: Array, noise: VarianceFunction) -> bool:
    """Whether log densities rise by more than their standard error, and than noise can learn."""
    gain = gain - len(noise.weights) / len(gain)
    return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))


def _better(plain: Noisy, varying: Noisy, scored: Block) -> Noisy:
    """The varying noise if leave-one-out densities are clearly in its favour, and means no worse.

    What a model misses of a signal passes for noise, and given up as such it is missed even more.
    """
    assert varying.noise is not None
    calibration_rows = plain.calibration_rows(scored)
    if _squared_error(varying, calibration_rows) > WORSE * _squared_error(plain, calibration_rows):
        return plain
    gain = leave_one_out_scores(plain, calibration_rows) - leave_one_out_scores(
        varying, calibration_rows
    )
    return varying if _clear(gain, varying.noise) else plain


def _squared_error(model: DenseModel | TreeModel, rows: Block) -> float:
    """Of leave-one-out predictions, over all outputs."""
    errors = [
        rows.y[:, output] - model.leave_one_out(rows, output).mean
        for output in range(model.n_outputs)
    ]
    return float(np.square(errors).sum())
