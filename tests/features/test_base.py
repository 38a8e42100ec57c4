"""What every feature map owes: its equation, its gradients, its precision, and zeros far away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from contracts import (
    EPS,
    FAMILIES,
    KERNELS,
    LENGTH,
    MEASURE,
    OWN_WAVELETS,
    WAVELETS,
    by_definition,
    is_local,
    make_map,
    owes_a_place_for_its_values,
    owes_gradients,
    owes_its_definition,
    owes_row_independence,
    owes_shape_and_precision,
    owes_theta,
    random_theta,
    steepness,
)
from rwf.features import (
    ConstantFamily,
    FourierFamily,
    FourierFeatures,
    LinearFamily,
    LinearFeatures,
    RidgeFamily,
    Stack,
    WaveletFamily,
    WaveletFeatures,
)
from rwf.features.atoms import Atoms
from rwf.features.base import row_chunks
from rwf.wavelets import Daubechies, GaussianDerivative, Haar, MexicanHat, Morlet
from rwf.wavelets.base import TAIL
from rwf.wavelets.measure import Measure, Rows

FAMILY = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
DIMENSION = pytest.mark.parametrize("d", [1, 2, 3])


# ----------------------------------------------------------------------------------- the contract


@FAMILY
@DIMENSION
def test_shape_and_precision(family, d, rng):
    owes_shape_and_precision(*make_map(family, d, rng))


@FAMILY
@DIMENSION
def test_values_are_the_equation(family, d, rng):
    features, X = make_map(family, d, rng)
    assert np.count_nonzero(features(X)) > 0.05 * len(X) * features.n_features  # not zero = zero
    owes_its_definition(features, X)


@FAMILY
@DIMENSION
def test_values_are_written_where_they_are_wanted(family, d, rng):
    owes_a_place_for_its_values(*make_map(family, d, rng))


def test_more_columns_than_a_tile_are_those_of_their_parts(rng):
    X, which = rng.normal(3.0, 0.1, (7, 40)), np.arange(300)
    for family in (FAMILIES["hat-peak-ard"], FAMILIES["ridge-hat-ard"], FAMILIES["fourier-se-ard"]):
        features = family.draw(600, X, rng)
        m = features.n_atoms
        parts = [features.take(np.arange(a, a + 50)) for a in range(0, m, 50)]
        # Atoms carry m^-½, and of a part there are fewer.
        columns = np.stack([part(X) for part in parts]) * np.sqrt(50 / m)
        Z = columns.reshape(len(parts), 7, -1, 50).transpose(1, 2, 0, 3).reshape(7, -1)
        assert (Z != 0).all()
        assert_allclose(features(X), Z, rtol=1e-11, atol=1e-14)
        owes_gradients(features.take(which), X, rng)


@FAMILY
@DIMENSION
def test_rows_are_independent_of_each_other(family, d, rng):
    owes_row_independence(*make_map(family, d, rng), rng)


@FAMILY
@DIMENSION
def test_theta_makes_a_round_trip_within_its_bounds(family, d, rng):
    owes_theta(*make_map(family, d, rng), rng)


@FAMILY
@DIMENSION
def test_gradients_are_central_differences_at_three_theta(family, d, rng):
    # A Daubechies table has a kink in u every 2.4e-4, and thousands of u move: 1e-9 crosses none.
    kinked = isinstance(getattr(family, "wavelet", None), Daubechies)
    for _ in range(3):
        features, X = make_map(family, d, rng)
        owes_gradients(features, X, rng, step=1e-9 if kinked else 1e-6)


@FAMILY
@pytest.mark.parametrize("far", [1e3, 1e30, 1e100])
def test_far_away_nothing_overflows_and_local_atoms_are_exactly_zero(family, far, rng):
    features, _ = make_map(family, 2, rng)
    queries = np.array([[far, 3.0], [-far, far], [2.0, -far]])
    with np.errstate(over="ignore"):  # in the formulas of the user's wavelets
        Z = features(queries)
        assert np.isfinite(Z).all()
        assert np.isfinite(features.pull_back(queries, np.ones_like(Z))).all()
        if far < np.finfo(np.float32).max:
            assert np.isfinite(features(queries.astype(np.float32))).all()
    if is_local(family):
        assert_array_equal(Z, 0.0)


@pytest.mark.parametrize("name", WAVELETS)
def test_local_atoms_are_zero_even_where_the_squared_distance_overflows(name, rng):
    features, _ = make_map(WaveletFamily(WAVELETS[name], MEASURE, LENGTH), 2, rng)
    assert_array_equal(features(np.array([[1e200, 3.0], [2.0, -1e300]])), 0.0)


@given(
    name=st.sampled_from(sorted(FAMILIES)),
    n=st.integers(0, 40),
    d=st.integers(1, 6),
    n_features=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_contract_holds_for_any_size(name, n, d, n_features, dtype, seed):
    rng = np.random.default_rng(seed)
    features = FAMILIES[name].draw(n_features, rng.normal(3.0, 2.0, (7, d)), rng)
    features = features.with_theta(random_theta(features, rng))
    X = rng.normal(3.0, 2.0, (n, d)).astype(dtype)
    Z = features(X)
    assert Z.shape == (n, features.n_features)
    assert Z.dtype == dtype
    assert_allclose(Z, by_definition(features, X), rtol=1e-6, atol=1e-6)
    gradient = features.pull_back(X.astype(np.float64), np.ones(Z.shape))
    assert gradient.shape == features.theta.shape
    assert np.isfinite(gradient).all()


# ------------------------------------------------------------------------------- wavelet features


@pytest.mark.parametrize("requested, atoms", [(1, 1), (7, 3), (8, 4)])
def test_a_complex_wavelet_shares_its_columns_among_half_as_many_atoms(requested, atoms, rng):
    family = WaveletFamily(WAVELETS["morlet-complex"], MEASURE, LENGTH)
    features = family.draw(requested, rng.normal(3, 2, (9, 2)), rng)
    assert len(features.atoms.draws) == atoms
    assert features.n_features == 2 * atoms


@pytest.mark.parametrize(
    "name", [n for n, w in WAVELETS.items() if w.constants(1).radius == np.inf]
)
def test_a_gaussian_envelope_is_cut_where_it_is_four_parts_in_1e18(name, rng):
    features, _ = make_map(WaveletFamily(WAVELETS[name], MEASURE, LENGTH), 2, rng)
    atoms, e = features.atoms, features.directions
    unit = e / np.linalg.norm(e, axis=1, keepdims=True)  # a Morlet or an edge is not zero along e
    widths = atoms.scales[:, None] * atoms.lengths
    for radius, zero in ((np.sqrt(TAIL) * (1 - 1e-9), False), (np.sqrt(TAIL) * (1 + 1e-9), True)):
        own = np.diag(features(atoms.shifts + radius * widths * unit))
        assert np.all((own == 0) == zero)


@pytest.mark.parametrize("name", WAVELETS | OWN_WAVELETS)
@DIMENSION
def test_energy_is_peak_times_a_constant_over_the_root_of_the_volume(name, d, rng):
    wavelet = (WAVELETS | OWN_WAVELETS)[name]
    peak, X = make_map(WaveletFamily(wavelet, MEASURE, LENGTH, True, "peak"), d, rng)
    energy = replace(peak, normalization="energy")
    volume = peak.atoms.scales**d * np.prod(peak.atoms.lengths)
    ratio = np.tile((peak.wavelet.energy(d) * volume) ** -0.5, wavelet.columns)
    assert_allclose(energy(X), ratio * peak(X), rtol=1e-12, atol=1e-15)


def test_directions_are_uniform_on_the_circle_and_one_on_the_line(rng):
    family = WaveletFamily(Morlet(), MEASURE, LENGTH)
    e = family.draw(4000, rng.normal(3, 2, (9, 2)), rng).directions
    assert_allclose(np.linalg.norm(e, axis=1), 1.0, rtol=1e-14)
    angle = np.arctan2(e[:, 1], e[:, 0])
    for k in (1, 2, 3):  # Fourier coefficients of a uniform angle: mean 0, variance ½
        assert abs(np.cos(k * angle).mean()) < 5 * np.sqrt(0.5 / 4000)
        assert abs(np.sin(k * angle).mean()) < 5 * np.sqrt(0.5 / 4000)
    assert_array_equal(family.draw(9, rng.normal(3, 2, (9, 1)), rng).directions, 1.0)


def test_haar_has_a_gradient_through_its_energy_alone(rng):
    peak, X = make_map(WaveletFamily(Haar(), MEASURE, LENGTH, True, "peak"), 2, rng)
    R = rng.normal(1.0, 2.0, (len(X), peak.n_features))
    assert_array_equal(peak.pull_back(X, R), 0.0)
    assert np.all(replace(peak, normalization="energy").pull_back(X, R) != 0.0)


def test_a_subclass_with_a_profile_of_its_own_is_evaluated_by_it(rng):
    class Doubled(MexicanHat):
        def profile(self, q, d):
            return 2 * super().profile(q, d)

    hat, X = make_map(WaveletFamily(MexicanHat(), MEASURE, LENGTH), 2, rng)
    assert_allclose(replace(hat, wavelet=Doubled())(X), 2 * hat(X), rtol=1e-12, atol=1e-15)


# ------------------------------------------------------------------------ ridge, Fourier and trend


def test_a_ridge_is_constant_across_its_direction(rng):
    features, X = make_map(RidgeFamily(MexicanHat(), MEASURE, LENGTH), 2, rng)
    w, lengths = features.weights[4], features.atoms.lengths
    across = np.array([-w[1], w[0]]) * lengths
    moved = features(X + 3.0 * across)
    assert_allclose(moved[:, 4], features(X)[:, 4], rtol=1e-11, atol=1e-13)
    assert np.abs(np.delete(moved - features(X), 4, axis=1)).max() > 0.01


@pytest.mark.parametrize("kernel", KERNELS)
def test_fourier_features_have_unit_norm(kernel, rng):
    features, X = make_map(FourierFamily(kernel, LENGTH), 3, rng)
    assert_allclose(np.sum(features(X) ** 2, axis=1), 1.0, rtol=1e-13)


@pytest.mark.parametrize("requested, p", [(1, 2), (7, 8), (8, 8)])
def test_fourier_features_come_in_pairs(requested, p, rng):
    assert FourierFamily("se", LENGTH).draw(requested, np.ones((3, 2)), rng).n_features == p


def test_an_unknown_kernel_is_refused_with_the_names():
    with pytest.raises(ValueError, match="use one of se, matern12, matern32, matern52"):
        FourierFamily("rbf", LENGTH)


def test_the_trend_has_nothing_to_learn(rng):
    X = rng.normal(3, 2, (9, 4))
    for family, p in ((ConstantFamily(), 1), (LinearFamily(), 4)):
        features = family.draw(99, X, rng)
        assert not family.sized
        assert features.n_features == p
        assert features.theta.shape == features.pull_back(X, np.ones((9, p))).shape == (0,)
        assert features.bounds.shape == (0, 2)


def test_linear_features_have_unit_mean_square_for_standardised_columns(rng):
    X = rng.normal(3, 2, (50, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(np.mean(np.sum(LinearFeatures(4)(X) ** 2, axis=1)), 1.0, rtol=1e-12)


# ------------------------------------------------------------------------------------------ stack

STACKED = ("morlet-complex-energy-ard", "constant", "ridge-hat-one", "fourier-se-ard", "linear")


@pytest.fixture
def stack(rng):
    return Stack(tuple(make_map(FAMILIES[name], 2, rng)[0] for name in STACKED))


def test_a_stack_is_its_blocks_side_by_side(stack, rng):
    X = rng.normal(3, 2, (15, 2))
    assert_array_equal(stack(X), np.hstack([part(X) for part in stack.maps]))
    assert stack(X.astype(np.float32)).dtype == np.float32
    assert_array_equal(stack.theta, np.concatenate([part.theta for part in stack.maps]))
    assert_array_equal(stack.bounds, np.vstack([part.bounds for part in stack.maps]))


def test_a_stack_is_itself_a_feature_map(stack, rng):
    X = rng.normal(3, 2, (15, 2))
    owes_row_independence(stack, X, rng)
    elsewhere = random_theta(stack, rng)
    assert_allclose(stack.with_theta(elsewhere).theta, elsewhere, rtol=1e-14)
    owes_gradients(stack, X, rng)
    owes_gradients(stack.with_theta(elsewhere), X, rng)


def test_groups_and_length_mask_name_columns_and_parameters(stack):
    # 6 complex atoms; a constant; 12 ridges; 6 frequencies; 2 columns
    assert_array_equal(stack.groups, np.repeat(np.arange(5), [12, 1, 12, 12, 2]))
    assert len(stack.groups) == stack.n_features
    # two lengths, width and frequency of the Morlet; length and width of the ridge; two lengths
    expected = [True, True, False, False, True, False, True, True]
    assert_array_equal(stack.length_mask, expected)


# ------------------------------------------------------------------------------ fused arithmetic


def four_atoms(wavelet, scale, shifts, lengths):
    """Four atoms of one scale, whose factor 4^-½ is exact."""
    m, d = shifts.shape
    assert m == 4
    atoms = Atoms(np.full(m, 0.5), shifts, scale, np.log(lengths), None, True)
    return WaveletFeatures(wavelet, atoms, np.tile(np.eye(d)[0], (m, 1)))


def test_the_fused_exponential_is_right_to_the_last_digits(rng):
    # x - t, ℓ and s are dyadic, so u is exact and p e^(-q/2) tests the exponential alone.
    u = np.concatenate([np.arange(1, 36) / 4, rng.integers(1, 2**20, 4000) * 2.0**-20 * 8.9])
    u = np.round(u * 2**20) / 2**20
    features = four_atoms(GaussianDerivative(), 0.5, np.full((4, 1), 3.0), np.array([4.0]))
    Z = features(3.0 + 2.0 * u[:, None])
    assert_allclose(2 * Z[:, 0], u * np.exp(-(u**2) / 2), rtol=4e-15)


@pytest.mark.parametrize("name", WAVELETS)
@pytest.mark.parametrize("scale", [2.0**-20, 1e-6, 1e6])
def test_tiny_and_huge_scales_keep_their_digits(name, scale, rng):
    # Distances by differences: with dyadic ℓ, x - t is exact, a million scales from the origin.
    wavelet, lengths = WAVELETS[name], np.array([2.0, 0.5])
    t = rng.normal(3.0, 2.0, (4, 2))
    features = four_atoms(wavelet, scale, t, lengths)
    X = np.repeat(t, 50, axis=0) + scale * lengths * rng.normal(0.0, 0.7, (200, 2))
    Z, exact = features(X), by_definition(features, X)
    assert np.count_nonzero(Z) >= 50
    assert_allclose(Z, exact, rtol=1e-13, atol=40 * EPS * steepness(wavelet))


@pytest.mark.parametrize("largest", [3.0, 1e3, 1e5, 1e7, 9e7, 1e9, 1e15])
def test_fourier_phases_keep_the_digits_they_have(largest, rng):
    # A phase of size P is known to P·eps, whoever takes its cosine; beyond 1e8 it is numpy.
    frequencies = rng.uniform(0.1, 1.0, (25, 1))
    features = FourierFeatures(frequencies, np.array([np.log(2.0)]))
    X = rng.uniform(-1.0, 1.0, (400, 1)) * 2.0 * largest
    phase = X * (frequencies[:, 0] * np.exp(-np.log(2.0)))
    exact = np.hstack([np.cos(phase), np.sin(phase)]) / 5.0
    tolerance = EPS * (4 + np.abs(np.hstack([phase, phase]))) / 5.0
    assert np.all(np.abs(features(X) - exact) <= tolerance)


def test_fourier_phases_next_to_quarter_turns():
    turns = np.arange(-40, 41)[:, None] * np.pi / 2 + np.array([-1e-9, 0.0, 1e-9])
    features = FourierFeatures(np.ones((1, 1)), np.zeros(1))
    Z = features(turns.reshape(-1, 1))
    exact = np.column_stack([np.cos(turns.ravel()), np.sin(turns.ravel())])
    assert_allclose(Z, exact, rtol=0, atol=EPS * 20 * np.pi)  # 20π is the largest phase


@pytest.mark.parametrize("frequency", [0.4, 60.0])
def test_morlet_phases_are_right_at_both_ends_of_the_frequency_range(frequency, rng):
    features = four_atoms(Morlet(frequency), 0.5, np.full((4, 1), 3.0), np.array([4.0]))
    u = np.round(rng.uniform(-8.9, 8.9, 2000) * 2**20) / 2**20
    exact = np.exp(-(u**2) / 2) * (np.cos(frequency * u) - np.exp(-(frequency**2) / 2))
    tolerance = np.exp(-(u**2) / 2) * EPS * (8 + np.abs(frequency * u))
    assert np.all(np.abs(2 * features(3.0 + 2.0 * u[:, None])[:, 0] - exact) <= tolerance)


@pytest.mark.parametrize("n, columns", [(0, 5), (1, 5), (40_000, 37), (100, 10**6)])
def test_chunks_of_rows_cover_each_row_once(n, columns):
    rows = [i for chunk in row_chunks(n, columns) for i in range(n)[chunk]]
    assert rows == list(range(n))


@pytest.mark.parametrize(
    "name", ["own-radial-energy-ard", "morlet-complex-energy-ard", "ridge-edge-ard"]
)
def test_many_chunks_of_rows_make_one_gradient(name, rng):
    features, _ = make_map(FAMILIES[name], 2, rng, n_features=2000)
    X = rng.normal(3.0, 2.0, (150, 2))  # 2000 columns: chunks of 65 rows
    R = rng.normal(1.0, 2.0, (150, features.n_features))
    parts = [features.pull_back(X[[i]], R[[i]]) for i in range(150)]
    whole = features.pull_back(X, R)
    assert_allclose(whole, np.sum(parts, axis=0), rtol=1e-9, atol=1e-9 * np.abs(parts).sum())
    pieces = np.vstack([features(X[[i]]) for i in range(150)])
    assert_allclose(features(X), pieces, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("low, high", [(2.0**-4, 4.0), (2.0**-12, 4.0), (1.0, 1.01)])
def test_theta_starts_within_its_bounds_for_narrow_and_wide_ranges(low, high, rng):
    family = WaveletFamily(MexicanHat(), Measure(low, high, Rows()), LENGTH)
    features = family.draw(5, rng.normal(3, 2, (9, 2)), rng)
    assert np.all(features.bounds[:, 0] <= features.theta)
    assert np.all(features.theta <= features.bounds[:, 1])
