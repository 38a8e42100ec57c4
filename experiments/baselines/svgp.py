r"""A sparse variational Gaussian process: M inducing points stand for all rows.

.. math::
    q(f) = \int p(f \mid u)\, q(u)\, du, \quad u = f(Z), \quad q(u) = N(m, S), \qquad
    \log p(y) \ge \sum_n E_{q}[\log p(y_n \mid f_n)] - \mathrm{KL}(q(u) \,\|\, p(u)).

The bound is a sum over rows, so a mini-batch gives an unbiased estimate of it and a step costs
O(BM² + M³) whatever n. Z, the kernel and the noise follow Adam; m and S follow natural gradients,
for which the bound with a Gaussian likelihood is quadratic: a full step on all rows finds the best
q, and with Z all rows that is the exact posterior.

Where rows are few, all of them are a step. Then q need not be followed, for at its best the bound
is a function of the other parameters alone: with A = L⁻¹K(Z, X)/σ, LLᵀ = K(Z, Z), and
r = (y − μ)/σ,

.. math::
    \log N(r \mid 0, I + A^\top A) - n \log \sigma
    - \tfrac12 \sum_n \bigl(k(x_n, x_n)/\sigma^2 - \|A_n\|^2\bigr).

References: Hensman, Fusi and Lawrence (2013), Gaussian processes for big data; Salimbeni,
Eleftheriadis and Hensman (2018), Natural gradients in practice; Titsias (2009), Variational
learning of inducing variables. The model and the bound of a batch are gpytorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import gpytorch
import numpy as np
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from sklearn.cluster import MiniBatchKMeans

from experiments.baselines.training import (
    BUDGET,
    Candidate,
    Schedule,
    batches,
    double,
    seeded,
    train,
)
from rwf.types import Array

KERNELS: Mapping[str, Callable[[int], gpytorch.kernels.Kernel]] = MappingProxyType(
    {
        "se": lambda d: gpytorch.kernels.RBFKernel(ard_num_dims=d),
        "matern32": lambda d: gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=d),
    }
)

NOISE, LEAST_NOISE = 0.1, 1e-8
"""The variance of the noise to start from and its lower bound, in variances of y."""

FEW = 3
"""Up to so many columns a function may vary many times along each: several lengths are starts."""

NATURAL_RATE = 0.1
"""The part of the way to the batch's best q that a step takes."""

FEW_ROWS, BATCH = 12_000, 1024
"""Up to so many rows all of them are a step, which costs O(nM²); of more, a batch is one."""

BATCHED, WHOLE = Schedule(rate=0.01), Schedule(rate=0.15, window=25, short=1)
"""How Adam walks by batches, whose losses are noisy, and by all rows."""

INDUCING_RATE = 0.01
"""Adam's for the inducing points, which lie close together where columns are few."""

AT_ONCE = 2000
"""Rows that are predicted together."""


