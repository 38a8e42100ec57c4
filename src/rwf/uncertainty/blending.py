r"""Blend a model with a nearest-neighbor (Vecchia) Gaussian process.

A model of finitely many atoms treats structure finer than the atoms as noise. The nearest rows
resolve that structure where rows are dense, and nothing where they are sparse. Both predict y(x),
with variances v and u, and their joint errors are taken as

.. math::
    e(x) \sim N\!\left(0,\; s^2(x) \begin{pmatrix} v & \rho\sqrt{vu} \\ \rho\sqrt{vu} & u
    \end{pmatrix}\right).

The blend is the combination of forecasts with minimum variance. The local error scale s² is a
kernel-weighted mean of squared standardised errors nearby, because roughness varies from place to
place. All errors are leave-one-out or held-out errors: residuals at the training rows shrink as
atoms are added, and would be biased.

The number of rows nearby, the shrinkage of their mean and ρ are not selected but averaged over
(Bayesian model averaging): every candidate is an :class:`Expert`, weighted by its likelihood of the
held-out rows, and the model alone is one more. The single best of many candidates would overfit a
few hundred rows. References: Bates and Granger (1969), The combination of forecasts; Datta et al.
(2016), Hierarchical nearest-neighbor Gaussian process models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np
from scipy.special import softmax

from rwf._types import Array, IntArray
from rwf.data.holdout import standard_error
from rwf.data.rows import Block, distinct, joined, without
from rwf.inference.posterior import Marginals, normal_log_density
from rwf.uncertainty.vecchia import NEIGHBORS, VecchiaGP, learn_vecchia_gp

FEWEST_HELD_OUT = 100  # held-out rows below which there is no blend: the weights would overfit
NEARBY, PRIOR_ROWS = (10, 20, 40, 80), (0.02, 0.3, 4.0, 1e6)  # of :class:`LocalScale`
CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # candidates for ρ, denser near one
FEWEST_ROWS = 2  # training rows below which there is no neighbor to leave out
ROWS_PER_OBSERVATION = 4.0  # held-out rows per independent error: nearby ones are correlated
DROPPED_WEIGHT = 0.01  # share of the weight below which the last experts are dropped, for speed
STANDARD_ERRORS = 2.0  # by which a blend must raise the held-out log-likelihood
BLOCK_ROWS = 10_000  # predicted at once: 80 neighbours of each make some 50 MB


@dataclass(frozen=True)
class LocalScale:
    r"""s²(x) from squared standardised errors q nearby, whose mean over all rows is one.

    .. math::
        s^2(x) = \frac{\sum_i c_i q_i + \tau}{\sum_i c_i + \tau}, \qquad c_i = e^{-r_i^2/2R^2},

    so that it reverts to one where no row is near.
    """

    nearby: int  # number of nearest rows in the sums
    prior_rows: float  # τ
    radius: float  # R, in length-scales of the Vecchia process

    def __call__(self, distances: Array, squares: Array) -> Array:
        """s², shape (m,), from distances to the nearest rows and q there, both of shape (m, k)."""
        counts = np.exp(-0.5 * (distances[:, : self.nearby] / self.radius) ** 2)
        total = (counts * squares[:, : self.nearby]).sum(axis=1) + self.prior_rows
        scale: Array = total / (counts.sum(axis=1) + self.prior_rows)
        return scale


@dataclass(frozen=True)
class BlendWeights:
    """Factors of both variances, which calibrate them, and the correlation ρ of the errors."""

    model: float
    neighbors: float
    correlation: float

    def blend(self, model: Marginals, neighbors: Marginals, scale: Array) -> Marginals:
        """The combination of minimum variance without negative weights; the scale is s²."""
        v, u = self.model * model.variance, self.neighbors * neighbors.variance
        c = self.correlation * np.sqrt(v * u)
        w = np.clip((v - c) / (v + u - 2 * c), 0.0, 1.0)
        variance = (1 - w) ** 2 * v + w**2 * u + 2 * w * (1 - w) * c
        return Marginals(
            model.mean + w * (neighbors.mean - model.mean), np.asarray(scale * variance)
        )


@dataclass(frozen=True)
class Expert:
    """One candidate for s² and ρ, with its weight in the average."""

    weight: float
    scale: LocalScale
    mixing: BlendWeights


@dataclass(frozen=True)
class ExpertInputs:
    """What experts combine: both predictions, and distances and q of nearest rows, shape (m, k)."""

    model: Marginals
    neighbors: Marginals
    distances: Array
    squares: Array

    def average(self, experts: Sequence[Expert]) -> Marginals:
        """Mean and variance of the mixture of experts; the model has the weight left to one."""
        scales = {s: s(self.distances, self.squares) for s in {e.scale for e in experts}}
        parts = [e.mixing.blend(self.model, self.neighbors, scales[e.scale]) for e in experts]
        parts.append(self.model)
        weights = [expert.weight for expert in experts]
        weights.append(max(1.0 - sum(weights), 0.0))
        mean = np.average([part.mean for part in parts], axis=0, weights=weights)
        squares = [part.variance + (part.mean - mean) ** 2 for part in parts]
        return Marginals(mean, np.average(squares, axis=0, weights=weights))


@dataclass(frozen=True)
class OutputBlend:
    """The blend for one output. It stores the training rows."""

    gp: VecchiaGP  # the Vecchia process of the centred targets
    counts: Annotated[Array, "n"]  # how many times each row was added
    center: float  # mean of y
    # q, squared leave-one-out scores of the process over their mean, shape (n,)
    squares: Annotated[Array, "n"]
    # candidates with positive weight; the model alone has the weight left to one
    experts: tuple[Expert, ...]
    gain: float  # increase of the mean held-out log-likelihood over the model alone

    @property
    def rows(self) -> Block:
        """The stored rows, with their counts as weights, and targets less their mean."""
        return Block(self.gp.X, self.gp.values[:, None], self.counts, groups=self.gp.groups)

    def update(self, rows: Block) -> OutputBlend:
        """The blend with further rows; kernel and experts stay."""
        return self._with(replace(rows, y=rows.y - self.center))

    def merge(self, other: OutputBlend) -> OutputBlend:
        """The blend with the rows of both."""
        return self._with(replace(other.rows, y=other.rows.y + (other.center - self.center)))

    def _with(self, more: Block) -> OutputBlend:
        if self.gp.groups is None:
            return self._of(distinct(joined([self.rows, more])))
        groups = self.gp.groups.max(initial=-1) + 1 + np.arange(len(more))  # each is a group
        return self._of(joined([self.rows, replace(more, groups=groups)]))

    def forget(self, rows: Block) -> OutputBlend:
        """The blend without some of the stored rows."""
        return self._of(without(self.rows, replace(rows, y=rows.y - self.center)))

    def empty(self) -> OutputBlend:
        """The blend with no rows stored."""
        return self._of(self.rows.part(slice(0)))

    def _of(self, rows: Block) -> OutputBlend:
        gp = replace(self.gp, X=rows.X, values=rows.y[:, 0], groups=rows.groups)
        return replace(self, gp=gp, counts=rows.weights, squares=_leave_one_out_squares(gp))

    def predict(self, X: Array, model: Marginals) -> Marginals:
        """The blended prediction of y, from the model's, both with noise."""
        if len(self.gp.X) < FEWEST_ROWS:
            return model
        mean, variance = np.empty((2, len(X)))
        for start in range(0, len(X), BLOCK_ROWS):
            its = slice(start, start + BLOCK_ROWS)
            own = Marginals(model.mean[its], model.variance[its])
            part = _expert_inputs(self.gp, self.center, self.squares, X[its], own, self._most)
            both = part.average(self.experts)
            mean[its], variance[its] = both.mean, both.variance
        return Marginals(mean, variance)

    def leave_one_out(self, rows: IntArray, model: Marginals) -> Marginals:
        """The blended leave-one-out predictions of stored rows, from the model's."""
        if len(self.gp.X) <= FEWEST_ROWS:
            return model
        distances, near = self.gp.nearest_others(rows, self._most)
        return self._blended(model, self.gp.leave_one_out(rows), distances, near)

    def leave_groups_out(self, X: Array, groups: IntArray, model: Marginals) -> Marginals:
        """The same for rows X, each from stored rows of other groups than its own."""
        if len(self.gp.X) <= FEWEST_ROWS:
            return model
        distances, near = self.gp.nearest_elsewhere(X, groups, self._most)
        return self._blended(model, self.gp.leave_groups_out(X, groups), distances, near)

    @property
    def _most(self) -> int:
        return max(expert.scale.nearby for expert in self.experts)

    def _blended(
        self, model: Marginals, own: Marginals, distances: Array, near: IntArray
    ) -> Marginals:
        own = replace(own, mean=self.center + own.mean)
        return ExpertInputs(model, own, distances, self.squares[near]).average(self.experts)


