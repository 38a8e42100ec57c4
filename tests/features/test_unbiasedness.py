r"""E[z(x)ᵀz(y)] = k(x, y): random features against the kernel computed by quadrature.

.. math:: k(x, y) = \int p(s)\,p(t)\,p(e)\; c(s)^2\, \psi\!\left(\tfrac{x-t}{\ell s}\right)
    \cdot \psi\!\left(\tfrac{y-t}{\ell s}\right) ds\, dt\, de

A map of m atoms is one draw of the average on the left; several hundred maps give its standard
error. The quadrature uses the definitions of contracts.py.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import j0
from sklearn.gaussian_process.kernels import RBF, Matern

from contracts import KERNELS, WAVELETS, mother
from rwf.features import FourierFamily, RidgeFamily, WaveletFamily
from rwf.wavelets import Cliff, ComplexMorlet, GaussianDerivative, MexicanHat, Morlet
from rwf.wavelets.measure import Box, Measure, Rows

WAVELET = pytest.mark.parametrize("name", WAVELETS)
DIMENSION = pytest.mark.parametrize("d", [1, 2])
STRATIFY = pytest.mark.parametrize("stratify", [True, False], ids=["stratified", "random_features"])

LOW, HIGH, PAD = 0.5, 1.7, 0.15
LENGTHS = np.array([1.4, 0.8])
MAPS, ATOMS = 250, 256


def data(d, rng):
    """Seven rows with mean 3, and five pairs of points (x, y), the first with x = y."""
    X = rng.normal(3.0, 0.8, (7, d))
    x = rng.uniform(X.min(axis=0), X.max(axis=0), (5, d))
    gap = rng.normal(0.0, 0.5, (5, d)) * (np.arange(5)[:, None] > 0)
    return X, x, x + gap


@cache
def legendre(nodes):
    return np.polynomial.legendre.leggauss(nodes)


def gauss(low, high, nodes):
    """Nodes and weights of an average over an interval."""
    x, w = legendre(nodes)
    return low + (high - low) * (x + 1) / 2, w / 2


def log_uniform(nodes=16):
    """Scales and weights of the law of s; twice as many change kernels by less than 1e-3."""
    log_s, w = gauss(np.log(LOW), np.log(HIGH), nodes)
    return np.exp(log_s), w


def product(wavelet, U, V):
    """ψ(u)·ψ(v), summed over the columns of an atom and averaged over its direction.

    Over the circle, cos(ω e·a) averages to J₀(ω|a|) and (e·u)(e·v) to u·v/2.
    """
    if wavelet.geometry != "oriented" or U.shape[-1] == 1:
        return sum(a * b for a, b in zip(mother(wavelet, U), mother(wavelet, V), strict=True))
    if isinstance(wavelet, Cliff):  # no formula: many directions
        turns = np.pi * (np.arange(12) + 0.5) / 12
        axes = np.column_stack([np.cos(turns), np.sin(turns)])
        return np.mean([mother(wavelet, U, e)[0] * mother(wavelet, V, e)[0] for e in axes], 0)
    envelope = np.exp(-(np.sum(U**2, -1) + np.sum(V**2, -1)) / 2)
    if isinstance(wavelet, GaussianDerivative):
        return envelope * np.sum(U * V, -1) / 2
    assert isinstance(wavelet, Morlet)
    w = wavelet.frequency
    offset = np.exp(-(w**2) / 2)

    def wave(a):
        return j0(w * np.linalg.norm(a, axis=-1))

    both = wave(U - V) if isinstance(wavelet, ComplexMorlet) else (wave(U - V) + wave(U + V)) / 2
    return envelope * (both - offset * (wave(U) + wave(V)) + offset**2)


def box_kernel(wavelet, X, x, y):
    """k(x, y) for shifts uniform in the padded box of X, per unit ψ."""
    d = len(x)
    side = np.ptp(X, axis=0)
    low, high = X.min(axis=0) - PAD * side, X.max(axis=0) + PAD * side
    scales, weights = log_uniform()
    total = 0.0
    for s, p in zip(scales, weights, strict=True):
        widths = s * LENGTHS[:d]
        if wavelet.geometry == "tensor":  # the integral over t is a product over axes; ψ may jump
            axes = []
            for k in range(d):
                t = low[k] + (high[k] - low[k]) * (np.arange(20_000) + 0.5) / 20_000
                u, v = (x[k] - t) / widths[k], (y[k] - t) / widths[k]
                axes.append(np.mean(product(wavelet, u[:, None], v[:, None])))
            average = np.prod(axes)
        else:
            rules = [gauss(low[k], high[k], 90) for k in range(d)]
            t = np.stack(np.meshgrid(*[r[0] for r in rules], indexing="ij"), -1)
            q = rules[0][1] if d == 1 else np.outer(rules[0][1], rules[1][1])
            average = np.sum(q * product(wavelet, (x - t) / widths, (y - t) / widths))
        total += p * average / np.prod(widths)
    return total


def rows_kernel(wavelet, X, x, y):
    """k(x, y) for shifts at the rows of X: a finite average, and an integral over the scale."""
    # Many equal steps, for at a fixed t a Haar atom jumps in s.
    scales = LOW * (HIGH / LOW) ** ((np.arange(4000) + 0.5) / 4000)
    widths = scales[:, None, None] * LENGTHS[: len(x)]
    average = np.mean(product(wavelet, (x - X) / widths, (y - X) / widths), axis=1)
    return np.mean(average / np.prod(widths[:, 0], axis=1))


@cache
def exact(kernel, name, d):
    """The kernel of a wavelet at the pairs of points, with features of unit energy."""
    wavelet = WAVELETS[name]
    X, x, y = data(d, np.random.default_rng(7))
    found = [kernel(wavelet, X, a, b) for a, b in zip(x, y, strict=True)]
    return np.array(found) / wavelet.energy(d)


def draw_products(family, X, x, y, rng, theta=None, maps=MAPS, atoms=ATOMS):
    """z(x)ᵀz(y) of many independent maps, shape (maps, pairs)."""
    products = np.empty((maps, len(x)))
    for r in range(maps):
        features = family.draw(atoms, X, rng)
        if theta is not None:
            features = features.with_theta(np.concatenate([theta, features.theta[len(theta) :]]))
        Z = features(np.vstack([x, y]))
        products[r] = np.sum(Z[: len(x)] * Z[len(x) :], axis=1)
    return products


def assert_unbiased(products, exact, power=0.2):
    """|mean - k| < 5 standard errors, which must be small enough to see a wrong factor."""
    mean, error = products.mean(axis=0), products.std(axis=0, ddof=1) / np.sqrt(len(products))
    assert 5 * error[0] < power * exact[0]  # at x = y
    assert np.all(np.abs(mean - exact) < 5 * error), (mean - exact) / error


@WAVELET
@DIMENSION
@STRATIFY
def test_features_of_the_box_are_unbiased(name, d, stratify, rng):
    wavelet = WAVELETS[name]
    X, x, y = data(d, np.random.default_rng(7))
    family = WaveletFamily(wavelet, Measure(LOW, HIGH, Box(PAD), stratify), 1.0, True, "energy")
    products = draw_products(family, X, x, y, rng, np.log(LENGTHS[:d]))
    assert_unbiased(products, exact(box_kernel, name, d))


@WAVELET
@DIMENSION
@STRATIFY
def test_features_of_the_rows_are_unbiased(name, d, stratify, rng):
    wavelet = WAVELETS[name]
    X, x, y = data(d, np.random.default_rng(7))
    family = WaveletFamily(wavelet, Measure(LOW, HIGH, Rows(), stratify), 1.0, True, "energy")
    products = draw_products(family, X, x, y, rng, np.log(LENGTHS[:d]))
    assert_unbiased(products, exact(rows_kernel, name, d))


@pytest.mark.parametrize("name", ["morlet-slow", "morlet-complex", "edge"])
def test_the_average_over_directions_is_the_average_over_the_circle(name, rng):
    wavelet = WAVELETS[name]
    U, V = rng.normal(0.5, 1.0, (2, 30, 2))
    angle = 2 * np.pi * np.arange(200) / 200
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    products = [np.multiply(mother(wavelet, U, e), mother(wavelet, V, e)).sum(0) for e in circle]
    assert_allclose(product(wavelet, U, V), np.mean(products, axis=0), rtol=1e-10, atol=1e-14)


def test_ridges_are_unbiased(rng):
    X, x, y = data(2, rng)
    w = np.arange(-6.5, 6.5, 0.1)  # the trapezoidal rule is spectrally accurate for a Gaussian
    W = np.stack(np.meshgrid(w, w), -1).reshape(-1, 2)
    density = np.exp(-np.sum(W**2, axis=1) / 2) * 0.1**2 / (2 * np.pi)
    scales, weights = log_uniform(12)

    def line(point, t, s):
        p = W @ ((point - t) / (s * LENGTHS))
        return (1 - p**2) * np.exp(-(p**2) / 2)

    def kernel(a, b):
        atoms = [(t, s, q) for t in X for s, q in zip(scales, weights, strict=True)]
        total = sum(q * np.sum(density * line(a, t, s) * line(b, t, s)) for t, s, q in atoms)
        return total / len(X)

    family = RidgeFamily(MexicanHat(), Measure(LOW, HIGH, Rows()), 1.0)
    products = draw_products(family, X, x, y, rng, np.log(LENGTHS))
    assert_unbiased(products, np.array([kernel(a, b) for a, b in zip(x, y, strict=True)]))


SKLEARN = {"se": RBF, "matern12": Matern, "matern32": Matern, "matern52": Matern}
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_fourier_features_are_unbiased_for_their_kernel(kernel, d, rng):
    lengths = np.array([1.4, 0.8, 2.3])[:d]
    x = rng.normal(3.0, 2.0, (5, d))
    y = x + rng.normal(0.0, 0.8, (5, d))
    extra = {"nu": SMOOTHNESS[kernel]} if kernel in SMOOTHNESS else {}
    exact = np.diag(SKLEARN[kernel](length_scale=lengths, **extra)(x, y))
    products = draw_products(FourierFamily(kernel, 1.0), x, x, y, rng, np.log(lengths))
    assert_unbiased(products, exact)


def test_the_error_falls_as_the_root_of_the_number_of_atoms(rng):
    X, x, y = data(2, rng)
    family = WaveletFamily(MexicanHat(), Measure(LOW, HIGH, Box(PAD), False), 1.0, True, "energy")
    squares = []
    for atoms in (8, 128):
        error = draw_products(family, X, x, y, rng, maps=1500, atoms=atoms)
        squares.append(atoms * (error - error.mean(axis=0)) ** 2)
    few, many = squares
    gap = few.mean(axis=0) - many.mean(axis=0)
    standard_error = np.sqrt((few.var(axis=0) + many.var(axis=0)) / 1500)
    assert np.all(np.abs(gap) < 5 * standard_error)
    assert np.all(5 * standard_error < 0.5 * many.mean(axis=0))


def test_stratified_scales_have_no_more_variance_than_independent_ones(rng):
    X, x, _ = data(2, rng)
    variances = []
    for stratify in (True, False):
        measure = Measure(LOW / 4, HIGH * 4, Rows(), stratify)
        family = WaveletFamily(MexicanHat(), measure, 1.0, True, "energy")
        variances.append(draw_products(family, X, x[:1], x[:1], rng, maps=600).var())
    assert variances[0] < 0.8 * variances[1]
