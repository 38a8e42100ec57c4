"""SVGP: a sparse variational Gaussian process, fitted by batches or by all rows.

By batches, the kernel, the noise and the inducing points follow Adam, and q natural gradients. Up
to :data:`FEW_ROWS` rows, all of them are a step, with the best q in closed form. Logarithms of
lengths and noise come from far: Adam brings them near, with long steps on a sample of the rows.
L-BFGS goes on from there, as the bound is without noise, on samples three times as large until they
are all. References: those of :mod:`experiments.baselines.sparse_gp`; Salimbeni, Eleftheriadis and
Hensman (2018), Natural gradients in practice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import gpytorch
import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans

from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.sparse_gp import SparseGP
from experiments.baselines.tensors import batches, double, seeded
from experiments.baselines.training import BUDGET, Report, train
from rwf._types import Array

FEW = 3
"""Up to so many columns a function may vary many times along each: several lengths are starts."""

NATURAL_RATE = 0.1
"""The part of the way to the batch's best q that a step takes."""

FEW_ROWS, BATCH = 50_000, 1024
"""Up to so many rows all of them are a step, which costs O(nM²); of more, a batch is one."""

FIRST_ROWS, FIRST_SHARE = 5000, 0.25
"""Rows of the first sample, and of the time what Adam has for it, at most."""

BATCHED, FAR, NEAR = (
    Schedule(),
    Schedule(rate=0.15, window=25, n_decays=0, short=1),
    Schedule(window=25),
)
"""How Adam walks by batches and from far, and when L-BFGS has arrived."""

STEEP = 20.0
"""Adam leaves that sample when a window gains less than so many tolerances: L-BFGS is faster."""

INDUCING_RATE = 0.01
"""Adam's for the inducing points on that sample, times √d: they lie closer in fewer columns."""

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


@dataclass(eq=False)
class SVGP:
    """A sparse variational Gaussian process in standardised units.

    Args:
        random_state: seed of the centres, the batches and the starts.
        kernel: "se" or "matern32", with a length for each column.
        n_inducing: M.
        batch: rows of a step, by default all up to :data:`FEW_ROWS`, and :data:`BATCH` of more.
        budget: seconds of training.
        rate: of Adam, where batches are a step.
        tolerance: nats per row that a window of steps must gain, or training has converged.
        n_starts: lengths to start from, which compete; by default 3 for few columns, and else 1.
        max_steps: an end of training beside the budget.
    """

    random_state: int
    kernel: str = "matern32"
    n_inducing: int = 500
    batch: int | None = None
    budget: float = BUDGET
    rate: float = BATCHED.rate
    tolerance: float = 1e-3
    n_starts: int | None = None
    max_steps: int | None = None

    def fit(self, X: Array, y: Array) -> Self:
        n = len(y)
        Z = double(centres(X, self.n_inducing, self.random_state))
        rows, targets = double(X), double(y)
        batch = self.batch or (n if n <= FEW_ROWS else BATCH)
        with seeded(self.random_state):
            if batch < n:
                self._model, self._report = self._by_batches(rows, targets, Z, batch)
            else:
                self._model, self._report = self._by_all_rows(rows, targets, Z)
                self._model.take_best(rows, targets)
        self._model.eval()
        return self

    def _by_batches(
        self, rows: torch.Tensor, y: torch.Tensor, Z: torch.Tensor, batch: int
    ) -> tuple[SparseGP, Report]:
        n = len(y)

        def make(k: int) -> Candidate[SparseGP]:
            model, drawn = self._start(Z, k), batches(n, batch)

            def loss() -> torch.Tensor:
                some = next(drawn)
                return -model.bound(rows[some], y[some], n)

            natural = gpytorch.optim.NGD(
                model.variational_parameters(), num_data=n, lr=NATURAL_RATE
            )
            return Candidate(model, loss, list(model.hyperparameters()), companions=[natural])

        schedule = replace(self._schedule(BATCHED), rate=self.rate)
        return train(make, self.budget, schedule, self._starts(Z))

    def _by_all_rows(
        self, rows: torch.Tensor, y: torch.Tensor, Z: torch.Tensor
    ) -> tuple[SparseGP, Report]:
        """Adam on the first sample, then L-BFGS on larger ones, each half of the time left."""
        deadline, order = time.perf_counter() + self.budget, torch.randperm(len(y))

        def loss(model: SparseGP, size: int) -> Callable[[], torch.Tensor]:
            some, targets = rows[order[:size]], y[order[:size]]
            return lambda: -model.best_bound(some, targets)

        def far(k: int) -> Candidate[SparseGP]:
            model = self._start(Z, k)
            return Candidate(model, loss(model, first), _groups(model))

        def near(size: int) -> Callable[[int], Candidate[SparseGP]]:
            moved = list(model.hyperparameters())
            return lambda _: Candidate(model, loss(model, size), moved, smooth=True)

        steep = replace(self._schedule(FAR), tolerance=STEEP * self.tolerance)
        first, *others = sample_sizes(len(y))
        model, report = train(far, FIRST_SHARE * self.budget, steep, self._starts(Z))
        reports = [report]
        for size in others or [first]:
            left = deadline - time.perf_counter()
            seconds = left if size == len(y) else left / 2
            reports.append(train(near(size), seconds, self._schedule(NEAR))[1])
        return model, in_sequence(reports)

    def _start(self, Z: torch.Tensor, k: int) -> SparseGP:
        model = SparseGP(self.kernel, Z.clone(), start_length(Z.shape[1], k))
        model.train()
        return model

    def _starts(self, Z: torch.Tensor) -> int:
        return self.n_starts or (3 if Z.shape[1] <= FEW else 1)

    def _schedule(self, own: Schedule) -> Schedule:
        return replace(own, tolerance=self.tolerance, max_steps=self.max_steps)

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
    return [{"params": others}, {"params": [Z], "lr": INDUCING_RATE * Z.shape[1] ** 0.5}]


def sample_sizes(n: int) -> list[int]:
    """n, and before it a third of it, and a third of that, until it is few rows."""
    sizes = [n]
    while sizes[0] > FIRST_ROWS:
        sizes.insert(0, -(-sizes[0] // 3))
    return sizes


def in_sequence(reports: Sequence[Report]) -> Report:
    """Trainings one after the other as one, which ended as the last of them did."""
    return replace(
        reports[-1],
        steps=sum(report.steps for report in reports),
        seconds=sum(report.seconds for report in reports),
        setbacks=sum(report.setbacks for report in reports),
        by_start=reports[0].by_start,
    )


def start_length(d: int, index: int) -> float:
    """√d, the typical distance of standardised rows, and ten times less volume for each start."""
    return float(np.sqrt(d) * 10 ** (-index / d))
