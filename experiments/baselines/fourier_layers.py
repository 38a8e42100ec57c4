r"""Layers of processes that are seen through Fourier features, and their composition.

A layer has one process for each of its d inputs. Its inducing variables u have the posterior

.. math::
    q(u) = N(V^{-1} m,\; V^{-1} S V^{-\top}), \qquad V^\top V = K_{uu}^{-1},

so that m = 0 and S = I are the prior, and with c(t) = cov(u, g(t)) the marginal of a process is

.. math::
    g(t) \sim N\!\left(c^\top V^\top m,\; k(t, t) + c^\top V^\top (S - I) V c\right).

The waves live on [−1, 1], and the inputs in [−½, ½]. Hidden layers carry a point through a sample
of these marginals, with the identity as their mean, mix the columns linearly, and squash them so
that they stay within the waves:

.. math::
    h \mapsto \tanh A (h + g(h)), \qquad A = I \text{ at the start.}

The last layer is additive, :math:`f = \sum_i g_i(h_i)`: how columns interact is up to A, so that
more than one column needs more than one layer. Posteriors and parameters are those of the bound

.. math::
    \sum_n E_q \log p(y_n \mid f_n) - \sum_{\text{layers}} KL(q(u) \,\|\, p(u)),

whose expectation is a mean over samples of the hidden layers, and Gaussian in the last. Reference:
Salimbeni and Deisenroth (2017), Doubly stochastic variational inference for deep Gaussian
processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from experiments.baselines.matern_fourier import Waves

EDGE = 1.0
"""Waves are on [−EDGE, EDGE], twice as wide as the data: as periodic functions they would tie one
end of the data to the other."""

INNER, OUTER = 1e-5, 0.01
"""S at the start. Hidden layers begin as the identity, nearly without noise; the last one would
spend its first hundreds of steps on narrowing S from the prior's."""

HIDDEN_VARIANCE, NOISE = 0.01, 0.01
"""Prior variance of hidden processes, and of the noise, at the start."""

SMALLEST = 1e-12
"""A variance that stands for none, so that its square root has a slope."""


class Process(Protocol):
    """d processes, each of one input, and their inducing variables u."""

    def cross(self, t: Tensor) -> Tensor:
        """cov(u, g(t)), shape (d, n, waves) for inputs of shape (d, n)."""

    def prior_variance(self) -> Tensor:
        """k(t, t), shape (d,)."""

    def whitening(self) -> Tensor:
        """V, shape (d, waves, waves)."""


Family = Callable[..., Process]
"""A process of the waves and of positive parameters, by their names."""


