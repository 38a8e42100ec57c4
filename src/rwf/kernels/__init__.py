r"""The exact kernel that random wavelet features estimate.

.. math:: k(x, y) = \int c(s)^2\, \psi\!\left(\tfrac{x-t}{\ell s}\right)
    \psi\!\left(\tfrac{y-t}{\ell s}\right) p(s, t)\, ds\, dt

:class:`ExpectedKernel` is the reference for tests, theory and plots; it draws no random numbers.
:class:`WaveletKernel` is the same kernel for scikit-learn's Gaussian processes, and
:class:`HatKernel` the closed form of the Nyström prior; both need scikit-learn, and are imported
when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rwf.kernels.expected import AccuracyWarning, ExpectedKernel

if TYPE_CHECKING:
    from rwf.kernels.sklearn import HatKernel, WaveletKernel

__all__ = ["AccuracyWarning", "ExpectedKernel", "HatKernel", "WaveletKernel"]


def __getattr__(name: str) -> object:
    """The scikit-learn kernels, loaded when they are first used."""
    if name in ("HatKernel", "WaveletKernel"):
        from rwf.kernels import sklearn

        return getattr(sklearn, name)
    raise AttributeError(f"module 'rwf.kernels' has no attribute {name!r}")
