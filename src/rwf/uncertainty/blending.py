r"""A second opinion of the nearest rows, weighed against the model's by how both do on unseen rows.

A model of finitely many atoms leaves structure finer than they are, and calls it noise. Where rows
are dense the nearest ones know better; in gaps they do not. Of two predictions of y(x), the model's
and that of a :class:`~rwf.uncertainty.vecchia.VecchiaGP`, with variances v and u, the errors are
taken as

.. math::
    e(x) \sim N\!\left(0,\; s^2(x) \begin{pmatrix} v & \rho\sqrt{vu} \\ \rho\sqrt{vu} & u
    \end{pmatrix}\right),

and the combination of least variance is the prediction. The local scale s² is the mean of squared
errors nearby: terrain is smooth here and steep there. Residuals of the model at its own rows would
not do as data, because the more atoms it has, the less is left of them there. So both opinions on a
row are of those who have not seen it.

How many rows are nearby, how far their mean is trusted, and ρ are not chosen but averaged over:
every choice, and the model alone, counts by the density that it gives to the rows that judge. The
best of many choices on a few hundred rows would be too sure of itself. References: Bates and
Granger (1969), The combination of forecasts; Datta et al. (2016), Hierarchical nearest-neighbor
Gaussian process models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from scipy.special import softmax

from rwf._types import Array, IntArray
from rwf.inference.posterior import Marginals, normal_log_density
from rwf.uncertainty.vecchia import VecchiaGP, learn_vecchia_gp

HELD_OUT, MOST_HELD_OUT = 0.1, 5000
"""Share and largest number of rows that judge."""

CALIBRATION_ROWS, LARGEST_SHARE, FEWEST_HELD_OUT = 300, 0.3, 100
"""If the share would be fewer judges than that, it is larger, up to so much; too few do not judge:
among many candidates some would please them by chance."""

NEARBY, PRIOR_ROWS = (10, 20, 40, 80), (0.02, 0.3, 4.0, 1e6)
"""Candidates: over how many rows the local scale is a mean, and as how many the mean of all counts;
with the most, there is but one scale."""

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Candidates for ρ: the larger, the more one opinion is followed alone."""

FEWEST = 2
"""Rows that a layer must have to be asked."""

AS_ONE = 4.0
"""So many judges count as one in the weights of voices: rows close together err together, and the
voices were calibrated on the same rows."""

FAINT = 0.01
"""Share of all weight that the faintest voices have together, which are not kept."""

CLEAR = 2.0
"""Standard errors by which the layer must raise the log density of held-out rows."""

AT_ONCE = 50_000
"""Rows that are predicted together."""


@dataclass(frozen=True)
class LocalScale:
    r"""s²(x) from the rows nearby, whose squared errors q have mean one over all rows.

    .. math::
        s^2(x) = \frac{\sum_i c_i q_i + \tau}{\sum_i c_i + \tau}, \qquad c_i = e^{-r_i^2/2R^2},

    so that it goes back to one in gaps, where no row is nearby.

    Args:
        nearby: how many rows are asked.
        prior_rows: τ.
        radius: R, in lengths of the neighbours' kernel.
    """

    nearby: int
    prior_rows: float
    radius: float

    def __call__(self, distances: Array, squares: Array) -> Array:
        """s² at rows, from the distances of their nearest ones and q of these.

        Both have shape (m, k), nearest first, of which the first ``nearby`` are asked.
        """
        counts = np.exp(-0.5 * (distances[:, : self.nearby] / self.radius) ** 2)
        total = (counts * squares[:, : self.nearby]).sum(axis=1) + self.prior_rows
        scale: Array = total / (counts.sum(axis=1) + self.prior_rows)
        return scale


@dataclass(frozen=True)
class BlendWeights:
    """How two opinions are weighed.

    Args:
        model: by what the model's variances are to be multiplied.
        neighbours: by what those of the neighbours are.
        correlation: ρ of their errors.
    """

    model: float
    neighbors: float
    correlation: float

    def blend(self, model: Marginals, neighbors: Marginals, scale: Array) -> Marginals:
        """The combination of least variance, without negative weights."""
        v, u = self.model * model.variance, self.neighbors * neighbors.variance
        c = self.correlation * np.sqrt(v * u)
        w = np.clip((v - c) / (v + u - 2 * c), 0.0, 1.0)
        variance = (1 - w) ** 2 * v + w**2 * u + 2 * w * (1 - w) * c
        return Marginals(
            model.mean + w * (neighbors.mean - model.mean), np.asarray(scale * variance)
        )

    def recalibrated(self, factor: float) -> Self:
        """The same weights, and all variances larger by a factor."""
        return replace(self, model=factor * self.model, neighbors=factor * self.neighbors)


