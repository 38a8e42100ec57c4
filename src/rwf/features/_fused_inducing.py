"""Fused loops for kernels of a squared distance: the value, and its slopes where they are needed.

Scales of the mixture are half an octave apart, so that one exponential serves all of them: from one
scale to the next, q doubles and e^(-q/2) is squared. The sum over scales is that of its powers,

    k = S₀ - (q/d)S₁,    ∂k/∂q = (q/2d)S₂ - (1/d + 1/2)S₁,    S_p = Σ_s w_s 2^(ps) e^(-2^s q/2),

which stay in registers, because the number of scales is known to the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from rwf.features._fused import _tile
from rwf.features._fused_math import FAST, compiled, exp, wide
from rwf.features.inducing import LOG_SCALES
from rwf.wavelets.base import TAIL

N_SCALES = len(LOG_SCALES)
NEGLIGIBLE = 1e-20  # a smaller exponential is dropped: its square would be a denormal


@njit(inline="always", fastmath=FAST)
def _distances(x: Any, tT: Any, a: int, q: Any) -> None:
    """‖x - t_j‖² for a <= j, by differences, which keep their digits, from q_0 on.

    Loops start at zero: where j may be negative, numba's tests for it prevent vector instructions.
    """
    for j in range(tT.shape[1] - a):
        q[j] = 0.0
    for k in range(len(x)):
        t, u = tT[k, a:], x[k]
        for j in range(len(t)):
            q[j] += (u - t[j]) * (u - t[j])


@njit(inline="always", fastmath=FAST)
def _first_power(q: float) -> float:
    """e^(-q/2), or zero in the tail."""
    e = exp(-0.5 * min(q, TAIL))
    return e if q <= TAIL else 0.0


@njit(inline="always")
def _powers(weights: Any, factor: float) -> Any:
    """factor 2^(ps) weights_s, shape (3, S)."""
    table = np.empty((3, N_SCALES))
    for s in range(N_SCALES):
        table[0, s] = factor * weights[s]
        table[1, s] = 2.0**s * table[0, s]
        table[2, s] = 2.0**s * table[1, s]
    return table


@compiled
def mixture(
    A: Any, tT: Any, weights: Any, amplitude: float, upper: bool, out: Any, stride: int
) -> None:
    """out_ij += amplitude Σ_s weights_s h(2^s q_ij), of all pairs, or those of j >= i."""
    wide()
    c, w = 1.0 / A.shape[1], _powers(weights, amplitude)
    w0, w1 = w[0], w[1]
    tile = _tile(A)
    q = np.empty(tile)
    for first in range(0, tT.shape[1], tile):
        size = min(tile, tT.shape[1] - first)
        t = np.ascontiguousarray(tT[:, first : first + size])
        for i in range(min(len(A), first + size) if upper else len(A)):
            a = max(i - first, 0) if upper else 0
            _distances(A[i], t, a, q)
            row = out[i * stride + first + a : i * stride + first + size]
            for j in range(len(row)):
                e = _first_power(q[j])
                s0, s1 = w0[0] * e, w1[0] * e
                for s in range(1, N_SCALES):
                    e = e * e if e > NEGLIGIBLE else 0.0
                    s0 += w0[s] * e
                    s1 += w1[s] * e
                row[j] += s0 - c * q[j] * s1


@njit(inline="always", fastmath=FAST)
def _slopes(q: Any, w: Any, v: Any, c: float, k: Any, by_q: Any, by_weights: Any) -> None:
    """k, ∂k/∂q and Σ_s v_s ∂k/∂w_s, with the powers of w and of v."""
    w0, w1, w2, v0, v1 = w[0], w[1], w[2], v[0], v[1]
    for j in range(len(k)):
        e = _first_power(q[j])
        s0, s1, s2, t0, t1 = w0[0] * e, w1[0] * e, w2[0] * e, v0[0] * e, v1[0] * e
        for s in range(1, N_SCALES):
            e = e * e if e > NEGLIGIBLE else 0.0
            s0 += w0[s] * e
            s1 += w1[s] * e
            s2 += w2[s] * e
            t0 += v0[s] * e
            t1 += v1[s] * e
        r = c * q[j]
        k[j] = s0 - r * s1
        by_q[j] = 0.5 * r * s2 - (c + 0.5) * s1
        by_weights[j] = t0 - r * t1


@compiled
def mixture_slopes(A: Any, weights: Any, slopes: Any, K: Any, by_q: Any, by_weights: Any) -> None:
    """K, ∂K/∂q and Σ_s slopes_s ∂K/∂weights_s of a block of amplitude one, at all pairs."""
    wide()
    n, d = A.shape
    aT, q = np.ascontiguousarray(A.T), np.empty(n)
    w, v = _powers(weights, 1.0), _powers(slopes, 1.0)
    for i in range(n):
        _distances(A[i], aT, 0, q)
        _slopes(q, w, v, 1.0 / d, K[i], by_q[i], by_weights[i])


@compiled
def mixture_weigh(Q: Any, c: float, weights: Any, slopes: Any, G: Any) -> Any:
    """As :func:`mixture_pull_back`, from all squared distances Q; these become G_ij ∂k/∂q_ij.

    Of all matrices the part above the diagonal is read and written. c is 1/d.
    """
    wide()
    n = len(Q)
    w, v = _powers(weights, 1.0), _powers(slopes, 1.0)
    k, by_q, by_weights = np.empty(n), np.empty(n), np.empty(n)
    value, slope = 0.0, 0.0
    for i in range(n):
        q, g, h = Q[i, i + 1 :], G[i, i + 1 :], k[: n - 1 - i]
        weight, u = by_q[: len(g)], by_weights[: len(g)]
        for j in range(len(q)):
            q[j] = max(q[j], 0.0)
        _slopes(q, w, v, c, h, weight, u)
        value += _dot(g, h)
        slope += _dot(g, u)
        for j in range(len(q)):
            q[j] = weight[j] * g[j]
        Q[i, i] = 0.0
    return value, slope


@njit(nogil=True, fastmath=True)
def _dot(u: Any, v: Any) -> float:
    """u·v, summed in any order."""
    wide()
    total = 0.0
    for j in range(len(u)):
        total += u[j] * v[j]
    return total


@njit(nogil=True, fastmath=True)
def _pull(weight: Any, x: float, t: Any, moved: Any) -> float:
    """Σ_j weight_j (x - t_j), of which each term is taken from moved_j."""
    wide()
    total = 0.0
    for j in range(len(t)):
        u = weight[j] * (x - t[j])
        total += u
        moved[j] -= u
    return total


@compiled
def mixture_pull_back(A: Any, weights: Any, slopes: Any, G: Any, moved: Any) -> Any:
    """Σ_{i<j} G_ij (k, Σ_s slopes_s ∂k/∂weights_s)_ij of a block of amplitude one.

    Σ_j G_ij ∂k_ij/∂q_ij (a_i - a_j) is added to ``moved``, shape (d, n), so that no gradient of all
    pairs is stored. Of the symmetric G the upper triangle is read.
    """
    wide()
    n, d = A.shape
    w, v = _powers(weights, 1.0), _powers(slopes, 1.0)
    tile = _tile(A)
    q, k, by_q, by_weights = np.empty(tile), np.empty(tile), np.empty(tile), np.empty(tile)
    value, slope = 0.0, 0.0
    for first in range(0, n, tile):
        size = min(tile, n - first)
        t, part = np.empty((d, size)), np.zeros((d, size))
        for m in range(d):
            for j in range(size):
                t[m, j] = A[first + j, m]
        for i in range(first + size - 1):
            a = max(i + 1 - first, 0)
            g = G[i, first + a : first + size]
            h, weight, u = k[: len(g)], by_q[: len(g)], by_weights[: len(g)]
            _distances(A[i], t, a, q)
            _slopes(q, w, v, 1.0 / d, h, weight, u)
            value += _dot(g, h)
            slope += _dot(g, u)
            for j in range(len(g)):
                weight[j] *= g[j]
            for m in range(d):
                moved[m, i] += _pull(weight, A[i, m], t[m, a:], part[m, a:])
        for m in range(d):
            for j in range(size):
                moved[m, first + j] += part[m, j]
    return value, slope
