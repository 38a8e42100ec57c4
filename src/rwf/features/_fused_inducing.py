"""Fused loops for kernels of a squared distance: the value, and its slopes where they are needed.

Scales of the mixture are half an octave apart, so that one exponential serves all of them: from one
scale to the next, q doubles and e^(-q/2) is squared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rwf.features._fused import _squared_distances, _tile
from rwf.features._fused_math import compiled, exp, wide

NEGLIGIBLE = 1e-20  # a smaller exponential is dropped: its square would be a denormal


@compiled
def mixture(
    A: Any, tT: Any, weights: Any, amplitude: float, d: int, tail: float, out: Any, stride: int
) -> None:
    """out_ij += amplitude Σ_s weights_s (1 - q_s/d) e^(-q_s/2), with q_s = 2^s q_ij."""
    wide()
    tile = _tile(A)
    q, e, one = np.empty(tile), np.empty(tile), np.ones(tile)
    for a in range(0, tT.shape[1], tile):
        b = min(a + tile, tT.shape[1])
        t = np.ascontiguousarray(tT[:, a:b])
        for i in range(A.shape[0]):
            _squared_distances(A[i], t, one, q)
            row = out[i * stride + a : i * stride + b]
            for j in range(b - a):
                z = exp(-0.5 * min(q[j], tail))
                e[j] = z if q[j] <= tail else 0.0
            for s in range(len(weights)):
                w, c = amplitude * weights[s], 2.0**s / d
                for j in range(b - a):
                    row[j] += w * (1.0 - c * q[j]) * e[j]
                    e[j] = e[j] * e[j] if e[j] > NEGLIGIBLE else 0.0


@compiled
def mixture_slopes(
    A: Any, weights: Any, slopes: Any, d: int, tail: float, K: Any, by_q: Any, by_weights: Any
) -> None:
    """K, ∂K/∂q and Σ_s slopes_s ∂K/∂weights_s of a block of amplitude one, at all pairs."""
    n = A.shape[0]
    aT = np.ascontiguousarray(A.T)
    q, e, one = np.empty(n), np.empty(n), np.ones(n)
    for i in range(n):
        _squared_distances(A[i], aT, one, q)
        for j in range(n):
            z = exp(-0.5 * min(q[j], tail))
            e[j] = z if q[j] <= tail else 0.0
            K[i, j] = 0.0
            by_q[i, j] = 0.0
            by_weights[i, j] = 0.0
        double = 1.0
        for s in range(len(weights)):
            for j in range(n):
                h = (1.0 - q[j] / d) * e[j]
                K[i, j] += weights[s] * h
                by_weights[i, j] += slopes[s] * h
                by_q[i, j] -= weights[s] * double * (e[j] / d + 0.5 * h)
                e[j] = e[j] * e[j] if e[j] > NEGLIGIBLE else 0.0
                q[j] *= 2.0
            double *= 2.0
