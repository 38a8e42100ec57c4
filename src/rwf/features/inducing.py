r"""The wavelet kernel of infinitely many atoms, in closed form, with a learned roughness.

.. math::
    k(x, x') = \sum_b a_b^2 \sum_{j=0}^{8} w_j\, h\!\left(Q_b/s_j^2\right), \qquad
    h(q) = (1 - q/d)\, e^{-q/2}, \quad s_j = 2^{-j/2}, \quad w_j \propto s_j^{2\nu_b}

with :math:`Q_b = \sum_k ((u_k - u'_k)/\ell_{bk})^2`. The Mexican hat h is itself positive definite:
its Fourier transform :math:`|\omega|^2 e^{-|\omega|^2/2}` is that of ψ⋆ψ for a wavelet ψ, so h is
what random atoms of ψ with independent weights and uniform shifts tend to. The power law over
scales is p(s); it makes k a band-limited Matérn kernel of smoothness ν.

u is x itself, or for a full metric :math:`x(I + E_b)` with E of zero diagonal: then atoms may be
narrow along any direction, and not along columns only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self, cast

import numpy as np

from rwf._types import Array, BoolArray, FloatArray, IntArray
from rwf.features.base import LOG_LENGTH_BOUNDS, Shapeless, memory
from rwf.linalg.dense import Factor, factor_matrix, multiply_symmetric, stack_triangle

LOG_SCALES = -0.5 * np.log(2.0) * np.arange(9)  # log s_j: half octaves, which give a smooth sum
LOG_VARIANCE_BOUNDS = (-18.0, 18.0)  # for log a², as for the prior variances of columns
LOG_ROUGHNESS_BOUNDS = (float(np.log(0.1)), float(np.log(10.0)))  # for log ν
MIXING_BOUNDS = (-5.0, 5.0)  # for entries of E: beyond, one column would replace another
MANY_COLUMNS = 16  # from which distances in gradients are products of matrices
MOST_PAIRED = 10_000  # rows whose covariance is a matrix in memory


@dataclass(frozen=True)
class HatMixture:
    """k(x, x′) as a sum of blocks."""

    log_variances: Annotated[Array, "b"]  # log a², shape (B,)
    log_roughness: Annotated[Array, "b"]  # log ν, shape (B,)
    log_lengths: Annotated[Array, "b d"]  # log ℓ, shape (B, d)
    ard: bool = True  # whether every column has its own length-scale to learn
    # E, shape (B, d, d), which is learned too; ``None`` leaves columns as they are
    mixing: Annotated[Array, "b d d"] | None = None

    @property
    def n_blocks(self) -> int:
        return len(self.log_variances)

    @property
    def diagonal(self) -> float:
        """k(x, x), the same everywhere."""
        return float(np.exp(self.log_variances).sum())

    @property
    def lengths(self) -> Array:
        """How far one column must move alone for Q to be one, shape (B, d)."""
        slopes: Array = np.array([np.sum(self.matrix(b) ** 2, axis=1) for b in self._blocks])
        return slopes**-0.5

    @property
    def _blocks(self) -> range:
        return range(self.n_blocks)

    def matrix(self, block: int) -> Array:
        """(I + E)/ℓ, which takes inputs to where Q is a squared distance, shape (d, d)."""
        mixed = np.eye(self.log_lengths.shape[1])
        if self.mixing is not None:
            mixed += self.mixing[block]
        scaled: Array = mixed * np.exp(-self.log_lengths[block])
        return scaled

    @property
    def metric(self) -> Array:
        """A root of the mean over blocks, by their variances, of squared distances Q."""
        shares = np.exp(self.log_variances - self.log_variances.max())
        squares = [a * self.matrix(b) @ self.matrix(b).T for b, a in enumerate(shares)]
        values, vectors = np.linalg.eigh(sum(squares) / shares.sum())
        root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
        return root

    def coordinates(self, block: int, X: FloatArray) -> Array:
        """Inputs in units of a block, in which Q is the squared distance, shape (n, d)."""
        if self.mixing is None:
            scaled = X * np.exp(-self.log_lengths[block])
        else:
            scaled = X @ self.matrix(block)
        return np.ascontiguousarray(scaled, dtype=np.float64)

    @property
    def _n_lengths(self) -> int:
        return self.log_lengths.shape[1] if self.ard else 1

    @property
    def theta(self) -> Array:
        """log a², log ν, log ℓ and what of E is not zero, block after block."""
        parts = [
            self.log_variances[:, None],
            self.log_roughness[:, None],
            self.log_lengths[:, : self._n_lengths],
        ]
        if self.mixing is not None:
            parts.append(self.mixing[:, self._mixed])
        return np.hstack(parts).ravel()

    @property
    def _mixed(self) -> BoolArray:
        """Which entries of E are not zero: those off its diagonal."""
        return ~np.eye(self.log_lengths.shape[1], dtype=bool)

    @property
    def bounds(self) -> Array:
        n_mixed = 0 if self.mixing is None else int(self._mixed.sum())
        block = [LOG_VARIANCE_BOUNDS, LOG_ROUGHNESS_BOUNDS, *[LOG_LENGTH_BOUNDS] * self._n_lengths]
        return np.array((block + [MIXING_BOUNDS] * n_mixed) * self.n_blocks)

    def with_theta(self, theta: Array) -> Self:
        table = theta.reshape(self.n_blocks, -1)
        variances, roughness, lengths, mixed = np.split(table, [1, 2, 2 + self._n_lengths], axis=1)
        mixing = None
        if self.mixing is not None:
            mixing = np.zeros_like(self.mixing)
            mixing[:, self._mixed] = mixed
        return replace(
            self,
            log_variances=variances[:, 0].copy(),
            log_roughness=roughness[:, 0].copy(),
            log_lengths=np.broadcast_to(lengths, self.log_lengths.shape).copy(),
            mixing=mixing,
        )

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
        self._write(X, T, out, upper=False)

    def lower(self, X: Array) -> Array:
        """The lower triangle of k at all pairs of rows, in Fortran's order, shape (n, n)."""
        K = np.empty((len(X), len(X)), order="F")
        self._write(X, X, K.T, upper=True)
        return K

    def _write(self, X: FloatArray, T: Array, out: Array, *, upper: bool) -> None:
        from rwf.features import _fused_inducing

        out[:] = 0.0
        K = memory(out)
        for b in self._blocks:
            A, tT = self.coordinates(b, X), np.ascontiguousarray(self.coordinates(b, T).T)
            amplitude = float(np.exp(self.log_variances[b]))
            _fused_inducing.mixture(A, tT, self.weights(b)[0], amplitude, upper, *K)

    def pull_back(self, X: Array, G: Array) -> Array:
        """Σ G_ij ∂k(x_i, x_j)/∂θ for a symmetric gradient G by k at all pairs of rows.

        Of G its lower triangle is read, in Fortran's order.
        """
        from rwf.features import _fused_inducing

        gradient = []
        for b in self._blocks:
            A, moved = self.coordinates(b, X), np.zeros(X.shape[::-1])
            if X.shape[1] < MANY_COLUMNS:
                k, by_roughness = _fused_inducing.mixture_pull_back(A, *self.weights(b), G.T, moved)
            else:
                Q, c = squared_distances(A), 1.0 / X.shape[1]
                k, by_roughness = _fused_inducing.mixture_weigh(Q, c, *self.weights(b), G.T)
                # Σ_j W_ij (a_i - a_j), from products with W; its last column has the sums of rows
                sums = multiply_symmetric(Q.T, np.column_stack([A, np.ones(len(A))]))
                moved[:] = (sums[:, -1:] * A - sums[:, :-1]).T
            # Of Q = Σ (a_k - a'_k)², ∂Q/∂log ℓ_k = -2 (a_k - a'_k)² and ∂Q/∂E_jk = 2 (x_j - x'_j)
            # (a_k - a'_k)/ℓ_k; a pair is moved at both of its ends.
            moved *= 4
            lengths = -np.einsum("nk,kn->k", A, moved)
            own = [2 * k + G.trace(), 2 * by_roughness]
            own += [*lengths] if self.ard else [lengths.sum()]
            if self.mixing is not None:
                own += [*((moved @ X).T * np.exp(-self.log_lengths[b]))[self._mixed]]
            gradient.append(np.exp(self.log_variances[b]) * np.array(own))
        return np.concatenate(gradient)


