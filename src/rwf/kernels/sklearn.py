"""Wavelet kernels for scikit-learn's Gaussian processes; a ``ConstantKernel`` gives a variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from rwf._types import Array
from rwf.features.inducing import HatMixture
from rwf.features.wavelet import Normalization
from rwf.kernels.expected.kernel import ExpectedKernel
from rwf.wavelets import Wavelet, as_wavelet
from rwf.wavelets.measure import Measure, ShiftSampler, as_shifts

Bounds = tuple[float, float] | Literal["fixed"] | Sequence[tuple[float, float]]
Value = tuple[Array, Array] | Array


class _WithLengths(Kernel):  # type: ignore[misc]
    """A kernel with length-scales: one for all columns, or one for each."""

    length_scale: float | ArrayLike
    length_scale_bounds: Bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        count = np.size(self.length_scale) if np.ndim(self.length_scale) else 1
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds, count)

    def _lengths(self, d: int) -> Array:
        lengths = np.asarray(self.length_scale, dtype=np.float64)
        if lengths.shape not in ((), (d,)):
            raise ValueError(
                f"length_scale of shape {lengths.shape} for {d} columns: "
                f"give one number, or {d} of them."
            )
        return np.broadcast_to(lengths, (d,))

    def _directions(self, d: int) -> Array:
        """Directions of log ℓ that the learned length-scales move in, shape (p, d)."""
        if self.hyperparameter_length_scale.fixed:
            return np.empty((0, d))
        return np.eye(d) if np.ndim(self.length_scale) else np.ones((1, d))


class WaveletKernel(_WithLengths):
    """The kernel of infinitely many random wavelet atoms, :class:`ExpectedKernel`.

    It is not stationary: there are atoms where the rows are, and fewer at their edges. The gradient
    by log ℓ is by central differences.

    Args:
        rows: reference rows of the shifts, shape (n, d); usually the training rows.
        length_scale: ℓ, one number or d of them.
        length_scale_bounds: its range in learning, or "fixed".
        wavelet: ψ, or its name.
        scales: range of s, log-uniform.
        shifts: "data", "box", "hull" (one column), or such a sampler.
        normalization: "peak" or "energy".
        tolerance: as of :class:`ExpectedKernel`.
    """

    def __init__(
        self,
        rows: ArrayLike,
        length_scale: float | ArrayLike = 1.0,
        length_scale_bounds: Bounds = (1e-5, 1e5),
        *,
        wavelet: str | Wavelet = "mexican_hat",
        scales: tuple[float, float] = (0.5, 2.0),
        shifts: str | ShiftSampler = "data",
        normalization: Normalization = "peak",
        tolerance: float | None = None,
    ) -> None:
        self.rows = rows
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
        self.wavelet = wavelet
        self.scales = scales
        self.shifts = shifts
        self.normalization = normalization
        self.tolerance = tolerance

    def expected(self) -> ExpectedKernel:
        """The kernel as a function of rows alone."""
        rows = np.asarray(self.rows, dtype=np.float64)
        return ExpectedKernel(
            as_wavelet(self.wavelet),
            Measure(*self.scales, as_shifts(self.shifts)),
            rows,
            self._lengths(rows.shape[1]),
            self.normalization,
            self.tolerance,
        )

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Value:
        kernel = self.expected()
        if not eval_gradient:
            return kernel(X, Y)
        if Y is not None:
            raise ValueError("the gradient is for all pairs of X: leave Y out.")
        return kernel.slopes(X, self._directions(kernel.rows.shape[1]))

    def diag(self, X: ArrayLike) -> Array:
        """k(x, x) at each row, shape (n,)."""
        return self.expected().diagonal(X)

    def is_stationary(self) -> bool:
        """No: k(x, y) depends on where x and y are."""
        return False


class HatKernel(StationaryKernelMixin, _WithLengths):  # type: ignore[misc]
    r"""The closed-form kernel of the Nyström prior: one block of :class:`HatMixture`, k(x, x) = 1.

    .. math:: k(x, y) = \sum_j w_j\, h(Q/s_j^2), \qquad w_j \propto s_j^{2\nu}

    Args:
        length_scale: ℓ, one number or d of them.
        length_scale_bounds: its range in learning, or "fixed".
        roughness: ν.
        roughness_bounds: its range in learning, or "fixed".
    """

    def __init__(
        self,
        length_scale: float | ArrayLike = 1.0,
        length_scale_bounds: Bounds = (1e-5, 1e5),
        roughness: float = 1.5,
        roughness_bounds: Bounds = (0.1, 10.0),
    ) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
        self.roughness = roughness
        self.roughness_bounds = roughness_bounds

    @property
    def hyperparameter_roughness(self) -> Hyperparameter:
        return Hyperparameter("roughness", "numeric", self.roughness_bounds)

    def _mixture(self, d: int) -> HatMixture:
        return HatMixture(np.zeros(1), np.log([self.roughness]), np.log(self._lengths(d))[None])

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Value:
        X = np.asarray(X, dtype=np.float64)
        d = X.shape[1]
        mixture = self._mixture(d)
        if not eval_gradient:
            return mixture(X, X if Y is None else np.asarray(Y, dtype=np.float64))
        if Y is not None:
            raise ValueError("the gradient is for all pairs of X: leave Y out.")
        from rwf.features import _fused_inducing

        K, by_q, by_roughness = (np.empty((len(X), len(X))) for _ in range(3))
        A = np.ascontiguousarray(X / self._lengths(d))
        _fused_inducing.mixture_slopes(A, *mixture.weights(0), K, by_q, by_roughness)
        by_length = -2 * by_q[..., None] * (A[:, None] - A) ** 2  # ∂Q/∂log ℓ_k = -2(a_k - a'_k)²
        slopes = [by_length @ self._directions(d).T]
        if not self.hyperparameter_roughness.fixed:
            slopes.append(by_roughness[..., None])
        return K, np.concatenate(slopes, axis=-1)

    def diag(self, X: ArrayLike) -> Array:
        """k(x, x) = 1 at each row, shape (n,)."""
        return np.ones(len(np.asarray(X)))
