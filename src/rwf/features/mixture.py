r"""The wavelet kernel of infinitely many atoms, in closed form, with a learned roughness.

.. math::
    k(x, x') = \sum_b a_b^2 \sum_{j=0}^{8} w_j\, h\!\left(Q_b/s_j^2\right), \qquad
    h(q) = (1 - q/d)\, e^{-q/2}, \quad s_j = 2^{-j/2}, \quad w_j \propto s_j^{2\nu_b}

with :math:`Q_b = \sum_k ((x_k - x'_k)/\ell_{bk})^2`. The Mexican hat h is itself positive definite:
its Fourier transform :math:`|\omega|^2 e^{-|\omega|^2/2}` is that of ψ⋆ψ for a wavelet ψ, so h is
what random atoms of ψ with independent weights and uniform shifts tend to. The power law over
scales is p(s); it makes k a band-limited Matérn kernel of smoothness ν.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np

from rwf.factorization import Factor, factor_matrix, stack_triangle
from rwf.features.base import LOG_LENGTH_BOUNDS, memory
from rwf.features.linear import Shapeless
from rwf.types import Array, FloatArray, IntArray
from rwf.wavelets.base import TAIL

LOG_SCALES = -0.5 * np.log(2.0) * np.arange(9)
"""log s_j."""

LOG_VARIANCE_BOUNDS = (-18.0, 18.0)
LOG_ROUGHNESS_BOUNDS = (float(np.log(0.1)), float(np.log(10.0)))


@dataclass(frozen=True)
class HatMixture:
    """k(x, x′) as a sum of blocks.

    Args:
        log_variances: log a², shape (B,).
        log_roughness: log ν, shape (B,).
        log_lengths: log ℓ, shape (B, d).
        ard: whether every column has its own length-scale to learn.
    """

    log_variances: Array
    log_roughness: Array
    log_lengths: Array
    ard: bool = True

    @property
    def n_blocks(self) -> int:
        return len(self.log_variances)

    @property
    def diagonal(self) -> float:
        """k(x, x), the same everywhere."""
        return float(np.exp(self.log_variances).sum())

    @property
    def theta(self) -> Array:
        """log a², log ν and log ℓ, block after block."""
        width = self.log_lengths.shape[1] if self.ard else 1
        parts = [
            self.log_variances[:, None],
            self.log_roughness[:, None],
            self.log_lengths[:, :width],
        ]
        return np.hstack(parts).ravel()

    @property
    def bounds(self) -> Array:
        width = self.log_lengths.shape[1] if self.ard else 1
        block = [LOG_VARIANCE_BOUNDS, LOG_ROUGHNESS_BOUNDS] + [LOG_LENGTH_BOUNDS] * width
        return np.array(block * self.n_blocks)

    def with_theta(self, theta: Array) -> Self:
        table = theta.reshape(self.n_blocks, -1)
        lengths = np.broadcast_to(table[:, 2:], self.log_lengths.shape).copy()
        return type(self)(table[:, 0].copy(), table[:, 1].copy(), lengths, self.ard)

    def weights(self, block: int) -> tuple[Array, Array]:
        """w_j of a block, and ∂w_j/∂log ν."""
        nu = float(np.exp(self.log_roughness[block]))
        exponent = 2 * nu * LOG_SCALES
        w = np.exp(exponent - exponent.max())
        w /= w.sum()
        return w, w * (exponent - float(w @ exponent))

    def __call__(self, X: FloatArray, T: Array) -> Array:
        """k at all pairs of rows, shape (n, m)."""
        K = np.empty((len(X), len(T)))
        self.into(X, T, K)
        return K

    def into(self, X: FloatArray, T: Array, out: Array) -> None:
        """Write k at all pairs of rows into ``out``, shape (n, m), whose rows may stand apart."""
        from rwf.features import _fused_mixture

        out[:] = 0.0
        K = memory(out)
        for b in range(self.n_blocks):
            lengths = np.exp(self.log_lengths[b])
            A = np.ascontiguousarray(X / lengths, dtype=np.float64)
            tT = np.ascontiguousarray((T / lengths).T)
            amplitude = float(np.exp(self.log_variances[b]))
            _fused_mixture.mixture(A, tT, self.weights(b)[0], amplitude, X.shape[1], TAIL, *K)

    def pull_back(self, X: Array, G: Array) -> Array:
        """Σ G_ij ∂k(x_i, x_j)/∂θ for a symmetric gradient G by k at all pairs of rows."""
        from rwf.features import _fused_mixture

        n, d = X.shape
        K, by_q, by_roughness = (np.empty((n, n)) for _ in range(3))
        gradient = []
        for b in range(self.n_blocks):
            A = np.ascontiguousarray(X * np.exp(-self.log_lengths[b]))
            _fused_mixture.mixture_slopes(A, *self.weights(b), d, TAIL, K, by_q, by_roughness)
            amplitude = np.exp(self.log_variances[b])
            W = by_q * G
            # ∂Q/∂log ℓ_k = -2 (a_k - a'_k)², summed over pairs as matrix products.
            lengths = -4 * (W.sum(axis=1) @ A**2 - np.einsum("nk,nk->k", A, W @ A))
            lengths = lengths if self.ard else [lengths.sum()]
            gradient += [np.vdot(G, K), np.vdot(G, by_roughness), *lengths]
            for index in range(-2 - len(lengths), 0):
                gradient[index] *= amplitude
        return np.array(gradient)


@dataclass(frozen=True)
class ProjectedFeatures(Shapeless):
    r"""z(x) = L⁻¹k_T(x) with K_TT = LLᵀ: atoms k(·, t) at centres T, with weights N(0, K_TT⁻¹).

    That prior makes z(x)ᵀz(x′) the kernel k itself, projected on the span of the atoms, and the
    weights of z independent with unit variance.

    Args:
        kernel: k.
        centers: T, shape (m, d).
        L: shape (m, m), lower triangle.
        jitter: what was added to the diagonal of K_TT.
    """

    kernel: HatMixture
    centers: Array
    L: Array
    jitter: float

    @classmethod
    def at(cls, kernel: HatMixture, centers: Array, jitter: float) -> Self:
        """Atoms at the given centres."""
        K = kernel(centers, centers)
        K[np.diag_indices_from(K)] += jitter
        factor = factor_matrix(K)
        return cls(kernel, centers, factor.L, jitter + factor.jitter)

    @cached_property
    def _factor(self) -> Factor:
        return Factor(self.L)

    @property
    def n_atoms(self) -> int:
        return len(self.centers)

    @property
    def n_features(self) -> int:
        return self.n_atoms

    @property
    def shifts(self) -> Array:
        return self.centers

    @property
    def widths(self) -> Array:
        """The lengths of the strongest block."""
        lengths = np.exp(self.kernel.log_lengths[int(self.kernel.log_variances.argmax())])
        return np.broadcast_to(lengths, self.centers.shape)

    def take(self, which: IntArray) -> Self:
        """Atoms at some of the centres, with the jitter that these have."""
        # K_T'T' = L_T' L_T'ᵀ of the rows of L that belong to T'.
        R = stack_triangle(np.zeros((len(which), len(which))), self.L[which].T)
        return replace(self, centers=self.centers[which], L=np.asfortranarray(R.T))

    def into(self, X: FloatArray, out: FloatArray) -> None:
        double = out.dtype == np.float64
        K = cast(Array, out) if double else np.empty(out.shape)
        self.kernel.into(X, self.centers, K)
        self._factor.whiten(K)
        if not double:
            out[:] = K

    def missing(self, Z: Array) -> Array:
        """k(x, x) - ‖z(x)‖², what the atoms do not reach, from the features of rows, shape (n,)."""
        Z = Z[:, : self.n_features]
        reached: Array = np.einsum("np,np->n", Z, Z)
        return np.maximum(self.kernel.diagonal - reached, 0.0)

    def missing_covariance(self, X: Array, Z: Array) -> Array:
        """k(x, x′) - z(x)ᵀz(x′) at all pairs of rows, shape (n, n)."""
        Z = Z[:, : self.n_features]
        return self.kernel(X, X) - Z @ Z.T
