r"""A Gaussian process over one column with a Matérn-3/2 kernel, in time linear in the rows.

.. math::
    y \sim N\!\left(m,\; a^2 (R + \nu I)\right), \qquad
    R_{ij} = (1 + \tau) e^{-\tau}, \quad \tau = \sqrt{3}\, |x_i - x_j| / \ell.

This is what someone with a long series would pick today. Matrix factor, solves and the predictive
mean are celerite2's, whose term of this kernel has a frequency ε in it and tends to Matérn-3/2 with
ε²; :data:`FREQUENCY` makes the difference 1e-8. Reference: Foreman-Mackey, Agol, Ambikasaran and
Angus (2017), Fast and scalable Gaussian process modeling with applications to astronomical time
series.

All rows take part in the marginal likelihood. Its maximum over m and a² has a closed form; ℓ and ν
are climbed to by L-BFGS, with gradients by finite differences, from the best of a grid of starts.
Rows may repeat an x: the noise keeps their covariance regular.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any, Self

import numpy as np
from scipy.optimize import Bounds, minimize

from rwf._types import Array

FREQUENCY = 1e-4
"""ε in units of √3/ℓ. Sums in celerite2 have terms of size 1/ε: a smaller one costs digits."""

START_LENGTHS, START_NUS = 10, (1e-6, 1e-4, 1e-2, 1.0)
"""How many lengths, from two typical steps to half of the range, and which ν are starts."""

NU = (1e-10, 1e4)
"""Bounds of ν. Below the lower one rounding in celerite2's sums would pass for noise."""

STEP = 1e-4
"""Of the finite differences of log ℓ and log ν: far above the rounding of the likelihood, and far
below what changes a prediction."""

SMALLEST = 1e-12
"""Of a², in variances of y, so that a constant series has a density."""

REACH = 40 / np.sqrt(3)
"""Distance, in lengths, beyond which k is below 1e-16 and rows do not change a variance."""

AT_ONCE = 100
"""Points whose variances are found together: celerite2 has no linear-time way, and solves with
one column a point."""


@dataclass(frozen=True)
class Matern32:
    """Parameters of the process: ℓ, a², a²ν and m."""

    length: float
    amplitude: float
    noise: float
    mean: float


def factored(parameters: Matern32, x: Array) -> Any:  # noqa: ANN401 - celerite2 has no types
    """celerite2's process over x, which must be sorted."""
    try:
        celerite2 = import_module("celerite2")
    except ImportError as error:
        raise ImportError(
            "celerite-matern32 needs celerite2: pip install celerite2, or the extra bench."
        ) from error
    kernel = celerite2.terms.Matern32Term(
        sigma=np.sqrt(parameters.amplitude),
        rho=parameters.length,
        eps=FREQUENCY * np.sqrt(3) / parameters.length,
    )
    process = celerite2.GaussianProcess(kernel, mean=parameters.mean)
    process.compute(x, diag=np.full(len(x), parameters.noise))
    return process


def log_evidence(parameters: Matern32, x: Array, y: Array) -> float:
    return float(factored(parameters, x).log_likelihood(y))


def best_scale(length: float, nu: float, x: Array, y: Array) -> tuple[Matern32, float]:
    """The process of the best m and a² for ℓ and ν, and its log evidence.

    m is the generalised mean, and a² the mean square of what is left, both under R + νI.
    """
    unscaled = factored(Matern32(length, 1.0, nu, 0.0), x)
    of_ones, of_y = unscaled.apply_inverse(np.column_stack([np.ones_like(y), y])).T
    mean = float(of_y.sum() / of_ones.sum())
    squares = float((y - mean) @ of_y)  # rᵀ(R + νI)⁻¹r, as rᵀ(R + νI)⁻¹1 = 0 for this m
    n, amplitude = len(y), max(squares / len(y), SMALLEST)
    half_log_det = -float(unscaled.log_likelihood(np.zeros(n)))  # and n/2 log 2π
    evidence = -half_log_det - 0.5 * (n * np.log(amplitude) + squares / amplitude)
    return Matern32(length, amplitude, amplitude * nu, mean), evidence


def learn(x: Array, y: Array) -> Matern32:
    """The parameters of the largest marginal likelihood, for sorted x."""
    width = float(np.ptp(x)) or 1.0
    shortest = 2 * width / len(x)
    lengths = np.geomspace(shortest, max(width / 2, 2 * shortest), START_LENGTHS)

    def loss(theta: Sequence[float] | Array) -> float:
        length, nu = np.exp(theta)
        return -best_scale(float(length), float(nu), x, y)[1] / len(y)

    starts = [(float(np.log(s)), float(np.log(nu))) for s, nu in product(lengths, START_NUS)]
    found = minimize(
        loss,
        min(starts, key=loss),
        method="L-BFGS-B",
        bounds=Bounds(*np.log([[shortest / 10, NU[0]], [100 * width, NU[1]]])),
        options={"eps": STEP, "ftol": 1e-12, "gtol": 1e-7},
    )
    length, nu = np.exp(found.x)
    return best_scale(float(length), float(nu), x, y)[0]


def variance(parameters: Matern32, x: Array, at: Array) -> Array:
    """Of f at sorted points, from the rows that are within reach of each group of them."""
    found = np.full(len(at), parameters.amplitude)
    reach = REACH * parameters.length
    for start in range(0, len(at), AT_ONCE):
        group = slice(start, start + AT_ONCE)
        points = at[group]
        first, last = np.searchsorted(x, [points[0] - reach, points[-1] + reach])
        if last > first:
            near = x[first:last]
            process = factored(parameters, near)
            found[group] = process.predict(np.zeros_like(near), t=points, return_var=True)[1]
    return found


class CeleriteMatern32:
    """The process with learned parameters, in standardised units."""

    def fit(self, X: Array, y: Array) -> Self:
        if X.shape[1] != 1:
            raise ValueError(f"celerite2 is for one column, and X has {X.shape[1]}. Give it one.")
        order = np.argsort(X[:, 0], kind="stable")
        self._x, self._y = X[order, 0], y[order]
        self._parameters = learn(self._x, self._y)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict_function(X)
        return mean, np.sqrt(std**2 + self._parameters.noise)

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        order = np.argsort(X[:, 0], kind="stable")
        at, mean, var = X[order, 0], np.empty(len(X)), np.empty(len(X))
        mean[order] = factored(self._parameters, self._x).predict(self._y, t=at)
        var[order] = variance(self._parameters, self._x, at)
        # A difference of equal numbers where rows pin f down: rounding may leave it below zero.
        return mean, np.sqrt(np.maximum(var, 0))

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": self._parameters.noise,
            "length": self._parameters.length,
            "amplitude": self._parameters.amplitude,
            "log_evidence": log_evidence(self._parameters, self._x, self._y),
            "celerite2": import_module("celerite2").__version__,
        }