def centres(X: Array, n_centres: int, random_state: int) -> Array:
    """Centres of k-means, or the distinct rows where they are not more than that."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_centres:
        return distinct
    means = MiniBatchKMeans(n_centres, random_state=random_state, n_init=1, batch_size=4096)
    found: Array = means.fit(X).cluster_centers_.astype(np.float64)
    return found


class Gram(torch.autograd.Function):
    """K ↦ KKᵀ, whose gradient is one product where torch would take two."""

    @staticmethod
    def forward(ctx: Any, K: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - torch's own
        ctx.save_for_backward(K)
        return K @ K.T

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        (K,) = ctx.saved_tensors
        return (gradient + gradient.T) @ K


class SparseGP(gpytorch.models.ApproximateGP):
    """The process of kernel a² κ(r), with a constant mean and noise.

    It is whitened: u = Lv with LLᵀ = K(Z, Z), and q is a Gaussian of v, in natural parameters.

    Args:
        kernel: κ, of :data:`KERNELS`.
        Z: the inducing points, shape (M, d); they are learned too.
        length: of every column, to start from.
    """

    def __init__(self, kernel: str, Z: torch.Tensor, length: float) -> None:
        q = gpytorch.variational.NaturalVariationalDistribution(len(Z), mean_init_std=0.0)
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True)
        )
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(KERNELS[kernel](Z.shape[1]))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(LEAST_NOISE)
        )
        self.double()
        self.covar_module.base_kernel.lengthscale = length
        self.covar_module.outputscale = 1.0
        self.likelihood.noise = NOISE

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    def bound(self, X: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
        """The lower bound of the log evidence per row, by a batch of n rows."""
        elbo = gpytorch.mlls.VariationalELBO(self.likelihood, self, num_data=n)
        return elbo(self(X), y)

    def best_bound(self, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The bound per row that the best q reaches, by all rows."""
        P, c, r = self._sums(X, y)
        variance, n = self.likelihood.noise.squeeze(), len(y)
        L = psd_safe_cholesky(P + torch.eye(len(P)).to(P))
        half = torch.linalg.solve_triangular(L, c[:, None], upper=False)
        distance = r @ r - (half**2).sum()
        density = -0.5 * (distance + n * math.log(2 * math.pi)) - L.diagonal().log().sum()
        missed = self.covar_module(X, diag=True).sum() / variance - P.trace()
        return (density - 0.5 * missed) / n - 0.5 * variance.log()

    def take_best(self, X: torch.Tensor, y: torch.Tensor) -> None:
        """Set q to its best: of the precision I + AAᵀ, and of the mean that it makes of Ar."""
        strategy = self.variational_strategy
        with torch.no_grad():
            P, c, _ = self._sums(X, y)
            strategy._variational_distribution.natural_vec.copy_(c)
            strategy._variational_distribution.natural_mat.copy_(
                -0.5 * (torch.eye(len(P)).to(P) + P)
            )
        strategy.variational_params_initialized.fill_(1)  # else gpytorch begins with the prior

    def _sums(
        self, X: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """AAᵀ, Ar and r. K(Z, X)K(X, Z) is the only product over rows, forwards and backwards."""
        strategy, noise = self.variational_strategy, self.likelihood.noise.sqrt()
        Z = strategy.inducing_points
        L = psd_safe_cholesky(self.covar_module(Z).add_jitter(strategy.jitter_val).to_dense())
        K, r = self.covar_module(Z, X).to_dense(), (y - self.mean_module(X)) / noise
        both = torch.linalg.solve_triangular(
            L, torch.column_stack([Gram.apply(K), K @ r]), upper=False
        )
        P = torch.linalg.solve_triangular(L, both[:, :-1].T, upper=False)
        return 0.5 * (P + P.T) / noise**2, both[:, -1] / noise, r


class SVGP:
    """A sparse variational Gaussian process in standardised units.

    Args:
        random_state: seed of the centres, the batches and the starts.
        kernel: "se" or "matern32", with a length for each column.
        n_inducing: M.
        batch: rows of a step, by default all up to :data:`FEW_ROWS`, and :data:`BATCH` of more.
        budget: seconds of training.
        rate: of Adam, but for inducing points; by default :data:`WHOLE`'s where all rows are a
            step, and else :data:`BATCHED`'s.
        tolerance: nats per row that a window of steps must gain, or training has settled.
        n_starts: lengths to start from, which compete; by default 3 for few columns, and else 1.
        max_steps: an end of training beside the budget.
    """

    def __init__(
        self,
        random_state: int,
        kernel: str = "matern32",
        n_inducing: int = 500,
        batch: int | None = None,
        budget: float = BUDGET,
        rate: float | None = None,
        tolerance: float = 1e-3,
        n_starts: int | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.random_state = random_state
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.batch = batch
        self.budget = budget
        self.rate = rate
        self.tolerance = tolerance
        self.n_starts = n_starts
        self.max_steps = max_steps

    def fit(self, X: Array, y: Array) -> Self:
        n, d = X.shape
        Z = double(centres(X, self.n_inducing, self.random_state))
        rows, targets = double(X), double(y)
        batch = self.batch or (n if n <= FEW_ROWS else BATCH)

        def make(k: int) -> Candidate[SparseGP]:
            model = SparseGP(self.kernel, Z.clone(), start_length(d, k))
            model.train()
            if batch >= n:
                return Candidate(model, lambda: -model.best_bound(rows, targets), _groups(model))
            drawn = batches(n, batch)

            def loss() -> torch.Tensor:
                some = next(drawn)
                return -model.bound(rows[some], targets[some], n)

            natural = gpytorch.optim.NGD(
                model.variational_parameters(), num_data=n, lr=NATURAL_RATE
            )
            return Candidate(model, loss, _groups(model), companions=[natural])

        own = WHOLE if batch >= n else BATCHED
        schedule = replace(
            own, rate=self.rate or own.rate, tolerance=self.tolerance, max_steps=self.max_steps
        )
        n_starts = self.n_starts or (3 if d <= FEW else 1)
        with seeded(self.random_state):
            self._model, self._report = train(make, self.budget, schedule, n_starts)
        if batch >= n:
            self._model.take_best(rows, targets)
        self._model.eval()
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict_function(X)
        return mean, np.sqrt(std**2 + self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        with torch.no_grad():
            parts = [self._model(part) for part in double(X).split(AT_ONCE)]
            mean = torch.cat([part.mean for part in parts])
            variance = torch.cat([part.variance for part in parts])
        return mean.numpy(), variance.sqrt().numpy()

    @property
    def _noise(self) -> float:
        return float(self._model.likelihood.noise.item())

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "n_inducing": len(self._model.variational_strategy.inducing_points),
            "lengths": self._model.covar_module.base_kernel.lengthscale[0].tolist(),
            "gpytorch": gpytorch.__version__,
            **self._report.facts(),
        }


def _groups(model: SparseGP) -> list[dict[str, object]]:
    """What Adam moves, with the rates that differ."""
    Z = model.variational_strategy.inducing_points
    others = [parameter for parameter in model.hyperparameters() if parameter is not Z]
    return [{"params": others}, {"params": [Z], "lr": INDUCING_RATE}]


def start_length(d: int, index: int) -> float:
    """√d, the typical distance of standardised rows, and ten times less volume for each start."""
    return float(np.sqrt(d) * 10 ** (-index / d))
