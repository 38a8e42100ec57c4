r"""A second opinion of the nearest rows, weighed against the model's by how both do on unseen rows.

A model of finitely many atoms leaves structure finer than they are, and calls it noise. Where rows
are dense the nearest ones know better; in gaps they do not. Of two predictions of y(x), the model's
and that of a :class:`~rwf.neighbours.NeighbourGP`, with variances v and u, the errors are taken as

.. math::
    e(x) \sim N\!\left(0,\; s^2(x) \begin{pmatrix} v & \rho\sqrt{vu} \\ \rho\sqrt{vu} & u
    \end{pmatrix}\right),

and the combination of least variance is the prediction. The local scale s² is the mean of squared
errors nearby: terrain is smooth here and steep there. Residuals of the model at its own rows would
not do as data, because the more atoms it has, the less is left of them there. So both opinions on a
row are of those who have not seen it. References: Bates and Granger (1969), The combination of
forecasts; Datta et al. (2016), Hierarchical nearest-neighbor Gaussian process models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np

from rwf.neighbours import NeighbourGP, learn_neighbour_gp
from rwf.posterior import Prediction, normal_log_density
from rwf.types import Array, IntArray

HELD_OUT, MOST_HELD_OUT = 0.1, 5000
"""Share and largest number of rows that judge."""

JUDGES, LARGEST_SHARE, FEWEST_JUDGES = 300, 0.3, 100
"""If the share would be fewer judges than that, it is larger, up to so much; too few do not judge:
among many candidates some would please them by chance."""

NEARBY, PRIOR_ROWS = (10, 20, 40, 80), (0.02, 0.3, 4.0, 1e6)
"""Candidates: over how many rows the local scale is a mean, and as how many the mean of all counts;
with the most, there is but one scale."""

CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Candidates for ρ: the larger, the more one opinion is followed alone."""

FEWEST = 2
"""Rows that a layer must have to be asked."""

CLEAR = 2.0
"""Standard errors by which the layer must raise the log density of held-out rows."""


@dataclass(frozen=True)
class LocalScale:
    r"""s²(x) from the rows nearby, whose squared errors q have mean one over all rows.

    .. math::
        s^2(x) = \frac{\sum_i c_i q_i + \tau}{\sum_i c_i + \tau}, \qquad c_i = e^{-r_i^2/2R^2},

    so that it goes back to one in gaps, where no row is nearby.

    Args:
        squares: e²/v of the neighbours' predictions of each row, over their mean, shape (n,).
        nearby: how many rows are asked.
        prior_rows: τ.
        radius: R, in lengths of the neighbours' kernel.
    """

    squares: Array
    nearby: int
    prior_rows: float
    radius: float

    def __call__(self, gp: NeighbourGP, X: Array) -> Array:
        return self.of_nearest(*gp.nearest(X, self.nearby))

    def of_nearest(self, distances: Array, near: IntArray) -> Array:
        """s² at rows whose nearest ones these are, shape (m, nearby)."""
        counts = np.exp(-0.5 * (distances / self.radius) ** 2)
        total = (counts * self.squares[near]).sum(axis=1) + self.prior_rows
        scale: Array = total / (counts.sum(axis=1) + self.prior_rows)
        return scale


@dataclass(frozen=True)
class Trust:
    """How two opinions are weighed.

    Args:
        model: by what the model's variances are to be multiplied.
        neighbours: by what those of the neighbours are.
        correlation: ρ of their errors.
    """

    model: float
    neighbours: float
    correlation: float

    def blend(self, model: Prediction, neighbours: Prediction, scale: Array) -> Prediction:
        """The combination of least variance, without negative weights."""
        v, u = self.model * model.variance, self.neighbours * neighbours.variance
        c = self.correlation * np.sqrt(v * u)
        w = np.clip((v - c) / (v + u - 2 * c), 0.0, 1.0)
        variance = (1 - w) ** 2 * v + w**2 * u + 2 * w * (1 - w) * c
        return Prediction(
            model.mean + w * (neighbours.mean - model.mean), np.asarray(scale * variance)
        )

    def recalibrated(self, factor: float) -> Self:
        """The same weights, and all variances larger by a factor."""
        return replace(self, model=factor * self.model, neighbours=factor * self.neighbours)