@dataclass(frozen=True)
class LearnedBlend:
    """A blend, and its predictions of the held-out rows."""

    blend: OutputBlend
    unseen: Marginals


def learn_output_blend(
    rows: Block,
    held: IntArray,
    unseen: Marginals,
    rng: np.random.Generator,
    n_neighbors: int = NEIGHBORS,
) -> LearnedBlend | None:
    """The blend, or ``None`` if it does not clearly raise the held-out log-likelihood.

    Of all rows, with one output, ``held`` are held out, and ``unseen`` the model's predictions of
    these. Whole groups are held out, if there are groups.
    """
    X, y, groups = rows.X, rows.y[:, 0], rows.groups
    if len(held) < FEWEST_HELD_OUT or not np.ptp(y) > 0:
        return None
    center = float(y.mean())
    gp = learn_vecchia_gp(X, y - center, rng, n_neighbors, groups)
    # Held-out values would leak through the leave-one-out errors of the rows around them.
    kept = np.delete(np.arange(len(y)), held)
    others = gp.part(kept)
    squares = _leave_one_out_squares(others)
    given = _expert_inputs(others, center, squares, X[held], unseen, max(NEARBY))
    experts = _experts(given, y[held])
    both = given.average(experts)
    gains = _log_density(y[held], both) - _log_density(y[held], unseen)
    error = standard_error(gains, None if groups is None else groups[held])
    if not experts or gains.mean() < STANDARD_ERRORS * error:
        return None
    squares, gain = _leave_one_out_squares(gp), float(gains.mean())
    blend = OutputBlend(gp, rows.weights, center, squares, experts, gain)
    return LearnedBlend(blend, both)


