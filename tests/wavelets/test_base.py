"""Every constant of every wavelet, by quadrature and search; every derivative, by differences."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import gamma

from contracts import EPS, ORIENTED, RADIAL, TENSOR, WAVELETS, documented_wavelet, mother
from rwf.wavelets import WAVELETS as NAMES
from rwf.wavelets import (
    CompactHat,
    ComplexMorlet,
    Constants,
    Daubechies,
    Haar,
    MexicanHat,
    Morlet,
    RadialWavelet,
    Wavelet,
    as_wavelet,
)


def each(wavelets):
    return pytest.mark.parametrize("wavelet", wavelets.values(), ids=wavelets.keys())


def direction(d):
    """A unit vector along no axis."""
    e = (-1.0) ** np.arange(d) / (1 + np.arange(d))
    return e / np.linalg.norm(e)


def own(wavelet, U, e):
    """ψ by the wavelet's own methods."""
    if wavelet.geometry == "radial":
        return [wavelet.profile(np.sum(U**2, -1), U.shape[-1])]
    if wavelet.geometry == "oriented":
        return wavelet.profiles(np.sum(U**2, -1), U @ e)
    return [np.prod(wavelet.line(U)[0], -1)]


def line_rule(wavelet, nodes=240):
    """Gauss–Legendre nodes and weights on the line, in panels that end where ψ kinks or jumps."""
    if isinstance(wavelet, Daubechies):
        half, nodes = wavelet.order - 0.5, 3
        edges = np.linspace(-half, half, len(wavelet.table()[0]))
    elif isinstance(wavelet, Haar):
        edges, nodes = np.array([-0.5, 0.0, 0.5]), 8
    else:
        radius = min(wavelet.constants(1).radius, 9.5)
        edges = np.array([-radius, radius])
    x, w = np.polynomial.legendre.leggauss(nodes)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def plane_rule(wavelet):
    """A polar rule in two dimensions, up to the rim of ψ: nodes, shape (k, 2), and weights."""
    radius = min(wavelet.constants(2).radius, 9.5)
    x, w = np.polynomial.legendre.leggauss(160)
    r, w = radius * (x + 1) / 2, radius * w / 2
    angle = 2 * np.pi * np.arange(128) / 128
    U = r[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return U.reshape(-1, 2), np.repeat(w * r, 128) * 2 * np.pi / 128


def columns(wavelet, U):
    """ψ with its columns on the first axis."""
    return np.array(mother(wavelet, U, direction(U.shape[-1])))


def radial_integral(wavelet, d, power):
    """∫ f(ψ) = |S^(d-1)| ∫ r^(d-1) f(ψ) dr for f(ψ) = ψ^power, by Gauss–Legendre."""
    radius = min(wavelet.constants(d).radius, 12.0)
    x, w = np.polynomial.legendre.leggauss(300)
    r, w = radius * (x + 1) / 2, radius * w / 2
    U = np.zeros((len(r), d))
    U[:, -1] = r
    return (
        2
        * np.pi ** (d / 2)
        / gamma(d / 2)
        * np.sum(w * r ** (d - 1) * columns(wavelet, U)[0] ** power)
    )


# --------------------------------------------------------------------------------------- formulas


@each(WAVELETS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_formula_is_the_definition(wavelet, d, rng):
    U = rng.normal(0.0, 1.2, (500, d))
    got, expected = own(wavelet, U, direction(d)), mother(wavelet, U, direction(d))
    assert len(got) == len(expected) == wavelet.columns
    # Two formulas round u differently, by eps, which the slope of a Daubechies table multiplies.
    assert_allclose(
        got, expected, rtol=1e-13, atol=1e-14 if wavelet.geometry != "tensor" else 1e-12
    )


@each(WAVELETS)
def test_in_one_dimension_the_line_is_the_wavelet(wavelet, rng):
    u = rng.normal(0.3, 1.5, 500)
    assert_allclose(wavelet.line(u)[0], mother(wavelet, u[:, None])[0], rtol=1e-13, atol=1e-12)


@each(WAVELETS)
def test_the_slope_of_the_line_is_its_derivative(wavelet, rng):
    u = rng.uniform(-3.4, 3.4, 400)
    # An interpolated table has a kink every 2.4e-4: a step of 1e-9 stays between kinks.
    step = 1e-9 if isinstance(wavelet, Daubechies) else 1e-6
    slope = wavelet.line(u)[1]
    difference = (wavelet.line(u + step)[0] - wavelet.line(u - step)[0]) / (2 * step)
    # ψ(u ± h) rounds u by 4 eps; relative to h this multiplies the slope.
    assert_allclose(difference, slope, rtol=8 * EPS / step, atol=1e-9 + 4 * EPS / step)


@each(RADIAL)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_radial_slopes_are_derivatives_by_the_squared_distance(wavelet, d, rng):
    q, h = rng.uniform(0.01, 15.0, 400), 1e-6
    difference = (wavelet.profile(q + h, d) - wavelet.profile(q - h, d)) / (2 * h)
    assert_allclose(wavelet.slope(q, d), difference, rtol=0, atol=2e-9)


@each(ORIENTED)
def test_oriented_partials_are_derivatives(wavelet, rng):
    q, p, h = rng.uniform(0.1, 9.0, 400), rng.normal(0.5, 1.5, 400), 1e-6
    by_q = np.subtract(wavelet.profiles(q + h, p), wavelet.profiles(q - h, p)) / (2 * h)
    by_p = np.subtract(wavelet.profiles(q, p + h), wavelet.profiles(q, p - h)) / (2 * h)
    d_q, d_p = zip(*wavelet.partials(q, p), strict=True)
    assert_allclose(d_q, by_q, rtol=0, atol=2e-9)
    assert_allclose(d_p, by_p, rtol=0, atol=2e-9)


FREQUENCIES = pytest.mark.parametrize("w", [0.6, 1.7, 5.0])
MORLETS = pytest.mark.parametrize("kind", [Morlet, ComplexMorlet])


@MORLETS
@FREQUENCIES
def test_frequency_slopes_are_derivatives_by_the_log_frequency(kind, w, rng):
    q, p, h = rng.uniform(0.1, 9.0, 400), rng.normal(0.5, 1.5, 400), 1e-6
    above, below = kind(w * np.exp(h)), kind(w * np.exp(-h))
    difference = np.subtract(above.profiles(q, p), below.profiles(q, p)) / (2 * h)
    assert_allclose(kind(w).frequency_slopes(q, p), difference, rtol=0, atol=2e-9)


@MORLETS
@FREQUENCIES
@pytest.mark.parametrize("d", [1, 2])
def test_the_energy_slope_is_its_derivative_by_the_log_frequency(kind, w, d):
    h = 1e-6
    difference = (kind(w * np.exp(h)).energy(d) - kind(w * np.exp(-h)).energy(d)) / (2 * h)
    assert_allclose(kind(w).energy_slope(d), difference, rtol=1e-8, atol=2e-9)


# -------------------------------------------------------------------------------- energy and mean


@each(WAVELETS)
def test_the_l2_constant_gives_unit_energy_on_the_line(wavelet):
    u, w = line_rule(wavelet)
    energy = np.sum(w * columns(wavelet, u[:, None]) ** 2)
    # A table of unit Riemann sum loses step·Σ(Δψ)²/6 between its points, 2e-6 for db2.
    rtol = 1e-5 if isinstance(wavelet, Daubechies) else 1e-12
    assert_allclose(wavelet.constants(1).l2_constant ** 2 * energy, 1.0, rtol=rtol)
    assert_allclose(wavelet.energy(1), energy, rtol=rtol)


@each(RADIAL | ORIENTED)
def test_the_l2_constant_gives_unit_energy_in_the_plane(wavelet):
    U, w = plane_rule(wavelet)
    energy = np.sum(w * columns(wavelet, U) ** 2)
    assert_allclose(wavelet.constants(2).l2_constant ** 2 * energy, 1.0, rtol=1e-12)
    assert_allclose(wavelet.energy(2), energy, rtol=1e-12)


@each(TENSOR)
@pytest.mark.parametrize("d", [2, 3])
def test_energy_and_constants_of_a_product_are_products(wavelet, d):
    one, many = wavelet.constants(1), wavelet.constants(d)
    assert_allclose(wavelet.energy(d), wavelet.energy(1) ** d, rtol=1e-14)
    assert_allclose(many.l2_constant, one.l2_constant**d, rtol=1e-14)
    assert_allclose(many.sup, one.sup**d, rtol=1e-14)
    assert many.mean == one.mean**d


@each(RADIAL)
@pytest.mark.parametrize("d", [3, 4, 5, 6, 7, 8])
def test_the_l2_constant_gives_unit_energy_in_many_dimensions(wavelet, d):
    energy = radial_integral(wavelet, d, 2)
    assert_allclose(wavelet.constants(d).l2_constant ** 2 * energy, 1.0, rtol=1e-11)
    assert_allclose(wavelet.energy(d), energy, rtol=1e-11)


@pytest.mark.parametrize("d", range(1, 9))
def test_the_laplacian_hats_have_mean_zero_in_every_dimension(d):
    for wavelet in (MexicanHat(), CompactHat(order=4), CompactHat(order=5)):
        weight = abs(radial_integral(MexicanHat(form="paper"), d, 2))
        assert abs(radial_integral(wavelet, d, 1)) < 1e-12 * weight
        assert wavelet.constants(d).mean == 0.0


@pytest.mark.parametrize("d", range(1, 9))
def test_the_printed_hat_has_mean_zero_on_the_line_only(d):
    wavelet = MexicanHat(form="paper")
    mean = (2 * np.pi) ** (d / 2) * (1 - d)
    assert_allclose(radial_integral(wavelet, d, 1), mean, rtol=1e-11, atol=1e-11)
    assert_allclose(wavelet.constants(d).mean, mean, rtol=1e-13)
    assert wavelet.constants(d).vanishing_moments == (2 if d == 1 else 0)


# ----------------------------------------------------------------------------- vanishing moments


def moments(wavelet, d, order):
    """∫ u^α ψ relative to ∫ |u^α ψ|, for every |α| = order and every column."""
    if wavelet.geometry == "tensor":
        u, w = line_rule(wavelet)
        psi = w * columns(wavelet, u[:, None])[0]
        size = [np.sum(np.abs(psi * u**k)) for k in range(order + 1)]
        axis = [np.sum(psi * u**k) / size[k] for k in range(order + 1)]
        powers = [a for a in product(range(order + 1), repeat=d) if sum(a) == order]
        return np.array([np.prod([axis[k] for k in a]) for a in powers])
    if d == 1:
        u, w = line_rule(wavelet)
        U = u[:, None]
    else:
        U, w = plane_rule(wavelet)
    psi = w * columns(wavelet, U)
    powers = [a for a in product(range(order + 1), repeat=d) if sum(a) == order]
    monomials = [np.prod(U ** np.array(a), axis=-1) for a in powers]
    return np.array([(psi * u).sum(-1) / np.abs(psi * u).sum(-1) for u in monomials])


@each(WAVELETS)
@pytest.mark.parametrize("d", [1, 2])
def test_moments_vanish_up_to_the_stated_number_and_no_further(wavelet, d):
    M = wavelet.constants(d).vanishing_moments
    for order in range(M):
        assert np.abs(moments(wavelet, d, order)).max() < 1e-11, f"moment {order}"
    assert np.abs(moments(wavelet, d, M)).max() > 1e-5


@each(WAVELETS)
@pytest.mark.parametrize("d", [1, 2])
def test_the_mean_is_zero_where_a_moment_vanishes(wavelet, d):
    constants = wavelet.constants(d)
    assert (constants.mean == 0.0) == (constants.vanishing_moments > 0)


# ------------------------------------------------------------------------------ sup and Lipschitz


def dense_points(wavelet, d):
    """Rows of points that cover ψ finely along straight lines, shape (lines, points, d)."""
    reach = min(wavelet.constants(d).radius, 7.0)
    r = np.linspace(-reach, reach, 40_001)
    if wavelet.geometry == "radial" or d == 1:
        ray = np.zeros(d)
        ray[-1] = 1.0
        return (r[:, None] * ray)[None]
    e = direction(d)
    across = np.array([-e[1], e[0]])
    offsets = np.linspace(0.0, 2.5, 26)
    slanted = [np.cos(a) * e + np.sin(a) * across for a in (0.0, 0.3, 0.8, np.pi / 2)]
    lines = [o * across + r[:, None] * s for o in offsets for s in slanted]
    return np.array(lines)


def largest(wavelet, d):
    """The largest |ψ| and the largest |ψ(u) - ψ(v)|/|u - v| between neighbours on dense lines."""
    sup = lipschitz = 0.0
    for U in dense_points(wavelet, d):
        psi = columns(wavelet, U)
        sup = max(sup, np.linalg.norm(psi, axis=0).max())
        rise = np.linalg.norm(np.diff(psi, axis=1), axis=0)
        lipschitz = max(lipschitz, (rise / np.linalg.norm(np.diff(U, axis=0), axis=1)).max())
    return sup, lipschitz


OTHER_FREQUENCIES = {"morlet-12": Morlet(12.0), "morlet-complex-1.3": ComplexMorlet(1.3)}
SMOOTH = {f"{name}-{d}": (w, d) for name, w in RADIAL.items() for d in range(1, 9)} | {
    f"{name}-{d}": (w, d) for name, w in (ORIENTED | OTHER_FREQUENCIES).items() for d in (1, 2)
}


@pytest.mark.parametrize("wavelet, d", SMOOTH.values(), ids=SMOOTH.keys())
def test_sup_and_lipschitz_are_the_smallest_bounds(wavelet, d):
    constants = wavelet.constants(d)
    sup, lipschitz = largest(wavelet, d)
    # They may come from a fine grid, hence 1e-8; a difference quotient rounds to 1e-11.
    assert sup <= constants.sup * (1 + 1e-8)
    assert lipschitz <= constants.lipschitz * (1 + 1e-8)
    assert sup > 0.99 * constants.sup
    assert lipschitz > 0.99 * constants.lipschitz


@each(RADIAL | ORIENTED)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_random_pair_of_points_breaks_the_bounds(wavelet, d, rng):
    constants = wavelet.constants(d)
    U = rng.normal(0.0, 1.0, (20_000, d))
    V = U + rng.normal(size=U.shape) * 10 ** rng.uniform(-4, 0, (20_000, 1))
    at_u, at_v = columns(wavelet, U), columns(wavelet, V)
    quotients = np.linalg.norm(at_u - at_v, axis=0) / np.linalg.norm(U - V, axis=1)
    assert np.linalg.norm(at_u, axis=0).max() <= constants.sup * (1 + 1e-8)
    assert quotients.max() <= constants.lipschitz * (1 + 1e-8)


@each(TENSOR)
@pytest.mark.parametrize("d", [1, 2])
def test_the_bounds_of_a_product_hold(wavelet, d, rng):
    constants = wavelet.constants(d)
    radius = wavelet.constants(1).radius
    U = rng.uniform(-radius, radius, (200_000, d))
    V = U + rng.normal(size=U.shape) * 10 ** rng.uniform(-4, 0, (200_000, 1))
    at_u, at_v = columns(wavelet, U)[0], columns(wavelet, V)[0]
    assert np.abs(at_u).max() <= constants.sup * (1 + 1e-12)
    quotients = np.abs(at_u - at_v) / np.linalg.norm(U - V, axis=1)
    assert quotients.max() <= constants.lipschitz * (1 + 1e-9)
    if d == 1:
        assert np.abs(at_u).max() > 0.99 * constants.sup


def test_what_jumps_or_has_unbounded_slope_has_no_lipschitz_constant():
    for wavelet in (Haar(), Daubechies(2)):
        assert wavelet.constants(2).lipschitz == np.inf
    for order in (3, 4, 8):
        assert np.isfinite(Daubechies(order).constants(2).lipschitz)


# ---------------------------------------------------------------------------------------- support


@each(WAVELETS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_support_ends_at_the_radius(wavelet, d, rng):
    radius = wavelet.constants(d).radius
    towards = rng.normal(size=(4000, d))
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    e = direction(d)
    if radius == np.inf:
        at_eight = own(wavelet, 8.0 * towards, e)
        assert np.count_nonzero(at_eight) > 0.9 * np.size(at_eight)
        return
    outside = radius * rng.uniform(1 + 1e-12, 3.0, (4000, 1)) * towards
    assert_array_equal(own(wavelet, outside, e), np.zeros((1, 4000)))
    # A product of intervals reaches its radius in its corners only.
    corners = np.sign(towards) / np.sqrt(d) if wavelet.geometry == "tensor" else towards
    assert np.count_nonzero(own(wavelet, 0.98 * radius * corners, e)) == 4000


# ------------------------------------------------------------------------------------- Daubechies


def exact_daubechies(order, level=11):
    """ψ at dyadic points: φ at the integers is an eigenvector, the two-scale relation the rest."""
    filters = pywt.Wavelet(f"db{order}")
    h, g = np.sqrt(2) * np.array(filters.rec_lo), np.sqrt(2) * np.array(filters.rec_hi)
    width = 2 * order - 1

    def refine(coefficients, phi, spacing):  # Σ_k c_k φ(2x - k)
        out = np.zeros(2 * (len(phi) - 1) + 1)
        for k, c in enumerate(coefficients):
            index = np.arange(len(out)) - k * spacing
            inside = (index >= 0) & (index < len(phi))
            out[inside] += c * phi[index[inside]]
        return out

    i, j = np.indices((width + 1, width + 1))
    relation = np.where((2 * i - j >= 0) & (2 * i - j <= width), h[np.clip(2 * i - j, 0, width)], 0)
    values, vectors = np.linalg.eig(relation)
    phi = vectors[:, np.argmin(np.abs(values - 1))].real
    phi /= phi.sum()
    for k in range(level):
        phi = refine(h, phi, 2**k)
    return refine(g, phi, 2**level)


@pytest.mark.parametrize("order", [2, 3, 4, 6])
def test_the_table_is_the_daubechies_wavelet(order):
    values, step, left = Daubechies(order).table()
    exact = exact_daubechies(order)
    assert len(values) == len(exact)
    assert_allclose(step * (len(values) - 1), 2 * order - 1, rtol=1e-14)
    assert_allclose(left, -(2 * order - 1) / 2, rtol=1e-14)
    # The cascade is right to within one step of its grid.
    assert np.abs(values - exact).max() < np.abs(np.diff(exact)).max()
    assert np.sqrt(step * np.sum((values - exact) ** 2)) < 2e-3


@pytest.mark.parametrize("order", [2, 4, 10, 38])
def test_support_and_moments_are_those_of_the_filter(order):
    constants = Daubechies(order).constants(1)
    taps = np.array(pywt.Wavelet(f"db{order}").rec_hi)
    assert 2 * constants.radius == len(taps) - 1 == 2 * order - 1
    k = np.arange(len(taps)) - (len(taps) - 1) / 2
    moment = [np.sum(taps * k**j) / np.sum(np.abs(taps * k**j)) for j in range(min(order, 4) + 1)]
    assert np.abs(moment[: min(order, 4)]).max() < 1e-9
    if order <= 4:
        assert abs(moment[order]) > 1e-3
    assert constants.vanishing_moments == order


@pytest.mark.parametrize("order", [2, 4, 10])
def test_the_table_is_zero_outside_the_stated_radius(order):
    wavelet = Daubechies(order)
    radius = wavelet.constants(1).radius
    u = radius + np.geomspace(1e-9, 0.5, 1000)
    assert_array_equal(wavelet.line(u)[0], 0.0)
    assert_array_equal(wavelet.line(-u)[0], 0.0)


def test_d4_is_db2_with_two_moments_on_width_three():
    constants = Daubechies(order=2).constants(1)
    assert (constants.vanishing_moments, 2 * constants.radius) == (2, 3.0)


# --------------------------------------------------------------------------------------- relations


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_compact_hat_tends_to_the_mexican_hat(d):
    q = np.linspace(0.0, 20.0, 2001)
    hat = MexicanHat().profile(q, d)
    errors = [np.abs(CompactHat(p).profile(q, d) - hat).max() for p in (8, 16, 32, 64, 256)]
    assert np.all(np.diff(np.log(errors[:4])) < np.log(0.6))  # halved with every doubling: O(1/p)
    assert errors[-1] < 0.01


def test_the_two_forms_of_the_hat_agree_on_the_line_and_nowhere_else(rng):
    q = rng.uniform(0.1, 9.0, 50)
    printed = MexicanHat(form="paper")
    assert_array_equal(MexicanHat().profile(q, 1), printed.profile(q, 1))
    assert np.abs(MexicanHat().profile(q, 2) - printed.profile(q, 2)).max() > 0.1


def test_complex_morlet_is_the_real_one_with_a_sine(rng):
    q, p = rng.uniform(0.1, 9.0, 50), rng.normal(0.5, 1.5, 50)
    assert_array_equal(ComplexMorlet(2.1).profiles(q, p)[0], Morlet(2.1).profiles(q, p)[0])


# -------------------------------------------------------------------------- wavelets of one's own


class Plain(RadialWavelet):
    """A radial wavelet with a formula and a radius, whose constants are found numerically."""

    def __init__(self, known):
        self.known = known

    def profile(self, q, d):
        return self.known.profile(q, d)

    def slope(self, q, d):
        return self.known.slope(q, d)

    def radius(self, d):
        return self.known.radius(d)


@each(RADIAL)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_constants_found_numerically_are_the_known_ones(wavelet, d):
    found, known = Plain(wavelet).constants(d), wavelet.constants(d)
    assert_allclose(Plain(wavelet).energy(d), wavelet.energy(d), rtol=1e-8)
    for name in ("l2_constant", "sup", "lipschitz", "radius"):
        assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-7, err_msg=name)
    assert_allclose(found.mean, known.mean, rtol=1e-8, atol=1e-7)
    assert found.vanishing_moments == known.vanishing_moments


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_documented_ten_line_wavelet_has_sensible_constants(d):
    wavelet = documented_wavelet()
    assert isinstance(wavelet, Wavelet)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        constants = wavelet.constants(d)
    q, h = np.linspace(0.01, 9.0, 300), 1e-6
    difference = (wavelet.profile(q + h, d) - wavelet.profile(q - h, d)) / (2 * h)
    assert_allclose(wavelet.slope(q, d), difference, rtol=0, atol=1e-8)
    area = 2 * np.pi ** (d / 2) / gamma(d / 2)
    energy = area * quad(lambda r: r ** (d - 1) * wavelet.profile(r * r, d) ** 2, 0, np.inf)[0]
    mean = area * quad(lambda r: r ** (d - 1) * wavelet.profile(r * r, d), 0, np.inf)[0]
    assert_allclose(constants.l2_constant, energy**-0.5, rtol=1e-7)
    assert_allclose(constants.mean, mean, rtol=1e-6, atol=1e-7)
    assert_allclose(constants.sup, 1.0, rtol=1e-12)  # its peak, at the origin
    assert np.isfinite(constants.lipschitz)
    assert constants.radius == np.inf
    assert (constants.vanishing_moments > 0) == (abs(mean) < 1e-7)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_documented_ten_line_wavelet_is_a_wavelet(d):
    wavelet = documented_wavelet()
    mean = quad(lambda r: r ** (d - 1) * wavelet.profile(r * r, d), 0, np.inf, epsabs=1e-12)[0]
    assert abs(mean) < 1e-9


# ------------------------------------------------------------------------------ names and refusals


@pytest.mark.parametrize(
    "make, advice",
    [
        (lambda: MexicanHat(form="sombrero"), "use 'laplacian' or 'paper'"),
        (lambda: CompactHat(order=2), "at least 3"),
        (lambda: CompactHat(order=4.5), "an integer of at least 3"),
        (lambda: Morlet(frequency=0.0), "must be positive"),
        (lambda: Morlet(frequency=np.inf), "must be positive"),
        (lambda: Morlet(frequency=np.nan), "must be positive"),
        (lambda: ComplexMorlet(frequency=-2.0), "must be positive"),
        (lambda: Daubechies(order=0), "db2 to db38"),
        (lambda: Daubechies(order=39), "db2 to db38"),
        (lambda: Daubechies(order=2.5), "db2 to db38"),
        (lambda: as_wavelet("mexican"), "use one of mexican_hat"),
        (lambda: as_wavelet("db39"), "db2 to db38"),
        (lambda: as_wavelet("dbx"), "db2 … db38"),
        (lambda: as_wavelet(7), "or a Wavelet object"),
    ],
)
def test_a_bad_parameter_is_refused_with_the_remedy(make, advice):
    with pytest.raises(ValueError, match=advice):
        make()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_its_wavelet(name):
    wavelet = as_wavelet(name)
    assert isinstance(wavelet, Wavelet)
    assert wavelet == as_wavelet(name)  # equal by value
    assert isinstance(wavelet.constants(2), Constants)


def test_names_and_objects():
    assert as_wavelet("mexican_hat_paper") == MexicanHat(form="paper")
    assert as_wavelet("complex_morlet") == ComplexMorlet()
    assert as_wavelet("db3") == Daubechies(order=3)
    mine = replace(Morlet(), frequency=3.0)
    assert as_wavelet(mine) is mine
