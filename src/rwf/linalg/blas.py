"""The routines of BLAS and LAPACK that carry the cost, in place and with Python's lock released.

scipy's own wrappers hold the lock, so that threads wait for each other. The addresses that scipy
exports for Cython do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from rwf._types import Array, FloatArray


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


def call(name: str, *arguments: str | int | float | FloatArray) -> int:
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
            real = ctypes.c_float if name.startswith("s") else ctypes.c_double
            pointers.append(ctypes.byref(real(value)))
    info = ctypes.c_int(0)
    if name in {"dpotrf", "dpotri", "dtrtri"}:
        pointers.append(ctypes.byref(info))
    _routine(name)(*pointers)
    return info.value


def add_gram(G: FloatArray, Z: FloatArray, keep: float = 1.0) -> None:
    """The upper triangle of G becomes ``keep`` times itself plus ZᵀZ, in the precision of both.

    G is in Fortran's order; Z has shape (n, p), and rows that may stand apart.
    """
    n, p = Z.shape
    assert G.flags.f_contiguous
    assert G.dtype == Z.dtype
    if p:
        name = "dsyrk" if Z.dtype == np.float64 else "ssyrk"
        call(name, "U", "N", p, n, 1.0, Z, _stride(Z), keep, G, p)


def multiply_rows(Z: Array, B: Array, out: Array) -> None:
    """out = ZB; both have rows that may stand apart, and B is in C's order."""
    (n, p), q = Z.shape, B.shape[1]
    assert B.flags.c_contiguous
    if n and p and q:
        call("dgemm", "N", "N", q, n, p, 1.0, B, q, Z, _stride(Z), 0.0, out, _stride(out))


def whiten_rows(L: Array, Z: Array) -> None:
    """Replace every row z of Z, which may stand apart, by L⁻¹z; L is in Fortran's order."""
    _by_triangle("dtrsm", L, Z)


def multiply_lower(T: Array, Z: Array) -> None:
    """Replace every row z of Z by Tz, for T and Z as in :func:`whiten_rows`."""
    _by_triangle("dtrmm", T, Z)


def _by_triangle(name: str, T: Array, Z: Array) -> None:
    n, p = Z.shape
    assert T.flags.f_contiguous
    if n and p:
        call(name, "L", "L", "N", "N", p, n, 1.0, T, p, Z, _stride(Z))


def _stride(Z: FloatArray) -> int:
    """How far apart the rows of Z are, in entries; those of one row are next to each other."""
    n, p = (int(size) for size in Z.shape)
    assert n == 0 or p <= 1 or Z.strides[1] == Z.itemsize
    return max(p, int(Z.strides[0]) // int(Z.itemsize), 1) if n > 1 else max(p, 1)


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
    return mirror_lower(inverse)


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


def mirror_lower(A: Array) -> Array:
    """The same array with the entries below its diagonal above it, too."""
    for j in range(1, len(A)):
        A[:j, j] = A[j, :j]
    return A