def _log_density(y: Array, p: Marginals) -> Array:
    return normal_log_density(y - p.mean, p.variance)


def _experts(given: ExpertInputs, y: Array) -> tuple[Expert, ...]:
    """Experts by weight, largest first; a priori the model alone counts as much as all of them."""
    found, gains = [], []
    for nearby, prior_rows in product(NEARBY, PRIOR_ROWS):
        radius = float(given.distances[:, :nearby][:, -1].mean()) or 1.0
        scale = LocalScale(nearby, prior_rows, radius)
        s2 = scale(given.distances, given.squares)
        for correlation in CORRELATIONS:
            mixing = _calibrated(correlation, y, given, s2)
            blend = mixing.blend(given.model, given.neighbors, s2)
            gain = float(np.sum(_log_density(y, blend) - _log_density(y, given.model)))
            found.append((scale, mixing))
            gains.append(gain if np.isfinite(gain) else -np.inf)  # errors of zero: not credible
    logits = np.array(gains) / ROWS_PER_OBSERVATION - np.log(len(gains))
    weights: Array = softmax([*logits, 0.0])[:-1]
    if weights.sum() == 0:
        return ()
    order = np.argsort(-weights)
    before = np.cumsum(weights[order]) - weights[order]
    kept = order[before < (1.0 - DROPPED_WEIGHT) * weights.sum()]
    shares = weights[kept] * (weights.sum() / weights[kept].sum())
    return tuple(Expert(float(share), *found[i]) for share, i in zip(shares, kept, strict=True))


def _calibrated(correlation: float, y: Array, given: ExpertInputs, scale: Array) -> BlendWeights:
    """Factors that bring mean squared scores to one: of both predictions, then of their blend."""

    def excess(p: Marginals, scale: Array | float) -> float:
        return float(np.mean((y - p.mean) ** 2 / (scale * p.variance)))

    v, u = excess(given.model, scale), excess(given.neighbors, scale)
    blend = BlendWeights(v, u, correlation).blend(given.model, given.neighbors, scale)
    factor = excess(blend, 1.0)
    return BlendWeights(factor * v, factor * u, correlation)


def _expert_inputs(
    gp: VecchiaGP, center: float, squares: Array, X: Array, model: Marginals, nearby: int
) -> ExpertInputs:
    """Inputs at rows X, from a process of values with mean zero and the center of y."""
    own = gp.predict(X)
    distances, near = gp.nearest(X, nearby)
    return ExpertInputs(model, replace(own, mean=center + own.mean), distances, squares[near])


def _leave_one_out_squares(gp: VecchiaGP) -> Array:
    """q: squared leave-one-out scores of all rows, over their mean."""
    if len(gp.X) <= FEWEST_ROWS:
        return np.ones(len(gp.X))
    unseen = gp.leave_one_out(np.arange(len(gp.X)))
    squares = (gp.values - unseen.mean) ** 2 / unseen.variance
    normalized: Array = squares / (squares.mean() or 1.0)
    return normalized
