r"""Averages over a box of shifts, in closed form, for wavelets with a Gaussian envelope.

With the middle c = (½(x + y) - t)/s of a pair and half its gap δ = (x - y)/2s, so that the two
arguments of ψ are u = c + δ and v = c - δ,

.. math:: e^{-\|u\|^2/2}\, e^{-\|v\|^2/2} = e^{-\|\delta\|^2}\, \prod_k e^{-c_k^2},

and the average over t is made of one-dimensional integrals of :math:`c^j e^{-c^2}` for polynomials
and of :math:`e^{iac} e^{-c^2}` for waves: error functions of real and complex argument.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, wofz

from rwf._types import Array
from rwf.kernels.expected.laws import Boxes
from rwf.kernels.expected.pairs import Pairs
from rwf.kernels.expected.quadrature import directions
from rwf.kernels.expected.waves import mean_wave
from rwf.wavelets import ComplexMorlet, GaussianDerivative, MexicanHat, Morlet, Wavelet


def average_over_boxes(wavelet: Wavelet, boxes: Boxes, pairs: Pairs, s: float, order: int) -> Array:
    """E[ψ((x-t)/s)ψ((y-t)/s)] over boxes of shifts t, and over directions."""

    def over_box(x: Array, y: Array, low: Array, high: Array) -> Array:
        gap, middle = (x - y) / (2 * s), (x + y) / 2
        start, end = (middle - high) / s, (middle - low) / s
        if isinstance(wavelet, MexicanHat):
            inner = _hats(wavelet.curvature(len(low)), gap, start, end)
        elif isinstance(wavelet, GaussianDerivative):
            inner = _edges(gap, start, end)
        else:
            assert isinstance(wavelet, Morlet)
            inner = _waves(wavelet, gap, start, end, order)
        product: Array = np.exp(-np.sum(gap**2, axis=-1)) * inner
        return product

    def average(x: Array, y: Array) -> Array:
        return boxes.average(lambda low, high: over_box(x, y, low, high))

    return pairs.each(average, work=pairs.A.shape[1])


def _moments(start: Array, end: Array, count: int) -> list[Array]:
    """Averages of c^j e^(-c²) over intervals, for j = 0 … count - 1."""
    fall_start, fall_end = np.exp(-(start**2)), np.exp(-(end**2))
    integrals = [np.sqrt(np.pi) / 2 * (erf(end) - erf(start)), (fall_start - fall_end) / 2]
    for j in range(2, count):  # by parts: c^(j-1) · c e^(-c²)
        ends = start ** (j - 1) * fall_start - end ** (j - 1) * fall_end
        integrals.append(((j - 1) * integrals[j - 2] + ends) / 2)
    return [integral / (end - start) for integral in integrals]


def _hats(curvature: float, gap: Array, start: Array, end: Array) -> Array:
    """Of (1 - κ‖u‖²)(1 - κ‖v‖²), multiplied out one axis after the other."""
    one, c1, c2, _, c4 = _moments(start, end, 5)
    u2 = c2 + 2 * gap * c1 + gap**2 * one
    v2 = c2 - 2 * gap * c1 + gap**2 * one
    u2v2 = c4 - 2 * gap**2 * c2 + gap**4 * one
    # Averages of 1, ‖u‖², ‖v‖² and ‖u‖²‖v‖² over the axes so far.
    N, U, V, W = one[..., 0], u2[..., 0], v2[..., 0], u2v2[..., 0]
    for k in range(1, gap.shape[-1]):
        o, u, v, w = one[..., k], u2[..., k], v2[..., k], u2v2[..., k]
        N, U, V, W = N * o, U * o + N * u, V * o + N * v, W * o + U * v + V * u + N * w
    hats: Array = N - curvature * (U + V) + curvature**2 * W
    return hats


def _edges(gap: Array, start: Array, end: Array) -> Array:
    """Of (e·u)(e·v), whose average over directions is u·v/d."""
    one, _, c2 = _moments(start, end, 3)
    uv = c2 - gap**2 * one
    d = gap.shape[-1]
    others = [np.prod(np.delete(one, k, axis=-1), axis=-1) for k in range(d)]
    total = sum((uv[..., k] * others[k] for k in range(d)), np.zeros(()))
    return np.asarray(total / d)


def _waves(wavelet: Morlet, gap: Array, start: Array, end: Array, order: int) -> Array:
    """Of (cos ωe·u - κ)(cos ωe·v - κ), and of the sines for a complex wavelet.

    cos a cos b = ½cos(a-b) + ½cos(a+b), where a - b is free of t and a + b of the gap; the sines
    take away the second half and double the first.
    """
    w, offset, d = wavelet.frequency, wavelet.offset, gap.shape[-1]
    still = np.prod(_moments(start, end, 2)[0], axis=-1)
    along = still * mean_wave(2 * w * np.linalg.norm(gap, axis=-1), d)
    is_complex = isinstance(wavelet, ComplexMorlet)
    across, mixed = np.zeros_like(still), np.zeros_like(still)
    for e, weight in zip(*directions(d, order), strict=True):
        if not is_complex:
            across += weight * _wave_average(2 * w * e, start, end)
        mixed += weight * np.cos(w * gap @ e) * _wave_average(w * e, start, end)
    products = along if is_complex else (along + across) / 2
    waves: Array = products - 2 * offset * mixed + offset**2 * still
    return waves


def _wave_average(a: Array, start: Array, end: Array) -> Array:
    """Average of cos(a·c) e^(-‖c‖²) over boxes."""
    axes = (_wave_integral(a / 2, end) - _wave_integral(a / 2, start)) / (end - start)
    average: Array = np.prod(axes, axis=-1).real
    return average


def _wave_integral(b: Array, c: Array) -> NDArray[np.complex128]:
    r"""½√π e^(-b²) erf(c - ib), an antiderivative of e^(2ibc) e^(-c²).

    Written with the Faddeeva function w in its upper half plane, where it is bounded: the error
    function itself grows as e^(b²).
    """
    side = np.where(c < 0, -1.0, 1.0)
    faded = np.exp(-(c**2) + 2j * b * c) * wofz(side * b + 1j * np.abs(c))
    return cast(NDArray[np.complex128], np.sqrt(np.pi) / 2 * side * (np.exp(-(b**2)) - faded))
