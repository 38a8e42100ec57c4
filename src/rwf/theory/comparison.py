"""Constants and bounds of several wavelets beside each other: the paper's last corollary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rwf.features.wavelet import Normalization
from rwf.theory.bounds import ErrorBound, Version, on_rows, uniform, variance_bound
from rwf.theory.constants import FeatureConstants, wavelet_constants
from rwf.wavelets import as_wavelet


@dataclass(frozen=True)
class Setting:
    """Atoms with shifts uniform in the box (low, high)^d, and the error to be bounded.

    Args:
        d: dimension of the inputs.
        scales: lowest and highest scale, in the units of the domain.
        domain: low and high end of every column.
        n_atoms: D.
        eps: error in k.
        delta: probability that the error is larger.
        n_rows: rows of the bound over pairs of rows.
        normalization: "energy" is the paper's, "peak" the regressors' default.
    """

    d: int = 1
    scales: tuple[float, float] = (2.0**-4, 2.0**2)
    domain: tuple[float, float] = (0.0, 1.0)
    n_atoms: int = 1000
    eps: float = 0.1
    delta: float = 0.1
    n_rows: int = 1000
    normalization: Normalization = "energy"

    def __post_init__(self) -> None:
        low, high = self.domain
        if not -np.inf < low < high < np.inf:
            raise ValueError(f"domain=({low}, {high}) is no interval: give low < high, finite.")
        for name in ("d", "n_atoms", "n_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least one.")
        if not 0 < self.eps < np.inf:
            raise ValueError(f"eps={self.eps} must be positive: it is the error allowed in k.")
        if not 0 < self.delta < 1:
            raise ValueError(f"delta={self.delta} is a probability: give one between 0 and 1.")
        if self.normalization not in ("energy", "peak"):
            raise ValueError(f"normalization={self.normalization!r}: use 'energy' or 'peak'.")

    @property
    def diameter(self) -> float:
        """Of the box."""
        return float(np.sqrt(self.d) * (self.domain[1] - self.domain[0]))

    def constants(self, wavelet: str) -> FeatureConstants:
        """Of a wavelet by name, with shifts uniform in the box."""
        density = (self.domain[1] - self.domain[0]) ** -self.d
        return wavelet_constants(
            as_wavelet(wavelet),
            self.d,
            self.scales,
            normalization=self.normalization,
            density=density,
        )


@dataclass(frozen=True)
class Reading:
    """One bound at the setting's D, ε and δ.

    Args:
        failure: probability of an error of ε with D atoms.
        atoms: atoms for an error of ε with probability 1 - δ.
        error: error of D atoms with probability 1 - δ.
    """

    failure: float
    atoms: int
    error: float


@dataclass(frozen=True)
class Comparison:
    """A wavelet's line of the table; uniform bounds are ``None`` without a Lipschitz constant."""

    wavelet: str
    constants: FeatureConstants
    deviation: dict[Version, float]
    rows: Reading
    uniform: dict[Version, Reading] | None


def compare(wavelets: Sequence[str], setting: Setting) -> list[Comparison]:
    """The constants of wavelets, by name, and all bounds for them."""

    def read(bound: ErrorBound) -> Reading:
        return Reading(
            bound.failure(setting.eps, setting.n_atoms),
            bound.atoms(setting.eps, setting.delta),
            bound.error(setting.n_atoms, setting.delta),
        )

    versions: tuple[Version, ...] = ("proved", "paper")
    lines = []
    for name in wavelets:
        c = setting.constants(name)
        smooth = np.isfinite(c.lipschitz)
        lines.append(
            Comparison(
                wavelet=name,
                constants=c,
                deviation={v: variance_bound(c, setting.n_atoms, v) ** 0.5 for v in versions},
                rows=read(on_rows(c, setting.n_rows)),
                uniform={v: read(uniform(c, setting.d, setting.diameter, v)) for v in versions}
                if smooth
                else None,
            )
        )
    return lines
