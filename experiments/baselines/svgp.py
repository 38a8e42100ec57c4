r"""A sparse variational Gaussian process: M inducing points stand for all rows.

.. math::
    q(f) = \int p(f \mid u)\, q(u)\, du, \quad u = f(Z), \quad q(u) = N(m, S), \qquad
    \log p(y) \ge \sum_n E_{q}[\log p(y_n \mid f_n)] - \mathrm{KL}(q(u) \,\|\, p(u)).

The bound is a sum over rows, so a mini-batch gives an unbiased estimate of it and a step costs
O(BM² + M³) whatever n. Z, the kernel and the noise follow Adam; m and S follow natural gradients,
for which the bound with a Gaussian likelihood is quadratic: a full step on all rows finds the best
q, and with Z all rows that is the exact posterior.

Up to :data:`FEW_ROWS` rows, all of them are a step. Then q need not be followed, for at its best
the bound is a function of the other parameters alone: with A = L⁻¹K(Z, X)/σ, LLᵀ = K(Z, Z), and
r = (y − μ)/σ,

.. math::
    \log N(r \mid 0, I + A^\top A) - n \log \sigma
    - \tfrac12 \sum_n \bigl(k(x_n, x_n)/\sigma^2 - \|A_n\|^2\bigr).

Logarithms of lengths and noise come from far: Adam brings them near, with long steps on a sample of
the rows. L-BFGS goes on from there, as the bound is without noise, on samples three times as large
until they are all.

References: Hensman, Fusi and Lawrence (2013), Gaussian processes for big data; Salimbeni,
Eleftheriadis and Hensman (2018), Natural gradients in practice; Titsias (2009), Variational
learning of inducing variables. The model and the bound of a batch are gpytorch's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
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
    Report,
    Schedule,
    batches,
    double,
    seeded,
    train,
)
from rwf._types import Array


def above(least: float) -> gpytorch.constraints.GreaterThan:
    """Parameters beyond a bound, by the logarithm of how far: long lengths have long ways to go."""
    return gpytorch.constraints.GreaterThan(least, transform=torch.exp, inv_transform=torch.log)


KERNELS: Mapping[str, Callable[..., gpytorch.kernels.Kernel]] = MappingProxyType(
    {
        "se": lambda **own: gpytorch.kernels.RBFKernel(**own),
        "matern32": lambda **own: gpytorch.kernels.MaternKernel(nu=1.5, **own),
    }
)

NOISE, LEAST_NOISE = 0.1, 1e-8
"""The variance of the noise to start from and its lower bound, in variances of y."""

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

UNSTABLE = 1e-3
"""Noise below so much of the amplitude would be lost in K(Z, X)K(X, Z), whose condition is that of
K squared: then L⁻¹K(Z, X) is formed first, at twice the cost."""

AT_ONCE, BLOCK = 2000, 1024
"""Rows that are predicted together, and that are summed together."""


def centres(X: Array, n_centres: int, random_state: int) -> Array:
    """Centres of k-means, or the distinct rows where they are not more than that."""
    distinct = np.unique(X, axis=0)
    if len(distinct) <= n_centres:
        return distinct
    means = MiniBatchKMeans(n_centres, random_state=random_state, n_init=1, batch_size=4096)
    found: Array = means.fit(X).cluster_centers_.astype(np.float64)
    return found


class Matern32(torch.autograd.Function):
    """q ↦ (1 + r)e^(−r) with r² = 3q, whose slope −1.5 e^(−r) is finite at zero, too."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - torch's own
        r = q.mul(3).clamp_min_(0).sqrt_()
        fading = torch.exp(-r)
        ctx.save_for_backward(fading)
        return r.add_(1).mul_(fading)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:  # noqa: ANN401
        (fading,) = ctx.saved_tensors
        return fading.mul(slope).mul_(-1.5)


PROFILES: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = MappingProxyType(
    {"se": lambda q: torch.exp(-0.5 * q), "matern32": Matern32.apply}
)
"""κ of squared distances, for the kernels of the same names."""


