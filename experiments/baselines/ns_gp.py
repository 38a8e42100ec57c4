"""NS-GP: the exact Gaussian process of varying lengths, at its most probable parameters.

:mod:`experiments.baselines.varying_lengths` has the process. Adam finds c, v, ρ, a² and the noise
at the largest evidence of some rows times the prior of v and of ρ: without it lengths would
collapse about single rows. Then the posterior is that of as many rows as may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import double, seeded
from experiments.baselines.training import BUDGET, Report, train
from experiments.baselines.varying_lengths import KERNELS, Parameters, Profile, VaryingGP
from rwf._types import Array

MAX_ROWS = 2000
"""Rows of the posterior, at most: the cost is cubic."""

LEARNING_ROWS = 1000
"""Rows, of these, on which parameters are learned."""

PSEUDO_INPUTS = 20
"""Centres of clusters of the rows, where ℓ is given, at most."""

OWN_COLUMNS = 16
"""Up to so many columns the lengths of each vary by themselves, and in more they vary together:
dozens of profiles would follow the noise of a thousand rows."""

WINDOW = 20
"""Steps of a window: the evidence of all rows is without noise."""

AT_ONCE = 500
"""Rows that are predicted together."""


def start(profile: Profile, places: Tensor, k: int) -> VaryingGP:
    """Start number k: nearly stationary, ρ the typical distance of a pseudo-input to the next.

    c begins at √d and the noise at 0.1. With every further start both are less, and c over one
    column most: signals may vary a thousand times along it.
    """
    m, d = places.shape
    gaps = torch.cdist(places, places) + torch.diag(torch.full((m,), math.inf)).double()
    reach = float(gaps.min(dim=0).values.median()) if m > 1 else 1.0
    length = math.sqrt(d) * (0.3 if d == 1 else 0.7) ** k
    parameters = Parameters(
        _free(math.log(length) * torch.ones(d)),
        _free(0.1 * torch.randn(m, d if d <= OWN_COLUMNS else 1)),
        _free(torch.tensor(math.log(reach))),
        _free(torch.tensor(0.0)),
        _free(torch.tensor(math.log(0.1) - 1.15 * k)),
    )
    return VaryingGP(profile, places, reach, parameters)


def _free(value: Tensor) -> Tensor:
    return value.double().requires_grad_()


class NonStationaryGP:
    """Exact GP regression with varying lengths, in standardised units.

    Args:
        random_state: seed of the sample of rows, of the clusters and of the starts.
        kernel: "se" or "matern32".
        budget: seconds of learning.
        n_starts: of which the best goes on.
        n_pseudo_inputs: where ℓ is given, at most.
        max_rows: rows of the posterior, at most; more are sampled.
        learning_rows: rows, of these, on which parameters are learned, at most.
        rate: of Adam.
        tolerance: nats per row that a window of steps must gain, or training has converged.
        max_steps: an end of training beside the budget.
    """

    def __init__(
        self,
        random_state: int,
        kernel: str = "matern32",
        budget: float = BUDGET,
        n_starts: int = 5,
        n_pseudo_inputs: int = PSEUDO_INPUTS,
        max_rows: int = MAX_ROWS,
        learning_rows: int = LEARNING_ROWS,
        rate: float = 0.05,
        tolerance: float = 1e-3,
        max_steps: int | None = None,
    ) -> None:
        self.random_state = random_state
        self.profile = KERNELS[kernel]
        self.budget = budget
        self.n_starts = n_starts
        self.n_pseudo_inputs = n_pseudo_inputs
        self.max_rows = max_rows
        self.learning_rows = learning_rows
        self.schedule = Schedule(rate, WINDOW, tolerance, max_steps=max_steps)

    def fit(self, X: Array, y: Array) -> Self:
        self._n_available = len(y)
        used = np.random.default_rng(self.random_state).permutation(len(y))[: self.max_rows]
        rows, targets = double(X[used]), double(y[used])
        with seeded(self.random_state):
            self._gp, self._report = self._learn(
                rows[: self.learning_rows], targets[: self.learning_rows]
            )
        return self.condition(rows, targets)

    def _learn(self, X: Tensor, y: Tensor) -> tuple[VaryingGP, Report]:
        clusters = KMeans(
            min(self.n_pseudo_inputs, len(X)), n_init=1, random_state=self.random_state
        )
        places = double(clusters.fit(X.numpy()).cluster_centers_)

        def candidate(k: int) -> Candidate[VaryingGP]:
            gp = start(self.profile, places, k)
            return Candidate(
                gp,
                lambda: -(gp.log_evidence(X, y) + gp.log_prior()) / len(y),
                gp.parameters.tensors(),
            )

        return train(candidate, self.budget, self.schedule, self.n_starts)

    def condition(self, X: Tensor, y: Tensor) -> Self:
        """The posterior given rows, at the parameters that were learned."""
        with torch.no_grad():
            K = self._gp.covariance(X, X)
            K.diagonal().add_(self._gp.parameters.noise)
            self._L = torch.linalg.cholesky(K)
            self._alpha = torch.cholesky_solve(y[:, None], self._L)[:, 0]
        self._X = X
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict_function(X)
        return mean, np.sqrt(std**2 + float(self._gp.parameters.noise.detach()))

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        with torch.no_grad():
            blocks = [self._latent(rows) for rows in double(X).split(AT_ONCE)]
        mean, variance = (torch.cat(parts).numpy() for parts in zip(*blocks, strict=True))
        # A difference of equal numbers where rows pin f down: rounding may leave it below zero.
        return mean, np.sqrt(np.maximum(variance, 0))

    def _latent(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f."""
        cross = self._gp.covariance(self._X, X)
        white = torch.linalg.solve_triangular(self._L, cross, upper=False)
        return cross.T @ self._alpha, self._gp.parameters.variance - (white**2).sum(dim=0)

    def facts(self) -> Mapping[str, object]:
        with torch.no_grad():
            lengths = self._gp.lengths(self._X)
        return {
            "noise_variance": float(self._gp.parameters.noise.detach()),
            "n_rows": len(self._X),
            "subset": len(self._X) < self._n_available,
            "n_learning_rows": min(self.learning_rows, len(self._X)),
            "lengths": [lengths.min(dim=0).values.tolist(), lengths.max(dim=0).values.tolist()],
            **self._report.facts(),
        }
