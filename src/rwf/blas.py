"""The routines of BLAS and LAPACK that carry the cost, in place and with Python's lock released.

scipy's own wrappers hold the lock, so that two threads take turns at them. The same routines, by
the addresses that scipy exports for Cython, run side by side.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from rwf.types import Array


@cache
def _routine(name: str) -> Callable[..., None]:
    """A routine of scipy's BLAS or LAPACK; its arguments are pointers, as in Fortran."""
    from scipy.linalg import cython_blas, cython_lapack

    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    exported = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}[name]
    signature = name_of(exported)
    assert signature is not None
    arguments = [ctypes.c_void_p] * (signature.count(b",") + 1)
    return ctypes.CFUNCTYPE(None, *arguments)(address_of(exported, signature))


def call(name: str, *arguments: str | int | float | Array) -> int:
    """Call a routine with values; the result is what LAPACK calls ``info``, if it has one."""
    pointers: list[object] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            pointers.append(value.ctypes.data)
        elif isinstance(value, str):
            pointers.append(ctypes.byref(ctypes.c_char(value.encode())))
        elif isinstance(value, int):
            pointers.append(ctypes.byref(ctypes.c_int(value)))
        else:
            pointers.append(ctypes.byref(ctypes.c_double(value)))
    info = ctypes.c_int(0)
    if name in {"dpotrf", "dpotri", "dtrtri"}:
        pointers.append(ctypes.byref(info))
    _routine(name)(*pointers)
    return info.value


def add_gram(G: Array, Z: Array) -> None:
    """Add ZᵀZ to the upper triangle of G, in Fortran's order; Z has shape (n, p), in C's order."""
    n, p = Z.shape
    assert G.flags.f_contiguous
    assert Z.flags.c_contiguous
    if n and p:
        call("dsyrk", "U", "N", p, n, 1.0, Z, p, 1.0, G, p)


def whiten_rows(L: Array, Z: Array) -> None:
    """Replace every row z of Z, in C's order, by L⁻¹z; L is a lower triangle in Fortran's order."""
    n, p = Z.shape
    assert L.flags.f_contiguous
    assert Z.flags.c_contiguous
    if n and p:
        call("dtrsm", "L", "L", "N", "N", p, n, 1.0, L, p, Z, p)


def lower_cholesky(M: Array) -> Array | None:
    """L of a symmetric M = LLᵀ, in Fortran's order, or ``None`` if there is none."""
    L = np.array(M)
    L = L if L.flags.f_contiguous else np.ascontiguousarray(L).T  # M = Mᵀ
    if len(L) and call("dpotrf", "L", len(L), L, len(L)) != 0:
        return None
    return _lower(L)


def cholesky_inverse(L: Array) -> Array:
    """(LLᵀ)⁻¹, in Fortran's order."""
    inverse = np.array(L, order="F")
    if len(L):
        call("dpotri", "L", len(L), inverse, len(L))
    inverse = _lower(inverse)
    inverse += np.tril(inverse, -1).T
    return inverse


def lower_inverse(L: Array) -> Array:
    """L⁻¹ of a lower triangle, in Fortran's order."""
    inverse = np.array(L, order="F")
    if len(L):
        call("dtrtri", "L", "N", len(L), inverse, len(L))
    return _lower(inverse)


def _lower(A: Array) -> Array:
    """The same array with zeros above its diagonal."""
    for j in range(1, len(A)):
        A[:j, j] = 0.0
    return A
