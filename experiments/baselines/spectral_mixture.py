r"""A Gaussian process whose spectral density is a mixture of Gaussians: the richest stationary one.

.. math::
    k(\tau) = \sum_{q=1}^{Q} w_q \prod_p e^{-2\pi^2 \tau_p^2 v_{qp}} \cos(2\pi \tau_p \mu_{qp}),
    \qquad \tau = x - x'.

Mixtures of Gaussians come close to any density, so this kernel comes close to any stationary one,
and to none that is not: it depends on x − x′ alone. A component is written by its lengths
ℓ = 1/(2π√v). The evidence has many maxima, so several starts compete by it. Reference: Wilson and
Adams (2013), Gaussian process kernels for pattern discovery and extrapolation, equation 12. The
class of that name in gpytorch sums over q before it multiplies over p: over several columns that is
another kernel, so this one is written here.

Since cos(a − b) = cos a cos b + sin a sin b, the product of the cosines of g columns is an inner
product of 2^g features of a row: few large matrix products instead of a cosine for all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from experiments.baselines.exact_gp import MAX_ROWS, SUBSET
from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import double, seeded
from experiments.baselines.training import BUDGET, train
from rwf._types import Array

GROUP = 5
"""Columns whose cosines are multiplied as features: 32 of them cost no more than an n × n pass."""

NOISE, LEAST_NOISE = 0.1, 1e-6
"""The variance of the noise to start from and its lower bound, in variances of y."""

AT_ONCE = 2000
"""Rows that are predicted together."""


@dataclass(frozen=True)
class Mixture:
    """Logarithms of the parameters.

    Args:
        weights: of w, shape (Q,).
        lengths: of ℓ, shape (Q, d).
        frequencies: of μ, shape (Q, d).
        noise: of the noise variance above :data:`LEAST_NOISE`, shape ().
    """

    weights: torch.Tensor
    lengths: torch.Tensor
    frequencies: torch.Tensor
    noise: torch.Tensor

    @classmethod
    def from_values(
        cls, weights: Array, lengths: Array, frequencies: Array, noise: float
    ) -> Mixture:
        """Parameters that gradients can move, at these values."""
        values = (weights, lengths, frequencies, np.asarray(noise - LEAST_NOISE))
        return cls(*(double(np.log(value)).requires_grad_() for value in values))

    @property
    def tensors(self) -> Sequence[torch.Tensor]:
        return (self.weights, self.lengths, self.frequencies, self.noise)

    @property
    def noise_variance(self) -> torch.Tensor:
        return LEAST_NOISE + self.noise.exp()

    def covariance(self, X: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """k(x, v) of all rows, shape (n, m), without the noise."""
        components = zip(
            self.weights.exp(), self.lengths.exp(), self.frequencies.exp(), strict=True
        )
        K = torch.zeros(len(X), len(V), dtype=X.dtype)
        for w, ell, mu in components:
            K += torch.exp_(exponents(X / ell, V / ell)) * cosines(X, V, mu, w)
        return K

    def log_evidence(self, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        K = self.covariance(X, X)
        K.diagonal().add_(self.noise_variance)
        return GaussianLogDensity.apply(K, y)


def exponents(U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """−½‖u − v‖² of all rows, as inner products of (u, −½‖u‖², 1) and (v, 1, −½‖v‖²)."""
    of_u, of_v = (-0.5 * W.square().sum(dim=1, keepdim=True) for W in (U, V))
    left = torch.cat([U, of_u, torch.ones_like(of_u)], dim=1)
    right = torch.cat([V, torch.ones_like(of_v), of_v], dim=1)
    return left @ right.T


def cosines(X: torch.Tensor, V: torch.Tensor, mu: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """w Π_p cos(2π μ_p (x_p − v_p)) of all rows, shape (n, m)."""
    left, right = X * (2 * torch.pi * mu), V * (2 * torch.pi * mu)
    first, *others = [
        (cosine_features(a), cosine_features(b))
        for a, b in zip(left.split(GROUP, dim=1), right.split(GROUP, dim=1), strict=True)
    ]
    product = (w * first[0]) @ first[1].T
    for a, b in others:
        product = product * (a @ b.T)
    return product


def cosine_features(phases: torch.Tensor) -> torch.Tensor:
    """Features whose inner products are Π_p cos(a_p − b_p): of shape (n, 2^g) for (n, g) phases."""
    features = torch.ones(len(phases), 1, dtype=phases.dtype)
    for phase in phases.T:
        pair = torch.stack([phase.cos(), phase.sin()], dim=1)
        features = (features[:, :, None] * pair[:, None, :]).flatten(1)
    return features


class GaussianLogDensity(torch.autograd.Function):
    r"""log N(y; 0, K), with its gradient in K by one inverse.

    .. math::
        \partial L / \partial K = \tfrac12 (\alpha\alpha^\top - K^{-1}), \quad \alpha = K^{-1}y.

    Going back through the Cholesky factor instead would cost several times as much.
    """

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, K: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        L = torch.linalg.cholesky(K)
        alpha = torch.cholesky_solve(y[:, None], L)
        ctx.save_for_backward(L, alpha)
        half_log_det = L.diagonal().log().sum()
        return -0.5 * y @ alpha[:, 0] - half_log_det - 0.5 * len(y) * np.log(2 * np.pi)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, slope: torch.Tensor
    ) -> tuple[torch.Tensor, None]:
        L, alpha = ctx.saved_tensors
        return 0.5 * slope * (alpha @ alpha.T - torch.cholesky_inverse(L)), None


class SpectralMixture:
    """The process in standardised units, exact on all rows or, where there are many, on a sample.

    Args:
        random_state: seed of the starts and of the sample of rows.
        n_components: Q.
        n_starts: how many compete by their evidence.
        budget: seconds of training.
        rate: of Adam.
        max_steps: an end of training beside the budget.
    """

    def __init__(
        self,
        random_state: int,
        n_components: int = 4,
        n_starts: int = 5,
        budget: float = BUDGET,
        rate: float = 0.1,
        max_steps: int | None = None,
    ) -> None:
        self.random_state = random_state
        self.n_components = n_components
        self.n_starts = n_starts
        self.budget = budget
        self.schedule = Schedule(rate=rate, window=25, short=1, max_steps=max_steps)

    def fit(self, X: Array, y: Array) -> Self:
        rng = np.random.default_rng(self.random_state)
        self._subset = len(y) > MAX_ROWS
        used = rng.permutation(len(y))[:SUBSET] if self._subset else np.arange(len(y))
        rows, targets = double(X[used]), double(y[used])

        def make(_: int) -> Candidate[Mixture]:
            model = start(X[used], self.n_components, rng)
            return Candidate(
                model, lambda: -model.log_evidence(rows, targets) / len(used), model.tensors
            )

        with seeded(self.random_state):
            mixture, self._report = train(make, self.budget, self.schedule, self.n_starts)
        return self.condition(rows, targets, mixture)

    def condition(self, rows: torch.Tensor, y: torch.Tensor, mixture: Mixture) -> Self:
        """The posterior given rows, at given parameters."""
        self._rows, self._mixture = rows, mixture
        with torch.no_grad():
            self._noise = float(mixture.noise_variance)
            K = mixture.covariance(rows, rows) + self._noise * torch.eye(len(y), dtype=y.dtype)
            self._L = torch.linalg.cholesky(K)
            self._alpha = torch.cholesky_solve(y[:, None], self._L)[:, 0]
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict_function(X)
        return mean, np.sqrt(std**2 + self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        with torch.no_grad():
            parts = [self._moments(part) for part in double(X).split(AT_ONCE)]
        mean, variance = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return mean, np.sqrt(variance)

    def _moments(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of f."""
        cross = self._mixture.covariance(self._rows, X)
        V = torch.linalg.solve_triangular(self._L, cross, upper=False)
        variance = self._mixture.weights.exp().sum() - (V**2).sum(dim=0)
        # A difference of equal numbers where the data pin f down: rounding may leave it below zero.
        return cross.T @ self._alpha, variance.clamp_min(0)

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "n_rows": len(self._rows),
            "subset": self._subset,
            "n_components": len(self._mixture.weights),
            **self._report.facts(),
        }


def start(X: Array, n_components: int, rng: np.random.Generator) -> Mixture:
    """Components of one weight, with random lengths and frequencies, and noise of 0.1.

    Over several columns lengths are about √d, and a component turns about once within its lengths:
    rows are too far apart to tell higher frequencies. Over one column frequencies go from one
    period in the range to one in four rows, and a component lasts for a period or so.
    """
    shape = n_components, X.shape[1]
    if shape[1] == 1:
        width, n = float(np.ptp(X)) or 1.0, len(X)
        frequencies = np.exp(rng.uniform(0, np.log(max(n / 4, 2)), shape)) / width
        lengths = np.exp(rng.uniform(-1, 1, shape)) / frequencies
    else:
        lengths = np.sqrt(shape[1]) * np.exp(0.5 * rng.normal(size=shape))
        frequencies = np.abs(rng.normal(size=shape)) / (2 * np.pi * lengths)
    weights = np.full(n_components, 1 / n_components)
    return Mixture.from_values(weights, lengths, frequencies, NOISE)