def squared_distances(A: Array) -> Array:
    """‖a_i - a_j‖² of all pairs of rows by one product, with the rounding error of ‖a_i‖²."""
    squares, Q = np.einsum("nk,nk->n", A, A), A @ (-2.0 * A.T)
    Q += squares[:, None] + squares
    return Q


@dataclass(frozen=True)
class NystromFeatures(Shapeless):
    r"""z(x) = L⁻¹k_T(x) with K_TT = LLᵀ: atoms k(·, t) at centres T, with weights N(0, K_TT⁻¹).

    That prior makes z(x)ᵀz(x′) the Nyström approximation of k (subset of regressors), and the
    weights of z independent with unit variance.
    """

    kernel: HatMixture  # k
    centers: Annotated[Array, "m d"]  # T, shape (m, d)
    L: Annotated[Array, "m m"]  # shape (m, m), lower triangle
    jitter: float  # what was added to the diagonal of K_TT

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
        lengths = self.kernel.lengths[int(self.kernel.log_variances.argmax())]
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
        if len(X) > MOST_PAIRED:
            raise ValueError(
                f"{len(X):,} places at once are too many for the covariance of what inducing rows "
                f"miss, a matrix of all pairs: use at most {MOST_PAIRED:,}, or prior='field' or "
                "'multiscale'."
            )
        Z = Z[:, : self.n_features]
        return self.kernel(X, X) - Z @ Z.T


@dataclass(frozen=True)
class NystromResidual:
    r"""The part to add of r(x) = c²(k(x, x) - ‖z(x)‖²), the variance that a Nyström model omits.

    The noise, learned with the same inducing rows, contains the mean r̄ of r over the rows, so only
    the deviation g(r(x) - r̄) is added. With all rows inducing, r̄ = 0 and the variance is that of
    the exact process; with few, g = σ²/2r̄ keeps the total above half of what it was.
    """

    share: float = 0.0  # g c²
    in_noise: float = 0.0  # g r̄

    @classmethod
    def learn(cls, variance: float, missing: float, noise: float) -> Self:
        """From c², the mean of k(x, x) - ‖z(x)‖² over the rows, and σ²."""
        average = variance * max(missing, 0.0)
        g = min(1.0, noise / (2 * average)) if average > 0 else 1.0
        return cls(g * variance, g * average)

    def extra(self, missing: Array, noise: Array | float = 1.0) -> Array:
        """g(r(x) - r̄ v(x)), from k(x, x) - ‖z(x)‖² and the relative noise v at rows."""
        return self.share * missing - self.in_noise * noise
