"""The vocabulary under test, its definitions in plain numpy, and what all feature maps owe.

Definitions are written from the mathematics: a formula of the library and its fused kernel can only
agree with them by being right. They take from the library the table of a Daubechies wavelet and the
energy of ψ, which test_wavelets.py checks by the two-scale relation and by quadrature.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import ClassVar

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from rwf.features import (
    ConstantFamily,
    ConstantFeatures,
    FourierFamily,
    FourierFeatures,
    LinearFamily,
    LinearFeatures,
    RidgeFamily,
    RidgeFeatures,
    WaveletFamily,
    WaveletFeatures,
)
from rwf.wavelets import (
    Cliff,
    CompactHat,
    ComplexMorlet,
    Constants,
    Daubechies,
    GaussianDerivative,
    Haar,
    MexicanHat,
    Morlet,
    OrientedWavelet,
    RadialWavelet,
    TensorWavelet,
)
from rwf.wavelets.measure import Measure, Rows

EPS = np.finfo(np.float64).eps

# --------------------------------------------------------------------------------------- wavelets

WAVELETS = {
    "hat": MexicanHat(),
    "hat-paper": MexicanHat(form="paper"),
    "compact4": CompactHat(order=4),
    "compact5": CompactHat(order=5),
    "morlet": Morlet(frequency=5.0),
    "morlet-slow": Morlet(frequency=1.7),  # its offset e^(-ω²/2) is large enough to be seen
    "morlet-complex": ComplexMorlet(frequency=2.1),
    "edge": GaussianDerivative(),
    "cliff": Cliff(aspect=1.5),
    "haar": Haar(),
    "db2": Daubechies(order=2),
    "db4": Daubechies(order=4),
}
RADIAL = {name: w for name, w in WAVELETS.items() if isinstance(w, RadialWavelet)}
ORIENTED = {name: w for name, w in WAVELETS.items() if isinstance(w, OrientedWavelet)}
TENSOR = {name: w for name, w in WAVELETS.items() if isinstance(w, TensorWavelet)}


def documented_wavelet():
    """The "wavelet of your own" in the docstring of RadialWavelet, compiled as it is printed."""
    lines = inspect.getdoc(RadialWavelet).split("::", 1)[1].splitlines()[1:]
    end = next(i for i, line in enumerate(lines) if line and not line.startswith(" "))
    namespace = {"RadialWavelet": RadialWavelet, "np": np}
    exec(textwrap.dedent("\n".join(lines[:end])), namespace)
    own = [v for v in namespace.values() if isinstance(v, type) and v is not RadialWavelet]
    return own[0]()


class Plateau(TensorWavelet):
    """A user's tensor wavelet: u(1 - u²)₊²."""

    def line(self, u):
        h = np.maximum(1 - u * u, 0.0)
        return u * h**2, h**2 - 4 * u * u * h

    def line_constants(self):
        return Constants((256 / 3465) ** -0.5, 0.2863, 1.0, 1.0, 1, 0.0)


class Gust(OrientedWavelet):
    """A user's oriented wavelet with two columns: (p, p³)(1 + q)^-4."""

    columns: ClassVar[int] = 2

    def profiles(self, q, p):
        return [p * (1 + q) ** -4, p**3 * (1 + q) ** -4]

    def partials(self, q, p):
        fall = -4 * (1 + q) ** -5
        return [(p * fall, (1 + q) ** -4), (p**3 * fall, 3 * p**2 * (1 + q) ** -4)]

    def energy(self, d):
        return 0.3 * d  # any positive number: features only divide by it

    def constants(self, d):
        raise NotImplementedError


OWN_WAVELETS = {"own-radial": documented_wavelet(), "own-tensor": Plateau(), "own-oriented": Gust()}