@dataclass(frozen=True)
class Layer:
    """Processes and the posterior of their inducing variables.

    Args:
        family: makes the processes.
        waves: the basis, in which the inputs lie.
        logarithms: of the parameters that ``family`` takes, each of shape (d,).
        mean: m, shape (d, waves).
        factor: a matrix whose lower triangle F has FFᵀ = S, shape (d, waves, waves).
    """

    family: Family
    waves: Waves
    logarithms: Mapping[str, Tensor]
    mean: Tensor
    factor: Tensor

    @classmethod
    def start(
        cls,
        family: Family,
        waves: Waves,
        values: Mapping[str, float],
        d: int,
        prior_variance: float,
        spread: float,
    ) -> Layer:
        """A layer with S = spread · I and m = 0.

        Args:
            family: makes the processes.
            waves: the basis.
            values: parameters of the family but its ``variance``, which k(t, t) is linear in.
            d: number of processes.
            prior_variance: k(t, t).
            spread: S.
        """
        columns, eye = torch.ones(d).double(), torch.eye(len(waves)).double()
        parameters = {name: value * columns for name, value in values.items()}
        unit = family(waves, **parameters, variance=columns).prior_variance()
        parameters["variance"] = prior_variance / unit
        return cls(
            family,
            waves,
            {name: _free(value.log()) for name, value in parameters.items()},
            _free(torch.zeros(d, len(waves)).double()),
            _free(math.sqrt(spread) * eye.repeat(d, 1, 1)),
        )

    def parameters(self) -> Iterator[Tensor]:
        yield from (*self.logarithms.values(), self.mean, self.factor)

    def process(self) -> Process:
        values = {name: logarithm.exp() for name, logarithm in self.logarithms.items()}
        return self.family(self.waves, **values)

    def marginals(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of g at inputs of shape (d, n), of the same shape."""
        process, F = self.process(), self.factor.tril()
        C, V = process.cross(t), process.whitening()
        mean = C @ (V.mT @ self.mean[:, :, None])
        excess = V.mT @ (F @ F.mT @ V - V)  # Vᵀ(S − I)V
        variance = process.prior_variance()[:, None] + ((C @ excess) * C).sum(dim=-1)
        # A difference of equal numbers where the waves determine g: it may round below zero.
        return mean[..., 0], variance.clamp_min(SMALLEST)

    def divergence(self) -> Tensor:
        """KL(q(u) ‖ p(u)), which is that of N(m, S) from N(0, I)."""
        F = self.factor.tril()
        log_determinant = F.diagonal(dim1=-2, dim2=-1).abs().log().sum()
        return 0.5 * ((F**2).sum() + (self.mean**2).sum() - self.mean.numel()) - log_determinant


@dataclass(frozen=True)
class DeepProcess:
    """Layers, and the linear maps A between them.

    Args:
        layers: of which the last gives f.
        mixes: A of every layer but the last, shape (d, d).
        log_noise: the logarithm of the noise variance.
    """

    layers: tuple[Layer, ...]
    mixes: tuple[Tensor, ...]
    log_noise: Tensor

    def parameters(self) -> list[Tensor]:
        own = [parameter for layer in self.layers for parameter in layer.parameters()]
        return [*own, *self.mixes, self.log_noise]

    def sample(self, X: Tensor, n_samples: int) -> tuple[Tensor, Tensor]:
        """Mean and variance of f given samples of the hidden layers, shape (n_samples, n)."""
        h, copies = X.T, 1
        for layer, mix in zip(self.layers[:-1], self.mixes, strict=True):
            mean, variance = layer.marginals(h)
            if copies == 1:  # the inputs themselves are no sample: there it is enough to ask once
                copies = n_samples
                h, mean, variance = (part.repeat(1, copies) for part in (h, mean, variance))
            g = mean + variance.sqrt() * torch.randn_like(mean)
            h = EDGE * torch.tanh(mix @ (h + g) / EDGE)
        mean, variance = (part.sum(dim=0) for part in self.layers[-1].marginals(h))
        return mean.view(copies, -1), variance.view(copies, -1)

    def negative_bound(self, X: Tensor, y: Tensor, n_rows: int, n_samples: int) -> Tensor:
        """An unbiased estimate, per row, from a batch of the rows."""
        mean, variance = self.sample(X, n_samples)
        squares = (y - mean) ** 2 + variance
        misfit = squares.mean() / self.log_noise.exp() + self.log_noise + math.log(2 * math.pi)
        divergences = [layer.divergence() for layer in self.layers]
        return 0.5 * misfit + torch.stack(divergences).sum() / n_rows


def start(
    family: Family, values: Mapping[str, float], d: int, n_layers: int, n_frequencies: int
) -> DeepProcess:
    """Hidden layers that are the identity, nearly, and f of prior variance one."""
    waves = Waves(-EDGE, EDGE, n_frequencies)
    hidden = [
        Layer.start(family, waves, values, d, HIDDEN_VARIANCE, INNER) for _ in range(n_layers - 1)
    ]
    last = Layer.start(family, waves, values, d, 1 / d, OUTER)
    mixes = tuple(_free(torch.eye(d).double()) for _ in hidden)
    return DeepProcess((*hidden, last), mixes, _free(torch.tensor(math.log(NOISE)).double()))


def _free(value: Tensor) -> Tensor:
    return value.detach().clone().requires_grad_()
