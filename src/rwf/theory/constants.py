r"""The numbers of a feature map that its error bounds need: B, L_z, R, M and K.

Distances are in units of the length-scales, :math:`\|(x - x')/\ell\|`: a bound that multiplies a
Lipschitz constant by a diameter is then the same in all units of X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.features import FeatureMap, FourierFeatures, RidgeFeatures, WaveletFeatures
from rwf.features.wavelet import Normalization
from rwf.wavelets import Wavelet


@dataclass(frozen=True)
class FeatureConstants:
    r"""Bounds on one atom :math:`\psi_{s,t}`, over all atoms that the measure can draw.

    An atom of two columns (complex Morlet, Fourier) counts as one, with its modulus.

    Args:
        bound: :math:`B = \sup|\psi_{s,t}(x)|`.
        lipschitz: :math:`L_z`, with :math:`|\psi_{s,t}(x) - \psi_{s,t}(x')| \le L_z\|x - x'\|` for
            every atom; infinite where ψ jumps (Haar), has unbounded slope (db2), or where
            frequencies have no bound (Fourier and ridge features).
        radius: :math:`R`, the widest atom vanishes beyond this distance from its shift.
        vanishing_moments: M of the mother wavelet; 0 if it is no wavelet on R^d.
        diagonal: :math:`K \ge \sup k(x, x)`, at most B².
    """

    bound: float
    lipschitz: float
    radius: float
    vanishing_moments: int
    diagonal: float


def wavelet_constants(
    wavelet: Wavelet,
    d: int,
    scales: tuple[float, float],
    *,
    normalization: Normalization = "energy",
    density: float = np.inf,
    volume: float = 1.0,
) -> FeatureConstants:
    r"""The constants of a mother wavelet's atoms with scales in an interval, on R^d.

    .. math:: B = C\,\sup|\psi|\; s_{\min}^{-d/2}, \qquad
        L_z = C\,\sup\|\nabla\psi\|\; s_{\min}^{-d/2-1}

    with :math:`C = C_d` for unit energy; for unit peak C = 1 and the power d/2 is absent. Where
    shifts have a density :math:`p_t \le \bar p`, atoms of unit energy have
    :math:`k(x, x) = E\,\psi_{s,t}(x)^2 \le \bar p \int \psi_{s,t}(x)^2 dt = \bar p`.

    Args:
        wavelet: ψ.
        d: dimension of the inputs.
        scales: lowest and highest scale.
        normalization: "energy" is the paper's, "peak" the regressors' default.
        density: an upper bound on the shifts' density; infinite for shifts at training rows.
        volume: Πℓ, the product of the length-scales, by which unit energy divides.
    """
    low, high = scales
    if not 0 < low <= high < np.inf:
        raise ValueError(
            f"scales=({low}, {high}) is no range of scales: give 0 < low <= high < inf."
        )
    psi = wavelet.constants(d)
    energy = wavelet.energy(d)
    if normalization == "energy":
        factor, mean_energy = (energy * volume * low**d) ** -0.5, 1 / volume
    else:
        # ∫ψ((x - t)/s)² dt = s^d ∫ψ², and s is log-uniform.
        width = np.log(high / low)
        mean_power = low**d if width == 0 else (high**d - low**d) / (d * width)
        factor, mean_energy = 1.0, energy * mean_power
    B = factor * psi.sup
    return FeatureConstants(
        bound=B,
        lipschitz=factor * psi.lipschitz / low,
        radius=psi.radius * high,
        vanishing_moments=psi.vanishing_moments,
        diagonal=min(B * B, density * mean_energy),
    )


def constants_of(features: FeatureMap) -> FeatureConstants:
    """The constants of a drawn map: of its wavelet, scale range, length-scales and normalisation.

    They hold for every atom that could have been drawn, as the bounds require; for those that were,
    see :func:`drawn_lipschitz`.
    """
    if isinstance(features, WaveletFeatures):
        atoms = features.atoms
        half = 0.0 if atoms.log_width is None else 0.5 * np.exp(atoms.log_width)
        return wavelet_constants(
            features.wavelet,
            atoms.shifts.shape[1],
            (float(atoms.middle * np.exp(-half)), float(atoms.middle * np.exp(half))),
            normalization=features.normalization,
            volume=float(np.prod(atoms.lengths)),
        )
    if isinstance(features, RidgeFeatures):
        B = features.wavelet.constants(1).sup
        return FeatureConstants(B, np.inf, np.inf, 0, B * B)
    if isinstance(features, FourierFeatures):
        return FeatureConstants(1.0, np.inf, np.inf, 0, 1.0)
    raise TypeError(
        f"{type(features).__name__} has no constants: give wavelet, ridge or Fourier features, "
        "and of a stack its maps one by one."
    )


def drawn_lipschitz(features: FeatureMap) -> float:
    r"""L with :math:`\|z(x) - z(x')\| \le L\,\|(x - x')/\ell\|` for these drawn atoms.

    It is finite for Fourier and ridge features, whose frequencies are drawn without a bound, and no
    larger than :math:`L_z`.
    """
    if isinstance(features, WaveletFeatures):
        atoms = features.atoms
        slope = features.wavelet.constants(atoms.shifts.shape[1]).lipschitz
        return float(slope * np.linalg.norm(features.factors / atoms.scales))
    if isinstance(features, RidgeFeatures):
        slope = features.wavelet.constants(1).lipschitz
        W = features.weights / features.atoms.scales[:, None]
        return float(slope * np.linalg.norm(W, 2) / np.sqrt(len(W)))
    if isinstance(features, FourierFeatures):
        return float(np.linalg.norm(features.frequencies, 2) / np.sqrt(len(features.frequencies)))
    raise TypeError(f"{type(features).__name__} has no atoms: give wavelet, ridge or Fourier maps.")


def diameter(X: Array, lengths: Array | float = 1.0) -> float:
    """The diameter of the rows' bounding box, in units of the length-scales."""
    return float(np.linalg.norm(np.ptp(X, axis=0) / lengths))
