r"""Random features: atoms drawn from p(s, t) with independent weights, as in the paper.

The hyperparameters θ maximise the evidence of a sample of rows with few atoms, in several
trials. They belong to the measure and not to its atoms, so they carry over to a larger
draw of atoms on all rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.data.scaling import Affine, Standardizer
from rwf.features import RidgeFamily, WaveletFamily
from rwf.features.base import Family, Stack
from rwf.features.wavelet import Normalization
from rwf.inference.empirical_bayes import LOG_NOISE_BOUNDS, LOG_PRIOR_BOUNDS
from rwf.inference.evidence import evidence
from rwf.inference.optimize import Progress, Trial, best_of, maximize_log_evidence
from rwf.models.base import LOW_DIMENSION
from rwf.models.dense import Hyperparameters
from rwf.priors.base import (
    ALL_ROWS,
    SAMPLE_ROWS,
    FitConfig,
    LearnedFeatures,
    LearningTask,
    Prior,
    some_rows,
)
from rwf.wavelets import Wavelet, as_wavelet
from rwf.wavelets.measure import Box, Hull, Measure, Rows, ShiftSampler, as_shifts

Variances = Literal["block", "unit"]
Normalize = Literal["standard", "unit_box"] | None

START_NOISE = 0.1  # σ² to start from, for targets of unit variance
SAMPLE_FEATURES = 300  # feature columns with which hyperparameters are learned
POLISH_ITERATIONS = 20  # iterations with all atoms and rows, where these are few
WARM_UP_REACH = np.log(2.0)  # by which logarithms of lengths and widths may move in a warm-up
LEAST_COMPONENTS, MOST_COMPONENTS = 100, 2000  # bounds of the default, the number of rows


class FeaturePrior(Prior):
    """Features drawn from families, with one prior variance per block."""

    variances: Variances
    ridge: float = 0.0
    warm_up: int = 0

    @abstractmethod
    def families(self, units: Standardizer, config: FitConfig) -> list[Family]:
        """The blocks of features, without the trend."""

    def n_components(self, n: int) -> int:
        return int(np.clip(n, LEAST_COMPONENTS, MOST_COMPONENTS))

    def learn(self, task: LearningTask) -> LearnedFeatures:
        known, config, rng = task.known, task.config, task.rng
        families = [*self.families(task.units, config), *task.trend]
        learn_variances = self.variances == "block"
        few = min(task.n_components, SAMPLE_FEATURES)
        parameters, trials = learn_hyperparameters(
            families,
            some_rows(known, SAMPLE_ROWS, rng),
            rng,
            n_features=few,
            n_trials=config.n_trials,
            max_iter=config.max_iter,
            learn_priors=learn_variances,
            ridge=self.ridge,
            warm_up=self.warm_up,
            progress=task.progress,
        )
        at_bounds = next(trial.at_bounds for trial in trials if trial.chosen)
        if few < task.n_components:
            drawn = draw_stack(families, task.n_components, known.X, rng)
            theta = parameters.features.theta
            parameters = replace(parameters, features=drawn.with_theta(theta))
            if task.complete and len(known) <= ALL_ROWS:
                parameters, step = maximize_evidence(
                    parameters, known, POLISH_ITERATIONS, learn_priors=learn_variances
                )
                at_bounds = step.at_bounds
                task.progress(f"polished: log evidence {step.log_evidence_per_row:.4f} per row")
        n_learned = len(parameters.features.theta) + len(parameters.log_noise)
        n_learned += len(parameters.log_priors) if learn_variances else 0
        return LearnedFeatures(
            trials=tuple(trials),
            at_bounds=at_bounds,
            n_learned=n_learned,
            hyperparameters=parameters,
            learn_variances=learn_variances,
        )


@dataclass(frozen=True)
class RandomFeatures(FeaturePrior):
    """Random wavelet features with independent weights: the paper's prior.

    Args:
        wavelet: the mother wavelet, by name or as an object.
        scales: lowest and highest scale s to start from, relative to the length-scales.
        shifts: where atoms sit: "data" (training rows), "box", "hull", or a function
            ``(X, m, rng) -> (m, d)`` in the units of X.
        normalization: "peak", or "energy" for the paper's :math:`s^{-d/2}`.
        blocks: kinds of features, each "radial" or "ridge", with their own length-scales and
            amplitude.
        variances: "block" learns one prior variance per block, "unit" fixes all at one.
        normalize: gives input columns the same deviation, "standard", or span, "unit_box", and
            the largest span 1; ``None`` leaves units to the metric.
        ridge: λ of a penalty λ‖w‖² beside the prior variance of the weights.
        warm_up: iterations first, in which scales stay within a factor of two of where they start.
    """

    wavelet: str | Wavelet = "mexican_hat"
    scales: tuple[float, float] = (0.5, 2.0)
    shifts: str | ShiftSampler = "data"
    normalization: Normalization = "peak"
    blocks: tuple[str, ...] = ("radial", "radial", "ridge")
    variances: Variances = "block"
    normalize: Normalize = None
    ridge: float = 0.0
    warm_up: int = 0
    name: ClassVar[str] = "random_features"

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        check_choice("normalization", self.normalization, ("peak", "energy"))
        check_choice("normalize", self.normalize, ("standard", "unit_box", None))
        check_choice("variances", self.variances, ("block", "unit"))
        if not self.blocks or not set(self.blocks) <= {"radial", "ridge"}:
            raise ValueError(f"blocks={self.blocks!r}: give a tuple of 'radial' and 'ridge'.")
        try:
            low, high = self.scales
        except (TypeError, ValueError):
            raise ValueError(f"scales={self.scales!r}: give a pair (low, high).") from None
        Measure(low, high, as_shifts(self.shifts))  # refuses scales out of order
        as_wavelet(self.wavelet)
        return super().for_rows(n, d, config)

    def units(self, rows: Block, config: FitConfig) -> Standardizer:
        units = super().units(rows, config)
        if self.normalize is None:
            return units
        X = Affine.learn(rows.X, rows.weights, spans=self.normalize == "unit_box")
        # Atoms of unit energy have the less variance, the larger the volume that they fill.
        span = np.ptp(X(rows.X)[:, X.varies], axis=0).max(initial=0.0) or 1.0
        return replace(units, X=replace(X, scale=X.scale * span), logarithm=None)

    def families(self, units: Standardizer, config: FitConfig) -> list[Family]:
        wavelet = as_wavelet(self.wavelet)
        measure = Measure(*self.scales, shifts_in_units(as_shifts(self.shifts), units))
        length = first_length(units, config)
        kinds: dict[str, Family] = {
            "radial": WaveletFamily(wavelet, measure, length, config.ard, self.normalization),
            "ridge": RidgeFamily(wavelet, measure, length, config.ard),
        }
        return [kinds[kind] for kind in self.blocks]


def check_choice(name: str, value: object, known: Sequence[str | None]) -> None:
    """That a parameter is one of a few words."""
    if value not in known:
        listed = ", ".join(repr(word) for word in known)
        raise ValueError(f"{name}={value!r} is unknown: use one of {listed}.")


def first_length(units: Standardizer, config: FitConfig) -> float:
    """Length-scale to start from, in standardised units."""
    return float(np.sqrt(len(units.columns))) if config.ard else 1.0


def shifts_in_units(shifts: ShiftSampler, units: Standardizer) -> ShiftSampler:
    """The shift sampler in standardised units; a user's own works in the units of X."""
    if isinstance(shifts, Rows | Box | Hull):
        return shifts

    def scaled(X: Array, m: int, rng: np.random.Generator) -> Array:
        drawn = np.asarray(shifts(units.original_inputs(X), m, rng), dtype=np.float64)
        width = len(units.X.center)
        if drawn.shape != (m, width):
            raise ValueError(
                f"the function given as shifts returned shape {drawn.shape}: it must return "
                f"({m}, {width})."
            )
        return units.inputs(drawn)

    return scaled


