"""Fused loops that pull a gradient by features back to coordinates, in one visit per entry.

``R`` is the memory of the gradient, rows ``stride`` apart. What is added up over rows, by input k
and column j, is all that a gradient by length-scales and scales needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from rwf.features._fused import _phases, _projections, _squared_distances, _tile
from rwf.features._fused_math import FAST, compiled, cos_sin, exp, wide
from rwf.features.atoms import HAT
from rwf.wavelets.base import TAIL


@njit(inline="always", fastmath=FAST)
def _slopes(q: Any, r: Any, profile: Any, out: Any) -> None:
    """out_j = r_j f′(q_j), of the hat (1 - cq)e^(-q/2), or of the compact hat of this order."""
    kind, c, order = profile
    if kind == HAT:
        for j in range(len(r)):
            slope = (0.5 * c * q[j] - 0.5 - c) * exp(-0.5 * min(q[j], TAIL))
            out[j] = r[j] * slope if q[j] <= TAIL else 0.0
    else:
        narrow = 1.0 / (2.0 * order)
        for j in range(len(r)):
            h = max(1.0 - q[j] * narrow, 0.0)
            slope = -c * h - (order - 2) * narrow * (1.0 - c * q[j])
            out[j] = r[j] * slope if h > 0.0 else 0.0
            q[j] = h
        for _ in range(order - 3):
            for j in range(len(r)):
                out[j] *= q[j]


@compiled
def radial_slopes(
    X: Any, tT: Any, inverse: Any, profile: Any, R: Any, stride: int, total: Any
) -> None:
    """total_kj += Σ_i R_ij f′(q_ij) (x_ik - t_kj)²."""
    wide()
    d, m = tT.shape
    tile = _tile(X)
    q, g = np.empty(tile), np.empty(tile)
    for a in range(0, m, tile):
        b = min(a + tile, m)
        t, part = np.ascontiguousarray(tT[:, a:b]), np.zeros((d, b - a))
        for i in range(X.shape[0]):
            _squared_distances(X[i], t, inverse[a:b], q)
            _slopes(q, R[i * stride + a : i * stride + b], profile, g)
            for k in range(d):
                x = X[i, k]
                for j in range(b - a):
                    u = x - t[k, j]
                    part[k, j] += g[j] * (u * u)
        total[:, a:b] += part


@compiled
def ridge_slopes(
    X: Any, tT: Any, wT: Any, inverse: Any, profile: Any, R: Any, stride: int, total: Any
) -> None:
    """total_kj += Σ_i R_ij 2p_ij f′(p_ij²) (x_ik - t_kj), with p = w_j·(x - t_j)/s_j."""
    wide()
    d, m = tT.shape
    tile = _tile(X)
    p, q, g = np.empty(tile), np.empty(tile), np.empty(tile)
    for a in range(0, m, tile):
        b = min(a + tile, m)
        t, part = np.ascontiguousarray(tT[:, a:b]), np.zeros((d, b - a))
        w = np.ascontiguousarray(wT[:, a:b])
        for i in range(X.shape[0]):
            _projections(X[i], t, w, inverse[a:b], p)
            for j in range(b - a):
                q[j] = p[j] * p[j]
            _slopes(q, R[i * stride + a : i * stride + b], profile, g)
            for j in range(b - a):
                g[j] *= 2.0 * p[j]
            for k in range(d):
                x = X[i, k]
                for j in range(b - a):
                    part[k, j] += g[j] * (x - t[k, j])
        total[:, a:b] += part


@compiled
def fourier_slopes(X: Any, wT: Any, R: Any, stride: int, total: Any) -> None:
    """total_kj += Σ_i (S_ij cos p_ij - C_ij sin p_ij) x_ik, with R = [C, S] and p = Xw."""
    wide()
    d, m = wT.shape
    tile = _tile(X)
    p, g = np.empty(tile), np.empty(tile)
    for a in range(0, m, tile):
        b = min(a + tile, m)
        w, part = np.ascontiguousarray(wT[:, a:b]), np.zeros((d, b - a))
        for i in range(X.shape[0]):
            _phases(X[i], w, p)
            by_cosine = R[i * stride + a : i * stride + b]
            by_sine = R[i * stride + m + a : i * stride + m + b]
            for j in range(b - a):
                cosine, sine = cos_sin(p[j])
                g[j] = by_sine[j] * cosine - by_cosine[j] * sine
            for k in range(d):
                x = X[i, k]
                for j in range(b - a):
                    part[k, j] += g[j] * x
        total[:, a:b] += part
