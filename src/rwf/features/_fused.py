"""Fused loops that fill blocks of features: coordinates, profile, factor in one visit per entry.

Arithmetic is in double precision and stays in one row-sized buffer; only the result is stored, in
the precision of ``out``. exp, sin and cos are polynomials without branches, because a call to libm
would stop the compiler from using vector instructions. Profiles are told apart by a code outside
the inner loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

SQUARED_DISTANCE, HAT, COMPACT_HAT = 0, 1, 2
MORLET, COMPLEX_MORLET, EDGE = 0, 1, 2

# All but reassociation, which would undo the two-part range reduction of sin and cos.
_FAST = {"contract", "nnan", "ninf", "nsz", "arcp"}


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call; keep the machine code on disk where a cache directory is writable."""
    options: dict[str, Any] = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no writable cache directory
        return njit(**options)(function)


@intrinsic
def _float_of_bits(context: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@njit(inline="always", fastmath=_FAST)
def _exp(x: float) -> float:
    """e^x for -700 < x <= 0: 2^k by its bits times a polynomial on |f| <= ln(2)/2."""
    k = np.int32(x * 1.4426950408889634 - 0.5)
    f = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.0 / 479001600
    p = p * f + 1.0 / 39916800
    p = p * f + 1.0 / 3628800
    p = p * f + 1.0 / 362880
    p = p * f + 1.0 / 40320
    p = p * f + 1.0 / 5040
    p = p * f + 1.0 / 720
    p = p * f + 1.0 / 120
    p = p * f + 1.0 / 24
    p = p * f + 1.0 / 6
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    return p * _float_of_bits((np.int64(k) + 1023) << 52)


@njit(inline="always", fastmath=_FAST)
def _cos_sin(x: float) -> tuple[float, float]:
    """cos x and sin x for |x| < 1e8: reduction by quarter turns, then Taylor on |r| <= π/4."""
    k = np.int32(x * 0.6366197723675814 + (0.5 if x >= 0 else -0.5))
    r = x - k * 1.5707963267341256 - k * 6.077100506303966e-11 - k * 2.0222662487959506e-21
    z = r * r
    c = 1.0 / 20922789888000
    c = c * z - 1.0 / 87178291200
    c = c * z + 1.0 / 479001600
    c = c * z - 1.0 / 3628800
    c = c * z + 1.0 / 40320
    c = c * z - 1.0 / 720
    c = c * z + 1.0 / 24
    c = c * z - 0.5
    c = c * z + 1.0
    s = -1.0 / 1307674368000
    s = s * z + 1.0 / 6227020800
    s = s * z - 1.0 / 39916800
    s = s * z + 1.0 / 362880
    s = s * z - 1.0 / 5040
    s = s * z + 1.0 / 120
    s = s * z - 1.0 / 6
    s = (s * z + 1.0) * r
    odd = (k & 1) == 1
    cosine = s if odd else c
    sine = c if odd else s
    cosine = -cosine if ((k + 1) & 2) == 2 else cosine
    sine = -sine if (k & 2) == 2 else sine
    return cosine, sine


@njit(inline="always", fastmath=_FAST)
def _squared_distances(x: Any, tT: Any, inverse: Any, q: Any) -> None:
    """q_j = ‖x - t_j‖² / s_j², by differences, which keep their digits for small scales."""
    d, m = tT.shape
    for j in range(m):
        u = x[0] - tT[0, j]
        q[j] = u * u
    for k in range(1, d):
        for j in range(m):
            u = x[k] - tT[k, j]
            q[j] += u * u
    for j in range(m):
        q[j] *= inverse[j] * inverse[j]


@njit(inline="always", fastmath=_FAST)
def _projections(x: Any, tT: Any, eT: Any, inverse: Any, p: Any) -> None:
    """p_j = e_j·(x - t_j) / s_j."""
    d, m = tT.shape
    for j in range(m):
        p[j] = (x[0] - tT[0, j]) * eT[0, j]
    for k in range(1, d):
        for j in range(m):
            p[j] += (x[k] - tT[k, j]) * eT[k, j]
    for j in range(m):
        p[j] *= inverse[j]


@_compiled
def radial(
    X: Any,
    tT: Any,
    inverse: Any,
    factor: Any,
    kind: int,
    c: float,
    order: int,
    tail: float,
    out: Any,
) -> None:
    """out_ij = factor_j f(q_ij): q itself, (1 - cq)e^(-q/2), or the compact hat of this order."""
    n, m = X.shape[0], tT.shape[1]
    q = np.empty(m)
    for i in range(n):
        _squared_distances(X[i], tT, inverse, q)
        if kind == SQUARED_DISTANCE:
            for j in range(m):
                out[i, j] = q[j]
        elif kind == HAT:
            for j in range(m):
                z = factor[j] * (1.0 - c * q[j]) * _exp(-0.5 * min(q[j], tail))
                out[i, j] = z if q[j] <= tail else 0.0
        else:
            for j in range(m):
                h = max(1.0 - q[j] / (2.0 * order), 0.0)
                z = factor[j] * (1.0 - c * q[j])
                for _ in range(order - 2):
                    z *= h
                out[i, j] = z if h > 0.0 else 0.0


@_compiled
def oriented(
    X: Any, tT: Any, eT: Any, inverse: Any, factor: Any, kind: int, w: float, tail: float, out: Any
) -> None:
    """out_ij = factor_j f(q_ij, p_ij): Morlet, complex Morlet (cosines, then sines), or edge."""
    n, m = X.shape[0], tT.shape[1]
    q, p = np.empty(m), np.empty(m)
    offset = np.exp(-0.5 * w * w)
    for i in range(n):
        _squared_distances(X[i], tT, inverse, q)
        _projections(X[i], tT, eT, inverse, p)
        if kind == EDGE:
            for j in range(m):
                z = factor[j] * p[j] * _exp(-0.5 * min(q[j], tail))
                out[i, j] = z if q[j] <= tail else 0.0
        else:
            for j in range(m):
                envelope = factor[j] * _exp(-0.5 * min(q[j], tail))
                cosine, sine = _cos_sin(w * p[j])
                out[i, j] = envelope * (cosine - offset) if q[j] <= tail else 0.0
                if kind == COMPLEX_MORLET:
                    out[i, m + j] = envelope * sine if q[j] <= tail else 0.0


@_compiled
def ridge(
    X: Any,
    tT: Any,
    wT: Any,
    inverse: Any,
    factor: Any,
    kind: int,
    c: float,
    order: int,
    tail: float,
    out: Any,
) -> None:
    """out_ij = factor_j f(p_ij²) with p = w_j·(x - t_j)/s_j.

    Profiles are those of :func:`radial`, or p itself.
    """
    n, m = X.shape[0], tT.shape[1]
    p = np.empty(m)
    for i in range(n):
        _projections(X[i], tT, wT, inverse, p)
        if kind == SQUARED_DISTANCE:
            for j in range(m):
                out[i, j] = p[j]
        elif kind == HAT:
            for j in range(m):
                q = p[j] * p[j]
                z = factor[j] * (1.0 - c * q) * _exp(-0.5 * min(q, tail))
                out[i, j] = z if q <= tail else 0.0
        else:
            for j in range(m):
                q = p[j] * p[j]
                h = max(1.0 - q / (2.0 * order), 0.0)
                z = factor[j] * (1.0 - c * q)
                for _ in range(order - 2):
                    z *= h
                out[i, j] = z if h > 0.0 else 0.0


@_compiled
def tensor_table(
    X: Any, tT: Any, inverse: Any, factor: Any, table: Any, step: float, left: float, out: Any
) -> None:
    """out_ij = factor_j Π_k ψ₁(u_k), ψ₁ interpolated linearly in a table and zero outside it."""
    n, d = X.shape
    m, last = tT.shape[1], len(table) - 1
    for i in range(n):
        for j in range(m):
            z = factor[j]
            for k in range(d):
                position = ((X[i, k] - tT[k, j]) * inverse[j] - left) / step
                if position < 0.0 or position >= last:
                    z = 0.0
                    break
                cell = int(position)
                z *= table[cell] + (position - cell) * (table[cell + 1] - table[cell])
            out[i, j] = z


@_compiled
def tensor_haar(X: Any, tT: Any, inverse: Any, factor: Any, out: Any) -> None:
    """out_ij = factor_j Π_k (±1 on the two halves of [-½, ½), zero outside)."""
    n, d = X.shape
    m = tT.shape[1]
    for i in range(n):
        for j in range(m):
            z = factor[j]
            for k in range(d):
                u = (X[i, k] - tT[k, j]) * inverse[j]
                if u < -0.5 or u >= 0.5:
                    z = 0.0
                    break
                if u >= 0.0:
                    z = -z
            out[i, j] = z


@_compiled
def fourier(X: Any, wT: Any, factor: float, out: Any) -> None:
    """out = factor · [cos Xw, sin Xw]."""
    n, d = X.shape
    m = wT.shape[1]
    p = np.empty(m)
    for i in range(n):
        for j in range(m):
            p[j] = X[i, 0] * wT[0, j]
        for k in range(1, d):
            for j in range(m):
                p[j] += X[i, k] * wT[k, j]
        for j in range(m):
            cosine, sine = _cos_sin(p[j])
            out[i, j] = factor * cosine
            out[i, m + j] = factor * sine
