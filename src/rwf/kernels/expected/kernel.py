"""The expected kernel of random wavelet features, for a wavelet and a measure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.features.wavelet import Normalization, WaveletFamily
from rwf.kernels.expected.gaussian_boxes import average_over_boxes
from rwf.kernels.expected.haar import haar_over_boxes, haar_over_points
from rwf.kernels.expected.laws import Boxes, Points, ScaleLaw, ShiftLaw, shift_law
from rwf.kernels.expected.nodes import average_over_points, tensor_over_boxes
from rwf.kernels.expected.pairs import Pairs
from rwf.kernels.expected.quadrature import PANEL
from rwf.kernels.expected.waves import morlet_over_points
from rwf.wavelets import (
    ComplexMorlet,
    GaussianDerivative,
    Haar,
    MexicanHat,
    Morlet,
    OrientedWavelet,
    TensorWavelet,
    Wavelet,
)
from rwf.wavelets.measure import Measure, Rows

MOST_NODES = 2**24  # nodes (s, t, e) beyond which the order is not doubled again, to bound the time
LENGTH_STEP = 1e-4  # step of central differences in log ℓ, whose error is about 1e-8 of the kernel


class AccuracyWarning(UserWarning):
    """The quadrature of a kernel did not converge to its tolerance."""


@dataclass(frozen=True)
class ExpectedKernel:
    r"""k(x, y) = E[z(x)ᵀz(y)] of :class:`~rwf.features.wavelet.WaveletFeatures`.

    .. math:: k(x, y) = \int c(s)^2\, \psi\!\left(\tfrac{x-t}{\ell s}\right) \cdot
        \psi\!\left(\tfrac{y-t}{\ell s}\right) p(s)\, p(t)\, p(e)\; ds\, dt\, de

    The dot sums over the columns of a complex wavelet, and e is the direction of an oriented one.
    The average over each variable is exact or by quadrature:

    - shifts: a finite sum for ``Rows()``, in any dimension. For ``Box()``, in at most three, a
      closed form for Mexican hats, Morlet wavelets, Gaussian derivatives and Haar, else
      Gauss–Legendre quadrature. For ``Hull()``, in one, a mixture of intervals and points. Other
      samplers are refused: draw many shifts, and pass them as ``rows`` with ``Rows()``.
    - directions: in closed form for points, else by quadrature over the circle or the sphere.
    - log s: Gauss–Legendre quadrature; in closed form for Haar at points.

    Orders are doubled until no entry changes by more than ``tolerance`` times the largest k(x, x)
    at the rows, or times the largest entry; otherwise there is a warning. ``tolerance=None`` is
    1e-8 for wavelets with a closed form, and 1e-5 for others, which have kinks. The last change
    estimates the error; for db2, the roughest, it can be three times too small. Most kernels of
    fifty rows take a fraction of a second; in a box, Morlet wavelets with d > 1 and db2 take tens.

    Args:
        wavelet: ψ.
        measure: p(s, t).
        rows: reference rows of the shifts, shape (n, d).
        lengths: ℓ, one number or shape (d,).
        normalization: "peak", ψ as written, or "energy", unit L² norm for every atom.
        tolerance: relative accuracy, or ``None``.
    """

    wavelet: Wavelet
    measure: Measure
    rows: Array
    lengths: float | Array = 1.0
    normalization: Normalization = "peak"
    tolerance: float | None = None

    def __post_init__(self) -> None:
        shape = np.shape(self.rows)
        if len(shape) != 2 or 0 in shape or not np.isfinite(self.rows).all():
            raise ValueError(f"rows of shape {shape}: give finite reference rows of shape (n, d).")
        d = shape[1]
        if np.shape(self.lengths) not in ((), (d,)) or not np.all(
            np.isfinite(self.lengths) & (np.asarray(self.lengths) > 0)
        ):
            raise ValueError(f"lengths={self.lengths!r}: give one positive number, or {d} of them.")
        if self.normalization not in ("peak", "energy"):
            raise ValueError(
                f"normalization={self.normalization!r} is unknown: use 'peak' or 'energy'."
            )
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"tolerance={self.tolerance}: give a positive number, or None.")
        most = 3 if type(self.measure.shifts) is Rows else 2
        own = isinstance(self.wavelet, OrientedWavelet) and not self._has_closed_form
        if own and d > most:
            raise ValueError(
                f"{type(self.wavelet).__name__} in {d} dimensions: a custom oriented wavelet "
                "has an exact kernel in at most three with shifts=Rows(), and in two with a Box(). "
                "Use fewer columns, or a radial wavelet."
            )
        assert self._law  # raises for shifts that have no exact kernel

    @classmethod
    def of(cls, family: WaveletFamily, rows: Array, tolerance: float | None = None) -> Self:
        """The expected kernel of the features that a family draws on these rows."""
        return cls(
            family.wavelet,
            family.measure,
            rows,
            family.length_scale,
            family.normalization,
            tolerance,
        )

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        """k at all pairs of rows, shape (n, m)."""
        return self._converged(self._pairs(X, Y, every=True))[0]

    def diagonal(self, X: ArrayLike) -> Array:
        """k(x, x) at each row, shape (n,)."""
        return self._converged(self._pairs(X, None, every=False))[0]

    def paired(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """k(x, y) at each row of X with the same row of Y, shape (n,)."""
        return self._converged(self._pairs(X, Y, every=False))[0]

    def slopes(self, X: ArrayLike, by: Array) -> tuple[Array, Array]:
        """k at all pairs of rows, and its derivatives by log ℓ in directions ``by``, shape (p, d).

        Both ends of a central difference use the order at which k converged: it is smooth in ℓ.
        """
        K, order = self._converged(self._pairs(X, None, every=True))
        slopes = np.empty((*K.shape, len(by)))
        for j, direction in enumerate(by):
            ends = []
            for step in (LENGTH_STEP, -LENGTH_STEP):
                moved = replace(self, lengths=self.lengths * np.exp(step * direction))
                ends.append(moved._at(moved._pairs(X, None, every=True), order))
            slopes[..., j] = (ends[0] - ends[1]) / (2 * LENGTH_STEP)
        return K, slopes

    @property
    def _lengths(self) -> Array:
        return np.broadcast_to(np.asarray(self.lengths, dtype=np.float64), self.rows.shape[1:])

    @cached_property
    def _law(self) -> ShiftLaw:
        rows = np.asarray(self.rows, dtype=np.float64)
        return shift_law(self.measure.shifts, rows, self._lengths, self.measure.low)

    @cached_property
    def _scales(self) -> ScaleLaw:
        low, high, d = self.measure.low, self.measure.high, self.rows.shape[1]
        if self.normalization == "peak":
            return ScaleLaw(low, high, 1.0, 0)
        height = 1 / (np.prod(self._lengths) * self.wavelet.energy(d))
        return ScaleLaw(low, high, float(height), d)

    @property
    def _has_closed_form(self) -> bool:
        # A subclass may have another formula.
        closed = (MexicanHat, Morlet, ComplexMorlet, GaussianDerivative, Haar)
        return type(self.wavelet) in closed

    def _pairs(self, X: ArrayLike, Y: ArrayLike | None, *, every: bool) -> Pairs:
        """Rows divided by ℓ."""
        A = self._scaled(X)
        B = A if Y is None else self._scaled(Y)
        if not every and len(A) != len(B):
            raise ValueError(f"{len(A)} rows cannot be paired with {len(B)}: give as many.")
        return Pairs(A, B, every)

    def _scaled(self, X: ArrayLike) -> Array:
        rows = np.asarray(X, dtype=np.float64)
        d = self.rows.shape[1]
        if rows.ndim != 2 or rows.shape[1] != d or not len(rows) or not np.isfinite(rows).all():
            raise ValueError(f"X of shape {rows.shape}: give finite rows of shape (n, {d}).")
        return rows / self._lengths

    @cached_property
    def _size(self) -> float:
        """The largest k(x, x) at some rows, approximately."""
        some = np.asarray(self.rows)[:: max(1, len(self.rows) // 64)]
        return float(self._at(self._pairs(some, None, every=False), 2 * PANEL).max())

    def _converged(self, pairs: Pairs) -> tuple[Array, int]:
        """k, and the order of quadrature at which it changed by less than the tolerance."""
        tolerance = self.tolerance or (1e-8 if self._has_closed_form else 1e-5)
        order, K = PANEL, self._at(pairs, PANEL)
        while True:
            order *= 2
            finer = self._at(pairs, order)
            change, K = float(np.abs(finer - K).max()), finer
            size = max(self._size, float(np.abs(K).max()))
            if change <= tolerance * size:
                return K, order
            if self._count(2 * order) > MOST_NODES:
                break
        warnings.warn(
            f"the kernel of {type(self.wavelet).__name__} changed by {change / size:.1e} of "
            f"its size at the last doubling, more than tolerance={tolerance:.1e}. Give a larger "
            "tolerance, or a shorter range of scales.",
            AccuracyWarning,
            stacklevel=3,
        )
        return K, order

    def _at(self, pairs: Pairs, order: int) -> Array:
        """k by quadrature of one order."""
        parts = [
            self._over_boxes(law, pairs, order)
            if isinstance(law, Boxes)
            else self._over_points(law, pairs, order)
            for law in self._law
        ]
        return np.asarray(sum(parts))

    def _over_boxes(self, boxes: Boxes, pairs: Pairs, order: int) -> Array:
        w, scales = self.wavelet, self._scales
        nodes = self._nodes_per_side(boxes, order)
        if type(w) is Haar:
            return haar_over_boxes(boxes, scales, pairs, order)
        if self._has_closed_form:
            return scales.average(order, lambda s: average_over_boxes(w, boxes, pairs, s, order))
        if isinstance(w, TensorWavelet):
            return scales.average(order, lambda s: tensor_over_boxes(w, boxes, pairs, s, nodes))
        return self._over_points(boxes.points(nodes), pairs, order)

    def _over_points(self, points: Points, pairs: Pairs, order: int) -> Array:
        w, scales = self.wavelet, self._scales
        if type(w) is Haar and scales.width > 0:
            return haar_over_points(points, scales, pairs)
        if isinstance(w, Morlet) and self._has_closed_form and pairs.A.shape[1] > 1:
            return scales.average(order, lambda s: morlet_over_points(w, points, pairs, s))
        return scales.average(order, lambda s: average_over_points(w, points, pairs, s, order))

    def _nodes_per_side(self, boxes: Boxes, order: int) -> int:
        """More nodes than in s, as wavelets are rougher in t than kernels are in s."""
        d = self.rows.shape[1]
        many = 64 if isinstance(self.wavelet, TensorWavelet) else {1: 16, 2: 4, 3: 2}[d]
        return max(PANEL, many * order // len(boxes.weights) // PANEL * PANEL)

    def _count(self, order: int) -> int:
        """Nodes (s, t, e) of an order."""
        w, d = self.wavelet, self.rows.shape[1]
        oriented = isinstance(w, OrientedWavelet) and type(w) is not GaussianDerivative
        count = 0
        for law in self._law:
            shifts = len(law.weights)
            if isinstance(law, Boxes) and not self._has_closed_form:
                axes = 1 if isinstance(w, TensorWavelet) else d
                shifts *= self._nodes_per_side(law, order) ** axes
            known = isinstance(law, Points) and self._has_closed_form
            count += shifts * (order ** (d - 1) if oriented and not known else 1)
        return order * count
