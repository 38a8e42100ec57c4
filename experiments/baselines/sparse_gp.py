r"""A sparse variational Gaussian process: M inducing points stand for all rows.

.. math::
    q(f) = \int p(f \mid u)\, q(u)\, du, \quad u = f(Z), \quad q(u) = N(m, S), \qquad
    \log p(y) \ge \sum_n E_{q}[\log p(y_n \mid f_n)] - \mathrm{KL}(q(u) \,\|\, p(u)).

The bound is a sum over rows, so a mini-batch gives an unbiased estimate of it and a step costs
O(BM² + M³) whatever n. Z, the kernel and the noise follow Adam; m and S follow natural gradients,
for which the bound with a Gaussian likelihood is quadratic: a full step on all rows finds the best
q, and with Z all rows that is the exact posterior.

If a step takes all rows, q need not be followed, for at its best the bound is a function of the
other parameters alone: with A = L⁻¹K(Z, X)/σ, LLᵀ = K(Z, Z), and r = (y − μ)/σ,

.. math::
    \log N(r \mid 0, I + A^\top A) - n \log \sigma
    - \tfrac12 \sum_n \bigl(k(x_n, x_n)/\sigma^2 - \|A_n\|^2\bigr).

References: Hensman, Fusi and Lawrence (2013), Gaussian processes for big data; Titsias (2009),
Variational learning of inducing variables. The model and the bound of a batch are gpytorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import gpytorch
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky


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

UNSTABLE = 1e-3
"""Noise below so much of the amplitude would be lost in K(Z, X)K(X, Z), whose condition is that of
K squared: then L⁻¹K(Z, X) is formed first, at twice the cost."""

BLOCK = 1024
"""Rows that are summed together."""


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