def draw_stack(
    families: Sequence[Family], n_features: int, X: Array, rng: np.random.Generator
) -> Stack:
    """About ``n_features`` columns shared evenly among the sized families, and the trend's own."""
    count = max(1, sum(family.sized for family in families))
    share, rest = divmod(max(n_features, count), count)
    sizes = iter([share + (i < rest) for i in range(count)])
    return Stack(tuple(f.draw(next(sizes) if f.sized else 0, X, rng) for f in families))


def first_hyperparameters(
    families: Sequence[Family], features: Stack, n_outputs: int, ridge: float = 0.0
) -> Hyperparameters:
    """Initial values: unit variances, so that k(x, x) = O(1) at the data.

    A penalty λ‖w‖² adds 2λ to the precision of the weights.
    """
    log_priors = np.array([family.start_log_prior for family in families]) - np.log1p(2 * ridge)
    return Hyperparameters(features, log_priors, np.full(n_outputs, np.log(START_NOISE)))


def restart(
    shape: Hyperparameters, index: int, d: int, rng: np.random.Generator
) -> Hyperparameters:
    """Initial values of the index-th trial: shorter lengths, or jittered ones in many columns."""
    if index == 0:
        return shape
    theta, mask = shape.features.theta.copy(), shape.features.length_mask
    if d <= LOW_DIMENSION:
        theta[mask] -= index * np.log(4.0)
    else:
        theta[mask] += 0.4 * rng.normal(size=int(mask.sum()))
    bounds = shape.features.bounds
    theta = np.clip(theta, bounds[:, 0], bounds[:, 1])
    return replace(shape, features=shape.features.with_theta(theta))


