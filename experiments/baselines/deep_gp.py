r"""A deep Gaussian process: processes of processes, by a doubly stochastic variational bound.

.. math::
    f^l = \mathrm{GP}(m_l, k_l), \qquad
    \log p(y) \ge \sum_n E_q[\log p(y_n \mid f^L_n)] - \sum_l \mathrm{KL}(q(U_l) \,\|\, p(U_l)),
    \qquad f^l_n \mid f^{l-1}_n \sim N(\mu_l(f^{l-1}_n), \sigma_l^2(f^{l-1}_n)).

Each layer has inducing points Z and q(U) = N of its own, for all of its outputs one kernel: squared
exponential with a length for each column. A row is sampled through the layers by its marginals, one
draw in each step of training; the expectation over the last layer has a closed form. Reference:
Salimbeni and Deisenroth (2017), Doubly stochastic variational inference for deep Gaussian
processes.

What makes it work is how it begins. The mean of a hidden layer is the identity (principal
directions where it is narrower, zeros where it is wider), and its q is almost without variance, so
that training starts from a process with one layer and every layer has Z near its rows.

A prediction is a mixture of as many Gaussians as there are draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from experiments.baselines.mixtures import NormalMixture
from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.svgp import FEW, centres, start_length
from experiments.baselines.tensors import batches, double, seeded
from experiments.baselines.training import BUDGET, train
from rwf._types import Array

WIDEST = 30
"""Outputs of a hidden layer, at most: as many as there are columns."""

INNER_ROOT = 1e-5
"""The root of the covariance of a hidden layer's q to start from, in units of the prior's."""

INNER_NOISE = 1e-6
"""The variance of white noise between layers: without it the slope of a draw has no bound."""

JITTER = 1e-6
"""What is added to the diagonal of K(Z, Z), in units of k(x, x)."""

NOISE = 0.05
"""The variance of the noise to start from, in variances of y."""

EXACT_STEPS, NOISY_STEPS = (1024, 0.01), (256, 0.03)
"""Rows of a step and the rate of Adam: of few columns, and of more.

With many columns a step is dear, and many noisy ones converge sooner, at a higher bound. With few
they converge to a lower one: a function of one column that jumps wants exact steps.
"""

POINTS = 50_000
"""Draws of rows that go through the layers together in predictions."""


class Layer(torch.nn.Module):
    r"""One process with several outputs, whitened: U = LV with LLᵀ = K(Z, Z) and q(V) = N(m, RRᵀ).

    .. math::
        \mu(x) = Wx + a^\top m, \qquad \sigma^2(x) = k(x, x) - a^\top a + \|R^\top a\|^2,
        \qquad a = L^{-1} k(Z, x).

    Args:
        Z: inducing points, shape (M, d).
        W: the linear mean, shape (d, outputs); it is not learned.
        length: of every column, to start from.
        root: R is this times the identity to start from.
    """

    def __init__(self, Z: torch.Tensor, W: torch.Tensor, length: float, root: float) -> None:
        super().__init__()
        (M, d), outputs = Z.shape, W.shape[1]
        self.register_buffer("W", W)
        self.Z = torch.nn.Parameter(Z.clone())
        self.log_lengths = torch.nn.Parameter(torch.full((d,), np.log(length), dtype=Z.dtype))
        self.log_amplitude = torch.nn.Parameter(torch.zeros((), dtype=Z.dtype))
        self.mean = torch.nn.Parameter(torch.zeros(M, outputs, dtype=Z.dtype))
        self.root = torch.nn.Parameter(root * torch.eye(M, dtype=Z.dtype).repeat(outputs, 1, 1))

    def forward(self, H: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of all outputs at rows (n, d), each of shape (n, outputs)."""
        K = self._correlation(self.Z) + JITTER * torch.eye(len(self.Z), dtype=H.dtype)
        # Correlations, so that the amplitude is a factor of a and of the variance.
        A = torch.linalg.solve_triangular(
            torch.linalg.cholesky(K), self._correlation(H), upper=False
        )
        spread = (self.root.tril().mT @ A).square().sum(dim=1) - A.square().sum(dim=0)
        scale = (0.5 * self.log_amplitude).exp()
        # A difference of equal numbers at Z: rounding may leave it below zero.
        return H @ self.W + scale * A.T @ self.mean, scale**2 * (1 + spread.T).clamp_min(0)

    def divergence(self) -> torch.Tensor:
        """KL(q(V) ‖ N(0, I)), of all outputs together."""
        R = self.root.tril()
        log_determinant = R.diagonal(dim1=1, dim2=2).square().log().sum()
        squares = self.mean.square().sum() + R.square().sum()
        return 0.5 * (squares - self.mean.numel() - log_determinant)

    def _correlation(self, H: torch.Tensor) -> torch.Tensor:
        """k(Z, h)/k(h, h) of all rows, shape (M, n)."""
        U, V = self.Z / self.log_lengths.exp(), H / self.log_lengths.exp()
        squares = U.square().sum(dim=1)[:, None] + V.square().sum(dim=1) - 2 * U @ V.T
        return torch.exp(-0.5 * squares.clamp_min(0))