@dataclass(frozen=True)
class Expert:
    """One way to make a prediction of both opinions.

    Args:
        weight: how much it counts among all.
        scale: s².
        trust: how both opinions are weighed.
    """

    weight: float
    scale: LocalScale
    mixing: BlendWeights


@dataclass(frozen=True)
class ExpertInputs:
    """What is known of rows before voices make something of it.

    Args:
        model: the model's predictions.
        neighbours: those of the nearest rows.
        distances: of the nearest rows, shape (m, k).
        squares: their q, shape (m, k).
    """

    model: Marginals
    neighbors: Marginals
    distances: Array
    squares: Array

    def scale(self, by: LocalScale) -> Array:
        """s², shape (m,)."""
        return by(self.distances, self.squares)

    def average(self, experts: Sequence[Expert]) -> Marginals:
        """The mean and the variance of a mixture of voices, and of the model for what they lack."""
        scales = {scale: self.scale(scale) for scale in {expert.scale for expert in experts}}
        parts = [
            expert.mixing.blend(self.model, self.neighbors, scales[expert.scale])
            for expert in experts
        ]
        weights = [expert.weight for expert in experts]
        return _mixture([*weights, max(1.0 - sum(weights), 0.0)], [*parts, self.model])


@dataclass(frozen=True)
class OutputBlend:
    """What the neighbours of a row add to a model's prediction. It keeps all training rows.

    Args:
        gp: the rows, whose values are y less its mean.
        center: mean of y.
        squares: q, which are e²/v of the neighbours' predictions of each row, over their mean,
            shape (n,).
        voices: ways to make a prediction, whose weights the model alone fills up to one.
        gain: how much higher the mean log density of held-out rows is than with the model alone.
    """

    gp: VecchiaGP
    center: float
    squares: Array
    experts: tuple[Expert, ...]
    gain: float

    @property
    def rows(self) -> tuple[Array, Array]:
        """The inputs, shape (n, d), and targets, shape (n,), that it keeps."""
        return self.gp.X, self.center + self.gp.values

    def with_rows(self, X: Array, y: Array) -> OutputBlend:
        """The layer with further rows; how they are weighed stays."""
        gp = replace(
            self.gp,
            X=np.concatenate([self.gp.X, X]),
            values=np.concatenate([self.gp.values, y - self.center]),
        )
        return replace(self, gp=gp, squares=_unseen_squares(gp))

    def without_rows(self) -> OutputBlend:
        """The layer before the first row."""
        gp = replace(self.gp, X=self.gp.X[:0], values=self.gp.values[:0])
        return replace(self, gp=gp, squares=self.squares[:0])

    def predict(self, X: Array, model: Marginals) -> Marginals:
        """The model's prediction of y at rows, the noise included, and the neighbours', as one.

        With too few rows to ask, it is the model's alone.
        """
        if len(self.gp.X) < FEWEST:
            return model
        mean, variance = np.empty((2, len(X)))
        for start in range(0, len(X), AT_ONCE):
            its = slice(start, start + AT_ONCE)
            own = Marginals(model.mean[its], model.variance[its])
            most = max(expert.scale.nearby for expert in self.experts)
            part = _expert_inputs(self.gp, self.center, self.squares, X[its], own, most)
            both = part.average(self.experts)
            mean[its], variance[its] = both.mean, both.variance
        return Marginals(mean, variance)


def held_out_rows(n: int, rng: np.random.Generator) -> IntArray:
    """Numbers of the training rows on which both opinions are to be compared, ascending."""
    share = min(max(HELD_OUT, CALIBRATION_ROWS / max(n, 1)), LARGEST_SHARE)
    return np.sort(rng.permutation(n)[: min(int(share * n), MOST_HELD_OUT)])


@dataclass(frozen=True)
class LearnedBlend:
    """A layer, and what it predicted of the rows that judged it, as if they were unseen."""

    layer: OutputBlend
    unseen: Marginals


