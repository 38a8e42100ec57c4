r"""Long series: a spike-and-slab fit in each of several overlapping windows, smoothly joined.

.. math:: f(x) = \sum_w \varphi_w(x)\, f_w(x), \qquad \sum_w \varphi_w(x) = 1

φ_w is one in the middle of its window and fades within the part that it shares with its neighbour,
so that every window is used only where its rows lie on both sides. Each has its own atoms, noise
and moments. Moments still add over rows: a row goes to the one or two windows it lies in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block, block_rows
from rwf.inference.moments import Moments
from rwf.inference.posterior import Marginals, runs
from rwf.inference.spike_slab.chain import LONGEST
from rwf.inference.spike_slab.dense import Smooth
from rwf.inference.spike_slab.fit import Schedule, SpikeSlabFit, fit_spike_slab
from rwf.inference.spike_slab.mixture import Mixture

LENGTH = 2000  # distinct inputs of a window without its margins: enough for coarse atoms
MARGIN = 100  # distinct inputs beyond each end, where two windows are blended


@dataclass(frozen=True)
class Window:
    """The part of the line that a fit is for."""

    low: float  # where its rows begin
    high: float  # where they end
    # the interval in which φ goes from zero to one; infinite for the first window
    rise: tuple[float, float]
    # the interval in which φ goes back to zero; infinite for the last one
    fall: tuple[float, float]
    fit: SpikeSlabFit  # atoms and draws

    def share(self, x: Array) -> Array:
        """φ(x), shape (n,)."""
        return _ramp(x, *self.rise) - _ramp(x, *self.fall)


def rows_between(rows: Block, low: float, high: float) -> Block:
    """Rows whose input lies in an interval, ends included."""
    inside = (rows.X[:, 0] >= low) & (rows.X[:, 0] <= high)
    return Block(rows.X[inside], rows.y[inside], rows.weights[inside])


def _ramp(x: Array, low: float, high: float) -> Array:
    """From zero at low to one at high, with flat ends."""
    if np.isinf(low):
        return np.full(len(x), float(low < 0))
    u = np.clip((x - low) / (high - low), 0.0, 1.0)
    ramp: Array = u * u * (3.0 - 2.0 * u)
    return ramp


@dataclass(frozen=True)
class WindowMoments:
    """The moments of every window."""

    parts: tuple[Moments, ...]

    def __add__(self, other: WindowMoments) -> WindowMoments:
        return WindowMoments(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def scaled(self, share: float) -> WindowMoments:
        """Every row counted so many times."""
        return WindowMoments(tuple(part.scaled(share) for part in self.parts))


@dataclass(frozen=True)
class WindowedFit:
    """Windows in ascending order, one at least."""

    windows: tuple[Window, ...]

    def collect(self, rows: Block) -> WindowMoments:
        """Moments of rows, window by window. They add."""
        return WindowMoments(
            tuple(w.fit.collect(rows_between(rows, w.low, w.high)) for w in self.windows)
        )

    def posterior(self, moments: WindowMoments) -> WindowedMixture:
        """The posterior that moments of any rows give."""
        return WindowedMixture(self.windows, moments)


@dataclass(frozen=True)
class WindowedMixture:
    """p(f | y) of all windows."""

    windows: tuple[Window, ...]  # where they are
    moments: WindowMoments  # what they have seen

    @cached_property
    def mixtures(self) -> tuple[Mixture, ...]:
        parts = zip(self.windows, self.moments.parts, strict=True)
        return tuple(window.fit.posterior(moments) for window, moments in parts)

    @property
    def noise_variance(self) -> float:
        """The mean of σ² over all rows."""
        counts = [moments.n for moments in self.moments.parts]
        return float(np.average([m.noise_variance for m in self.mixtures], weights=counts))

    def noise(self, X: Array) -> Array:
        """σ² at rows, shape (n,): every window has its own."""
        variances = [mixture.noise_variance for mixture in self.mixtures]
        return sum(
            (w.share(X[:, 0]) * v for w, v in zip(self.windows, variances, strict=True)),
            start=np.zeros(len(X)),
        )

    def mean(self, X: Array) -> Array:
        """The mean of f, shape (n,)."""
        mean = np.zeros(len(X))
        for index, rows, share, Z in self._pieces(X):
            mean[rows] += share * (Z @ self.mixtures[index].mean)
        return mean

    def predict(self, X: Array) -> Marginals:
        """Mean and variance of y. Where two windows meet, their difference counts as variance."""
        pieces = [
            (rows, share, self.mixtures[index].predict(Z))
            for index, rows, share, Z in self._pieces(X)
        ]
        mean, variance = np.zeros(len(X)), np.zeros(len(X))
        for rows, share, p in pieces:
            mean[rows] += share * p.mean
        for rows, share, p in pieces:
            variance[rows] += share * (p.variance + (p.mean - mean[rows]) ** 2)
        return Marginals(mean, variance)

    def leave_one_out(self, rows: Block) -> Marginals:
        """Predictions of training rows as if each were unseen, by the window that each is in."""
        if rows.groups is not None:
            return self._leave_groups_out(rows, rows.groups)
        mean, variance, best = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
        for index, which, share, Z in self._pieces(rows.X):
            y, weights = rows.y[which, 0], rows.weights[which]
            p = self.mixtures[index].leave_one_out(Z, y, weights)
            more = share > best[which]
            used = which[more]
            best[used], mean[used], variance[used] = share[more], p.mean[more], p.variance[more]
        return Marginals(mean, variance)

    def _leave_groups_out(self, rows: Block, groups: IntArray) -> Marginals:
        """The same with all rows of a group unseen, those in the margins of a window included."""
        mean, variance, best = np.zeros((3, len(rows)))
        x = rows.X[:, 0]
        for window, mixture in zip(self.windows, self.mixtures, strict=True):
            inside = np.flatnonzero((x >= window.low) & (x <= window.high))
            inside = inside[np.argsort(groups[inside], kind="stable")]
            for run in runs(groups[inside]):
                its = inside[run]
                Z = np.asarray(window.fit.features(rows.X[its]), dtype=np.float64)
                p = mixture.leave_group_out(Z, rows.y[its, 0], rows.weights[its]).y
                share = window.share(x[its])
                more = share > best[its]
                used = its[more]
                best[used], mean[used], variance[used] = share[more], p.mean[more], p.variance[more]
        return Marginals(mean, variance)

    def covariance(self, X: Array) -> Array:
        """Covariance of f at rows, without noise, shape (n, n). Windows are independent."""
        C = np.zeros((len(X), len(X)))
        for window, mixture in zip(self.windows, self.mixtures, strict=True):
            share = window.share(X[:, 0])
            used = np.flatnonzero(share > 0)
            if len(used):
                Z = np.asarray(window.fit.features(X[used]), dtype=np.float64)
                own = mixture.covariance(Z) * share[used, None] * share[used]
                C[np.ix_(used, used)] += own
        return C

    def sample(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        """Draws of f at rows, without noise, shape (n, count). Windows are drawn independently."""
        weights = [mixture.sample_weights(count, rng) for mixture in self.mixtures]
        F = np.zeros((len(X), count))
        for index, rows, share, Z in self._pieces(X):
            F[rows] += share[:, None] * (Z @ weights[index])
        return F

    def _pieces(self, X: Array) -> Iterator[tuple[int, IntArray, Array, Array]]:
        """Rows of one window at a time: which window, which rows, their φ and features."""
        for index, window in enumerate(self.windows):
            share = window.share(X[:, 0])
            used = np.flatnonzero(share > 0)
            size = block_rows(window.fit.features.n_features)
            for start in range(0, len(used), size):
                rows = used[start : start + size]
                Z = np.asarray(window.fit.features(X[rows]), dtype=np.float64)
                yield index, rows, share[rows], Z


def fit_windows(
    rows: Block,
    rng: np.random.Generator,
    smooth: Callable[[Block], Smooth] | None = None,
    schedule: Schedule | None = None,
) -> WindowedFit:
    """As :func:`fit_spike_slab` for any length, in windows; ``smooth`` is made of their rows."""
    x = np.unique(rows.X[rows.weights > 0, 0])
    n = len(x)
    cuts = np.linspace(0, n, 2 if n <= LONGEST else round(n / LENGTH) + 1).astype(int)[1:-1]
    ends = [_Seam.outer(-np.inf), *(_Seam.at(x, int(cut)) for cut in cuts), _Seam.outer(np.inf)]
    windows = []
    for left, right in itertools.pairwise(ends):
        part = rows_between(rows, left.low, right.high)
        fit = fit_spike_slab(part, rng, smooth and smooth(part), schedule)
        windows.append(Window(left.low, right.high, left.fade, right.fade, fit))
    return WindowedFit(tuple(windows))


@dataclass(frozen=True)
class _Seam:
    """Where two windows share rows, from low to high, and where one fades into the other."""

    low: float
    high: float
    fade: tuple[float, float]

    @classmethod
    def at(cls, x: Array, cut: int) -> Self:
        """Around an index of the distinct inputs: fading takes the middle half of the margins."""
        half = MARGIN // 2
        fade = (float(x[cut - half]), float(x[cut + half]))
        return cls(float(x[cut - MARGIN]), float(x[cut + MARGIN]), fade)

    @classmethod
    def outer(cls, end: float) -> Self:
        """The end of the line."""
        return cls(end, end, (end, end))
