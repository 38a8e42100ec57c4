"""Compiled loops over matrices of fronts: packing, adding and taking parts of lower triangles.

A matrix in Fortran's order is a C array of its columns, so that ``A[j, i]`` is row i of column j,
and a lower triangle has i ≥ j. Packed, its columns follow one another without the rest.
"""

from __future__ import annotations

from rwf._types import Array, IntArray
from rwf.features._fused_math import compiled


@compiled
def add_packed(C: Array, places: IntArray, size: int, packed: Array) -> None:
    """Add a lower triangle to rows and columns ``places``, ascending, of a packed one."""
    for j in range(len(places)):
        column = places[j]
        base = column * (2 * size - column - 1) // 2
        for i in range(j, len(places)):
            packed[base + places[i]] += C[j, i]


@compiled
def take_packed(packed: Array, places: IntArray, size: int, scale: Array, T: Array) -> None:
    """T + Tᵀ is the part ``places`` of a packed symmetric matrix, between scales on both sides."""
    for j in range(len(places)):
        column = places[j]
        base = column * (2 * size - column - 1) // 2
        for i in range(j, len(places)):
            T[j, i] = packed[base + places[i]] * (scale[j] * scale[i])
        T[j, j] *= 0.5


@compiled
def unpack_front(packed: Array, scale: Array, ridge: float, P: Array, C: Array) -> None:
    """The front of a leaf: its packed Gram matrix scaled on both sides, own columns apart.

    P has one line per own column, whose diagonal gains ``ridge``; C is the rest.
    """
    size, own, at = len(scale), len(P), 0
    for j in range(size):
        line = P[j] if j < own else C[j - own]
        shift = 0 if j < own else own
        for i in range(j, size):
            line[i - shift] = packed[at] * (scale[j] * scale[i])
            at += 1
        if j < own:
            line[:j] = 0.0
            line[j] += ridge


@compiled
def clear_front(ridge: float, P: Array, C: Array) -> None:
    """The front of an inner node before its children's parts are added: ``ridge`` on own ones."""
    P[:] = 0.0
    for j in range(len(P)):
        P[j, j] = ridge
    for j in range(len(C)):
        C[j, j:] = 0.0


@compiled
def extend_add(U: Array, places: IntArray, P: Array, C: Array) -> None:
    """Add a child's lower triangle to its parent's front, where its lines have their places."""
    own = len(P)
    for j in range(len(places)):
        column = places[j]
        if column < own:
            for i in range(j, len(places)):
                P[column, places[i]] += U[j, i]
        else:
            for i in range(j, len(places)):
                C[column - own, places[i] - own] += U[j, i]


@compiled
def take_lower(S: Array, places: IntArray, shift: int, out: Array) -> None:
    """The part ``places`` of a lower triangle, written from line and row ``shift`` on."""
    for j in range(len(places)):
        line, target = S[places[j]], out[shift + j]
        for i in range(j, len(places)):
            target[shift + i] = line[places[i]]


@compiled
def pack(S: Array, out: Array) -> None:
    """A lower triangle, packed."""
    at, size = 0, len(S)
    for j in range(size):
        for i in range(j, size):
            out[at] = S[j, i]
            at += 1


@compiled
def quadratic_form(packed: Array, w: Array) -> float:
    """wᵀGw of a packed symmetric G."""
    total, at = 0.0, 0
    for j in range(len(w)):
        inner = 0.5 * packed[at] * w[j]
        at += 1
        for i in range(j + 1, len(w)):
            inner += packed[at] * w[i]
            at += 1
        total += 2.0 * w[j] * inner
    return total


@compiled
def add_diagonal(packed: Array, columns: IntArray, out: Array) -> None:
    """Add the diagonal of a packed matrix to the entries ``columns`` of a vector."""
    at, size = 0, len(columns)
    for j in range(size):
        out[columns[j]] += packed[at]
        at += size - j
