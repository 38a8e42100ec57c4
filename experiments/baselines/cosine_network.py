"""The networks of deep random features; :mod:`experiments.baselines.drf` has their equations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats.qmc import LatinHypercube
from torch import Tensor

LENGTHS, AMPLITUDES, NOISES, DEPTHS = (0.1, 10.0), (0.1, 1.0), (1e-3, 0.3), (2, 4)
"""Bounds of ℓ, a and σ², between which their logarithms are uniform, and the numbers of layers.

σ² goes further up than the authors', as tables are noisier than theirs, and less far down, where it
would regularise nothing.
"""


@dataclass(frozen=True)
class Choice:
    """Hyperparameters, selected on held-out rows.

    Args:
        length: ℓ, in units of the square root of the number of inputs of a layer.
        amplitude: a.
        noise: σ², in variances of y, of the loss only.
        n_layers: L.
    """

    length: float
    amplitude: float
    noise: float
    n_layers: int


def choices(n: int, rng: np.random.Generator) -> list[Choice]:
    """One in the middle, and n − 1 that fill the ranges evenly: a Latin hypercube."""
    low, high = np.log([LENGTHS, AMPLITUDES, NOISES]).T
    points = LatinHypercube(4, rng=rng).random(n - 1)
    values = np.exp(low + (high - low) * points[:, :3])
    depths = np.array(DEPTHS)[(points[:, 3] * len(DEPTHS)).astype(int)]
    others = [
        Choice(float(length), float(amplitude), float(noise), int(depth))
        for (length, amplitude, noise), depth in zip(values, depths, strict=True)
    ]
    return [Choice(1.0, 1.0, 0.01, DEPTHS[0]), *others]


@dataclass(frozen=True)
class CosineLayer:
    """φ, with its draws.

    Args:
        frequencies: W, transposed: shape (inputs, H).
        phases: b, shape (H,).
        amplitude: a.
    """

    frequencies: Tensor
    phases: Tensor
    amplitude: float

    @classmethod
    def draw(cls, inputs: int, width: int, length: float, amplitude: float) -> CosineLayer:
        frequencies = torch.randn(inputs, width) / length
        return cls(frequencies, 2 * math.pi * torch.rand(width), amplitude)

    def __call__(self, h: Tensor) -> Tensor:
        scale = self.amplitude * math.sqrt(2 / len(self.phases))
        return scale * torch.cos(h @ self.frequencies + self.phases)


@dataclass(frozen=True)
class Network:
    """A member of the ensemble.

    Args:
        layers: fixed.
        maps: Θ of each layer, shape (H, bottleneck), and at last (H, 1).
    """

    layers: tuple[CosineLayer, ...]
    maps: tuple[Tensor, ...]

    @classmethod
    def draw(cls, d: int, width: int, bottleneck: int, choice: Choice) -> Network:
        inputs = [d, *[bottleneck + d] * (choice.n_layers - 1)]
        outputs = [*[bottleneck] * (choice.n_layers - 1), 1]
        layers = [
            CosineLayer.draw(k, width, choice.length * math.sqrt(k), choice.amplitude)
            for k in inputs
        ]
        maps = [torch.randn(width, k).requires_grad_() for k in outputs]
        return cls(tuple(layers), tuple(maps))

    def __call__(self, X: Tensor) -> Tensor:
        """f, shape (n,)."""
        return (self.last_features(X) @ self.maps[-1])[:, 0]

    def last_features(self, X: Tensor) -> Tensor:
        """φ of the last layer, shape (n, H)."""
        phi = self.layers[0](X)
        for layer, mapped in zip(self.layers[1:], self.maps, strict=False):  # all but the last map
            phi = layer(torch.cat([phi @ mapped, X], dim=1))
        return phi

    def move_last(self, X: Tensor, y: Tensor, noise: float) -> None:
        """Move the last map Θ to the minimum of ‖y − ΦΘ‖²/σ² + ‖Θ − its draw‖²."""
        with torch.no_grad():
            phi, last = self.last_features(X).double(), self.maps[-1]
            residuals = y[:, None].double() - phi @ last.double()
            A = phi.T @ phi
            A.diagonal().add_(noise)
            last.add_(torch.cholesky_solve(phi.T @ residuals, torch.linalg.cholesky(A)))

    def loss(self, X: Tensor, y: Tensor, noise: float, n_rows: int) -> Tensor:
        """The negative log posterior per row, without its constants, estimated from a batch."""
        penalties = [(mapped**2).sum() for mapped in self.maps]
        misfit = ((y - self(X)) ** 2).mean() / noise
        return 0.5 * (misfit + torch.stack(penalties).sum() / n_rows)
