"""The chirp with bursts and jumps."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import chirp, tasks


def test_the_chirp_has_its_sizes_and_noise():
    table, rows = tasks.problem("chirp-bursts", 2)
    assert (len(rows.train), len(rows.test)) == (100_000, 20_000)
    assert 0 <= table.X.min() < 1e-3 < 0.999 < table.X.max() <= 1
    noise = table.y - table.f
    assert abs(noise.std() / 0.1 - 1) < 5 / np.sqrt(2 * 120_000)
    assert abs(np.corrcoef(noise, table.f)[0, 1]) < 5 / np.sqrt(120_000)


def test_bursts_differ_between_splits_and_not_within_one():
    first, again, other = (tasks.problem("chirp-bursts", index)[0] for index in (0, 0, 1))
    assert_array_equal(first.y, again.y)
    near_zero = [table.f[np.argmin(np.abs(table.X[:, 0] - 0.2))] for table in (first, other)]
    assert near_zero[0] != near_zero[1]


def test_the_chirp_is_its_formula():
    x = np.array([0.0, 0.1, 0.36999, 0.37, 0.7, 0.71, 1.0])
    assert_allclose(chirp.jumps(x), [0, 0, 0, 0.6, 0.6, -0.3, -0.3], atol=1e-12)
    assert_allclose(chirp.chirp(x), 0.5 * np.sin(2 * np.pi * (20 * x + 600 * x**3)), atol=1e-9)
    step = 1e-8
    rate = (chirp.chirp(np.array([0.5 + step])) - chirp.chirp(np.array([0.5 - step]))) / (2 * step)
    phase = 2 * np.pi * (20 * 0.5 + 600 * 0.125)
    assert_allclose(rate, np.pi * (20 + 1800 * 0.25) * np.cos(phase), rtol=1e-5)


def test_a_burst_is_a_cosine_in_a_window():
    one = chirp.Bursts(*(np.array([value]) for value in (0.4013, 0.01, 100.0, 1.3)))
    at = 0.4013 + np.array([0, 0.005, 0.01, -0.005, 0.0025])
    windows = np.exp(-0.5 * np.array([0, 0.5, 1, 0.5, 0.25]) ** 2)
    assert_allclose(one(at), 1.3 * windows * np.array([1, -1, 1, -1, 0]), atol=1e-12)


def test_bursts_are_drawn_from_their_ranges():
    many = [chirp.draw_bursts(np.random.default_rng(seed)) for seed in range(200)]
    for field, low, high in (
        ("centers", 0, 1),
        ("frequencies", 200, 1500),
        ("amplitudes", 0.5, 1.5),
    ):
        drawn = np.concatenate([getattr(bursts, field) for bursts in many])
        assert len(drawn) == 200 * 25
        middle, width = (low + high) / 2, high - low
        assert low <= drawn.min() < drawn.max() <= high
        assert abs(drawn.mean() - middle) < 5 * width / np.sqrt(12 * len(drawn))
    widths = np.log10(np.concatenate([bursts.widths for bursts in many]))
    assert -3.2 <= widths.min() < -3.19 < -2.01 < widths.max() <= -2.0
