"""Subtract rows from a triangular factor of a Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array

LEAST_PIVOT = 1e-10  # of a triangle that is divided by, over its largest: below, digits are lost


def downdated(R: Array, rows: Array) -> Array | None:
    r"""The triangle :math:`\tilde R` with :math:`\tilde R^\top\tilde R = R^\top R - S^\top S`.

    With P = R⁻ᵀSᵀ it is CR, where CᵀC = I - PPᵀ; ``None`` if rounding would leave few digits.
    """
    diagonal = np.abs(R.diagonal())
    if diagonal.min() <= LEAST_PIVOT * diagonal.max():
        return None
    P = solve_triangular(R, rows.T, trans="T")
    try:
        C = np.linalg.cholesky(np.eye(len(R)) - P @ P.T).T
    except np.linalg.LinAlgError:
        return None
    return np.triu(C @ R) if C.diagonal().min() > np.sqrt(LEAST_PIVOT) else None
