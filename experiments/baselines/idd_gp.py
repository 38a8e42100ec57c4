"""IDD-GP: a deep Gaussian process whose layers use Fourier features of Matérn-3/2 processes.

Each layer's inducing variables are projections on waves, not values at inducing points: see
:mod:`experiments.baselines.matern_fourier` for one layer and
:mod:`experiments.baselines.deep_fourier` for their composition. Reference: Rudner, Sejdinovic and
Gal (2020), Inter-domain deep Gaussian processes, arXiv:2011.00415.
"""

from __future__ import annotations

from typing import Any

from experiments.baselines.deep_fourier import DeepFourierGP
from experiments.baselines.matern_fourier import Matern32

LENGTH = 0.1
"""ℓ at the start, in units of the range of a column."""


class IDDGP(DeepFourierGP):
    """The deep process of Matérn-3/2 layers.

    Args:
        random_state: seed of batches and samples.
        settings: as :class:`DeepFourierGP` has them.
    """

    def __init__(self, random_state: int, **settings: Any) -> None:  # noqa: ANN401 - see the base
        super().__init__(Matern32, {"length": LENGTH}, random_state, **settings)
