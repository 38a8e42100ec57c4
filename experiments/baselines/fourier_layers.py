r"""Layers of processes that are seen through Fourier features, and their composition.

Each output of a layer, its unit, is an additive process of the d inputs: a sum of d processes of
one input each,

.. math:: g_p(t) = \sum_i g_{pi}(t_i),

of which all units have the same kernels, one for each input. The inducing variables u of a process
have the posterior

.. math::
    q(u) = N(V^{-1} m,\; V^{-1} S V^{-\top}), \qquad V^\top V = K_{uu}^{-1},

so that m = 0 and S = I are the prior, and with c(t) = cov(u, g(t)) the marginal of a process is

.. math::
    g_{pi}(t) \sim N\!\left(c^\top V^\top m,\; k(t, t) + c^\top V^\top (S - I) V c\right).

The waves live on [−1, 1], and the inputs in [−½, ½]. Hidden layers carry a point through a sample
of these marginals, with a linear map as their mean, and squash it so that it stays within the
waves:

.. math::
    h \mapsto \tanh (W h + g(h)).

W is the identity; where there are fewer units than inputs, it has principal directions instead. How
columns interact is up to the hidden units, so that more than one column needs more than one layer.
Posteriors and parameters are those of the bound

.. math::
    \sum_n E_q \log p(y_n \mid f_n) - \sum_{\text{layers}} KL(q(u) \,\|\, p(u)),

whose expectation is a mean over samples of the hidden layers, and Gaussian in the last. References:
Salimbeni and Deisenroth (2017), Doubly stochastic variational inference for deep Gaussian
processes; Rudner, Sejdinovic and Gal (2020), Inter-domain deep Gaussian processes.
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
"""Prior variance of hidden units, and of the noise, at the start."""

WIDEST = 16
"""Units of a hidden layer, at most: as many as there are columns."""

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
    """Units, and the posteriors of the inducing variables of their processes.

    Args:
        family: makes the processes of one unit.
        waves: the basis, in which the inputs lie.
        logarithms: of the parameters that ``family`` takes, each of shape (d,).
        mean: m, shape (units, d, waves).
        factor: a matrix whose lower triangle F has FFᵀ = S, shape (units, d, waves, waves).
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
        shape: tuple[int, int],
        prior_variance: float,
        spread: float,
    ) -> Layer:
        """A layer with S = spread · I and m = 0.

        Args:
            family: makes the processes.
            waves: the basis.
            values: parameters of the family but its ``variance``, which k(t, t) is linear in.
            shape: number of units, and d.
            prior_variance: of a unit, in equal parts from its d processes.
            spread: S.
        """
        units, d = shape
        columns, eye = torch.ones(d).double(), torch.eye(len(waves)).double()
        parameters = {name: value * columns for name, value in values.items()}
        unit = family(waves, **parameters, variance=columns).prior_variance()
        parameters["variance"] = prior_variance / (d * unit)
        return cls(
            family,
            waves,
            {name: _free(value.log()) for name, value in parameters.items()},
            _free(torch.zeros(units, d, len(waves)).double()),
            _free(math.sqrt(spread) * eye.repeat(units, d, 1, 1)),
        )

    def parameters(self) -> Iterator[Tensor]:
        yield from (*self.logarithms.values(), self.mean, self.factor)

    def process(self) -> Process:
        values = {name: logarithm.exp() for name, logarithm in self.logarithms.items()}
        return self.family(self.waves, **values)

    def marginals(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of the units at inputs of shape (d, n); of shape (units, n)."""
        process, F = self.process(), self.factor.tril()
        C, V = process.cross(t), process.whitening()
        means = (C @ (V.mT @ self.mean[..., None]))[..., 0]
        excess = V.mT @ (F @ F.mT @ V - V)  # Vᵀ(S − I)V
        excesses = ((C @ excess) * C).sum(dim=-1)
        variance = process.prior_variance().sum() + excesses.sum(dim=1)
        # A difference of equal numbers where the waves determine g: it may round below zero.
        return means.sum(dim=1), variance.clamp_min(SMALLEST)

    def divergence(self) -> Tensor:
        """KL(q(u) ‖ p(u)), which is that of N(m, S) from N(0, I)."""
        F = self.factor.tril()
        log_determinant = F.diagonal(dim1=-2, dim2=-1).abs().log().sum()
        return 0.5 * ((F**2).sum() + (self.mean**2).sum() - self.mean.numel()) - log_determinant


@dataclass(frozen=True)
class DeepProcess:
    """Layers, and the linear means of the hidden ones.

    Args:
        layers: of which the last, of one unit, gives f.
        maps: W of every layer but the last, shape (units, d); they are not learned.
        log_noise: the logarithm of the noise variance.
    """

    layers: tuple[Layer, ...]
    maps: tuple[Tensor, ...]
    log_noise: Tensor

    def parameters(self) -> list[Tensor]:
        own = [parameter for layer in self.layers for parameter in layer.parameters()]
        return [*own, self.log_noise]

    def sample(self, X: Tensor, n_samples: int) -> tuple[Tensor, Tensor]:
        """Mean and variance of f given samples of the hidden layers, shape (n_samples, n)."""
        h, copies = X.T, 1
        for layer, W in zip(self.layers[:-1], self.maps, strict=True):
            mean, variance = layer.marginals(h)
            h = W @ h
            if copies == 1:  # the inputs themselves are no sample: there it is enough to ask once
                copies = n_samples
                h, mean, variance = (part.repeat(1, copies) for part in (h, mean, variance))
            g = mean + variance.sqrt() * torch.randn_like(mean)
            h = EDGE * torch.tanh((h + g) / EDGE)
        mean, variance = (part[0] for part in self.layers[-1].marginals(h))
        return mean.view(copies, -1), variance.view(copies, -1)

    def negative_bound(self, X: Tensor, y: Tensor, n_rows: int, n_samples: int) -> Tensor:
        """An unbiased estimate, per row, from a batch of the rows."""
        mean, variance = self.sample(X, n_samples)
        squares = (y - mean) ** 2 + variance
        misfit = squares.mean() / self.log_noise.exp() + self.log_noise + math.log(2 * math.pi)
        divergences = [layer.divergence() for layer in self.layers]
        return 0.5 * misfit + torch.stack(divergences).sum() / n_rows


def start(
    family: Family, values: Mapping[str, float], X: Tensor, n_layers: int, n_frequencies: int
) -> DeepProcess:
    """Hidden layers that are linear, nearly, and f of prior variance one, for inputs like X."""
    waves = Waves(-EDGE, EDGE, n_frequencies)
    hidden, maps = [], []
    for _ in range(n_layers - 1):
        W = linear_map(X)
        hidden.append(Layer.start(family, waves, values, tuple(W.shape), HIDDEN_VARIANCE, INNER))
        maps.append(W)
        X = X @ W.T
    last = Layer.start(family, waves, values, (1, X.shape[1]), 1.0, OUTER)
    return DeepProcess((*hidden, last), tuple(maps), _free(torch.tensor(math.log(NOISE)).double()))


def linear_map(X: Tensor) -> Tensor:
    """W: the identity, or of more columns principal directions, scaled to stay in [−½, ½]."""
    d = X.shape[1]
    if d <= WIDEST:
        return torch.eye(d).double()
    directions = torch.linalg.svd(X - X.mean(dim=0), full_matrices=False)[2][:WIDEST]
    return directions / (2 * (X @ directions.T).abs().amax(dim=0)[:, None])


def _free(value: Tensor) -> Tensor:
    return value.detach().clone().requires_grad_()