class Stack(torch.nn.Module):
    """Layers on one another, and noise.

    Args:
        layers: the outputs of one are the columns of the next; the last has one output.
    """

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.log_noise = torch.nn.Parameter(torch.tensor(np.log(NOISE), dtype=torch.float64))

    def forward(self, X: torch.Tensor, n_draws: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Means and variances of f given draws of the hidden layers, each of shape (n_draws, n)."""
        H = X[None]
        *hidden, last = self.layers
        for layer in hidden:
            mean, variance = _over_draws(layer, H)
            noise = torch.randn(n_draws, *mean.shape[1:], dtype=X.dtype)
            H = mean + (variance + INNER_NOISE).sqrt() * noise
        mean, variance = _over_draws(last, H)
        return mean[..., 0], variance[..., 0]

    def bound(self, X: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
        """The lower bound of the log evidence per row, by a batch of n rows and one draw."""
        mean, variance = self(X, 1)
        misfit = ((y - mean).square() + variance) / self.log_noise.exp()
        density = -0.5 * (misfit + self.log_noise + np.log(2 * np.pi)).mean()
        return density - sum(layer.divergence() for layer in self.layers) / n


def _over_draws(layer: Layer, H: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of (draws, n, d) rows: a layer knows rows only."""
    mean, variance = layer(H.flatten(0, 1))
    return mean.unflatten(0, H.shape[:2]), variance.unflatten(0, H.shape[:2])


def linear_mean(X: Array, width: int) -> Array:
    """W of a hidden layer's mean: identity, principal directions, or zeros beside the identity."""
    d = X.shape[1]
    if width >= d:
        return np.eye(d, width)
    directions: Array = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:width].T
    return directions


def stack(X: Array, Z: Array, n_layers: int, width: int, start: int) -> Stack:
    """Layers to begin with, each with its Z where the means below bring them."""
    layers = []
    for _ in range(n_layers - 1):
        W = linear_mean(X, width)
        layers.append(Layer(double(Z), double(W), start_length(X.shape[1], start), INNER_ROOT))
        X, Z = X @ W, Z @ W
    zero = np.zeros((X.shape[1], 1))
    layers.append(Layer(double(Z), double(zero), start_length(X.shape[1], start), 1.0))
    return Stack(layers)


@dataclass(eq=False)
class DeepGP:
    """A deep Gaussian process in standardised units.

    Args:
        random_state: seed of centres, batches and draws.
        layers: how many; with one it is a sparse variational process.
        n_inducing: M, of each layer.
        width: outputs of hidden layers; by default as many as there are columns, at most 30.
        batch: rows of a step; by default 1024 for few columns, and else 256.
        n_draws: Gaussians in the mixture of a prediction.
        budget: seconds of training.
        rate: of Adam; by default 0.01 for few columns, and else 0.03.
        tolerance: nats per row that a window of steps must gain, or training has converged.
        n_starts: lengths to start from, which compete; by default 3 for few columns, and else 1.
        max_steps: an end of training beside the budget.
    """

    random_state: int
    layers: int = 2
    n_inducing: int = 100
    width: int | None = None
    batch: int | None = None
    n_draws: int = 100
    budget: float = BUDGET
    rate: float | None = None
    tolerance: float = 1e-3
    n_starts: int | None = None
    max_steps: int | None = None

    def fit(self, X: Array, y: Array) -> Self:
        n, d = X.shape
        batch, rate = EXACT_STEPS if d <= FEW else NOISY_STEPS
        schedule = Schedule(self.rate or rate, tolerance=self.tolerance, max_steps=self.max_steps)
        Z = centres(X, self.n_inducing, self.random_state)
        rows, targets = double(X), double(y)

        def make(k: int) -> Candidate[Stack]:
            model = stack(X, Z, self.layers, self.width or min(d, WIDEST), k)
            drawn = batches(n, self.batch or batch)

            def loss() -> torch.Tensor:
                some = next(drawn)
                return -model.bound(rows[some], targets[some], n)

            return Candidate(model, loss, list(model.parameters()))

        n_starts = self.n_starts or (3 if d <= FEW else 1)
        with seeded(self.random_state):
            self._model, self._report = train(make, self.budget, schedule, n_starts)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        p = self.predict_distribution(X)
        return p.mean, p.std

    def predict_distribution(self, X: Array) -> NormalMixture:
        return self._mixture(X).blurred(self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        p = self._mixture(X)
        return p.mean, p.std

    def _mixture(self, X: Array) -> NormalMixture:
        """A normal for each draw of the hidden layers."""
        with torch.no_grad(), seeded(self.random_state):
            blocks = [
                self._model(rows, self.n_draws)
                for rows in double(X).split(max(POINTS // self.n_draws, 1))
            ]
        means, variances = (torch.cat(parts, dim=1).T for parts in zip(*blocks, strict=True))
        return NormalMixture(means.numpy(), variances.sqrt().numpy())

    @property
    def _noise(self) -> float:
        return float(np.exp(self._model.log_noise.item()))

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "layers": self.layers,
            "n_inducing": len(self._model.layers[0].Z),
            "amplitudes": [layer.log_amplitude.exp().item() for layer in self._model.layers],
            "density": "mixture of normals",
            **self._report.facts(),
        }
