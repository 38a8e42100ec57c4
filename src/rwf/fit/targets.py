r"""Whether targets are better modelled by their logarithm or their square root.

A quick Gaussian process of few rows says so: one isotropic Matérn kernel and a straight line, of
which one eigendecomposition per length-scale gives the evidence of y, √y and log y, with their
Jacobians, for every noise, and all leave-one-out errors. A transform must win clearly, in nats and
in the errors of its medians in the units of y, and its means must not be worse: learned densities
of errors make up for much of what a transform would gain, and the mean of an exponential is
sensitive to the spread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import norm

from rwf._types import Array
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.data.target_transform import Bend, TargetTransform
from rwf.uncertainty.student_t import StudentT
from rwf.uncertainty.transformed import TransformedT

ROWS = 500  # drawn at random
FEWEST = 50  # rows below which targets stay as they are
SKEWED = 1.0  # skewness below which targets stay as they are
RANGE = 5.0  # ratio of the largest to the smallest target below which they do
GAIN = 0.3  # nats per row that a transform must gain
ERRORS = 0.95  # share of the mean absolute error that it may leave
LENGTHS = (0.3, 0.7, 1.5, 3.0)  # of the kernel, in standard deviations of inputs times √d
NOISES = 10.0 ** np.arange(-4.0, 1.1, 0.5)  # variances relative to the kernel's
TREND = 10.0  # variance of the constant


def suited(rows: Block) -> tuple[Bend, ...]:
    """The transform of every output that some rows speak for."""
    used = np.flatnonzero(rows.weights > 0)
    some = rows.part(np.random.default_rng(0).permutation(used)[:ROWS])
    found: tuple[Bend, ...] = (None,) * rows.n_outputs
    candidates = [k for k, y in enumerate(rows.y.T) if y.min() > 0 and _skewed(some.y[:, k])]
    if len(some) < FEWEST or not candidates:
        return found
    spectra = _spectra(Standardizer.learn(some, ard=True, log_skewed=True).inputs(some.X))
    return tuple(_best(spectra, y) if k in candidates else None for k, y in enumerate(some.y.T))


def _skewed(y: Array) -> bool:
    spread = float(y.std())
    if spread <= 0 or y.max() < RANGE * y.min():
        return False
    return float((((y - y.mean()) / spread) ** 3).mean()) > SKEWED


def _spectra(X: Array) -> list[tuple[Array, Array]]:
    """Eigenvalues and eigenvectors of the kernel, by length-scale."""
    d, squares = X.shape[1], (X**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0) * 3 / d)
    line, found = TREND + X @ X.T / d, []
    for length in LENGTHS:
        r = distances / length
        values, vectors = np.linalg.eigh((1 + r) * np.exp(-r) + line)
        found.append((np.maximum(values, 0.0), vectors))
    return found


@dataclass(frozen=True)
class _Quick:
    """The best of the quick fits under one transform."""

    evidence: float  # log p(y) per row
    error: float  # mean absolute leave-one-out error of medians, in the units of y
    rmse: float  # root mean squared one of means, times √n


def _best(spectra: list[tuple[Array, Array]], y: Array) -> Bend:
    plain = _quick(spectra, y, None)
    found: list[tuple[float, Bend]] = [(plain.evidence + GAIN, None)]
    bends: tuple[Bend, ...] = ("sqrt", "log")
    for bend in bends:
        quick = _quick(spectra, y, bend)
        if quick.error < ERRORS * plain.error and quick.rmse <= plain.rmse:
            found.append((quick.evidence, bend))
    return max(found, key=lambda each: each[0])[1]


def _quick(spectra: list[tuple[Array, Array]], y: Array, bend: Bend) -> _Quick:
    transform = TargetTransform.learn((bend,), y[:, None])
    u = y if transform is None else transform(y)
    slope = 0.0 if transform is None else float(transform.log_slope(y).mean())
    center, scale = float(u.mean()), float(u.std())
    best = _Quick(-np.inf, np.inf, np.inf)
    for values, vectors in spectra:
        projected = vectors.T @ ((u - center) / scale)
        for noise in NOISES:
            total = values + noise
            variance = float((projected**2 / total).mean())
            spread = np.log(variance) + float(np.log(total).mean())
            evidence = -0.5 * (np.log(2 * np.pi) + 1 + spread) - np.log(scale) + slope
            if evidence > best.evidence:
                precision = (vectors**2) @ (1 / total)
                median = u - scale * (vectors @ (projected / total) / precision)
                spreads = scale * np.sqrt(variance / precision)
                base = StudentT.normal(median, spreads)
                found = base if transform is None else TransformedT(base, transform)
                errors = y - found.median, y - found.mean
                best = _Quick(evidence, float(np.abs(errors[0]).mean()), float(norm(errors[1])))
    return best
