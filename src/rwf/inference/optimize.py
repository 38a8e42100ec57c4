"""Maxima of smooth functions within bounds, by L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize

from rwf._types import Array

Objective = Callable[[Array], tuple[float, Array]]  # x ↦ (f(x), ∇f(x))


@dataclass(frozen=True)
class Maximum:
    """A local maximum, and what it took to find it."""

    x: Array  # the highest point found, shape (k,)
    value: float  # f(x)
    iterations: int  # steps taken
    evaluations: int  # how often f and its gradient were computed


def maximize(
    objective: Objective,
    start: Array,
    bounds: Array,
    *,
    max_iter: int,
    ftol: float,
    gtol: float,
    corrections: int,
) -> Maximum:
    """A local maximum near the start, which is first moved into the bounds, shape (k, 2).

    L-BFGS stops when a step gains less than ``ftol``, relative to the value, or no entry of the
    gradient exceeds ``gtol``; ``corrections`` is its memory in steps.
    """
    low, high = bounds.T

    def descent(x: Array) -> tuple[float, Array]:
        value, gradient = objective(x)
        return -value, -gradient

    result = minimize(
        descent,
        np.clip(start, low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options={"maxiter": max_iter, "maxcor": corrections, "ftol": ftol, "gtol": gtol},
    )
    return Maximum(result.x, -float(result.fun), int(result.nit), int(result.nfev))
