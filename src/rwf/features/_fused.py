"""Fused loops that fill blocks of features: coordinates, profile, factor in one visit per entry.

Arithmetic is in double precision and stays in buffers that fit the first-level cache: columns are
taken some hundred at a time, for all rows, so that their atoms stay there too. Only the result is
stored, in the precision of ``out``: a vector of memory in which rows stand ``stride`` apart, so
that a block of columns can be filled in place within a wider matrix. Profiles are told apart by a
code outside the inner loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from rwf.features._fused_math import FAST, compiled, cos_sin, exp, wide
from rwf.features.atoms import HAT, SQUARED_DISTANCE
from rwf.wavelets.base import TAIL

MORLET, COMPLEX_MORLET, EDGE = 0, 1, 2  # formulas of :func:`oriented`
TILE_ENTRIES = 2048  # coordinates taken at a time: half of a first-level cache of 32 KiB


@njit(inline="always")
def _tile(X: Any) -> int:
    """Columns taken at a time, so that their shifts stay in the cache for all rows."""
    return TILE_ENTRIES // X.shape[1] + 64


@njit(inline="always", fastmath=FAST)
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


@njit(inline="always", fastmath=FAST)
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


@njit(inline="always", fastmath=FAST)
def _phases(x: Any, wT: Any, p: Any) -> None:
    """p_j = w_j·x."""
    d, m = wT.shape
    for j in range(m):
        p[j] = x[0] * wT[0, j]
    for k in range(1, d):
        for j in range(m):
            p[j] += x[k] * wT[k, j]


@njit(inline="always", fastmath=FAST)
def _copy(source: Any, out: Any) -> None:
    """out = source: an assignment of arrays takes seconds to compile, for its error messages."""
    for j in range(len(out)):
        out[j] = source[j]


@njit(inline="always", fastmath=FAST)
def _hats(q: Any, work: Any, factor: Any, profile: Any, out: Any) -> None:
    """out_j = factor_j f(q_j): the hat (1 - cq)e^(-q/2), or the compact hat of this order."""
    kind, c, order = profile
    if kind == HAT:
        for j in range(len(factor)):
            z = factor[j] * (1.0 - c * q[j]) * exp(-0.5 * min(q[j], TAIL))
            out[j] = z if q[j] <= TAIL else 0.0
    else:
        narrow = 1.0 / (2.0 * order)
        for j in range(len(factor)):
            h = max(1.0 - q[j] * narrow, 0.0)
            work[j] = factor[j] * (1.0 - c * q[j]) if h > 0.0 else 0.0
            q[j] = h
        for _ in range(order - 2):
            for j in range(len(factor)):
                work[j] *= q[j]
        for j in range(len(factor)):
            out[j] = work[j]


@compiled
def radial(X: Any, tT: Any, inverse: Any, factor: Any, profile: Any, out: Any, stride: int) -> None:
    """out_ij = factor_j f(q_ij): q itself, or a profile of it."""
    wide()
    tile = _tile(X)
    q, work = np.empty(tile), np.empty(tile)
    for a in range(0, tT.shape[1], tile):
        b = min(a + tile, tT.shape[1])
        t = np.ascontiguousarray(tT[:, a:b])
        for i in range(X.shape[0]):
            _squared_distances(X[i], t, inverse[a:b], q)
            row = out[i * stride + a : i * stride + b]
            if profile[0] == SQUARED_DISTANCE:
                _copy(q, row)
            else:
                _hats(q, work, factor[a:b], profile, row)


@compiled
def oriented(
    X: Any, tT: Any, eT: Any, inverse: Any, factor: Any, kind: int, w: float, out: Any, stride: int
) -> None:
    """out_ij = factor_j f(q_ij, p_ij): Morlet, complex Morlet (cosines, then sines), or edge."""
    wide()
    m = tT.shape[1]
    tile = _tile(X)
    q, p = np.empty(tile), np.empty(tile)
    offset = np.exp(-0.5 * w * w)
    for a in range(0, m, tile):
        b = min(a + tile, m)
        t = np.ascontiguousarray(tT[:, a:b])
        e = np.ascontiguousarray(eT[:, a:b])
        f = factor[a:b]
        for i in range(X.shape[0]):
            _squared_distances(X[i], t, inverse[a:b], q)
            _projections(X[i], t, e, inverse[a:b], p)
            row = out[i * stride + a : i * stride + b]
            for j in range(b - a):
                envelope = f[j] * exp(-0.5 * min(q[j], TAIL))
                q[j] = envelope if q[j] <= TAIL else 0.0
            if kind == EDGE:
                for j in range(b - a):
                    row[j] = q[j] * p[j]
            elif kind == MORLET:
                for j in range(b - a):
                    row[j] = q[j] * (cos_sin(w * p[j])[0] - offset) if q[j] != 0.0 else 0.0
            else:
                sines = out[i * stride + m + a : i * stride + m + b]
                for j in range(b - a):
                    cosine, sine = cos_sin(w * p[j])
                    row[j] = q[j] * (cosine - offset) if q[j] != 0.0 else 0.0
                    sines[j] = q[j] * sine if q[j] != 0.0 else 0.0


@compiled
def ridge(
    X: Any, tT: Any, wT: Any, inverse: Any, factor: Any, profile: Any, out: Any, stride: int
) -> None:
    """out_ij = factor_j f(p_ij²) with p = w_j·(x - t_j)/s_j and f as in :func:`radial`, or p."""
    wide()
    tile = _tile(X)
    q, work = np.empty(tile), np.empty(tile)
    for a in range(0, tT.shape[1], tile):
        b = min(a + tile, tT.shape[1])
        t = np.ascontiguousarray(tT[:, a:b])
        w = np.ascontiguousarray(wT[:, a:b])
        for i in range(X.shape[0]):
            _projections(X[i], t, w, inverse[a:b], q)
            row = out[i * stride + a : i * stride + b]
            if profile[0] == SQUARED_DISTANCE:
                _copy(q, row)
            else:
                for j in range(b - a):
                    q[j] *= q[j]
                _hats(q, work, factor[a:b], profile, row)


@compiled
def tensor_table(
    X: Any, tT: Any, inverse: Any, factor: Any, table: Any, step: float, left: float, out: Any,
    stride: int,
) -> None:  # fmt: skip
    """out_ij = factor_j Π_k ψ₁(u_k), ψ₁ interpolated linearly in a table and zero outside it."""
    n, d = X.shape
    m, last, per_step = tT.shape[1], len(table) - 1, 1.0 / step
    for i in range(n):
        row = out[i * stride : i * stride + m]
        for j in range(m):
            z = factor[j]
            for k in range(d):
                position = ((X[i, k] - tT[k, j]) * inverse[j] - left) * per_step
                if position < 0.0 or position >= last:
                    z = 0.0
                    break
                cell = int(position)
                z *= table[cell] + (position - cell) * (table[cell + 1] - table[cell])
            row[j] = z


@compiled
def tensor_haar(X: Any, tT: Any, inverse: Any, factor: Any, out: Any, stride: int) -> None:
    """out_ij = factor_j Π_k (±1 on the two halves of [-½, ½), zero outside)."""
    wide()
    tile = _tile(X)
    z = np.empty(tile)
    for a in range(0, tT.shape[1], tile):
        b = min(a + tile, tT.shape[1])
        t = np.ascontiguousarray(tT[:, a:b])
        v = inverse[a:b]
        for i in range(X.shape[0]):
            _copy(factor[a:b], z[: b - a])
            for k in range(X.shape[1]):
                x = X[i, k]
                for j in range(b - a):
                    u = (x - t[k, j]) * v[j]
                    half = 1.0 if u < 0.0 else -1.0
                    z[j] *= half if u >= -0.5 and u < 0.5 else 0.0
            _copy(z, out[i * stride + a : i * stride + b])


@compiled
def fourier(X: Any, wT: Any, factor: float, out: Any, stride: int) -> None:
    """out = factor · [cos Xw, sin Xw]."""
    wide()
    m = wT.shape[1]
    tile = _tile(X)
    p = np.empty(tile)
    for a in range(0, m, tile):
        b = min(a + tile, m)
        w = np.ascontiguousarray(wT[:, a:b])
        for i in range(X.shape[0]):
            _phases(X[i], w, p)
            cosines = out[i * stride + a : i * stride + b]
            sines = out[i * stride + m + a : i * stride + m + b]
            for j in range(b - a):
                cosine, sine = cos_sin(p[j])
                cosines[j] = factor * cosine
                sines[j] = factor * sine
