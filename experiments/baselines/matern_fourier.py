r"""Fourier features of a Matérn-3/2 process: inducing variables that are not values of it.

On an interval [a, b] the process f, of variance σ² and λ = √3/ℓ, has a reproducing kernel Hilbert
space with

.. math::
    \langle g, h \rangle = \frac{1}{4 \lambda^3 \sigma^2} \int_a^b (\lambda + \partial)^2 g\,
        (\lambda + \partial)^2 h\, dt + \frac{g(a) h(a)}{\sigma^2}
        + \frac{g'(a) h'(a)}{\lambda^2 \sigma^2}.

Waves of whole periods, z = 2πm/(b − a), are its functions

.. math::
    \phi = (1, \cos z(t - a), \dots, \sin z(t - a), \dots), \qquad u_m = \langle f, \phi_m \rangle,

and the covariance of u_m with f(t) is φ_m(t) itself, by the reproducing property. Beyond the
interval it is what is left of a boundary value, which decays as the kernel does:

.. math::
    \operatorname{cov}(u_{\cos}, f(t)) = (1 + \lambda r) e^{-\lambda r}, \qquad
    \operatorname{cov}(u_{\sin}, f(t)) = \pm z r e^{-\lambda r},

for t at a distance r, with the plus beyond b. Products of the waves are orthogonal, so that the
covariance of u is a diagonal and one outer product each for cosines and sines, from the boundary:

.. math::
    K_{uu} = \frac{b - a}{8 \lambda^3 \sigma^2} \operatorname{diag} (\lambda^2 + z^2)^2
        + \frac{1}{\sigma^2} (1 1^\top \oplus \tfrac{z}{\lambda} \tfrac{z}{\lambda}^\top),

with twice that diagonal at z = 0. Waves are equal at both ends. However many there are, they
miss the difference of f(a) and f(b) and of the slopes there: data belong a few ℓ away from the
ends. References: Hensman, Durrande and Solin (2018), Variational Fourier features for Gaussian
processes; Rudner, Sejdinovic and Gal (2020), Inter-domain deep Gaussian processes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Waves:
    """The constant, cosines and sines of whole periods on an interval.

    Args:
        start: a.
        end: b.
        n_frequencies: how many cosines and sines; with the constant, 2 n_frequencies + 1 waves.
    """

    start: float
    end: float
    n_frequencies: int

    @property
    def width(self) -> float:
        return self.end - self.start

    @property
    def z(self) -> Tensor:
        """Frequencies of the cosines, of which the first is the constant."""
        m = torch.arange(self.n_frequencies + 1, dtype=torch.float64)
        return 2 * math.pi / self.width * m

    def __len__(self) -> int:
        return 2 * self.n_frequencies + 1


@dataclass(frozen=True)
class Matern32:
    """d independent processes, each of one input, with the waves of one interval.

    Args:
        waves: the basis.
        length: ℓ of each process, shape (d,).
        variance: σ² of each process, shape (d,).
    """

    waves: Waves
    length: Tensor
    variance: Tensor

    @property
    def decay(self) -> Tensor:
        """λ, shape (d, 1)."""
        return (math.sqrt(3) / self.length)[:, None]

    def cross(self, t: Tensor) -> Tensor:
        """cov(u, f(t)) for inputs of shape (d, n), one row a process; shape (d, n, waves)."""
        z, rate = self.waves.z, self.decay
        inside = t.clamp(self.waves.start, self.waves.end)
        beyond = t - inside
        fading = torch.exp(-rate * beyond.abs())
        angles = (inside - self.waves.start)[..., None] * z
        cosines = torch.cos(angles) * ((1 + rate * beyond.abs()) * fading)[..., None]
        sines = (torch.sin(angles) + z * (beyond * fading)[..., None])[..., 1:]  # the first is zero
        return torch.cat([cosines, sines], dim=-1)

    def prior_variance(self) -> Tensor:
        """Of f(t), the same at every t; shape (d,)."""
        return self.variance

    def diagonal(self) -> Tensor:
        """Of K_uu without its outer products, shape (d, waves)."""
        z, rate = self.waves.z, self.decay
        scale = self.waves.width / (8 * rate**3 * self.variance[:, None])
        once = scale * (rate**2 + z**2) ** 2
        return torch.cat([2 * once[:, :1], once[:, 1:], once[:, 1:]], dim=-1)

    def outer_factors(self) -> tuple[Tensor, Tensor]:
        """Vectors w whose wwᵀ, with the diagonal, are K_uu; for cosines and sines, (d, waves)."""
        z, deviation = self.waves.z, self.variance.sqrt()[:, None]
        of_values, of_slopes = torch.ones_like(z) / deviation, z[1:] / (self.decay * deviation)
        return (
            torch.cat([of_values, torch.zeros_like(of_slopes)], dim=-1),
            torch.cat([torch.zeros_like(of_values), of_slopes], dim=-1),
        )

    def whitening(self) -> Tensor:
        r"""V, with :math:`V^\top V = K_{uu}^{-1}`, so that Vu is white; shape (d, waves, waves).

        Woodbury's identity has a square root: with D the diagonal and :math:`v = D^{-1/2} w`,

        .. math::
            (I + v v^\top)^{-1/2} = I - \frac{v v^\top}{\sqrt{1 + s} (\sqrt{1 + s} + 1)},
            \qquad s = v^\top v,

        and the two v, of cosines and of sines, are orthogonal.
        """
        root = self.diagonal().sqrt()
        V = torch.diag_embed(torch.ones_like(root))
        for w in self.outer_factors():
            v = w / root
            grown = (1 + (v**2).sum(dim=-1)).sqrt()
            V = V - (v[:, :, None] * v[:, None, :]) / (grown * (grown + 1))[:, None, None]
        return V / root[:, None, :]
