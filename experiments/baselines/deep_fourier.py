"""Regression by a deep Gaussian process on Fourier features, of any family of processes.

:mod:`experiments.baselines.fourier_layers` has the model; here Adam climbs its bound on
mini-batches. Given a sample of the hidden layers f is Gaussian: a prediction is a mixture over
samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor

from experiments.baselines.fourier_layers import WIDEST, DeepProcess, Family, start
from experiments.baselines.mixtures import NormalMixture
from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import batches, double, seeded
from experiments.baselines.training import BUDGET, train
from rwf._types import Array

TEST_SAMPLES = 100
"""Samples of the hidden layers in a prediction."""

POINTS_AT_ONCE = 50_000
"""Rows times units times columns times samples that are predicted together, about."""

RATE, DECAY, N_DECAYS = 0.03, 0.5, 4
"""Of Adam: three times the authors', whose trainings are longer, and what plateaus do to it. Bounds
are sampled, so that some plateaus are chance."""

FEW, FEW_COLUMNS, MANY_COLUMNS = 3, (50, 2_000), (20, 4_000)
"""With at most FEW columns and with more: frequencies of a process, and rows times columns times
samples of a training step, about.

20 frequencies are the authors' number. Whatever the waves miss of a hidden process is noise that no
posterior removes, and with 4200 rows on one column it is what is left of the error: 50 frequencies
are as many inducing variables as the deep process with inducing points has.
"""

LENGTHS = (1.0, 3.0, 10.0)
"""Factors of the length of one start after the other."""


class DeepFourierGP:
    """Deep GP regression in standardised units.

    Args:
        family: makes the processes of a layer.
        values: their parameters at the start, in units of the range of a column.
        random_state: seed of batches and samples.
        budget: seconds of training.
        n_starts: of which the best goes on; further ones have longer and shorter lengths.
        n_layers: the last one included.
        n_frequencies: of the waves of each process, by default as many as the columns ask for.
        n_samples: of the hidden layers, in training.
        rate: of Adam.
        tolerance: nats per row that a window of steps must gain, or training has converged.
        max_steps: an end of training beside the budget.
    """

    def __init__(
        self,
        family: Family,
        values: Mapping[str, float],
        random_state: int,
        budget: float = BUDGET,
        n_starts: int = 1,
        n_layers: int = 2,
        n_frequencies: int | None = None,
        n_samples: int = 5,
        rate: float = RATE,
        tolerance: float = 1e-3,
        max_steps: int | None = None,
    ) -> None:
        self.family = family
        self.values = values
        self.random_state = random_state
        self.budget = budget
        self.n_starts = n_starts
        self.n_layers = n_layers
        self.n_frequencies = n_frequencies
        self.n_samples = n_samples
        self.schedule = Schedule(
            rate, tolerance=tolerance, decay=DECAY, n_decays=N_DECAYS, max_steps=max_steps
        )

    def fit(self, X: Array, y: Array) -> Self:
        low, high = X.min(axis=0), X.max(axis=0)
        self._middle, self._range = (low + high) / 2, high - low
        rows, targets = self._inputs(X), double(y)
        with seeded(self.random_state):
            self._model, self._report = train(
                lambda k: self._candidate(rows, targets, k),
                self.budget,
                self.schedule,
                self.n_starts,
            )
        return self

    def _candidate(self, X: Tensor, y: Tensor, k: int) -> Candidate[DeepProcess]:
        n, d = X.shape
        values = {**self.values, "length": self.values["length"] * LENGTHS[k % len(LENGTHS)]}
        n_frequencies, points = FEW_COLUMNS if d <= FEW else MANY_COLUMNS
        model = start(self.family, values, X, self.n_layers, self.n_frequencies or n_frequencies)
        picks = batches(n, max(points // (d * self.n_samples), 1))

        def loss() -> Tensor:
            rows = next(picks)
            return model.negative_bound(X[rows], y[rows], n, self.n_samples)

        return Candidate(model, loss, model.parameters())

    def predict(self, X: Array) -> tuple[Array, Array]:
        p = self.predict_distribution(X)
        return p.mean, p.std

    def predict_distribution(self, X: Array) -> NormalMixture:
        return self._mixture(X).blurred(self._noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        p = self._mixture(X)
        return p.mean, p.std

    def _mixture(self, X: Array) -> NormalMixture:
        """A normal for each sample of the hidden layers."""
        of_a_row = X.shape[1] * min(X.shape[1], WIDEST) * TEST_SAMPLES
        with seeded(self.random_state), torch.no_grad():
            blocks = [
                self._model.sample(rows, TEST_SAMPLES)
                for rows in self._inputs(X).split(max(POINTS_AT_ONCE // of_a_row, 1))
            ]
            means, variances = (torch.cat(parts, dim=1).T for parts in zip(*blocks, strict=True))
        return NormalMixture(means.numpy(), variances.sqrt().numpy())

    def _inputs(self, X: Array) -> Tensor:
        return double((X - self._middle) / self._range)

    @property
    def _noise(self) -> float:
        return float(self._model.log_noise.detach().exp())

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._noise,
            "n_layers": self.n_layers,
            "n_features": len(self._model.layers[0].waves),
            "density": "mixture of normals",
            **self._report.facts(),
        }