@dataclass(frozen=True)
class LocalLayer:
    """What the neighbours of a row add to a model's prediction. It keeps all training rows.

    Args:
        gp: the rows, whose values are y less its mean.
        center: mean of y.
        scale: s².
        trust: how both opinions are weighed.
        gain: how much higher the mean log density of held-out rows is than with the model alone.
    """

    gp: NeighbourGP
    center: float
    scale: LocalScale
    trust: Trust
    gain: float

    @property
    def rows(self) -> tuple[Array, Array]:
        """The inputs, shape (n, d), and targets, shape (n,), that it keeps."""
        return self.gp.X, self.center + self.gp.values

    def with_rows(self, X: Array, y: Array) -> LocalLayer:
        """The layer with further rows; how they are weighed stays."""
        gp = replace(
            self.gp,
            X=np.concatenate([self.gp.X, X]),
            values=np.concatenate([self.gp.values, y - self.center]),
        )
        return replace(self, gp=gp, scale=replace(self.scale, squares=_unseen_squares(gp)))

    def without_rows(self) -> LocalLayer:
        """The layer before the first row."""
        gp = replace(self.gp, X=self.gp.X[:0], values=self.gp.values[:0])
        return replace(self, gp=gp, scale=replace(self.scale, squares=self.scale.squares[:0]))

    def predict(self, X: Array, model: Prediction) -> Prediction:
        """The model's prediction of y at rows, the noise included, and the neighbours', as one.

        With too few rows to ask, it is the model's alone.
        """
        if len(self.gp.X) < FEWEST:
            return model
        return self.trust.blend(model, _opinion(self.gp, self.center, X), self.scale(self.gp, X))


def rows_to_judge(n: int, rng: np.random.Generator) -> IntArray:
    """Numbers of the training rows on which both opinions are to be compared, ascending."""
    share = min(max(HELD_OUT, JUDGES / max(n, 1)), LARGEST_SHARE)
    return np.sort(rng.permutation(n)[: min(int(share * n), MOST_HELD_OUT)])


@dataclass(frozen=True)
class LearnedLayer:
    """A layer, and what it predicted of the rows that judged it, as if they were unseen."""

    layer: LocalLayer
    unseen: Prediction


def learn_local_layer(
    X: Array, y: Array, held: IntArray, unseen: Prediction, rng: np.random.Generator
) -> LearnedLayer | None:
    """The layer over a model, or ``None`` where it does not clearly raise held-out densities.

    Args:
        X: all training rows, shape (n, d).
        y: their targets, shape (n,), in units of the model.
        held: numbers of some of them, as :func:`rows_to_judge` draws.
        unseen: what the model predicts of these as if it had not seen them, by leaving one out.
        rng: draws the rows on which the neighbours' kernel is learned.
    """
    if len(held) < FEWEST_JUDGES or not np.ptp(y) > 0:
        return None
    center = float(y.mean())
    gp = learn_neighbour_gp(X, y - center, rng)
    scale, trust, gains, best = _best(gp, center, held, unseen)
    if gains.mean() < CLEAR * gains.std() / np.sqrt(len(gains)):
        return None
    of_all = replace(scale, squares=_unseen_squares(gp))
    return LearnedLayer(LocalLayer(gp, center, of_all, trust, float(gains.mean())), best)


def _best(
    gp: NeighbourGP, center: float, held: IntArray, unseen: Prediction
) -> tuple[LocalScale, Trust, Array, Prediction]:
    """Scale and trust of the highest density of held-out rows; how much each row gains by them."""
    X, y = gp.X[held], center + gp.values[held]
    # A row's own value is in the errors of those around it: to judge, they must not have seen it.
    kept = np.delete(np.arange(len(gp.X)), held)
    others = replace(gp, X=gp.X[kept], values=gp.values[kept])
    neighbours, squares = _opinion(others, center, X), _unseen_squares(others)
    all_distances, all_near = others.nearest(X, max(NEARBY))
    before = _log_density(y, unseen)
    found = []
    for nearby, prior_rows in product(NEARBY, PRIOR_ROWS):
        distances, near = all_distances[:, :nearby], all_near[:, :nearby]
        radius = float(distances[:, -1].mean()) or 1.0
        scale = LocalScale(squares, nearby, prior_rows, radius)
        s2 = scale.of_nearest(distances, near)
        for correlation in CORRELATIONS:
            trust = _calibrated(correlation, y, unseen, neighbours, s2)
            blend = trust.blend(unseen, neighbours, s2)
            found.append((scale, trust, _log_density(y, blend) - before, blend))
    return max(found, key=lambda candidate: float(candidate[2].mean()))


def _log_density(y: Array, p: Prediction) -> Array:
    return normal_log_density(y - p.mean, p.variance)


def _calibrated(
    correlation: float, y: Array, model: Prediction, neighbours: Prediction, scale: Array
) -> Trust:
    """Factors that bring mean squared scores to one, of both opinions and then of their blend."""

    def excess(p: Prediction, scale: Array | float) -> float:
        return float(np.mean((y - p.mean) ** 2 / (scale * p.variance)))

    trust = Trust(excess(model, scale), excess(neighbours, scale), correlation)
    return trust.recalibrated(excess(trust.blend(model, neighbours, scale), 1.0))


def _opinion(gp: NeighbourGP, center: float, X: Array) -> Prediction:
    found = gp.predict(X)
    return replace(found, mean=center + found.mean)


def _unseen_squares(gp: NeighbourGP) -> Array:
    """e²/v of all rows, each left out, over their mean."""
    if len(gp.X) < FEWEST:
        return np.ones(len(gp.X))
    unseen = gp.leave_one_out(np.arange(len(gp.X)))
    squares = (gp.values - unseen.mean) ** 2 / unseen.variance
    normalized: Array = squares / (squares.mean() or 1.0)
    return normalized