def maximize_evidence(
    shape: Hyperparameters,
    rows: Block,
    max_iter: int,
    *,
    learn_priors: bool = True,
    reach: float = np.inf,
) -> tuple[Hyperparameters, Trial]:
    """L-BFGS on the evidence of the rows over σ², prior variances and θ, this within a reach."""
    k, b = len(shape.log_noise), len(shape.log_priors) if learn_priors else 0
    groups, n = shape.features.groups, float(rows.weights.sum())

    def unpack(v: Array) -> Hyperparameters:
        priors = v[k : k + b] if learn_priors else shape.log_priors
        return Hyperparameters(shape.features.with_theta(v[k + b :]), priors, v[:k])

    def objective(v: Array) -> tuple[float, Array]:
        s = unpack(v)
        e = evidence(s.features, rows, groups, s.log_priors, s.log_noise)
        return e.value / n, np.concatenate([e.log_noise, e.log_priors[:b], e.theta]) / n

    theta = shape.features.theta
    near = (theta - reach)[:, None], (theta + reach)[:, None]
    v, report = maximize_log_evidence(
        objective,
        max_iter,
        ("noise variance", shape.log_noise, LOG_NOISE_BOUNDS),
        ("prior variance of block", shape.log_priors[:b], LOG_PRIOR_BOUNDS),
        ("shape parameter", theta, np.clip(shape.features.bounds, *near)),
    )
    return unpack(v), report


def learn_hyperparameters(
    families: Sequence[Family],
    rows: Block,
    rng: np.random.Generator,
    *,
    n_features: int,
    n_trials: int,
    max_iter: int,
    learn_priors: bool = True,
    ridge: float = 0.0,
    warm_up: int = 0,
    progress: Progress = lambda message: None,
) -> tuple[Hyperparameters, list[Trial]]:
    """The shape of highest evidence on these rows, among several trials with the same atoms."""
    d = rows.X.shape[1]
    drawn = draw_stack(families, n_features, rows.X, rng)
    first = first_hyperparameters(families, drawn, rows.y.shape[1], ridge)
    if warm_up:
        first, _ = maximize_evidence(
            first, rows, warm_up, learn_priors=learn_priors, reach=WARM_UP_REACH
        )
    return best_of(
        [restart(first, index, d, rng) for index in range(n_trials)],
        lambda shape, iterations: maximize_evidence(
            shape, rows, iterations, learn_priors=learn_priors
        ),
        max_iter=max_iter,
        share=4,
        progress=progress,
    )
