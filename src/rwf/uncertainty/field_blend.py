"""Blend predictions of a field by their distance to data, and calibrate the variance of the blend.

The distance is a gap, in median distances of neighbors. Weights and log variance factors are linear
between knots in its logarithm. Both are learned from rows that are held out alone and in blobs, so
that predictions at a distance are judged by errors at that distance. The errors of a blob are one
draw, not thousands: a blob counts as a few rows, whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import nnls
from scipy.special import ndtri

from rwf._types import Array, BoolArray, IntArray
from rwf.inference.posterior import Marginals
from rwf.uncertainty.kriging import AROUND, GAP, KrigingPrediction

KNOTS = np.log([1.0, GAP, 8.0, 25.0])  # logarithms of gaps
GROUPS = np.array([GAP, 8.0])  # gaps that divide places among data, near them and far from them
ROWS_OF_BLOB = 4.0  # independent rows that a blob counts as, at most
EQUAL_ROWS = 8.0  # rows by which weights are shrunk to equal ones
FACTOR_DEVIATION = 0.5  # prior standard deviation of log variance factors
NEARBY, PRIOR_ROWS = (10, AROUND), (1e6, 40.0, 10.0, 2.0, 0.3)  # candidates for local scales
CLEAR = 1.0  # nats by which a local scale must win in a gap
FEW_BLOBS, UNKNOWN_TAIL = 3, 1.5  # up to so many blobs, tails are taken to be this heavy
TINY = 1e-300
LARGEST_LEVEL = 0.985  # of a quantile: beyond it is the maximum of what was seen


@dataclass(frozen=True)
class FieldErrors:
    """Held-out rows of one output, and what each expert predicts for them."""

    y: Array  # shape (n,)
    experts: Sequence[Marginals]
    gap: Array  # shape (n,)
    near: IntArray  # numbers of training rows nearby, shape (n, k)
    blob: IntArray  # the number of each row's blob, shape (n,)

    @classmethod
    def joined(cls, parts: Sequence[FieldErrors]) -> FieldErrors:
        """Several hold-outs as one, in which blobs of different ones differ."""
        starts = np.cumsum([0, *(int(part.blob.max()) + 1 for part in parts)])
        experts = [
            Marginals(*(np.concatenate(values) for values in zip(*pairs, strict=True)))
            for pairs in (
                [(e.mean, e.variance) for e in same]
                for same in zip(*(part.experts for part in parts), strict=True)
            )
        ]
        return cls(
            np.concatenate([part.y for part in parts]),
            experts,
            np.concatenate([part.gap for part in parts]),
            np.concatenate([part.near for part in parts]),
            np.concatenate([part.blob + a for part, a in zip(parts, starts[:-1], strict=True)]),
        )

    @property
    def _rows_of_blob(self) -> IntArray:
        _, which, sizes = np.unique(self.blob, return_inverse=True, return_counts=True)
        return sizes[which]

    @property
    def counts(self) -> Array:
        """How much each row counts, shape (n,)."""
        return np.minimum(1.0, ROWS_OF_BLOB / self._rows_of_blob)

    @property
    def alone(self) -> BoolArray:
        """Which rows are the only ones of their blob, shape (n,)."""
        return np.equal(self._rows_of_blob, 1)


@dataclass(frozen=True)
class FieldScores:
    """Squared leave-one-out scores of training rows, over their mean, and means of them nearby."""

    squares: Annotated[Array, "n"]
    smooth: Annotated[Array, "n"]

    @classmethod
    def of(cls, values: Array, unseen: KrigingPrediction) -> FieldScores:
        squares = (values - unseen.mean) ** 2 / unseen.variance
        squares = squares / (float(squares.mean()) or 1.0)
        return cls(squares, squares[unseen.near].mean(axis=1))


@dataclass(frozen=True)
class FieldBlend:
    """Weights of experts, and the variance of their mixture, by gap; G groups of gaps."""

    weights: Annotated[Array, "e 4"]  # of each expert at the knots
    log_factors: Annotated[Array, "4"]  # of the variance at the knots
    # of every group: rows nearby whose scores give the local scale, rows it is shrunk by, and a
    # factor for errors with heavier tails than a Gaussian's
    nearby: Annotated[IntArray, "3"]
    prior_rows: Annotated[Array, "3"]
    tails: Annotated[Array, "3"]

    def at(self, gap: Array) -> Array:
        """Weights of the experts, shape (n, e)."""
        return between_knots(gap) @ self.weights.T

    def mixture(self, experts: Sequence[Marginals], gap: Array) -> Marginals:
        """Mean and variance of the mixture, before its variance is calibrated."""
        w = self.at(gap)
        means = np.stack([e.mean for e in experts], axis=1)
        variances = np.stack([e.variance for e in experts], axis=1)
        mean = (w * means).sum(axis=1)
        return Marginals(mean, (w * (variances + (means - mean[:, None]) ** 2)).sum(axis=1))

    def factor(self, gap: Array, near: IntArray, scores: FieldScores) -> Array:
        """By which the variance of the mixture is multiplied, shape (n,)."""
        factor = np.exp(between_knots(gap) @ self.log_factors)
        groups = np.searchsorted(GROUPS, gap)
        for group in range(len(self.tails)):
            its = groups == group
            scale = _local_scale(
                scores, group, near[its], int(self.nearby[group]), float(self.prior_rows[group])
            )
            factor[its] *= scale * self.tails[group]
        return factor

    def scores(self, errors: FieldErrors, scores: FieldScores) -> Array:
        """Errors of held-out rows over their standard deviations, shape (n,)."""
        p = self.mixture(errors.experts, errors.gap)
        variance = p.variance * self.factor(errors.gap, errors.near, scores)
        return np.asarray((errors.y - p.mean) / np.sqrt(variance))


def between_knots(gap: Array) -> Array:
    """Weights that interpolate values at the knots, shape (n, knots)."""
    place = np.clip(np.log(np.maximum(gap, 1e-9)), KNOTS[0], KNOTS[-1])
    return np.stack([np.interp(place, KNOTS, unit) for unit in np.eye(len(KNOTS))], axis=1)


def _local_scale(
    scores: FieldScores, group: int, near: IntArray, nearby: int, prior_rows: float
) -> Array:
    # Rows around a gap are few and far apart, so that each stands for its neighborhood.
    q = scores.squares if group == 0 else scores.smooth
    near = near[:, :nearby]
    scale: Array = (q[near].sum(axis=1) + prior_rows) / (near.shape[1] + prior_rows)
    return scale


def learn_field_blend(errors: FieldErrors, scores: FieldScores, mode: str | None) -> FieldBlend:
    """Weights and calibration from held-out rows; without a mode the variance is not calibrated."""
    n_groups = len(GROUPS) + 1
    blend = FieldBlend(
        weights=_expert_weights(errors),
        log_factors=np.zeros(len(KNOTS)),
        nearby=np.full(n_groups, AROUND),
        prior_rows=np.full(n_groups, PRIOR_ROWS[0]),
        tails=np.ones(n_groups),
    )
    if mode is None:
        return blend
    p, counts = blend.mixture(errors.experts, errors.gap), errors.counts
    squares = (errors.y - p.mean) ** 2 / p.variance
    log_factors = _log_factors(errors.gap, squares, counts, blend.log_factors)
    local = np.ones(len(squares))
    groups = np.searchsorted(GROUPS, errors.gap)
    nearby, prior_rows = blend.nearby.copy(), blend.prior_rows.copy()
    for group in range(n_groups) if mode == "local" else ():
        its = groups == group
        if its.any():
            rest = squares[its] / np.exp(between_knots(errors.gap[its]) @ log_factors)
            found = _best_scale(scores, group, errors.near[its], rest, counts[its])
            nearby[group], prior_rows[group] = found
            local[its] = _local_scale(scores, group, errors.near[its], *found)
    log_factors = _log_factors(errors.gap, squares / local, counts, log_factors)
    rest = squares / local / np.exp(between_knots(errors.gap) @ log_factors)
    tails = [
        _tail(rest[groups == g], counts[groups == g], errors.blob[groups == g])
        for g in range(n_groups)
    ]
    return FieldBlend(blend.weights, log_factors, nearby, prior_rows, np.array(tails))


def _expert_weights(errors: FieldErrors) -> Array:
    """Weights of experts, shrunk to equal ones, whose mixture has the smallest squared errors.

    As weights sum to one, the error of a mixture is that of the experts: with S the products of
    their errors, wᵀ(S + τI)w is smallest. The non-negative w that minimises it beside (Σw - 1)²
    has the same direction, whatever the unit of S.
    """
    B, counts = between_knots(errors.gap), errors.counts
    n_experts = len(errors.experts)
    unit = np.mean([e.variance for e in errors.experts], axis=0)
    means = np.column_stack([e.mean for e in errors.experts])
    E = (errors.y[:, None] - means) / np.sqrt(unit)[:, None]
    spread = E.var(axis=1)
    weights = np.empty((n_experts, len(KNOTS)))
    for knot, share in enumerate(B.T * counts):
        n, S = float(share.sum()), (E * share[:, None]).T @ E
        apart = n_experts * float(share @ spread) / n if n > 0 else 1.0
        S[np.diag_indices(n_experts)] += EQUAL_ROWS * apart + TINY
        S /= np.trace(S)
        root = np.vstack([np.linalg.cholesky(S).T, np.ones(n_experts)])
        w = nnls(root, np.append(np.zeros(n_experts), 1.0))[0]
        weights[:, knot] = w / w.sum()
    return weights


def _log_factors(gap: Array, squares: Array, counts: Array, start: Array) -> Array:
    """Values at the knots of highest posterior density, by Newton's method.

    The variance of a row is e^f times as large, its squared score e^-f times.
    """
    B, theta, precision = between_knots(gap), start, FACTOR_DEVIATION**-2
    for _ in range(30):
        scaled = counts * np.exp(-B @ theta) * squares
        gradient = 0.5 * B.T @ (counts - scaled) + precision * theta
        hessian = 0.5 * (B * scaled[:, None]).T @ B + precision * np.eye(len(theta))
        theta = theta - np.clip(np.linalg.solve(hessian, gradient), -1.0, 1.0)
    return theta


def _best_scale(
    scores: FieldScores, group: int, near: IntArray, squares: Array, counts: Array
) -> tuple[int, float]:
    best, highest = (AROUND, PRIOR_ROWS[0]), -np.inf
    for nearby in NEARBY:
        for prior_rows in PRIOR_ROWS:
            scale = _local_scale(scores, group, near, nearby, prior_rows)
            rest = squares / scale
            level = float(np.average(rest, weights=counts)) or 1.0
            value = -0.5 * float(counts @ (np.log(scale * level) + rest / level))
            if value > highest + (CLEAR if group and np.isfinite(highest) else 0.0):
                best, highest = (nearby, prior_rows), value
    return best


def _tail(squares: Array, counts: Array, blob: IntArray) -> float:
    """The factor that brings 95 % of held-out rows into their intervals, blobs counted equally."""
    n_blobs = len(np.unique(blob))
    if n_blobs <= FEW_BLOBS:
        return UNKNOWN_TAIL
    order = np.argsort(squares)
    total = np.cumsum(counts[order])
    level = min(0.95 * (n_blobs + 1) / n_blobs, LARGEST_LEVEL)
    rank = min(int(np.searchsorted(total, level * total[-1])), len(order) - 1)
    return max(1.0, float(squares[order[rank]]) / float(ndtri(0.975)) ** 2)
