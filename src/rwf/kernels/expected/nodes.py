"""Averages over values of any wavelet at points.

They are sums φ(x)ᵀφ(y) with positive weights, so that kernels stay positive semi-definite however
coarse the quadrature.
"""

from __future__ import annotations

import numpy as np

from rwf._types import Array
from rwf.features.base import row_chunks
from rwf.kernels.expected.laws import Boxes, Points
from rwf.kernels.expected.pairs import Pairs
from rwf.kernels.expected.quadrature import directions, gauss
from rwf.wavelets import GaussianDerivative, OrientedWavelet, RadialWavelet, TensorWavelet, Wavelet
from rwf.wavelets.base import gaussian


def columns(wavelet: Wavelet, U: list[Array], order: int) -> list[Array]:
    """Functions φ with Σφ(u)φ(v) = E[ψ(u)ψ(v)] over directions, at U, one array per axis."""
    d = len(U)
    if isinstance(wavelet, TensorWavelet):
        return [np.prod([wavelet.line(u)[0] for u in U], axis=0)]
    q = sum((u * u for u in U[1:]), U[0] ** 2)
    if isinstance(wavelet, RadialWavelet):
        return [wavelet.profile(q, d)]
    if type(wavelet) is GaussianDerivative:
        return [u * gaussian(q) / np.sqrt(d) for u in U]
    assert isinstance(wavelet, OrientedWavelet)
    return [
        np.sqrt(weight) * profile
        for e, weight in zip(*directions(d, order), strict=True)
        for profile in wavelet.profiles(q, np.tensordot(e, U, 1))
    ]


def average_over_points(
    wavelet: Wavelet, points: Points, pairs: Pairs, s: float, order: int
) -> Array:
    """E[ψ((x-t)/s)ψ((y-t)/s)] over points t."""
    d = pairs.A.shape[1]
    total = np.zeros(())
    for part in row_chunks(len(points.weights), len(pairs.A) + len(pairs.B)):
        t, root = points.places[part], np.sqrt(points.weights[part])

        def features(X: Array, t: Array = t) -> list[Array]:
            return columns(wavelet, [(X[:, [k]] - t[:, k]) / s for k in range(d)], order)

        F = features(pairs.A)
        G = F if pairs.B is pairs.A else features(pairs.B)
        for f, g in zip(F, G, strict=True):
            weighted = f * root
            # The same array twice makes an exactly symmetric product.
            total = total + pairs.dot(weighted, weighted if g is f else g * root)
    return total


def tensor_over_boxes(
    wavelet: TensorWavelet, boxes: Boxes, pairs: Pairs, s: float, order: int
) -> Array:
    """E[ψψ] over boxes of shifts: a product of averages over the axes."""
    v, weights = gauss(order)

    def over_box(low: Array, high: Array) -> Array:
        product = np.ones(())
        for k in range(len(low)):
            side = Points((low[k] + (high[k] - low[k]) * v)[:, None], weights)
            product = product * average_over_points(wavelet, side, pairs.axis(k), s, order)
        return product

    return boxes.average(over_box)