class RowSums(torch.autograd.Function):
    """P = FFᵀ and c = Fr for F = L⁻¹K of all rows, shape (M, n), a block of rows at a time.

    K is made anew for the gradient: within a block it stays in cache, and memory is what takes
    time. Of the gradients Ṗ and ċ, that of F is (Ṗ + Ṗᵀ)F + ċrᵀ, and what it is for L needs no
    rows: −L⁻ᵀ((Ṗ + Ṗᵀ)P + ċcᵀ).
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - torch's own
        features: Callable[..., torch.Tensor],
        X: torch.Tensor,
        r: torch.Tensor,
        L: torch.Tensor | None,
        *parameters: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``features`` of rows and of parameters are K; without L, F is K itself."""
        P, c, parts = 0.0, 0.0, []
        for rows, part in zip(X.split(BLOCK), r.split(BLOCK), strict=True):
            F = features(rows, *parameters)
            if L is not None:
                F = torch.linalg.solve_triangular(L, F, upper=False)
                parts.append(F)
            P, c = P + F @ F.T, c + F @ part
        ctx.features, ctx.X, ctx.parts = features, X, parts
        ctx.save_for_backward(r, L, P, c, *parameters)
        return P, c

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401
        by_P: torch.Tensor,
        by_c: torch.Tensor,
    ) -> tuple[torch.Tensor | None, ...]:
        r, L, P, c, *parameters = ctx.saved_tensors
        twice, by_L, by_r = by_P + by_P.T, None, []
        left, right = twice, by_c  # the gradient of K is their product with F, and with r
        if L is not None:
            both = torch.column_stack([twice @ P + torch.outer(by_c, c), twice, by_c])
            back = torch.linalg.solve_triangular(L.T, both, upper=True)
            by_L, left, right = -back[:, : len(L)].tril(), back[:, len(L) : -1], back[:, -1]
        slopes = [torch.zeros_like(parameter) for parameter in parameters]
        for k, (rows, part) in enumerate(zip(ctx.X.split(BLOCK), r.split(BLOCK), strict=True)):
            with torch.enable_grad():
                own = [parameter.detach().requires_grad_() for parameter in parameters]
                K = ctx.features(rows, *own)
            F = K.detach() if L is None else ctx.parts[k]
            by_K = torch.addmm(torch.outer(right, part), left, F)
            for slope, more in zip(slopes, torch.autograd.grad(K, own, by_K), strict=True):
                slope.add_(more)
            by_r.append(by_c @ F)
        return None, None, torch.cat(by_r), by_L, *slopes


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
        self.profile = PROFILES[kernel]
        self.mean_module = gpytorch.means.ConstantMean()
        own = KERNELS[kernel](ard_num_dims=Z.shape[1], lengthscale_constraint=above(0.0))
        self.covar_module = gpytorch.kernels.ScaleKernel(own, outputscale_constraint=above(0.0))
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=above(LEAST_NOISE)
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
        """AAᵀ, Ar and r."""
        strategy, noise = self.variational_strategy, self.likelihood.noise.sqrt()
        Z, kernel = strategy.inducing_points, self.covar_module
        L = psd_safe_cholesky(kernel(Z).add_jitter(strategy.jitter_val).to_dense())
        r = (y - self.mean_module(X)) / noise
        shape = (Z, kernel.base_kernel.lengthscale, kernel.outputscale)
        if noise**2 < UNSTABLE * kernel.outputscale:
            P, c = RowSums.apply(self._kernel, X, r, L, *shape)
            return P / noise**2, c / noise, r
        G, c = RowSums.apply(self._kernel, X, r, None, *shape)
        both = torch.linalg.solve_triangular(L, torch.column_stack([G, c]), upper=False)
        P = torch.linalg.solve_triangular(L, both[:, :-1].T, upper=False)
        return 0.5 * (P + P.T) / noise**2, both[:, -1] / noise, r

    def _kernel(
        self, X: torch.Tensor, Z: torch.Tensor, lengths: torch.Tensor, amplitude: torch.Tensor
    ) -> torch.Tensor:
        """K(Z, X) at given parameters."""
        U, V = Z / lengths, X / lengths
        squares = (U**2).sum(dim=1)[:, None] + (V**2).sum(dim=1)
        return amplitude * self.profile(torch.addmm(squares, U, V.T, alpha=-2))


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

    def __init__(
        self,
        random_state: int,
        kernel: str = "matern32",
        n_inducing: int = 500,
        batch: int | None = None,
        budget: float = BUDGET,
        rate: float = BATCHED.rate,
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
