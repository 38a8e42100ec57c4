r"""A sparse variational Gaussian process: M inducing points stand for all rows.

.. math::
    q(f) = \int p(f \mid u)\, q(u)\, du, \quad u = f(Z), \quad q(u) = N(m, S), \qquad
    \log p(y) \ge \sum_n E_{q}[\log p(y_n \mid f_n)] - \mathrm{KL}(q(u) \,\|\, p(u)).

The bound is a sum over rows, so a mini-batch gives an unbiased estimate of it and a step costs
O(BM² + M³) whatever n. Z, the kernel and the noise follow Adam; m and S follow natural gradients,
for which the bound with a Gaussian likelihood is quadratic: a full step on all rows finds the best
q, and with Z all rows that is the exact posterior. References: Hensman, Fusi and Lawrence (2013),
Gaussian processes for big data; Salimbeni, Eleftheriadis and Hensman (2018), Natural gradients in
practice. The model and its bound are gpytorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Self

import gpytorch
import numpy as np
import torch
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


class SVGP:
    """A sparse variational Gaussian process in standardised units.

    Args:
        random_state: seed of the centres, the batches and the starts.
        kernel: "se" or "matern32", with a length for each column.
        n_inducing: M.
        batch: rows of a step.
        budget: seconds of training.
        rate: of Adam.
        tolerance: nats per row that a window of steps must gain, or training has settled.
        n_starts: lengths to start from, which compete; by default 3 for few columns, and else 1.
        max_steps: an end of training beside the budget.
    """

    def __init__(
        self,
        random_state: int,
        kernel: str = "matern32",
        n_inducing: int = 500,
        batch: int = 1024,
        budget: float = BUDGET,
        rate: float = 0.01,
        tolerance: float = 1e-3,
        n_starts: int | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.random_state = random_state
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.batch = batch
        self.budget = budget
        self.schedule = Schedule(rate=rate, tolerance=tolerance, max_steps=max_steps)
        self.n_starts = n_starts

    def fit(self, X: Array, y: Array) -> Self:
        n, d = X.shape
        Z = double(centres(X, self.n_inducing, self.random_state))
        rows, targets = double(X), double(y)

        def make(k: int) -> Candidate[SparseGP]:
            model = SparseGP(self.kernel, Z.clone(), start_length(d, k))
            model.train()
            drawn = batches(n, self.batch)

            def loss() -> torch.Tensor:
                batch = next(drawn)
                return -model.bound(rows[batch], targets[batch], n)

            natural = gpytorch.optim.NGD(
                model.variational_parameters(), num_data=n, lr=NATURAL_RATE
            )
            return Candidate(model, loss, list(model.hyperparameters()), companions=[natural])

        n_starts = self.n_starts or (3 if d <= FEW else 1)
        with seeded(self.random_state):
            self._model, self._report = train(make, self.budget, self.schedule, n_starts)
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


def start_length(d: int, index: int) -> float:
    """√d, the typical distance of standardised rows, and ten times less volume for each start."""
    return float(np.sqrt(d) * 10 ** (-index / d))
