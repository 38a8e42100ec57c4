r"""DRF: an ensemble of deep random features, layers of fixed cosines and trainable bottlenecks.

A layer draws its frequencies W and phases b once, and they stay:

.. math::
    \phi(h) = \sqrt{2 a^2 / H} \cos(W h + b), \quad W_{ij} \sim N(0, 1/\ell^2),
    \quad b_i \sim U[0, 2\pi], \qquad
    E\, \phi(h)^\top \phi(h') = a^2 e^{-\|h - h'\|^2 / 2\ell^2}.

A linear map, which is learned, leads to a bottleneck; the input joins every layer but the first,
and the map of the last layer gives f:

.. math::
    h_1 = \Theta_1^\top \phi_1(x), \quad h_k = \Theta_k^\top \phi_k(h_{k-1}, x), \quad \dots, \quad
    f(x) = \Theta_L^\top \phi_L(h_{L-1}, x).

With Θ ~ N(0, 1) each layer is a Gaussian process in the limit of many features. From such a draw
Adam goes to the largest posterior density,

.. math::
    \frac{1}{2\sigma^2} \sum_n (y_n - f(x_n))^2 + \tfrac12 \sum_k \|\Theta_k\|^2 \to \min.

Its first steps would all be spent on the last map, for which, given the others, there is a closed
form: the draw of Θ_L is first moved to its estimate from some of the rows, by ridge regression of
their residuals. What is kept is where the error of a tenth of the rows, held out, is least. The
same rows choose ℓ, a, σ² and the depth among random ones.

Members of the ensemble differ in all their draws. Their mean is the prediction, their variance
that of f, and the noise that makes the held-out rows most probable is added. Reference: Chen,
Mahmood, Tsamados and Takao (2024), Deep random features for scalable interpolation of
spatiotemporal data, arXiv:2412.11350. Theirs is for maps of the Earth; here lengths are in units of
the square root of a layer's number of inputs, so that one ℓ serves wide and narrow layers, and a
stands in the features only, not once more in the prior of Θ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Self

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from experiments.baselines.cosine_network import Choice, Network, choices
from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import batches, seeded
from experiments.baselines.training import BUDGET, Report, train
from experiments.data.splits import random_tenth
from rwf._types import Array

SEARCH = 1 / 3
"""The part of the budget in which choices compete and the best is trained: the first member.

Half of it is for the competition, so that each of five members has a sixth of the budget.
"""

BATCH, WINDOW = 128, 300
"""Rows of a step, and steps between evaluations on the held-out rows.

Maps come from far: a draw of N(0, 1) is much longer than the Θ of the largest density, and many
cheap steps bring it there sooner than few exact ones.
"""

DECAY, N_DECAYS = 0.2, 2
"""Of the rate, where the held-out score did not improve; with few rows, that may be chance."""

START_ROWS = 4000
"""Rows that place the last map at the start."""

AT_ONCE = 5000
"""Rows that are predicted together."""


def best_noise(errors: Array, variances: Array) -> float:
    """σ² under which errors are most probable, given variances of the mean that they had."""

    def surprise(log_noise: float) -> float:
        total = variances + math.exp(log_noise)
        return float(np.mean(np.log(total) + errors**2 / total))

    found = minimize_scalar(surprise, bounds=(math.log(1e-10), math.log(10.0)), method="bounded")
    return math.exp(float(found.x))


class DeepRandomFeatures:
    """The ensemble, in standardised units.

    Args:
        random_state: seed of all draws.
        budget: seconds of training, of all members.
        n_starts: choices of ℓ, a, σ² and depth that compete.
        n_members: of the ensemble.
        width: H, the features of a layer.
        bottleneck: outputs of all maps but the last.
        rate: of Adam.
        tolerance: nats per held-out row that a window must gain, or a member has converged.
        max_steps: an end of each training beside the budget.
    """

    def __init__(
        self,
        random_state: int,
        budget: float = BUDGET,
        n_starts: int = 8,
        n_members: int = 5,
        width: int = 1000,
        bottleneck: int = 128,
        rate: float = 0.02,
        tolerance: float = 1e-3,
        max_steps: int | None = None,
    ) -> None:
        self.random_state = random_state
        self.budget = budget
        self.n_starts = n_starts
        self.n_members = n_members
        self.width = width
        self.bottleneck = bottleneck
        self.schedule = Schedule(rate, WINDOW, tolerance, DECAY, N_DECAYS, max_steps=max_steps)

    def fit(self, X: Array, y: Array) -> Self:
        split = random_tenth(X, self.random_state)
        rows, targets = _single(X), _single(y)
        kept = (rows[split.train], targets[split.train])
        held = (rows[split.test], targets[split.test])
        with seeded(self.random_state):
            self._members, self._reports = self._train(kept, held)
        mean, variance = self._moments(X[split.test])
        self._noise = best_noise(y[split.test] - mean, variance)
        return self

    def _train(
        self, kept: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]
    ) -> tuple[list[Network], list[Report]]:
        deadline = time.perf_counter() + self.budget
        competing = choices(self.n_starts, np.random.default_rng(self.random_state))
        (network, self._choice), report = train(
            lambda k: self._candidate(competing[k], kept, held),
            SEARCH * self.budget,
            self.schedule,
            self.n_starts,
        )
        members, reports = [network], [report]
        for left in range(self.n_members - 1, 0, -1):
            (network, _), report = train(
                lambda _: self._candidate(self._choice, kept, held),
                (deadline - time.perf_counter()) / left,
                self.schedule,
            )
            members.append(network)
            reports.append(report)
        return members, reports

    def _candidate(
        self, choice: Choice, kept: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]
    ) -> Candidate[tuple[Network, Choice]]:
        (X, y), (X_held, y_held) = kept, held
        network = Network.draw(X.shape[1], self.width, self.bottleneck, choice)
        some = torch.randperm(len(y))[:START_ROWS]
        network.move_last(X[some], y[some], choice.noise)
        picks = batches(len(y), BATCH)

        def loss() -> Tensor:
            rows = next(picks)
            return network.loss(X[rows], y[rows], choice.noise, len(y))

        def validation() -> float:
            """The surprise of the held-out rows under the best noise, per row."""
            with torch.no_grad():
                squares = [
                    ((b - network(a)) ** 2).sum()
                    for a, b in zip(X_held.split(AT_ONCE), y_held.split(AT_ONCE), strict=True)
                ]
            return 0.5 * math.log(float(torch.stack(squares).sum()) / len(y_held) + 1e-12)

        return Candidate((network, choice), loss, network.maps, validation)

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self._moments(X)
        return mean, np.sqrt(variance + self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        mean, variance = self._moments(X)
        return mean, np.sqrt(variance)

    def _moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance over the members."""
        with torch.no_grad():
            outputs = [
                torch.cat([member(rows) for rows in _single(X).split(AT_ONCE)])
                for member in self._members
            ]
        members = torch.stack(outputs).double().numpy()
        return members.mean(axis=0), members.var(axis=0, ddof=min(1, len(members) - 1))

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "choice": asdict(self._choice),
            "n_members": len(self._members),
            "converged": all(report.converged for report in self._reports),
            "steps": [report.steps for report in self._reports],
            "training_seconds": sum(report.seconds for report in self._reports),
            "loss_by_start": list(self._reports[0].by_start),
            "loss_by_member": [report.loss for report in self._reports],
        }


def _single(values: Array) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float32)
