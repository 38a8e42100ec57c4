"""Waves in a random direction, and the Morlet wavelets made of them."""

from __future__ import annotations

import numpy as np
from scipy.special import hyp0f1, j0

from rwf._types import Array
from rwf.kernels.expected.laws import Points
from rwf.kernels.expected.pairs import Pairs
from rwf.wavelets import ComplexMorlet, Morlet
from rwf.wavelets.base import gaussian


def mean_wave(r: Array, d: int) -> Array:
    r"""E[cos(r e·x)] for unit x over directions e in R^d: cos, J₀, sin r/r, … for d = 1, 2, 3, …"""
    if d == 1:
        return np.cos(r)
    if d == 2:
        return np.asarray(j0(r))
    if d == 3:
        return np.sinc(r / np.pi)
    return np.asarray(hyp0f1(d / 2, -(r**2) / 4))


def morlet_over_points(wavelet: Morlet, points: Points, pairs: Pairs, s: float) -> Array:
    """E[ψ((x-t)/s)ψ((y-t)/s)] over points t and all directions, in closed form for every d."""
    w, offset, d = wavelet.frequency, wavelet.offset, pairs.A.shape[1]

    def squares(X: Array) -> Array:
        """‖x - t‖²/s², shape (n, r)."""
        return sum((((X[:, [k]] - points.places[:, k]) / s) ** 2 for k in range(d)), np.zeros(()))

    QA, QB = squares(pairs.A), squares(pairs.B)
    EA, EB = gaussian(QA) * points.weights, gaussian(QB)
    WA, WB = mean_wave(w * np.sqrt(QA), d), mean_wave(w * np.sqrt(QB), d)
    gap = pairs.each(lambda x, y: np.sum(((x - y) / s) ** 2, axis=-1), work=d)
    along = mean_wave(w * np.sqrt(gap), d) * pairs.dot(EA, EB)
    offsets = pairs.dot(EA * (offset - WA), offset * EB) - pairs.dot(EA, offset * EB * WB)
    if isinstance(wavelet, ComplexMorlet):
        return along + offsets
    across = np.zeros_like(along)
    for i in range(len(points.weights)):
        qa, qb, ea, eb = QA[:, i], QB[:, i], EA[:, i], EB[:, i]
        if pairs.every:
            qa, ea = qa[:, None], ea[:, None]
        both = np.maximum(2 * (qa + qb) - gap, 0.0)  # ‖u + v‖², by the parallelogram
        across += ea * eb * mean_wave(w * np.sqrt(both), d)
    return (along + across) / 2 + offsets
