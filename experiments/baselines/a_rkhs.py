r"""A-RKHS: a deep Gaussian process whose layers filter Fourier features by a differential equation.

Each process g of a layer answers to a latent force u, a Matérn-3/2 process, as

.. math::
    \beta g' + \alpha g = u, \qquad
    g(t) = \frac{1}{\beta} \int_{-\infty}^t e^{-\gamma (t - \tau)} u(\tau)\, d\tau, \qquad
    \gamma = \alpha / \beta.

Inducing variables are the Fourier features of u (:mod:`experiments.baselines.matern_fourier`), so
that their covariance is the same, and their covariance with g is the filtered one of u: within
[a, b], with s = t − a, Λ = γ + λ and θ = −atan(z/γ),

.. math::
    \beta \operatorname{cov}(u_{\cos}, g) &= \frac{\cos(z s + \theta) - e^{-\gamma s} \cos\theta}
        {\sqrt{z^2 + \gamma^2}} + e^{-\gamma s} \left( \frac{1}{\Lambda}
        + \frac{\lambda}{\Lambda^2} \right), \\
    \beta \operatorname{cov}(u_{\sin}, g) &= \frac{\sin(z s + \theta) - e^{-\gamma s} \sin\theta}
        {\sqrt{z^2 + \gamma^2}} - e^{-\gamma s} \frac{z}{\Lambda^2}.

α and β, which are learned, give each frequency its amplitude and its phase. What decays is the
answer to the force before a. Beyond b the force fades as a Matérn-3/2 kernel does, and the answer
to that has the two integrals

.. math::
    J_p(r) = \int_0^r w^p e^{-\lambda w} e^{-\gamma (r - w)} dw, \qquad p = 0, 1,

in which the covariance of g at a distance τ is written, too:

.. math::
    k(\tau) = \frac{\sigma^2}{\beta^2 \gamma \Lambda^2} \left( (2\lambda + \gamma)(1 + \lambda\tau)
        e^{-\lambda\tau} + 2 \lambda^3 J_1(\tau) \right).

Reference: Shi, Baldwin-McDonald and Álvarez (2024), Adaptive RKHS Fourier features for
compositional Gaussian process models, arXiv:2407.01856.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from experiments.baselines.deep_fourier import DeepFourierGP
from experiments.baselines.matern_fourier import Matern32, Waves

START = {"length": 0.1, "alpha": 3.0, "beta": 0.1}
"""ℓ, α and β at the start, in units of the range of a column: the authors' for steps."""

NEAR, TERMS = 0.5, 14
"""Where |λ − γ|r is below NEAR, J is summed as a series, of so many terms: its error is 1e-16."""


@dataclass(frozen=True)
class FilteredMatern32:
    """d independent filtered processes, each of one input, with the waves of one interval.

    Args:
        waves: the basis of the forces.
        length: ℓ of each force, shape (d,).
        variance: σ² of each force, shape (d,).
        alpha: α of each filter, shape (d,).
        beta: β of each filter, shape (d,).
    """

    waves: Waves
    length: Tensor
    variance: Tensor
    alpha: Tensor
    beta: Tensor

    @property
    def force(self) -> Matern32:
        return Matern32(self.waves, self.length, self.variance)

    def whitening(self) -> Tensor:
        """That of the force."""
        return self.force.whitening()

    def cross(self, t: Tensor) -> Tensor:
        """cov(u, g(t)) for inputs of shape (d, n), one row a process; shape (d, n, waves)."""
        z, rate, gamma = self.waves.z, self.force.decay, (self.alpha / self.beta)[:, None]
        before = (self.waves.start - t).clamp_min(0)
        after = (t - self.waves.end).clamp_min(0)
        s = t.clamp(self.waves.start, self.waves.end) - self.waves.start

        total = gamma + rate
        faded = torch.exp(-rate * before - gamma * (s + after))  # the answer to what was before a
        of_values = faded * (1 / total + rate / total**2 + rate * before / total)
        of_slopes = faded * (1 / total**2 + before / total)

        theta = -torch.atan(z / gamma)[:, None, :]
        amplitude = 1 / (z**2 + gamma**2).sqrt()[:, None, :]
        angles = s[..., None] * z + theta
        ending = torch.exp(-gamma * after)[..., None]  # of the answer to the waves, beyond b
        falling = torch.exp(-gamma * s)[..., None]
        cosines = ending * amplitude * (torch.cos(angles) - falling * torch.cos(theta))
        sines = ending * amplitude * (torch.sin(angles) - falling * torch.sin(theta))

        J0, J1 = answers(after, rate, gamma)
        cosines = cosines + (of_values + J0 + rate * J1)[..., None]
        sines = (sines + z * (J1 - of_slopes)[..., None])[..., 1:]  # the first is zero
        return torch.cat([cosines, sines], dim=-1) / self.beta[:, None, None]

    def covariance(self, distance: Tensor) -> Tensor:
        """k(τ) for distances of shape (d, n), of the same shape."""
        rate, gamma = self.force.decay, (self.alpha / self.beta)[:, None]
        scale = self.variance[:, None] / (self.beta[:, None] ** 2 * gamma * (rate + gamma) ** 2)
        own = (2 * rate + gamma) * (1 + rate * distance) * torch.exp(-rate * distance)
        return scale * (own + 2 * rate**3 * answers(distance, rate, gamma)[1])

    def prior_variance(self) -> Tensor:
        """k(0), shape (d,)."""
        return self.covariance(torch.zeros_like(self.beta)[:, None])[:, 0]


def answers(r: Tensor, rate: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    r"""J₀ and J₁: with x = (λ − γ)r,

    .. math::
        J_0 = r e^{-\lambda r} \frac{e^x - 1}{x}, \qquad
        J_1 = r^2 e^{-\lambda r} \frac{e^x - 1 - x}{x^2}.

    Where γ ≈ λ both quotients are differences of equal numbers, and are summed as series in x.
    """
    x = (rate - gamma) * r
    near = x.abs() < NEAR
    small, large = torch.where(near, x, 0), torch.where(near, 1, x)  # neither branch may be NaN
    fading, answer = torch.exp(-rate * r), torch.exp(-gamma * r)
    first = [fading * series(small, p) for p in (1, 2)]
    second = [(answer - fading) / large, (answer - fading * (1 + large)) / large**2]
    J0, J1 = (torch.where(near, a, b) for a, b in zip(first, second, strict=True))
    return r * J0, r**2 * J1


def series(x: Tensor, p: int) -> Tensor:
    """Σ xᵏ/(k + p)!, which is (eˣ − 1)/x for p = 1 and (eˣ − 1 − x)/x² for p = 2."""
    total = torch.zeros_like(x)
    for k in reversed(range(TERMS)):
        total = total * x + 1 / math.factorial(k + p)
    return total


class AdaptiveRKHS(DeepFourierGP):
    """The deep process of filtered layers.

    Args:
        random_state: seed of batches and samples.
        settings: as :class:`DeepFourierGP` has them.
    """

    def __init__(self, random_state: int, **settings: Any) -> None:  # noqa: ANN401 - see the base
        super().__init__(FilteredMatern32, START, random_state, **settings)
