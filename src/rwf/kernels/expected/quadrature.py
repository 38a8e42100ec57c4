"""Quadrature with positive weights: averages over an interval and over directions."""

from __future__ import annotations

import numpy as np

from rwf._types import Array

PANEL = 16  # nodes of a Gauss–Legendre panel, exact to degree 31; orders are multiples of it

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(PANEL)


def gauss(order: int) -> tuple[Array, Array]:
    """Nodes in (0, 1) and weights of an average: panels of Gauss–Legendre, ``order`` nodes in all.

    Many panels of one degree, rather than one of a high degree, converge as fast where the
    integrand has kinks, and need no eigenvalues.
    """
    panels = order // PANEL
    nodes = (np.arange(panels)[:, None] + (_NODES + 1) / 2) / panels
    return nodes.ravel(), np.tile(_WEIGHTS / (2 * panels), panels)


def directions(d: int, order: int) -> tuple[Array, Array]:
    """Unit vectors, shape (r, d), and weights of an average over the circle or the sphere.

    For functions with f(e) = f(-e), as products of two values of a wavelet are: one of e and -e
    stands for both. In one dimension e = 1.
    """
    angle = np.pi * np.arange(order) / order
    if d == 1:
        return np.ones((1, 1)), np.ones(1)
    if d == 2:
        return np.column_stack([np.cos(angle), np.sin(angle)]), np.full(order, 1 / order)
    assert d == 3
    height, weights = gauss(order)
    height, angle = (axis.ravel() for axis in np.meshgrid(2 * height - 1, angle, indexing="ij"))
    radius = np.sqrt(1 - height**2)
    unit = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])
    return unit, np.repeat(weights / order, order)
