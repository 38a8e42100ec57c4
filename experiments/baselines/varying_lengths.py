r"""A Gaussian process whose lengths vary with place.

.. math::
    k(x, x') = a^2 \prod_i \sqrt{\frac{2 \ell_i \ell'_i}{\ell_i^2 + \ell_i'^2}}\; R(\sqrt{Q}),
    \qquad Q = \sum_i \frac{2 (x_i - x'_i)^2}{\ell_i^2 + \ell_i'^2}, \quad \ell_i = \ell_i(x),

with R squared exponential or Matérn-3/2. The product, which is of order d/2 where all ℓ are the
same, keeps k positive definite: k is the integral over u of two bumps about x and x′, of widths
ℓ(x) and ℓ(x′), for the first R, and a mixture of such over widths for the second.

The logarithms of lengths are Gaussian processes themselves, given by their values at a few
pseudo-inputs P:

.. math::
    \log \ell_i(x) = \log c_i + \kappa(x, P) L^{-\top} v_i, \qquad LL^\top = \kappa(P, P),
    \quad v_i \sim N(0, I),

with κ squared exponential, of variance one and a length ρ. Where columns are many one v serves all
of them, :math:`\ell_i(x) = c_i\, g(x)`, and the sums over columns are matrix products. References:
Gibbs (1997), Bayesian Gaussian processes for regression and classification; Paciorek and Schervish
(2003), Nonstationary covariance functions for Gaussian process regression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

import torch
from torch import Tensor

QUIETEST = 1e-7
"""The least noise variance, in variances of y, with which covariances keep their factors."""

REACH_DEVIATION = 1.0
"""Prior standard deviation of log ρ about its start."""

Profile = Callable[[Tensor], Tensor]
"""R(√Q) of Q."""


def squared_exponential(Q: Tensor) -> Tensor:
    """e^(−Q/2)."""
    return torch.exp(-0.5 * Q)


def matern32(Q: Tensor) -> Tensor:
    """(1 + r) e^(−r) with r² = 3Q, kept from zero, where a root has no slope."""
    r = (3 * Q).clamp_min(1e-24).sqrt()
    return (1 + r) * torch.exp(-r)


KERNELS: Mapping[str, Profile] = MappingProxyType({"se": squared_exponential, "matern32": matern32})


def correlation(profile: Profile, X: Tensor, lengths: Tensor, V: Tensor, others: Tensor) -> Tensor:
    """k/a² of all rows x of X and v of V, shape (n, m), given the lengths at both.

    Args:
        profile: R(√Q).
        X: shape (n, d).
        lengths: ℓ(x), shape (n, d).
        V: shape (m, d).
        others: ℓ(v), shape (m, d).
    """
    Q, product = torch.zeros(()), torch.ones(())
    for x, ell, v, other in zip(X.T, lengths.T, V.T, others.T, strict=True):
        narrowness = 2 / ((ell**2)[:, None] + other**2)
        Q = Q + (x[:, None] - v) ** 2 * narrowness
        product = product * narrowness
    sizes = lengths.prod(dim=1)[:, None] * others.prod(dim=1)
    return (sizes * product).sqrt() * profile(Q)


def common_correlation(profile: Profile, U: Tensor, g: Tensor, V: Tensor, h: Tensor) -> Tensor:
    """The same where all lengths are ℓ_i(x) = c_i g(x), and rows are in units of c.

    Args:
        profile: R(√Q).
        U: x/c, shape (n, d).
        g: g(x), shape (n, 1).
        V: v/c, shape (m, d).
        h: g(v), shape (m, 1).
    """
    mean_square = 0.5 * (g**2 + (h**2).T)
    squares = (U**2).sum(dim=1)[:, None] + (V**2).sum(dim=1) - 2 * U @ V.T
    return (g * h.T / mean_square) ** (U.shape[1] / 2) * profile(squares / mean_square)


@dataclass(frozen=True)
class Parameters:
    """What is learned.

    Args:
        log_lengths: log c, shape (d,).
        whites: v, shape (pseudo-inputs, d), or (pseudo-inputs, 1) for one that serves all columns.
        log_reach: log ρ.
        log_variance: log a².
        log_noise: the logarithm of the noise variance, above QUIETEST.
    """

    log_lengths: Tensor
    whites: Tensor
    log_reach: Tensor
    log_variance: Tensor
    log_noise: Tensor

    def tensors(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def variance(self) -> Tensor:
        return self.log_variance.exp()

    @property
    def noise(self) -> Tensor:
        return QUIETEST + self.log_noise.exp()


@dataclass(frozen=True)
class VaryingGP:
    """The process, without its rows.

    Args:
        profile: R(√Q).
        places: pseudo-inputs P, shape (m, d).
        reach: ρ at the start, about which its prior lies.
        parameters: what is learned.
    """

    profile: Profile
    places: Tensor
    reach: float
    parameters: Parameters

    def lengths(self, X: Tensor) -> Tensor:
        """ℓ(x), shape (n, d)."""
        return self.parameters.log_lengths.exp() * self._relative(X)

    def _relative(self, X: Tensor) -> Tensor:
        """ℓ(x)/c, of the shape of X or, if one v serves all columns, (n, 1)."""
        grid = self._kappa(self.places) + 1e-6 * torch.eye(len(self.places)).double()
        L = torch.linalg.cholesky(grid)
        weights = torch.linalg.solve_triangular(L.T, self.parameters.whites, upper=True)
        return torch.exp(self._kappa(X) @ weights)

    def _kappa(self, X: Tensor) -> Tensor:
        return torch.exp(
            -0.5 * (torch.cdist(X, self.places) / self.parameters.log_reach.exp()) ** 2
        )

    def covariance(self, X: Tensor, V: Tensor) -> Tensor:
        """k(x, v) of all rows, without the noise."""
        if self.parameters.whites.shape[1] < X.shape[1]:
            units = self.parameters.log_lengths.exp()
            found = common_correlation(
                self.profile, X / units, self._relative(X), V / units, self._relative(V)
            )
        else:
            found = correlation(self.profile, X, self.lengths(X), V, self.lengths(V))
        return self.parameters.variance * found

    def log_evidence(self, X: Tensor, y: Tensor) -> Tensor:
        r"""log p(y), whose gradient is that of a product:

        .. math::
            \partial \log p(y) = \operatorname{tr}(W\, \partial K), \qquad
            W = \tfrac12 (\alpha\alpha^\top - K^{-1}), \quad \alpha = K^{-1} y.

        W is taken as given, so that no factorisation has to be differentiated.
        """
        K = self.covariance(X, X) + self.parameters.noise * torch.eye(len(X)).double()
        with torch.no_grad():
            L = torch.linalg.cholesky(K)
            alpha = torch.cholesky_solve(y[:, None], L)
            W = 0.5 * (alpha @ alpha.T - torch.cholesky_inverse(L))
            half_log_determinant = L.diagonal().log().sum()
            value = -0.5 * y @ alpha[:, 0] - half_log_determinant
        climbed = (W * K).sum()
        return value - 0.5 * len(y) * math.log(2 * math.pi) + climbed - climbed.detach()

    def log_prior(self) -> Tensor:
        """Of v and of ρ, without its constants."""
        surprise = (self.parameters.log_reach - math.log(self.reach)) / REACH_DEVIATION
        return -0.5 * ((self.parameters.whites**2).sum() + surprise**2)
