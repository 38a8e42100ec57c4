"""Fused loops for kernels of a squared distance: the value, and its slopes where they are needed.

Scales of the mixture are half an octave apart, so that one exponential serves all of them: from one
scale to the next, q doubles and e^(-q/2) is squared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rwf.features._fused import _compiled, _exp, _squared_distances

NEGLIGIBLE = 1e-20
"""An exponential below this is dropped before it is squared, or it would become a denormal."""


@_compiled
def mixture(A: Any, tT: Any, weights: Any, amplitude: float, d: int, tail: float, out: Any) -> None:
    """out_ij += amplitude Σ_s weights_s (1 - q_s/d) e^(-q_s/2), with q_s = 2^s q_ij."""
    n, m = A.shape[0], tT.shape[1]
    q, e, one = np.empty(m), np.empty(m), np.ones(m)
    for i in range(n):
        _squared_distances(A[i], tT, one, q)
        for j in range(m):
            z = _exp(-0.5 * min(q[j], tail))
            e[j] = z if q[j] <= tail else 0.0
        for s in range(len(weights)):
            w = amplitude * weights[s]
            for j in range(m):
                out[i, j] += w * (1.0 - q[j] / d) * e[j]
                e[j] = e[j] * e[j] if e[j] > NEGLIGIBLE else 0.0
                q[j] *= 2.0


@_compiled
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
            z = _exp(-0.5 * min(q[j], tail))
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
