r"""A priori bounds on the error of z(x)ᵀz(y) as an estimate of k(x, y).

With independent draws, :math:`\hat k(x, y) = \frac1D\sum_i U_i` is a mean of D variables
:math:`U_i = \psi_i(x)\psi_i(y)` with :math:`|U_i| \le B^2` and
:math:`E U_i^2 \le B^2 E\psi_i(x)^2 = B^2 k(x, x) \le B^2 K`. Everything below follows from these
two facts. Scales drawn in strata are not independent: their estimate is unbiased too, its variance
is no larger, but these tail bounds are not proved for it.

Bounds that the paper prints come in two versions. ``"proved"`` is what a proof gives; ``"paper"``
is the formula as printed. They differ in three places:

- The proofs reach B⁴ and then write B², which has another unit (scaling ψ by c multiplies k by c²
  and its variance by c⁴). B²K is right, and at most B² where k(x, x) ≤ 1.
- The net of the uniform bound must have mesh ε/(8 B L_z); the printed 4 diam L_z/ε "absorbs"
  B and a factor that are nowhere accounted for.
- The net of mesh η has (1 + √2 diam/η)^d points: a set lies in a ball of radius diam/√2 (Jung).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from rwf.theory.constants import FeatureConstants

Version = Literal["proved", "paper"]


def _check_version(version: str) -> None:
    if version not in ("proved", "paper"):
        raise ValueError(f"version={version!r} is unknown: use 'proved' or 'paper'.")


def variance_bound(c: FeatureConstants, n_atoms: int, version: Version = "proved") -> float:
    r"""A bound on :math:`\mathrm{Var}[\hat k(x, y)]` for all x and y: B²K/D, printed as B²/D.

    K ≤ B², so without knowledge of k it is B⁴/D, which is where the printed proof stands before its
    last sentence. That sentence, :math:`E U_i^2 \le B^2`, is true where k(x, x) ≤ 1 for one of
    the two points and not in general.
    """
    _check_version(version)
    return c.bound**2 * (c.diagonal if version == "proved" else 1.0) / n_atoms


@dataclass(frozen=True)
class ErrorBound:
    r"""A bound on the probability of an error, which can be solved for ε, D or the probability.

    .. math:: \Pr[\text{error} \ge \varepsilon] \le
        2\,N(\varepsilon)\,\exp\!\left(-\frac{D\,(a\varepsilon)^2}{2\,v(a\varepsilon)}\right)

    Args:
        log_count: ε ↦ log N, the logarithm of how many pairs of points share the error.
        variance: e ↦ v, the variance proxy of one U in the tail of size e.
        share: a, the part of ε that the error at those points may use.
    """

    log_count: Callable[[float], float]
    variance: Callable[[float], float]
    share: float = 1.0

    def _log_failure(self, eps: float, n_atoms: float) -> float:
        e = self.share * eps
        return float(np.log(2) + self.log_count(eps) - 0.5 * n_atoms * e * (e / self.variance(e)))

    def failure(self, eps: float, n_atoms: int) -> float:
        """Probability of an error of ε or more with D atoms, at most one."""
        require_positive(eps=eps, n_atoms=n_atoms)
        return float(np.exp(min(0.0, self._log_failure(eps, n_atoms))))

    def atoms(self, eps: float, delta: float) -> int:
        """D(ε, δ): the atoms that keep the error below ε with probability 1 - δ."""
        require_positive(eps=eps, delta=delta)
        e = self.share * eps
        log_odds = np.log(2 / delta) + self.log_count(eps)
        return max(1, int(np.ceil(2 * self.variance(e) / e**2 * log_odds)))

    def error(self, n_atoms: int, delta: float) -> float:
        """ε(D, δ): D atoms keep the error below this with probability 1 - δ."""
        require_positive(n_atoms=n_atoms, delta=delta)

        def excess(log_eps: float) -> float:
            return self._log_failure(float(np.exp(log_eps)), n_atoms) - float(np.log(delta))

        low, high = -1.0, 1.0
        while excess(low) < 0:
            low -= 2.0
        while excess(high) > 0:
            high += 2.0
        return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def require_positive(**values: float) -> None:
    """Refuse values that are not positive, and a delta that is no probability."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name}={value!r} must be positive.")
        if name == "delta" and value >= 1:
            raise ValueError(f"delta={value!r} is a probability: give one between 0 and 1.")


def _tail(c: FeatureConstants) -> Callable[[float], float]:
    r"""v(e) of a mean of U: Hoeffding's B⁴, or Bernstein's where it is smaller.

    Hoeffding has exp(-De²/2B⁴) for U in [-B², B²]; Bernstein has exp(-De²/2(σ² + 2B²e/3)) for
    |U - EU| ≤ 2B², and σ² ≤ B²K.
    """
    return lambda e: c.bound**2 * min(c.bound**2, c.diagonal + 2 * e / 3)


def pointwise(c: FeatureConstants) -> ErrorBound:
    """The error at one pair of points that were chosen before the atoms were drawn."""
    return ErrorBound(lambda eps: 0.0, _tail(c))


def on_rows(c: FeatureConstants, n: int) -> ErrorBound:
    """The largest error over all pairs of n rows: a union over the n(n + 1)/2 of them.

    It needs only a bound on ψ, and so applies to Haar, db2 and Fourier features too.
    """
    if n < 1:
        raise ValueError(f"n={n!r} must be at least one row.")
    return ErrorBound(lambda eps: float(np.log(n * (n + 1) / 2)), _tail(c))


def uniform(
    c: FeatureConstants, d: int, diameter: float, version: Version = "proved"
) -> ErrorBound:
    r"""The largest error over all pairs of points of a set in R^d.

    Let x̃ and ỹ be the net's points next to x and y. Since ‖z‖ ≤ B and z has Lipschitz constant
    L_z, z(x)ᵀz(y) changes by at most 2BL_zη from (x, y) to (x̃, ỹ), and so does its expectation k.
    With η = ε/(8BL_z) both take ε/2, and ε/2 is left for the net's points:

    .. math:: \Pr\Big[\sup_{x,y}|\hat k - k| \ge \varepsilon\Big] \le
        2\left(1 + \frac{8\sqrt2\, \mathrm{diam}\, B L_z}{\varepsilon}\right)^{2d}
        \exp\!\left(-\frac{D\varepsilon^2}{8B^2 \min(B^2, K + \varepsilon/3)}\right)

    The paper prints
    :math:`2(4\,\mathrm{diam}\,L_z/\varepsilon)^{2d}\exp(-D\varepsilon^2/8B^2)`. Its exponent is
    within a factor 1 + ε/3 of what is true where K ≤ 1, and too large otherwise.

    Args:
        c: the constants.
        d: dimension of the inputs.
        diameter: of the set, in units of the length-scales.
        version: "proved" or "paper".
    """
    _check_version(version)
    B, L = c.bound, c.lipschitz
    if not np.isfinite(L):
        raise ValueError(
            "these atoms have no Lipschitz constant (ψ jumps or has unbounded slope, or its "
            "frequencies have no bound), so there is no uniform bound over a continuum: use "
            "on_rows(constants, n) for the pairs of n rows, or a smooth wavelet."
        )
    if version == "paper":
        return ErrorBound(
            lambda eps: 2 * d * float(np.log(4 * diameter * L / eps)), lambda e: 4 * B * B
        )
    return ErrorBound(
        lambda eps: 2 * d * float(np.log1p(8 * np.sqrt(2) * diameter * B * L / eps)),
        _tail(c),
        share=0.5,
    )