def mother(wavelet, U, e=None):
    """ψ(u) by definition, one array per column of an atom, U of shape (…, d), directions e."""
    d = U.shape[-1]
    q = np.sum(U**2, axis=-1)
    p = np.sum(U * (np.ones(1) if e is None else e), axis=-1)
    match wavelet:
        case MexicanHat(form="laplacian"):
            return [(d - q) / d * np.exp(-q / 2)]
        case MexicanHat():
            return [(1 - q) * np.exp(-q / 2)]
        case CompactHat(order=k):  # -Δ(1 - q/2k)^k / d
            h = np.maximum(1 - q / (2 * k), 0)
            return [h ** (k - 1) - (k - 1) / (k * d) * q * h ** (k - 2)]
        case ComplexMorlet(frequency=w):
            psi = np.exp(-q / 2) * (np.exp(1j * w * p) - np.exp(-(w**2) / 2))
            return [psi.real, psi.imag]
        case Morlet(frequency=w):
            return [np.exp(-q / 2) * (np.cos(w * p) - np.exp(-(w**2) / 2))]
        case GaussianDerivative():
            return [p * np.exp(-q / 2)]
        case Cliff(aspect=a):
            return [p * np.exp(-(p**2 + (q - p**2) / a**2) / 2)]
        case Haar():
            return [np.prod(np.where(np.abs(U) <= 0.5, -np.sign(U), 0.0), axis=-1)]
        case Daubechies(order=order):
            values, half = wavelet.table()[0], order - 0.5
            grid = np.linspace(-half, half, len(values))
            return [np.prod(np.interp(U, grid, values, left=0.0, right=0.0), axis=-1)]
        case RadialWavelet():
            return [wavelet.profile(q, d)]
        case OrientedWavelet():
            return wavelet.profiles(q, p)
        case TensorWavelet():
            return [np.prod(wavelet.line(U)[0], axis=-1)]


def steepness(wavelet):
    """A bound on |ψ₁′| for the rounding of u: the slope of the table, or a few units."""
    if isinstance(wavelet, Daubechies):
        values, step, _ = wavelet.table()
        return np.abs(np.diff(values)).max() / step
    return 8.0


# --------------------------------------------------------------------------------------- families

MEASURE = Measure(0.4, 1.8, Rows())
LENGTH = 1.3
RIDGES = {
    name: {**WAVELETS, **OWN_WAVELETS}[name]
    for name in ("hat", "compact4", "compact5", "morlet", "edge", "haar", "db4", "own-radial")
}
KERNELS = ("se", "matern12", "matern32", "matern52")


def _ard(ard):
    return "ard" if ard else "one"


FAMILIES = (
    {
        f"{name}-{normalization}-{_ard(ard)}": WaveletFamily(w, MEASURE, LENGTH, ard, normalization)
        for name, w in {**WAVELETS, **OWN_WAVELETS}.items()
        for normalization in ("peak", "energy")
        for ard in (True, False)
    }
    | {
        f"ridge-{name}-{_ard(ard)}": RidgeFamily(w, MEASURE, LENGTH, ard)
        for name, w in RIDGES.items()
        for ard in (True, False)
    }
    | {
        f"fourier-{kernel}-{_ard(ard)}": FourierFamily(kernel, LENGTH, ard)
        for kernel in KERNELS
        for ard in (True, False)
    }
    | {
        "hat-one_scale-ard": WaveletFamily(MexicanHat(), Measure(0.7, 0.7, Rows()), LENGTH),
        "ridge-one_scale-ard": RidgeFamily(MexicanHat(), Measure(0.7, 0.7, Rows()), LENGTH),
        "constant": ConstantFamily(),
        "linear": LinearFamily(),
    }
)
"""Every kind of features: all wavelets × normalisation × one or several lengths, and the rest."""


def is_local(family):
    """Whether the features are exactly zero far away in every direction."""
    return isinstance(family, WaveletFamily) and family.wavelet in WAVELETS.values()


def random_theta(features, rng):
    """A θ away from where learning starts, with different length-scales in all columns."""
    theta = features.theta + rng.uniform(-0.4, 0.4, len(features.theta))
    return np.clip(theta, features.bounds[:, 0], features.bounds[:, 1])


def make_map(family, d, rng, n_features=12):
    """Features at a random θ and rows X near their atoms, with mean 3 and spread 2."""
    X = rng.normal(3.0, 2.0, (15, d))
    features = family.draw(n_features, X, rng)
    features = features.with_theta(random_theta(features, rng))
    return features, X + rng.normal(0.0, 0.4, X.shape)


def by_definition(features, X):
    """Z from the equations of the module docstrings, in float64."""
    X = X.astype(np.float64)
    n, d = X.shape
    match features:
        case ConstantFeatures():
            return np.ones((n, 1))
        case LinearFeatures():
            return X * d**-0.5
        case FourierFeatures():
            phase = np.sum(X[:, None] * features.frequencies / np.exp(features.log_lengths), -1)
            return np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(len(features.frequencies))
    atoms = features.atoms
    m = len(atoms.shifts)
    log_range = 0.0 if atoms.log_width is None else np.exp(atoms.log_width)
    scales = np.exp(np.log(atoms.middle) + (atoms.draws - 0.5) * log_range)
    widths = scales[:, None] * np.exp(atoms.log_lengths)  # (m, d)
    U = (X[:, None, :] - atoms.shifts) / widths  # (n, m, d)
    if isinstance(features, RidgeFeatures):
        p = np.sum(features.weights * U, axis=-1, keepdims=True)
        return mother(features.wavelet, p)[0] / np.sqrt(m)
    assert isinstance(features, WaveletFeatures)
    factor = np.full(m, m**-0.5)
    if features.normalization == "energy":
        factor = factor * features.wavelet.energy(d) ** -0.5 / np.sqrt(np.prod(widths, axis=1))
    return np.hstack([factor * psi for psi in mother(features.wavelet, U, features.directions)])


