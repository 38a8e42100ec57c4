r"""The Haar wavelet's kernel without quadrature over its jumps.

At a point t, ψ((x-t)/s) is a sign as soon as s > 2‖x-t‖_∞, and zero before. Over a box, products of
steps integrate to overlaps of intervals, which are linear in s between the scales at which two ends
meet.
"""

from __future__ import annotations

import numpy as np

from rwf._types import Array
from rwf.kernels.expected.laws import Boxes, Points, ScaleLaw
from rwf.kernels.expected.pairs import Pairs
from rwf.kernels.expected.quadrature import gauss


def haar_over_points(points: Points, scales: ScaleLaw, pairs: Pairs) -> Array:
    """E[c(s)² ψψ] over points t and scales s, for ρ > 0."""

    def average(x: Array, y: Array) -> Array:
        total = np.zeros(np.broadcast_shapes(x.shape, y.shape)[:-1])
        for t, weight in zip(points.places, points.weights, strict=True):
            sign = np.prod(np.where((x < t) == (y < t), 1.0, -1.0), axis=-1)
            reach = np.maximum(np.abs(x - t).max(axis=-1), np.abs(y - t).max(axis=-1))
            total += weight * sign * scales.above(2 * reach)
        return total

    return pairs.each(average, work=pairs.A.shape[1])


def haar_over_boxes(boxes: Boxes, scales: ScaleLaw, pairs: Pairs, order: int) -> Array:
    """E[c(s)² ψψ] over boxes of shifts and scales s."""

    def average(x: Array, y: Array) -> Array:
        return boxes.average(lambda low, high: _over_box(x, y, low, high, scales, order))

    d = pairs.A.shape[1]
    return pairs.each(average, work=(6 * d + 1) * order * d)


def _over_box(x: Array, y: Array, low: Array, high: Array, scales: ScaleLaw, order: int) -> Array:
    x, y = np.broadcast_arrays(x, y)
    if scales.width == 0:
        s = np.array(scales.low)
        return scales.factor(s) * _overlaps(x, y, s, low, high)
    gap = np.abs(x - y)
    ends = [np.abs(p - corner) for p in (x, y) for corner in (low, high)]
    meetings = np.concatenate([gap, 2 * gap, *(2 * end for end in ends)], axis=-1)
    inside = np.sort(np.clip(meetings, scales.low, scales.high), axis=-1)
    lowest, highest = (np.full((*gap.shape[:-1], 1), s) for s in (scales.low, scales.high))
    edges = np.log(np.concatenate([lowest, inside, highest], axis=-1))
    v, weights = gauss(order)
    length = np.diff(edges, axis=-1)[..., None]
    s = np.exp(edges[..., :-1, None] + length * v)  # (…, panels, nodes)
    values = _overlaps(x[..., None, None, :], y[..., None, None, :], s, low, high)
    average = np.sum(scales.factor(s) * values * weights * length, axis=(-2, -1))
    return np.asarray(average / scales.width)


def _overlaps(x: Array, y: Array, s: Array, low: Array, high: Array) -> Array:
    """E[ψψ] over the box at the scales s: half an atom is +1 right of x and -1 left of it."""
    reach = s[..., None] / 2

    def common(x_left: Array, x_right: Array, y_left: Array, y_right: Array) -> Array:
        left = np.maximum(np.maximum(x_left, y_left), low)
        right = np.minimum(np.minimum(x_right, y_right), high)
        return np.asarray(np.maximum(right - left, 0.0))

    alike = common(x, x + reach, y, y + reach) + common(x - reach, x, y - reach, y)
    unlike = common(x, x + reach, y - reach, y) + common(x - reach, x, y, y + reach)
    return np.asarray(np.prod((alike - unlike) / (high - low), axis=-1))
