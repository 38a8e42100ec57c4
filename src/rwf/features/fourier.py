r"""Random Fourier features: paired cosines and sines of a stationary kernel's spectral measure.

.. math:: z(x) = \frac{1}{\sqrt m}\left[\cos(\Omega x/\ell),\; \sin(\Omega x/\ell)\right],
    \qquad \omega_i \sim \mathcal N(0, I_d)

For a Matérn-ν kernel each frequency is multiplied by :math:`\sqrt{2\nu/\chi^2_{2\nu}}`. Pairs have
lower variance than cosines with random phases; m frequencies give 2m columns. Rahimi and Recht
(2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from rwf._types import Array, FloatArray, IntArray
from rwf.features.base import LOG_LENGTH_BOUNDS, Fills, memory, row_chunks

DEGREES_OF_FREEDOM = {"se": None, "matern12": 1, "matern32": 3, "matern52": 5}
"""2ν of each spectral measure; the squared exponential is the limit ν → ∞."""

LARGEST_PHASE = 1e8  # beyond, the fused cosines are inexact, and numpy's are used


@dataclass(frozen=True)
class FourierFeatures(Fills):
    """z(x) of m frequencies."""

    local: ClassVar[bool] = False

    frequencies: Annotated[Array, "m d"]  # ω, shape (m, d), for unit length-scales
    log_lengths: Annotated[Array, "d"]  # log ℓ, shape (d,)
    ard: bool = True  # whether every column has its own length-scale to learn

    @property
    def n_atoms(self) -> int:
        return len(self.frequencies)

    @property
    def n_features(self) -> int:
        return 2 * self.n_atoms

    def take(self, which: IntArray) -> Self:
        """Some of the frequencies."""
        return replace(self, frequencies=self.frequencies[which])

    @property
    def n_lengths(self) -> int:
        return len(self.log_lengths) if self.ard else 1

    @property
    def theta(self) -> Array:
        return self.log_lengths[: self.n_lengths]

    @property
    def bounds(self) -> Array:
        return np.array([LOG_LENGTH_BOUNDS] * self.n_lengths)

    def with_theta(self, theta: Array) -> Self:
        return replace(self, log_lengths=np.broadcast_to(theta, self.log_lengths.shape).copy())

    def into(self, X: FloatArray, out: FloatArray) -> None:
        from rwf.features import _fused

        W = self.frequencies * np.exp(-self.log_lengths)
        factor = len(W) ** -0.5
        if _reducible(X, W):
            A = np.ascontiguousarray(X, dtype=np.float64)
            _fused.fourier(A, np.ascontiguousarray(W.T), factor, *memory(out))
        else:
            P = np.asarray(X, dtype=np.float64) @ W.T
            out[:] = factor * np.hstack([np.cos(P), np.sin(P)])

    def pull_back(self, X: Array, R: Array) -> Array:
        from rwf.features import _fused_slopes

        W, m = self.frequencies * np.exp(-self.log_lengths), len(self.frequencies)
        gradient = np.zeros(X.shape[1])
        if _reducible(X, W):
            wT, moved = np.ascontiguousarray(W.T), np.zeros((X.shape[1], m))
            _fused_slopes.fourier_slopes(np.ascontiguousarray(X), wT, *memory(R), moved)
            gradient = -np.einsum("dm,dm->d", moved, wT) / np.sqrt(m)
            return gradient if self.ard else np.array([gradient.sum()])
        for rows in row_chunks(len(X), 2 * m):
            P = X[rows] @ W.T
            H = (R[rows, m:] * np.cos(P) - R[rows, :m] * np.sin(P)) / np.sqrt(m)
            gradient -= np.einsum("dm,md->d", X[rows].T @ H, W)
        return gradient if self.ard else np.array([gradient.sum()])


def _reducible(X: FloatArray, W: Array) -> bool:
    """Whether all phases are small enough for the fused cosines."""
    largest = np.abs(X).max(initial=0.0) * np.abs(W).sum(axis=1).max()
    return bool(largest < LARGEST_PHASE)


@dataclass(frozen=True)
class FourierFamily:
    """Fourier features before any frequency is drawn; kernels are in :data:`DEGREES_OF_FREEDOM`."""

    sized: ClassVar[bool] = True
    start_log_prior: ClassVar[float] = 0.0

    kernel: str
    length_scale: float
    ard: bool = True

    def __post_init__(self) -> None:
        if self.kernel not in DEGREES_OF_FREEDOM:
            raise ValueError(
                f"kernel={self.kernel!r} is unknown: use one of {', '.join(DEGREES_OF_FREEDOM)}."
            )

    def draw(self, n_features: int, X: Array, rng: np.random.Generator) -> FourierFeatures:
        m, d = max(1, (n_features + 1) // 2), X.shape[1]
        W = rng.normal(size=(m, d))
        degrees = DEGREES_OF_FREEDOM[self.kernel]
        if degrees is not None:
            W *= np.sqrt(degrees / rng.chisquare(degrees, size=(m, 1)))
        return FourierFeatures(W, np.full(d, np.log(self.length_scale)), self.ard)
