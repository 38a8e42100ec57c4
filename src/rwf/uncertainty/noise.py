"""Noise models: constant, or heteroscedastic where leave-one-out densities say so.

A noise model takes a model with constant noise and returns the one to use. Heteroscedastic noise
has the variance σ²v(x); v is learned from leave-one-out errors, and the model is fitted again to
rows that are weighted by 1/v. Student-t noise does the same with a factor for every row.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from rwf._types import Array
from rwf.data.holdout import standard_error
from rwf.data.rows import Block, Rows, RowSum
from rwf.inference.optimize import Progress
from rwf.inference.posterior import normal_log_density
from rwf.uncertainty.row_noise import RowNoise, ScoredRows, Tails
from rwf.uncertainty.variance_function import VarianceFunction, learn_variance

if TYPE_CHECKING:
    from rwf.models.base import Prediction
    from rwf.models.gaussian import GaussianModel

MOST_INPUTS = 3  # input columns up to which "auto" considers heteroscedastic noise
ROUNDS = 2  # of reweighting
ROWS_AT_ONCE = 2**17  # rows that are scored together
WORSE = 1.1  # by what factor squared leave-one-out errors may grow for the sake of densities


M = TypeVar("M", bound="GaussianModel")


@dataclass(frozen=True)
class NoiseTask(Generic[M]):
    """What a noise model decides on."""

    model: M  # with constant noise
    rows: Rows  # all rows, in standardised units
    scored: Block  # some of them, for leave-one-out errors
    rng: np.random.Generator  # draws features
    progress: Progress  # called with a line of text now and then


class NoiseModel(Protocol):
    """Chooses the noise of a model."""

    def fit(self, task: NoiseTask[M]) -> M:
        """The model to use."""


class ConstantNoise:
    """The same variance everywhere."""

    def fit(self, task: NoiseTask[M]) -> M:
        return task.model


class HeteroscedasticNoise:
    """A variance that varies with x."""

    def fit(self, task: NoiseTask[M]) -> M:
        noise, _ = _learn(_Errors.of(task.model, task.scored), task)
        return _refitted(noise, task)


class AutomaticNoise:
    """Heteroscedastic noise in low dimension, if leave-one-out densities clearly gain by it."""

    def fit(self, task: NoiseTask[M]) -> M:
        model = task.model
        if task.scored.X.shape[1] > MOST_INPUTS or model.noise_free:
            return model
        noise, promised = _learn(_Errors.of(model, task.scored), task)
        # Passes over all rows are expensive; if the errors promise nothing, none is made.
        if _is_clear(promised, noise, model.unbiased_rows(task.scored)):
            model = _better(task.model, _refitted(noise, task), task.scored)
        task.progress(f"noise {'constant' if model.noise is None else 'heteroscedastic'}")
        return model


class StudentNoise:
    """Student-t errors: rows with large leave-one-out scores count less."""

    def fit(self, task: NoiseTask[M]) -> M:
        model = task.model
        for _ in range(ROUNDS):
            if model.noise_free:
                break
            tails = Tails.learn(_scores(model, task.scored), task.scored.weights)
            found = task.rows.total(_scores_of_all(model))
            again = task.model.refit(task.rows, RowNoise.of(found, tails))
            if not again.resolved:
                break
            model = again
            task.progress(f"noise student, {tails.dof:.3g} degrees of freedom")
        return model


def _scores(model: GaussianModel, rows: Block) -> Array:
    """Leave-one-out scores of single rows, judged by the noise of a new row, shape (n, k)."""
    p = model.leave_one_out(replace(rows, groups=None))
    scores: Array = (rows.y - p.mean) / np.sqrt(p.variance)
    return scores


def _scores_of_all(model: GaussianModel) -> RowSum[ScoredRows]:
    name = "scores" if model.noise is None else f"scores, {model.noise.name}"

    def gather(parts: Iterable[Block]) -> ScoredRows:
        scored = (ScoredRows.of(rows, _scores(model, rows)) for rows in parts)
        return functools.reduce(operator.add, scored)

    add, to_arrays, of_arrays = operator.add, ScoredRows.to_arrays, ScoredRows.from_arrays
    return RowSum(name, ROWS_AT_ONCE, gather, add, to_arrays, of_arrays, workers=1)


NOISE_MODELS: dict[str, NoiseModel] = {
    "auto": AutomaticNoise(),
    "constant": ConstantNoise(),
    "heteroscedastic": HeteroscedasticNoise(),
    "student": StudentNoise(),
}
"""Noise models by name: ``noise=`` of an estimator accepts these."""

NOISE_OF_ROWS = ("student",)
"""Those with a factor for every row, which must be in memory; nearest neighbours know of none."""


@dataclass(frozen=True)
class _Errors:
    """Leave-one-out errors of a model whose variances are calibrated by them."""

    model: GaussianModel
    rows: Block
    prediction: Prediction
    inflation: Array

    @classmethod
    def of(cls, model: GaussianModel, scored: Block) -> _Errors:
        rows = model.unbiased_rows(scored)
        p = model.leave_one_out(rows)
        return cls(model, rows, p, _inflation(p, rows))

    @property
    def squared(self) -> float:
        return float(np.square(self.rows.y - self.prediction.mean).sum())

    @property
    def log_densities(self) -> Array:
        residuals = self.rows.y - self.prediction.mean
        variances = self.inflation * self.prediction.variance
        total: Array = normal_log_density(residuals, variances).sum(axis=1)
        return total


def _inflation(p: Prediction, rows: Block) -> Array:
    """The factor of variances, one or more, that calibrates mean squares, shape (k,)."""
    squares = np.average((rows.y - p.mean) ** 2 / p.variance, axis=0, weights=rows.weights)
    return np.maximum(squares, 1.0)


def _refitted(noise: VarianceFunction, task: NoiseTask[M]) -> M:
    """The model with this noise, which is then learned again from the errors that it leaves."""
    model = task.model.refit(task.rows, noise)
    again, _ = _learn(_Errors.of(model, task.scored), task)
    return task.model.refit(task.rows, again)


def _learn(found: _Errors, task: NoiseTask[M]) -> tuple[VarianceFunction, Array]:
    """v that suits leave-one-out errors, and the log density that each would gain by it."""
    model, rows, p = found.model, found.rows, found.prediction
    own = np.ones(len(rows)) if model.noise is None else model.noise(rows.X)
    sigma2 = model.noise_levels * found.inflation
    errors = (rows.y - p.mean) / np.sqrt(sigma2)
    total = found.inflation * p.variance
    variances = np.maximum(total / sigma2 - own[:, None], 0.0)
    if model.noise is None:
        # Where rows have little noise, one level for all makes f vary more than the errors do:
        # beside such variances v would run to zero. So at first all of an error counts as noise.
        errors = errors / np.sqrt(1.0 + variances)
        variances = np.zeros_like(variances)
    noise = learn_variance(rows, errors, variances, task.rng, least=task.model.least_noise)
    before, after = (
        normal_log_density(errors, variances + v[:, None]) for v in (own, noise(rows.X))
    )
    return noise.relative(rows), (after - before).sum(axis=1)


def _is_clear(gain: Array, noise: VarianceFunction, rows: Block) -> bool:
    """Whether log densities rise by more than a standard error and the parameters' share."""
    gain = gain - len(noise.weights) / len(gain)
    return bool(gain.mean() > standard_error(gain, rows.groups))


def _better(plain: M, varying: M, scored: Block) -> M:
    """The heteroscedastic model if densities favour it, and its means do not miss more signal."""
    assert varying.noise is not None
    assert not isinstance(varying.noise, RowNoise)
    a, b = _Errors.of(plain, scored), _Errors.of(varying, scored)
    if b.squared > WORSE * a.squared:
        return plain
    gain = b.log_densities - a.log_densities
    return varying if _is_clear(gain, varying.noise, b.rows) else plain
