"""The functions are what their definitions say, and their samples have the stated law."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree

from rwf.datasets import (
    DONOHO_JOHNSTONE,
    FIVE_PLATEAUS,
    JUMPS,
    PLACES,
    SIX_PLATEAUS,
    blocks,
    bumps,
    diamonds,
    donoho_johnstone,
    doppler,
    heavisine,
    multi_step,
    step_function,
)

PLATEAUS = pytest.mark.parametrize("levels", [FIVE_PLATEAUS, SIX_PLATEAUS, (7.0,)])


@PLATEAUS
def test_each_plateau_has_its_level_over_an_equal_width(levels):
    k = len(levels)
    starts, middles = np.arange(k) / k, (np.arange(k) + 0.5) / k
    assert_array_equal(step_function(starts, levels), levels)  # a plateau owns its left end
    assert_array_equal(step_function(middles, levels), levels)
    assert_array_equal(step_function(np.nextafter(starts[1:], 0), levels), levels[:-1])


def test_the_end_levels_go_on_outside_the_unit_interval():
    assert_array_equal(step_function(np.array([-3.0, 1.0, 4.0])), [-1.0, 0.25, 0.25])


@PLATEAUS
def test_a_sample_is_the_function_plus_noise_of_the_stated_size(levels):
    n, noise = 20_000, 0.3
    sample = multi_step(n, np.random.default_rng(2), noise, levels)
    assert sample.X.shape == (n, 1)
    assert sample.y.shape == sample.f.shape == (n,)
    assert_array_equal(sample.f, step_function(sample.X[:, 0], levels))
    residual = sample.y - sample.f
    assert abs(residual.mean()) < 5 * noise / np.sqrt(n)
    assert abs(residual.std() - noise) < 5 * noise / np.sqrt(2 * n)


def test_inputs_are_uniform_on_the_unit_interval():
    n = 20_000
    x = multi_step(n, np.random.default_rng(4)).X[:, 0]
    assert x.min() >= 0
    assert x.max() < 1
    for edge in (0.1, 0.5, 0.8):
        assert abs(np.mean(x < edge) - edge) < 5 * np.sqrt(edge * (1 - edge) / n)


def test_the_generator_decides_the_sample():
    first, again, other = (multi_step(50, np.random.default_rng(seed)) for seed in (8, 8, 9))
    assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


def test_without_noise_the_targets_are_the_function():
    sample = multi_step(50, np.random.default_rng(6), noise=0.0)
    assert_array_equal(sample.y, sample.f)


@pytest.mark.parametrize(
    "arguments, advice",
    [
        ({"n": 0}, "at least one"),
        ({"n": 5, "noise": -0.1}, "≥ 0"),
        ({"n": 5, "noise": np.nan}, "≥ 0"),
        ({"n": 5, "levels": ()}, "at least one height"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_remedy(arguments, advice):
    with pytest.raises(ValueError, match=advice):
        multi_step(rng=np.random.default_rng(1), **arguments)


def test_blocks_jumps_where_and_by_how_much_it_should_and_returns_to_zero():
    ends = np.concatenate([[0.0], (PLACES[1:] + PLACES[:-1]) / 2, [1.0]])
    assert_allclose(np.diff(blocks(ends)), JUMPS, atol=1e-12)
    assert_allclose(blocks(ends[[0, -1]]), 0, atol=1e-12)
    assert_allclose(blocks(PLACES[:1]), JUMPS[:1] / 2)  # half way at the jump itself


def test_bumps_has_its_highest_values_near_its_peaks():
    x = np.arange(1, 2049) / 2048
    peaks = np.flatnonzero(np.diff(np.sign(np.diff(bumps(x)))) < 0) + 1
    assert len(peaks) == 11
    assert np.abs(x[peaks] - PLACES).max() < 1e-3
    assert_allclose(bumps(np.array([0.81])), 4.2, rtol=0.02)  # the others hardly reach


def test_heavisine_is_a_wave_with_two_jumps():
    x = np.array([0.125, 0.3, 0.3 + 1e-9, 0.5, 0.72 - 1e-9, 0.72 + 1e-9])
    wave = heavisine(x) - 4 * np.sin(4 * np.pi * x)
    assert_allclose(wave, [0, -1, -2, -2, -2, 0], atol=1e-12)


def test_doppler_crosses_zero_ever_more_slowly():
    x = np.linspace(0, 1, 200_001)
    crossings = x[np.flatnonzero(np.diff(np.sign(doppler(x))[1:-1])) + 1]
    expected = 2.1 / np.arange(41, 2, -1) - 0.05  # 2.1/(x + 0.05) is a whole number
    assert_allclose(crossings[-20:], expected[(expected > 0) & (expected < 1)][-20:], atol=1e-5)
    assert_allclose(doppler(np.array([0.0, 1.0])), 0)


@pytest.mark.parametrize("name", DONOHO_JOHNSTONE)
@pytest.mark.parametrize("regular", [True, False])
def test_a_denoising_sample_has_the_stated_ratio(name, regular):
    n, snr = 4096, 5.0
    sample = donoho_johnstone(name, np.random.default_rng(3), n, snr, regular=regular)
    x, residual = sample.X[:, 0], sample.y - sample.f
    scale = snr / DONOHO_JOHNSTONE[name](np.arange(1, n + 1) / n).std()
    assert_allclose(sample.f, scale * DONOHO_JOHNSTONE[name](x))
    assert (np.diff(x) > 0).all()
    assert abs(residual.std() - 1) < 5 / np.sqrt(2 * n)
    if regular:
        assert_allclose(sample.f.std(), snr)
        assert_allclose(x, np.arange(1, n + 1) / n)
    else:
        assert np.diff(x).max() > 3 / n


def test_what_cannot_be_denoised_is_refused_with_a_remedy(rng):
    with pytest.raises(ValueError, match="use one of blocks, bumps"):
        donoho_johnstone("angles", rng)
    with pytest.raises(ValueError, match="at least two rows"):
        donoho_johnstone("blocks", rng, n=1)


def test_diamonds_are_skewed_and_nearly_repeated():
    table = diamonds(4000, np.random.default_rng(3))
    price, size = table["price"], np.column_stack([table["x"], table["y"], table["depth"]])
    assert price.min() > 0
    assert ((price - price.mean()) ** 3).mean() > 2 * price.std() ** 3
    near, _ = cKDTree(size).query(size, k=2)
    assert (near[:, 1] < 0.05).mean() > 0.1
    assert {len(np.unique(table[name])) for name in ("cut", "color", "clarity")} == {5, 7, 8}
    again = diamonds(4000, np.random.default_rng(3))
    assert all((again[name] == table[name]).all() for name in table)
