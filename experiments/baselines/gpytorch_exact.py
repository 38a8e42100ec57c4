"""GPyTorch's exact Gaussian process: the same model as scikit-learn's, by Adam on torch.

Matérn-3/2 with a length for every column, parameters by the evidence. Its cost is cubic, so that it
takes a random subset of rows where there are many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import gpytorch
import numpy as np
import torch

from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import double, seeded
from experiments.baselines.training import BUDGET, train
from rwf._types import Array

SCHEDULE = Schedule(rate=0.1, window=20)
"""Without mini-batches there is no noise in the loss: large steps, and few to average over."""

AT_ONCE = 2000
"""Rows that are predicted together."""


class ExactModel(gpytorch.models.ExactGP):
    """The process, and its likelihood."""

    def __init__(self, X: torch.Tensor, y: torch.Tensor) -> None:
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        super().__init__(X, y, likelihood)
        matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
        matern.lengthscale = X.shape[1] ** 0.5
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(matern)
        self.double()
        likelihood.noise = 0.1

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@dataclass(eq=False)
class GPyTorchExact:
    """``ExactGP``, in standardised units.

    Args:
        random_state: seed of the rows that are drawn.
        n_rows: how many, at most.
        budget: seconds of wall-clock time.
    """

    random_state: int
    n_rows: int = 2000
    budget: float = BUDGET

    def fit(self, X: Array, y: Array) -> Self:
        rows = np.random.default_rng(self.random_state).permutation(len(y))[: self.n_rows]
        inputs, targets = double(X[rows]), double(y[rows])

        def candidate(_start: int) -> Candidate[ExactModel]:
            model = ExactModel(inputs, targets)
            evidence = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
            return Candidate(
                model, lambda: -evidence(model(inputs), targets), [*model.parameters()]
            )

        with seeded(self.random_state), _by_cholesky(len(rows)):
            self._model, self._report = train(candidate, self.budget, SCHEDULE)
        self._model.eval()
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict_function(X)
        return mean, np.sqrt(std**2 + self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        n = len(self._model.train_targets)
        with torch.no_grad(), seeded(self.random_state), _by_cholesky(n):
            found = [self._model(double(X[i : i + AT_ONCE])) for i in range(0, len(X), AT_ONCE)]
            mean = np.concatenate([f.mean.numpy() for f in found])
            return mean, np.sqrt(np.concatenate([f.variance.numpy() for f in found]))

    @property
    def _noise(self) -> float:
        return float(self._model.likelihood.noise.detach())

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "n_rows": len(self._model.train_targets),
            **self._report.facts(),
        }


def _by_cholesky(n_rows: int) -> gpytorch.settings.max_cholesky_size:
    """Beyond 800 rows GPyTorch would solve by conjugate gradients, which take longer for so few."""
    return gpytorch.settings.max_cholesky_size(n_rows)
