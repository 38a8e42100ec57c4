"""The step function is what its definition says, and its samples have the stated law."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rwf.signals import FIVE_PLATEAUS, SIX_PLATEAUS, multi_step, step_function

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