# ----------------------------------------------------------------------- what all feature maps owe


def owes_shape_and_precision(features, X):
    """(n, p) in the precision of X, finite, whatever the memory order of X."""
    for dtype in (np.float64, np.float32):
        rows = X.astype(dtype)
        Z = features(rows)
        assert Z.shape == (len(X), features.n_features)
        assert Z.dtype == dtype
        assert np.isfinite(Z).all()
        assert_array_equal(features(np.asfortranarray(rows)), Z)
        assert_array_equal(features(np.repeat(rows, 2, axis=0)[::2]), Z)


def owes_its_definition(features, X):
    """The value of the equation, to the rounding of u = (x - t)/(ℓs) and of the stored result."""
    atoms = getattr(features, "atoms", None)
    reach = 1.0 if atoms is None else np.abs(X).max() / (atoms.lengths.min() * atoms.scales.min())
    peak = np.max(getattr(features, "factors", 1.0))
    slope = steepness(features.wavelet) if atoms is not None else np.abs(X).max() * 8
    weight = np.max(np.linalg.norm(getattr(features, "weights", np.ones((1, 1))), axis=1))
    rounding = 2 * EPS * reach * slope * peak * weight
    assert_allclose(features(X), by_definition(features, X), rtol=1e-13, atol=rounding)
    single = X.astype(np.float32)
    exact = by_definition(features, single)
    # One rounding to single precision: half a unit in the last place, 6e-8.
    assert_allclose(features(single), exact, rtol=1e-7, atol=rounding)


def owes_a_place_for_its_values(features, X):
    """``into`` writes what a call returns, in the precision of the columns it is given."""
    p = features.n_features
    wide = np.full((len(X), p + 5), 7.0)
    features.into(X, wide[:, 2 : p + 2])
    assert_array_equal(wide[:, 2 : p + 2], features(X))
    assert (np.delete(wide, np.s_[2 : p + 2], axis=1) == 7.0).all()
    single = np.empty((len(X), p), dtype=np.float32)
    features.into(X, single)
    assert_array_equal(single, features(X).astype(np.float32))


def owes_row_independence(features, X, rng):
    """A permutation of rows permutes Z, and any split of rows gives the same Z."""
    Z, order, cut = features(X), rng.permutation(len(X)), len(X) // 3
    size = np.abs(Z).max(initial=0.0)
    assert_allclose(features(X[order]), Z[order], rtol=1e-13, atol=1e-14 * size)
    pieces = np.vstack([features(X[:cut]), features(X[cut:])])
    assert_allclose(pieces, Z, rtol=1e-13, atol=1e-14 * size)


def owes_theta(features, X, rng):
    """θ lies in its bounds, survives a round trip, and returns to the same map."""
    theta, bounds = features.theta, features.bounds
    assert bounds.shape == (len(theta), 2)
    assert 0 <= features.n_lengths <= len(theta)
    assert np.all((bounds[:, 0] <= theta) & (theta <= bounds[:, 1]))
    elsewhere = random_theta(features, rng)
    moved = features.with_theta(elsewhere)
    assert_allclose(moved.theta, elsewhere, rtol=1e-14)
    assert moved.n_features == features.n_features
    back = moved.with_theta(theta)
    assert_allclose(back(X), features(X), rtol=1e-12, atol=1e-13)
    assert_allclose(features.theta, theta, rtol=0)  # maps are frozen


def owes_gradients(features, X, rng, step=1e-6):
    """pull_back is the derivative of Σ R Z by every entry of θ.

    A central difference is off by step² and by the rounding of Z over the step.
    """
    R = rng.normal(1.0, 2.0, (len(X), features.n_features))
    gradient = features.pull_back(X, R)
    theta = features.theta
    assert gradient.shape == theta.shape
    for i in range(len(theta)):
        nudge = step * (np.arange(len(theta)) == i)
        rise = features.with_theta(theta + nudge)(X) - features.with_theta(theta - nudge)(X)
        slope = np.abs(R * rise).sum() / (2 * step)
        noise = 20 * EPS * np.abs(R * features(X)).sum() / step
        tolerance = 1e-8 * slope + noise
        assert abs(np.sum(R * rise) / (2 * step) - gradient[i]) <= tolerance, f"θ[{i}]"