def learn_output_blend(
    X: Array, y: Array, held: IntArray, unseen: Marginals, rng: np.random.Generator
) -> LearnedBlend | None:
    """The layer over a model, or ``None`` where it does not clearly raise held-out densities.

    Args:
        X: all training rows, shape (n, d).
        y: their targets, shape (n,), in units of the model.
        held: numbers of some of them, as :func:`held_out_rows` draws.
        unseen: what the model predicts of these as if it had not seen them, by leaving one out.
        rng: draws the rows on which the neighbours' kernel is learned.
    """
    if len(held) < FEWEST_HELD_OUT or not np.ptp(y) > 0:
        return None
    center = float(y.mean())
    gp = learn_vecchia_gp(X, y - center, rng)
    # A row's own value is in the errors of those around it: to judge, they must not have seen it.
    kept = np.delete(np.arange(len(y)), held)
    others = replace(gp, X=X[kept], values=gp.values[kept])
    given = _expert_inputs(others, center, _unseen_squares(others), X[held], unseen, max(NEARBY))
    experts = _experts(given, y[held])
    both = given.average(experts)
    gains = _log_density(y[held], both) - _log_density(y[held], unseen)
    if not experts or gains.mean() < CLEAR * gains.std() / np.sqrt(len(gains)):
        return None
    layer = OutputBlend(gp, center, _unseen_squares(gp), experts, float(gains.mean()))
    return LearnedBlend(layer, both)


def _experts(given: ExpertInputs, y: Array) -> tuple[Expert, ...]:
    """Voices, weighed by the densities that they give to targets y, the loudest first.

    Before these are known, the model alone counts as much as all voices together.
    """
    found, gains = [], []
    for nearby, prior_rows in product(NEARBY, PRIOR_ROWS):
        radius = float(given.distances[:, :nearby][:, -1].mean()) or 1.0
        scale = LocalScale(nearby, prior_rows, radius)
        s2 = given.scale(scale)
        for correlation in CORRELATIONS:
            mixing = _calibrated(correlation, y, given, s2)
            blend = mixing.blend(given.model, given.neighbors, s2)
            gain = float(np.sum(_log_density(y, blend) - _log_density(y, given.model)))
            found.append((scale, mixing))
            gains.append(gain if np.isfinite(gain) else -np.inf)  # no voice is without error
    weights: Array = softmax([*np.array(gains) / AS_ONE - np.log(len(gains)), 0.0])[:-1]
    if weights.sum() == 0:
        return ()
    order = np.argsort(-weights)
    louder = np.cumsum(weights[order]) - weights[order]
    loud = order[louder < (1.0 - FAINT) * weights.sum()]
    shares = weights[loud] * (weights.sum() / weights[loud].sum())
    return tuple(Expert(float(share), *found[i]) for share, i in zip(shares, loud, strict=True))


def _log_density(y: Array, p: Marginals) -> Array:
    return normal_log_density(y - p.mean, p.variance)


def _calibrated(correlation: float, y: Array, given: ExpertInputs, scale: Array) -> BlendWeights:
    """Factors that bring mean squared scores to one, of both opinions and then of their blend."""

    def excess(p: Marginals, scale: Array | float) -> float:
        return float(np.mean((y - p.mean) ** 2 / (scale * p.variance)))

    mixing = BlendWeights(excess(given.model, scale), excess(given.neighbors, scale), correlation)
    return mixing.recalibrated(excess(mixing.blend(given.model, given.neighbors, scale), 1.0))


def _mixture(weights: Sequence[float], parts: Sequence[Marginals]) -> Marginals:
    """Mean and variance of a mixture."""
    mean = np.average([part.mean for part in parts], axis=0, weights=weights)
    squares = [part.variance + (part.mean - mean) ** 2 for part in parts]
    return Marginals(mean, np.average(squares, axis=0, weights=weights))


def _expert_inputs(
    gp: VecchiaGP, center: float, squares: Array, X: Array, model: Marginals, nearby: int
) -> ExpertInputs:
    """What the model says of rows, and what those nearest to them do."""
    told = gp.predict(X)
    distances, near = gp.nearest(X, nearby)
    return ExpertInputs(model, replace(told, mean=center + told.mean), distances, squares[near])


def _unseen_squares(gp: VecchiaGP) -> Array:
    """e²/v of all rows, each left out, over their mean."""
    if len(gp.X) < FEWEST:
        return np.ones(len(gp.X))
    unseen = gp.leave_one_out(np.arange(len(gp.X)))
    squares = (gp.values - unseen.mean) ** 2 / unseen.variance
    normalized: Array = squares / (squares.mean() or 1.0)
    return normalized
