"""The exact kernel against brute-force integrals, against random features, and in a GP.

Integrals use the definitions of contracts.py; only energies, which test_wavelets.py checks, and the
tables of Daubechies wavelets come from the library.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel

from contracts import OWN_WAVELETS, WAVELETS, mother
from rwf.features import WaveletFamily
from rwf.features.inducing import HatMixture
from rwf.kernels import AccuracyWarning, ExpectedKernel, HatKernel, WaveletKernel
from rwf.kernels.expected import kernel as expected_kernel
from rwf.kernels.expected.quadrature import directions, gauss
from rwf.kernels.expected.waves import mean_wave
from rwf.wavelets import CompactHat, Daubechies, GaussianDerivative, Haar, MexicanHat, Morlet
from rwf.wavelets.measure import Box, Hull, Measure, Rows

LOW, HIGH, PAD = 0.6, 1.9, 0.15
LENGTHS = np.array([1.4, 0.8, 1.1])
# A cliff has no closed form, and its quadrature over places and directions takes minutes.
KNOWN = [name for name in WAVELETS if name != "cliff"]
NAMES = pytest.mark.parametrize("name", KNOWN)
DIMENSION = pytest.mark.parametrize("d", [1, 2])
SMOOTH = [n for n in KNOWN if n not in ("haar", "db2", "db4")]


def points(d, rng, pairs=50):
    """Nine rows with mean 3, and pairs of points (x, y) near them, the first five with x = y."""
    X = rng.normal(3.0, 0.8, (9, d))
    x = rng.uniform(X.min(axis=0), X.max(axis=0), (pairs, d))
    gap = rng.normal(0.0, 0.5, (pairs, d)) * (np.arange(pairs)[:, None] >= 5)
    return X, x, x + gap


def kernel(wavelet, shifts, X, normalization="energy", scales=(LOW, HIGH), tolerance=None):
    measure = Measure(*scales, shifts)
    return ExpectedKernel(wavelet, measure, X, LENGTHS[: X.shape[1]], normalization, tolerance)


def corners(X):
    """The padded box of X."""
    margin = PAD * np.ptp(X, axis=0)
    return X.min(axis=0) - margin, X.max(axis=0) + margin


def product(wavelet, x, y, t, s):
    """c² ψ·ψ of a unit-energy atom at t, averaged over 100 directions in the plane."""
    d, angle = len(x), 2 * np.pi * np.arange(100) / 100
    e = np.ones((1, 1)) if d == 1 else np.column_stack([np.cos(angle), np.sin(angle)])
    widths = s * LENGTHS[:d]
    u, v = np.broadcast_to((x - t) / widths, e.shape), np.broadcast_to((y - t) / widths, e.shape)
    columns = zip(mother(wavelet, u, e), mother(wavelet, v, e), strict=True)
    return sum(np.mean(a * b) for a, b in columns) / np.prod(widths) / wavelet.energy(d)


# -------------------------------------------------------------------------------------- quadrature


def test_gauss_averages_polynomials_and_ends_where_it_should():
    for order in (16, 64):
        v, weights = gauss(order)
        assert len(v) == order
        assert np.all(weights > 0)
        assert_allclose([weights @ v**k for k in (0, 1, 31)], [1, 1 / 2, 1 / 32], rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3])
def test_directions_average_waves_to_their_closed_form(d, rng):
    e, weights = directions(d, 32)
    x = rng.normal(0.0, 3.0, (6, d))
    assert_allclose(np.linalg.norm(e, axis=1), 1.0)
    waves = mean_wave(np.linalg.norm(x, axis=1), d)
    assert_allclose(weights @ np.cos(e @ x.T), waves, atol=1e-12)
    assert_allclose(np.einsum("r,ri,rj->ij", weights, e, e), np.eye(d) / d, atol=1e-14)


def test_a_wave_in_many_dimensions_is_the_average_over_directions(rng):
    d, r = 7, np.array([0.0, 0.8, 3.0, 9.0])
    # The projection p of a direction has density ∝ (1 - p²)^((d-3)/2).
    p, weights = np.polynomial.legendre.leggauss(80)
    density = weights * (1 - p**2) ** ((d - 3) / 2)
    average = np.cos(np.outer(r, p)) @ density / density.sum()
    assert_allclose(mean_wave(r, d), average, atol=1e-12)


# ---------------------------------------------------------------------------------- brute integrals


@pytest.mark.parametrize("name", SMOOTH)
def test_the_box_in_one_dimension_is_a_double_integral(name, rng):
    wavelet = WAVELETS[name]
    X, x, y = points(1, rng, pairs=7)
    low, high = corners(X)
    radius = wavelet.constants(1).radius * LENGTHS[0]
    for a, b in zip(x[4:, 0], y[4:, 0], strict=True):

        def at(v, a=a, b=b):
            s = LOW * (HIGH / LOW) ** v
            ends = np.array([p + c * s * radius for p in (a, b) for c in (-1, 1)])
            inside = np.unique(ends[(low < ends) & (ends < high)])

            def integrand(t):
                return product(wavelet, np.array([a]), np.array([b]), t, s)

            return quad(integrand, low[0], high[0], points=inside if len(inside) else None)[0]

        exact = quad(at, 0, 1, epsabs=1e-7, epsrel=1e-7)[0] / (high - low)
        found = kernel(wavelet, Box(PAD), X, tolerance=1e-8).paired([[a]], [[b]])
        assert_allclose(found, exact, atol=1e-6)


def test_haar_in_one_dimension_is_an_integral_over_shifts(rng):
    # At a given t, both atoms are ±1 from s = 2 max(|x-t|, |y-t|)/ℓ on.
    X, x, y = points(1, rng)
    low, high = corners(X)

    def over_scales(t, a, b):
        start = np.clip(2 * max(abs(a - t), abs(b - t)) / LENGTHS[0], LOW, HIGH)
        sign = 1 if (a < t) == (b < t) else -1
        return sign * (1 / start - 1 / HIGH) / np.log(HIGH / LOW) / LENGTHS[0]

    for a, b in zip(x[:, 0], y[:, 0], strict=True):
        reach = LENGTHS[0] / 2 * np.array([-HIGH, -LOW, LOW, HIGH])
        kinks = np.concatenate([[a, b, (a + b) / 2], a + reach, b + reach])
        inside = np.unique(kinks[(low < kinks) & (kinks < high)])
        exact = quad(over_scales, low[0], high[0], (a, b), points=inside)[0] / (high - low)
        assert_allclose(kernel(Haar(), Box(PAD), X).paired([[a]], [[b]]), exact, atol=1e-8)


@pytest.mark.parametrize("name", ["hat", "hat-paper", "morlet-slow", "morlet-complex", "edge"])
def test_the_box_in_two_dimensions_is_a_double_integral_at_every_scale(name, rng):
    wavelet, s = WAVELETS[name], 0.9
    X, x, y = points(2, rng, pairs=6)
    low, high = corners(X)
    k = kernel(wavelet, Box(PAD), X, scales=(s, s))

    def integrand(t2, t1):
        return product(wavelet, x[5], y[5], np.array([t1, t2]), s)

    integral = dblquad(integrand, low[0], high[0], low[1], high[1], epsabs=1e-7)[0]
    assert_allclose(k.paired(x[5:], y[5:]), integral / np.prod(high - low), atol=1e-6)


@pytest.mark.parametrize("name", ["hat", "hat-paper", "morlet-slow", "morlet-complex", "edge"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_closed_forms_are_what_quadrature_finds(name, d, rng):
    known = WAVELETS[name]
    # A subclass may have another formula, and so is integrated by quadrature.
    own = type("Own", (type(known),), {})(**vars(known))
    X, x, y = points(d, rng, pairs=8)
    shifts = Rows() if d == 3 and known.geometry == "oriented" else Box(PAD)
    closed, found = (kernel(w, shifts, X, scales=(0.9, 0.9)).paired(x, y) for w in (known, own))
    assert_allclose(found, closed, atol=1e-9 * closed[0])


@pytest.mark.parametrize("name", ["haar", "db2", "db4", "own-tensor"])
def test_tensor_wavelets_have_product_kernels_at_every_scale(name, rng):
    wavelet = {**WAVELETS, **OWN_WAVELETS}[name]
    X, x, y = points(3, rng)
    axes = [
        ExpectedKernel(wavelet, Measure(0.9, 0.9, Box(PAD)), X[:, [k]], LENGTHS[k], "energy")
        for k in range(3)
    ]
    product = np.prod([k.paired(x[:, [j]], y[:, [j]]) for j, k in enumerate(axes)], axis=0)
    k = kernel(wavelet, Box(PAD), X, scales=(0.9, 0.9))
    assert_allclose(k.paired(x, y), product, atol=1e-4 * product.max())


@pytest.mark.parametrize("name", ["haar", "db2", "db4", "compact4"])
@pytest.mark.parametrize("d", [1, 2])
def test_rough_wavelets_at_rows_are_fine_sums_over_scales(name, d, rng):
    wavelet = WAVELETS[name]
    X, x, y = points(d, rng, pairs=7)
    scales = LOW * (HIGH / LOW) ** ((np.arange(40_000) + 0.5) / 40_000)
    widths = scales[:, None] * LENGTHS[:d]
    exact = np.zeros(len(x))
    for t in X:
        for i in range(len(x)):
            (psi,), (phi,) = (
                mother(wavelet, (x[i] - t) / widths),
                mother(wavelet, (y[i] - t) / widths),
            )
            exact[i] += np.mean(psi * phi / np.prod(widths, axis=1)) / len(X) / wavelet.energy(d)
    assert_allclose(kernel(wavelet, Rows(), X).paired(x, y), exact, atol=5e-5 * exact[0])


# --------------------------------------------------------------------------------- random features


def atom_products(k, x, y, rng, *, maps, atoms):
    """m·z_i(x)z_i(y) of every atom i of independent maps, each of shape (pairs, atoms)."""
    wavelet, X, normalization = k.wavelet, k.rows, k.normalization
    measure = replace(k.measure, stratify=False)
    family = WaveletFamily(wavelet, measure, 1.0, True, normalization)
    d = X.shape[1]
    for _ in range(maps):
        features = family.draw(atoms * wavelet.columns, X, rng)
        theta = np.concatenate([np.log(LENGTHS[:d]), features.theta[d:]])
        Z = features.with_theta(theta)(np.vstack([x, y]))
        products = Z[: len(x)] * Z[len(x) :]
        yield atoms * sum(np.split(products, wavelet.columns, axis=1))


def assert_unbiased(means, exact):
    """Means of independent maps, shape (maps, pairs), within 5 standard errors of the kernel."""
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert 5 * np.median(error[:5]) < 0.2 * np.median(exact[:5])  # it would see a wrong factor
    assert np.all(np.abs(means.mean(axis=0) - exact) < 5 * error + 1e-12)


@NAMES
@DIMENSION
def test_features_of_the_box_are_unbiased_and_their_error_falls_as_the_root(name, d, rng):
    X, x, y = points(d, rng)
    k = kernel(WAVELETS[name], Box(PAD), X, "peak" if d == 1 else "energy", tolerance=1e-3)
    # Atoms are independent, so that any D of them are a map of D atoms.
    draws = atom_products(k, x, y, rng, maps=20, atoms=2**14)
    means = np.vstack([p.reshape(len(x), -1, 2**6).mean(axis=2).T for p in draws])
    exact = k.paired(x, y)
    assert_unbiased(means, exact)
    errors = []
    for doublings in range(9):  # D = 2⁶ … 2¹⁴
        grouped = means.reshape(-1, 2**doublings, len(x)).mean(axis=1)
        errors.append(np.sqrt(np.mean((grouped - exact) ** 2, axis=0)).mean())
    slope = np.polyfit(np.arange(9), np.log2(errors), 1)[0]
    assert abs(slope + 0.5) < 0.05


@NAMES
@DIMENSION
def test_features_of_the_rows_are_unbiased(name, d, rng):
    X, x, y = points(d, rng)
    k = kernel(WAVELETS[name], Rows(), X, "energy" if d == 1 else "peak", tolerance=1e-4)
    draws = atom_products(k, x, y, rng, maps=150, atoms=512)
    assert_unbiased(np.array([p.mean(axis=1) for p in draws]), k.paired(x, y))


@pytest.mark.parametrize("name", ["hat", "morlet-slow", "morlet-complex", "edge", "own-radial"])
def test_features_are_unbiased_in_three_dimensions(name, rng):
    X, x, y = points(3, rng, pairs=7)
    wavelet = {**WAVELETS, **OWN_WAVELETS}[name]
    k = kernel(wavelet, Box(PAD), X, scales=(0.9, 0.9), tolerance=1e-3)
    draws = atom_products(k, x, y, rng, maps=60, atoms=4096)
    assert_unbiased(np.array([p.mean(axis=1) for p in draws]), k.paired(x, y))


@pytest.mark.parametrize("name", ["hat", "compact4", "morlet", "haar", "db4", "own-oriented"])
def test_features_of_the_hull_are_unbiased_on_the_line(name, rng):
    X, x, y = points(1, rng)
    X = np.vstack([X, X[:3]])  # rows in the same place: a convex combination of them stays there
    wavelet = {**WAVELETS, **OWN_WAVELETS}[name]
    k = kernel(wavelet, Hull(), X, "peak", tolerance=1e-3)
    draws = atom_products(k, x, y, rng, maps=100, atoms=1024)
    assert_unbiased(np.array([p.mean(axis=1) for p in draws]), k.paired(x, y))


@pytest.mark.parametrize("name", OWN_WAVELETS)
@pytest.mark.parametrize("shifts", [Rows(), Box(PAD)], ids=["rows", "box"])
def test_features_of_a_wavelet_of_your_own_are_unbiased(name, shifts, rng):
    X, x, y = points(2, rng, pairs=8)
    k = kernel(OWN_WAVELETS[name], shifts, X, scales=(0.9, 0.9), tolerance=1e-3)
    draws = atom_products(k, x, y, rng, maps=50, atoms=2048)
    assert_unbiased(np.array([p.mean(axis=1) for p in draws]), k.paired(x, y))


def test_morlet_atoms_at_rows_are_unbiased_in_many_dimensions(rng):
    X = rng.normal(3.0, 0.5, (6, 5))
    x = X[:5] + 0.2
    family = WaveletFamily(Morlet(1.5), Measure(LOW, HIGH, Rows()), 1.7)
    maps = [family.draw(2000, X, rng)(np.vstack([x, X[:5]])) for _ in range(60)]
    means = np.array([np.sum(Z[:5] * Z[5:], axis=1) for Z in maps])
    assert_unbiased(means, ExpectedKernel.of(family, X).paired(x, X[:5]))


# ------------------------------------------------------------------------------------- properties


@given(
    name=st.sampled_from([*KNOWN, "own-radial"]),
    d=st.integers(1, 2),
    shifts=st.sampled_from([Rows(), Box(), Hull()]),
    normalization=st.sampled_from(["peak", "energy"]),
    high=st.sampled_from([0.8, 2.5]),
    seed=st.integers(0, 99),
)
def test_kernels_are_covariances_that_move_and_stretch_with_the_rows(
    name, d, shifts, normalization, high, seed
):
    rng = np.random.default_rng(seed)
    wavelet = {**WAVELETS, **OWN_WAVELETS}[name]
    d = 1 if isinstance(shifts, Hull) else d
    rows, X, Y = (rng.normal(3.0, 0.8, (n, d)) for n in (4, 6, 3))
    lengths = LENGTHS[:d]

    def k(rows, lengths):
        measure = Measure(0.8, high, shifts)
        return ExpectedKernel(wavelet, measure, rows, lengths, normalization, tolerance=1e-3)

    one = k(rows, lengths)
    K, size = one(X), one._size
    assert_allclose(K, K.T, atol=1e-12 * size)
    # A closed form over shifts, averaged over directions by quadrature, is good to the tolerance.
    assert np.linalg.eigvalsh(K).min() > -1e-5 * size
    assert_allclose(one.diagonal(X), np.diag(K), atol=2e-3 * size)
    assert_allclose(one(X, Y).T, one(Y, X), atol=2e-3 * size)
    assert_allclose(one.paired(X[:3], Y), np.diag(one(X[:3], Y)), atol=2e-3 * size)
    stretch = np.array([2.0, 0.25])[:d]
    units = 1.0 if normalization == "peak" else np.prod(stretch)
    moved = k((rows + 1) * stretch, lengths * stretch)((X + 1) * stretch)
    rough = 1e-2 if name == "haar" else 1e-6  # a rounded shift may step over a jump
    assert_allclose(moved * units, K, atol=rough * size)


@NAMES
def test_one_scale_is_the_limit_of_a_short_range(name, rng):
    X, x, _ = points(2, rng, pairs=6)
    one, short = (
        kernel(WAVELETS[name], Box(PAD), X, scales=(0.9, high), tolerance=1e-3)
        for high in (0.9, 0.9 + 1e-7)
    )
    assert_allclose(one(x), short(x), atol=1e-5 * one(x).max())


@pytest.mark.parametrize("name", ["hat", "morlet", "edge", "haar", "compact4"])
def test_a_constant_column_puts_all_shifts_in_its_plane(name, rng):
    X, x, y = points(2, rng, pairs=8)
    X[:, 1] = 3.1
    flat = kernel(WAVELETS[name], Box(PAD), X, "peak").paired(x, y)
    low, high = corners(X)
    cells = low[0] + (high[0] - low[0]) * (np.arange(400) + 0.5) / 400
    many = np.column_stack([cells, np.full(400, 3.1)])
    rows = kernel(WAVELETS[name], Rows(), many, "peak").paired(x, y)
    assert_allclose(flat, rows, atol=2e-3 * flat.max())


@pytest.mark.parametrize("name", ["hat", "compact4", "morlet-complex", "edge", "haar"])
def test_the_inside_of_a_wide_box_is_stationary_and_its_edge_has_half_the_variance(name):
    ends = np.array([[-20.0], [30.0]])
    k = ExpectedKernel(WAVELETS[name], Measure(0.5, 1.5, Box(0.1)), ends, 1.2)
    x = np.array([[-3.0], [2.3], [9.0]])
    assert_allclose(k.paired(x, x + 0.4), k.paired(x[:1], x[:1] + 0.4).repeat(3), rtol=1e-4)
    inside = k.diagonal(np.array([[1.0]]))
    assert_allclose(k.diagonal(np.array([[-25.0], [35.0]])), 0.5 * inside.repeat(2), rtol=1e-4)
    # Per unit of length there are E[s]·∫ψ²/(length of the box) in the middle.
    mean_scale = (1.5 - 0.5) / np.log(3.0)
    assert_allclose(inside, WAVELETS[name].energy(1) * 1.2 * mean_scale / 60.0, rtol=1e-4)


def test_the_size_of_a_kernel_may_be_zero_at_its_rows():
    # An odd wavelet vanishes at its own shift: the tolerance is then relative to the largest entry.
    t, x = np.array([[3.0]]), np.array([[3.7], [2.5]])
    k = ExpectedKernel(GaussianDerivative(), Measure(0.9, 0.9, Rows()), t)
    assert k.diagonal(t) == 0
    u = (x - t) / 0.9
    assert_allclose(k(x), u @ u.T * np.exp(-(u**2 + u.T**2) / 2), rtol=1e-14)


# --------------------------------------------------------------------------------------- refusals


def test_refusals_say_what_to_do(rng):
    X = rng.normal(size=(8, 4))
    hat = MexicanHat()
    for shifts, rows in [(Box(), X), (Hull(), X[:, :2]), (lambda X, m, rng: X[:m], X)]:
        with pytest.raises(ValueError, match="give them as the rows"):
            ExpectedKernel(hat, Measure(1.0, 2.0, shifts), rows)
    rows = Measure(1.0, 2.0, Rows())
    with pytest.raises(ValueError, match="fewer columns"):
        ExpectedKernel(OWN_WAVELETS["own-oriented"], rows, X)
    with pytest.raises(ValueError, match="or 4 of them"):
        ExpectedKernel(hat, rows, X, np.ones(3))
    with pytest.raises(ValueError, match="finite reference rows"):
        ExpectedKernel(hat, rows, X[:, 0])
    with pytest.raises(ValueError, match="'peak' or 'energy'"):
        ExpectedKernel(hat, rows, X, 1.0, "unit")
    with pytest.raises(ValueError, match="positive number"):
        ExpectedKernel(hat, rows, X, tolerance=0.0)
    k = ExpectedKernel(hat, rows, X)
    with pytest.raises(ValueError, match=r"shape \(n, 4\)"):
        k(X[:, :2])
    with pytest.raises(ValueError, match=r"shape \(n, 4\)"):
        k(X[:0])
    with pytest.raises(ValueError, match="give as many"):
        k.paired(X, X[:3])
    with pytest.raises(ValueError, match="leave Y out"):
        WaveletKernel(X)(X, X, eval_gradient=True)
    with pytest.raises(ValueError, match="leave Y out"):
        HatKernel()(X, X, eval_gradient=True)
    with pytest.raises(ValueError, match="or 4 of them"):
        HatKernel([1.0, 2.0])(X)


def test_a_kernel_that_does_not_converge_warns_with_its_last_change(monkeypatch, rng):
    monkeypatch.setattr(expected_kernel, "MOST_NODES", 1000)
    X, x, _ = points(1, rng)
    with pytest.warns(AccuracyWarning, match="larger tolerance"):
        kernel(Daubechies(2), Rows(), X, tolerance=1e-12)(x)


def test_importing_the_kernel_loads_no_scikit_learn():
    code = "import rwf.kernels, sys; print('sklearn' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# ----------------------------------------------------------------------------------- scikit-learn


def regression(rng):
    X = rng.uniform(2.0, 5.0, (30, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], rng.uniform(2.0, 5.0, (12, 2))


GAUSSIAN_PROCESSES = {
    "box": lambda X: WaveletKernel(X, [0.9, 1.3], shifts="box"),
    "data": lambda X: WaveletKernel(X, 1.1, wavelet=Morlet(1.2), scales=(0.5, 3.0)),
    "compact": lambda X: WaveletKernel(X, 1.1, wavelet=CompactHat(), normalization="energy"),
    "fixed": lambda X: WaveletKernel(X, 1.1, "fixed"),
    "hat": lambda X: HatKernel([0.9, 1.3], roughness=1.7),
    "hat-shared": lambda X: HatKernel(1.2, roughness=0.6),
    "hat-fixed": lambda X: HatKernel(1.2, "fixed", 0.6, "fixed"),
}
GP = pytest.mark.parametrize("make", GAUSSIAN_PROCESSES.values(), ids=GAUSSIAN_PROCESSES)


@GP
def test_a_gaussian_process_predicts_by_the_textbook_formula(make, rng):
    X, y, X_new = regression(rng)
    k = ConstantKernel(2.0) * make(X)
    gp = GaussianProcessRegressor(k, alpha=0.01, optimizer=None).fit(X, y)
    mean, std = gp.predict(X_new, return_std=True)
    A = k(X) + 0.01 * np.eye(len(X))
    assert_allclose(mean, k(X_new, X) @ np.linalg.solve(A, y), atol=1e-8)
    variance = k.diag(X_new) - np.sum(k(X_new, X) * np.linalg.solve(A, k(X, X_new)).T, axis=1)
    assert_allclose(std**2, variance, atol=1e-6 * k.diag(X_new).max())


@GP
def test_gradients_are_central_differences_of_the_kernel(make, rng):
    X, _, _ = regression(rng)
    k = make(X)
    K, slopes = k(X, eval_gradient=True)
    assert_allclose(K, k(X), rtol=1e-10, atol=1e-13)
    assert slopes.shape == (*K.shape, len(k.theta))
    for j in range(len(k.theta)):
        step = 1e-3 * (np.arange(len(k.theta)) == j)
        # Fourth order, and another step than the library's.
        ends = [k.clone_with_theta(k.theta + c * step)(X) for c in (2, 1, -1, -2)]
        slope = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) / 12e-3
        assert_allclose(slopes[..., j], slope, atol=3e-5 * K.max())


@GP
def test_kernels_are_scikit_learn_objects(make, rng):
    X, _, X_new = regression(rng)
    k = make(X)
    copy = clone(k)
    assert copy == k
    assert_array_equal(copy.theta, k.theta)
    assert len(k.bounds) == len(k.theta)
    assert_allclose(k.set_params(length_scale=2.0)(X_new), k.clone_with_theta(k.theta)(X_new))
    assert_allclose(k.diag(X_new), np.diag(k(X_new)), rtol=1e-6)
    assert k.is_stationary() == isinstance(k, HatKernel)


def test_learning_length_scales_raises_the_evidence(rng):
    X, y, _ = regression(rng)
    k = ConstantKernel(2.0) * WaveletKernel(X, 0.3, (0.1, 20.0), shifts="box")
    gp = GaussianProcessRegressor(k, alpha=0.01, normalize_y=True).fit(X, y)
    start = gp.log_marginal_likelihood(k.theta)
    assert gp.log_marginal_likelihood_value_ > start + 5
    assert gp.kernel_.k2.length_scale > 0.5


def test_many_atoms_regress_as_the_gaussian_process(rng):
    X, y, X_new = regression(rng)
    family = WaveletFamily(MexicanHat(), Measure(0.5, 2.0, Rows()), 1.1)
    k = WaveletKernel(X, 1.1)
    gp = GaussianProcessRegressor(k, alpha=0.01, optimizer=None).fit(X, y)
    features = family.draw(100_000, X, rng)
    Z, Z_new = features(X), features(X_new)
    mean = Z_new @ Z.T @ np.linalg.solve(Z @ Z.T + 0.01 * np.eye(len(X)), y)
    assert_allclose(mean, gp.predict(X_new), atol=0.03)


def test_the_hat_kernel_is_one_block_of_the_mixture(rng):
    X, _, X_new = regression(rng)
    mixture = HatMixture(np.zeros(1), np.log([1.7]), np.log([[0.9, 1.3]]))
    assert_array_equal(GAUSSIAN_PROCESSES["hat"](X)(X, X_new), mixture(X, X_new))
