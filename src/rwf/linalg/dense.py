"""Dense matrices: products in place, and triangular factors of M = I + AᵀA.

BLAS and LAPACK are called at the addresses that scipy exports for Cython: scipy's own wrappers hold
Python's lock, so that threads would wait for each other.

A factor comes from the Cholesky decomposition of a Gram matrix, or from QR where that is too
coarse. A Gram matrix holds AᵀA only to about ε·tr(AᵀA). While that is far below one, the identity
that the prior adds stands out of the rounding, and Cholesky is safe and fast. Otherwise a QR
decomposition of the rows is used, which never squares them. Jitter is added in one place, bounded,
and reported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, cast

import numpy as np
from scipy.linalg import lapack, solve_triangular

from rwf._types import Array, FloatArray
from rwf.errors import NotPositiveDefiniteError
from rwf.linalg.threads import one_blas_thread

EPSILON = float(np.finfo(np.float64).eps)

RESOLUTION = 1e-2  # rounding of a Gram matrix, over the identity, up to which Cholesky is accurate
JITTERS = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)  # in turn, over the largest diagonal entry
MANY_ROWS = 128  # from so many rows on, inverting a triangle once is faster than substitution


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
    if name in {"dpotrf", "dpotri", "spotri", "dtrtri"}:
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


def add_outer(M: Array, A: Array, scale: float = 1.0, keep: float = 1.0) -> None:
    """The lower triangle of M becomes ``keep`` times itself plus ``scale`` AAᵀ, A of shape (n, q).

    M is in Fortran's order.
    """
    n, q = A.shape
    assert M.flags.f_contiguous
    if n and q:
        call("dsyrk", "L", "N", n, q, scale, np.asfortranarray(A), n, keep, M, n)
    else:
        M *= keep


def multiply_symmetric(M: Array, A: Array) -> Array:
    """MA for a symmetric M, of which the lower triangle is read, in Fortran's order."""
    n, q = A.shape
    assert M.flags.f_contiguous
    out = np.zeros((n, q), order="F")
    if n and q:
        call("dsymm", "L", "L", n, q, 1.0, M, n, np.asfortranarray(A), n, 0.0, out, n)
    return out


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


def lower_cholesky(M: Array, jitter: float = 0.0) -> Array | None:
    """L of a symmetric M + jitter·I = LLᵀ, in Fortran's order, or ``None`` if there is none.

    Of an M in Fortran's order the lower triangle is read.
    """
    L = np.array(M)
    L = L if L.flags.f_contiguous else np.ascontiguousarray(L).T  # M = Mᵀ
    if jitter:
        L[np.diag_indices_from(L)] += jitter
    if len(L) and call("dpotrf", "L", len(L), L, len(L)) != 0:
        return None
    return _lower(L)


def cholesky_inverse(L: Array) -> Array:
    """(LLᵀ)⁻¹, in Fortran's order."""
    return mirror_lower(lower_of_inverse(L))


def lower_of_inverse(L: Array, *, single: bool = False) -> Array:
    """The lower triangle of (LLᵀ)⁻¹, in Fortran's order, in single precision if asked for."""
    inverse = np.empty(L.shape, np.float32 if single else np.float64, order="F")
    inverse[...] = L
    if len(L):
        call("spotri" if single else "dpotri", "L", len(L), cast(FloatArray, inverse), len(L))
    return np.asarray(inverse, dtype=np.float64)


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


@dataclass(frozen=True)
class Factor:
    """M = LLᵀ."""

    L: Annotated[Array, "p p"]  # lower triangle in Fortran's order, shape (p, p)
    jitter: float = 0.0  # what was added to the diagonal of M to make it positive definite

    @property
    def log_determinant(self) -> float:
        """log |M|."""
        return 2.0 * float(np.log(np.abs(np.diag(self.L))).sum())

    @cached_property
    def _lower_inverse(self) -> Array:
        # Its last bits depend on the number of threads, and what was computed within a fit, which
        # may hold BLAS to one, must equal what a saved model computes when it is loaded.
        with one_blas_thread():
            return lower_inverse(self.L)

    def whiten(self, Z: Array) -> None:
        """Replace every row z of Z, which may stand apart, by L⁻¹z.

        Many rows are multiplied by the inverse, which BLAS does twice as fast as it substitutes.
        The inverse of a triangle, unlike that of a full matrix, is as accurate as substitution.
        """
        if len(Z) < MANY_ROWS:
            whiten_rows(self.L, Z)
        else:
            multiply_lower(self._lower_inverse, Z)

    def solve(self, v: Array) -> Array:
        """M⁻¹v."""
        half = solve_triangular(self.L, v, lower=True, check_finite=False)
        return solve_triangular(self.L, half, lower=True, trans="T", check_finite=False)

    def inverse_diagonal(self) -> Array:
        """The diagonal of M⁻¹, shape (p,)."""
        inverse = self._lower_inverse
        diagonal: Array = np.einsum("ij,ij->j", inverse, inverse)
        return diagonal

    def inverse(self) -> Array:
        """M⁻¹, shape (p, p)."""
        return cholesky_inverse(self.L)


def resolvable_identity(diagonal: Array) -> float:
    """The smallest multiple of the identity that stands out of a Gram matrix with this diagonal.

    The median stands for the diagonal: a few large entries, such as a constant column with a wide
    prior, do no harm, because Cholesky's errors scale with rows and columns.
    """
    return EPSILON * len(diagonal) * float(np.median(diagonal)) / RESOLUTION


def factor_gram(G: Array) -> Factor:
    """The factor of I + G for a positive semi-definite G, which becomes I + G."""
    G[np.diag_indices_from(G)] += 1.0
    return factor_matrix(G)


def factor_matrix(M: Array) -> Factor:
    """The Cholesky factor of M, or of M with as little jitter on its diagonal as will do."""
    largest = float(M.diagonal().max(initial=0.0))
    for jitter in JITTERS:
        added = jitter * largest
        L = lower_cholesky(M, added)
        if L is not None and np.isfinite(L.diagonal()).all():
            return Factor(L, added)
    raise NotPositiveDefiniteError(
        f"a {len(M)}×{len(M)} matrix (largest diagonal entry {largest:.3g}) has no Cholesky factor "
        f"even with jitter {JITTERS[-1] * largest:.3g}. Raise the noise variance, or draw fewer "
        "atoms."
    )


def factor_rows(A: Array, *, triangular: bool = False) -> Factor:
    """The factor of I + AᵀA, for rows A of shape (n, p), which may form an upper triangle."""
    if resolvable_identity(np.einsum("ij,ij->j", A, A)) < 1.0:
        return factor_gram(A.T @ A)
    R = stack_triangle(np.eye(A.shape[1]), A, triangular=triangular)
    return Factor(np.asfortranarray((R * np.sign(np.diag(R))[:, None]).T))


def stack_triangle(top: Array, rows: Array, *, triangular: bool = False) -> Array:
    """The triangle R of a QR decomposition of [top; rows], where ``top`` is an upper triangle.

    ``triangular`` says that ``rows`` is one too, which saves two thirds of the work.
    """
    p = len(top)
    R, *_ = lapack.dtpqrt(
        p if triangular else 0,
        min(64, p),
        np.array(top, order="F"),
        np.array(rows, order="F"),
        overwrite_a=1,
        overwrite_b=1,
    )
    return np.triu(R)
