r"""Mother wavelets ψ: R^d → R, each a formula with its constants.

Every wavelet is a formula in the coordinates that it depends on. *Radial* ones are
functions of ``q = ‖u‖²``; *oriented* ones of ``q`` and of the projection ``p = e·u`` on a direction
e that is drawn for every atom; *tensor* ones are products ``ψ(u_1)…ψ(u_d)`` of a
one-dimensional wavelet. All are written without the factor :math:`C_d` that gives unit energy:
:meth:`Wavelet.constants` has it, with the other numbers of the error bounds. Formulas and notation
follow the paper's appendix "Wavelet Preliminaries".
"""

from __future__ import annotations

from collections.abc import Callable

from rwf.wavelets.base import Constants, Wavelet
from rwf.wavelets.oriented import Cliff, ComplexMorlet, GaussianDerivative, Morlet, OrientedWavelet
from rwf.wavelets.radial import CompactHat, MexicanHat, RadialWavelet
from rwf.wavelets.tensor import Daubechies, Haar, TensorWavelet

__all__ = [
    "WAVELETS",
    "Cliff",
    "CompactHat",
    "ComplexMorlet",
    "Constants",
    "Daubechies",
    "GaussianDerivative",
    "Haar",
    "MexicanHat",
    "Morlet",
    "OrientedWavelet",
    "RadialWavelet",
    "TensorWavelet",
    "Wavelet",
    "as_wavelet",
]

WAVELETS: dict[str, Callable[[], Wavelet]] = {
    "mexican_hat": MexicanHat,
    "mexican_hat_paper": lambda: MexicanHat(form="paper"),
    "compact_hat": CompactHat,
    "morlet": Morlet,
    "complex_morlet": ComplexMorlet,
    "gaussian_derivative": GaussianDerivative,
    "cliff": Cliff,
    "haar": Haar,
    "db1": Haar,
}


def as_wavelet(wavelet: str | Wavelet) -> Wavelet:
    """A wavelet from its name ("mexican_hat", "db4", …), or the wavelet itself."""
    if isinstance(wavelet, Wavelet):
        return wavelet
    if isinstance(wavelet, str):
        if wavelet in WAVELETS:
            return WAVELETS[wavelet]()
        if wavelet.startswith("db") and wavelet[2:].isdecimal():
            return Daubechies(order=int(wavelet[2:]))
    names = ", ".join([*WAVELETS, "db2 … db38"])
    raise ValueError(f"wavelet={wavelet!r} is unknown: use one of {names}, or a Wavelet object.")
