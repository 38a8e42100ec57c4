"""Signals and fields: draws repeat, holes are holes, thresholding is what its papers say."""

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from experiments.baselines.exact_gp import ExactGP, Parameters, log_bounds, log_evidence, matern12
from experiments.baselines.shrinkage import (
    Shrinkage,
    n_levels,
    noise_deviation,
    translation_invariant,
    visushrink,
)
from experiments.data import splits, tasks
from experiments.runner.methods import make
from experiments.runner.run import Run, function_scores, measure
from rwf.datasets import DONOHO_JOHNSTONE, blocks, step_function
from rwf.diagnostics.metrics import coverage

GRID = np.stack(np.meshgrid(np.arange(30.0), 5 + 2 * np.arange(25.0)), axis=-1).reshape(-1, 2)
WAVELETS = pytest.mark.parametrize("wavelet", ["haar", "sym8"])


# simulated tables


@pytest.mark.parametrize("name", tasks.SIMULATED)
def test_draws_repeat_and_differ_between_splits(name):
    table, rows = tasks.problem(name, 2)
    again, _ = tasks.problem(name, 2)
    other, _ = tasks.problem(name, 3)
    assert_array_equal(table.X, again.X)
    assert_array_equal(table.y, again.y)
    assert not np.array_equal(table.y, other.y)
    assert_array_equal([*rows.train, *rows.test], np.arange(len(table.y)))


@pytest.mark.parametrize(
    "name, noise", [("six-plateaus", 0.05), ("five-plateaus", 0.05), ("five-plateaus-quiet", 0.005)]
)
def test_plateaus_have_their_sizes_levels_and_noise(name, noise):
    table, rows = tasks.problem(name, 1)
    levels = {"six": (0, 1, -0.5, 0.75, -1, 0.5), "five": (-1, 1.2, -0.25, 1.2, 0.25)}
    assert (len(rows.train), len(rows.test)) == (4200, 1800)
    assert_array_equal(table.f, step_function(table.X[:, 0], levels[name.split("-")[0]]))
    assert abs((table.y - table.f).std() / noise - 1) < 5 / np.sqrt(2 * 6000)


@pytest.mark.parametrize("ending", ["", "-irregular"])
def test_denoising_is_judged_at_the_design_points_with_fresh_noise(ending):
    tables = [tasks.problem(f"{name}{ending}", 4) for name in DONOHO_JOHNSTONE]
    noises = [table.y - table.f for table, _ in tables]
    table, rows = tables[0]
    assert_array_equal(table.X[rows.train], table.X[rows.test])
    assert_array_equal(table.f[rows.train], table.f[rows.test])
    assert abs(np.corrcoef(noises[0].reshape(2, -1))[0, 1]) < 5 / np.sqrt(2048)
    assert_allclose(noises, [noises[0]] * 4, atol=1e-12)  # the four functions share their draws


# splits


@pytest.mark.parametrize("hold_out", [splits.quarter, *tasks.ENDINGS.values()])
@pytest.mark.parametrize("index", range(6))
def test_rows_are_learned_from_or_judged_on_and_splits_repeat(hold_out, index):
    rows, again = hold_out(GRID, index), hold_out(GRID, index)
    assert sorted([*rows.train, *rows.test]) == list(range(len(GRID)))
    assert len(rows.test) > 20
    assert_array_equal(rows.test, again.test)


def test_a_quarter_is_every_fourth_row_and_then_random_ones():
    X = np.zeros((103, 1))
    for index in range(4):
        assert_array_equal(splits.quarter(X, index).test, np.arange(index, 103, 4))
    random = splits.quarter(X, 4).test
    assert len(random) == 25
    assert len(set(np.diff(random))) > 3
    assert not np.array_equal(random, splits.quarter(X, 5).test)


@pytest.mark.parametrize("index", range(5))
def test_a_block_is_a_rectangle_of_a_tenth_of_the_area(index):
    held = GRID[splits.block(GRID, index).test]
    low, high = held.min(axis=0), held.max(axis=0)
    inside = np.all((low <= GRID) & (high >= GRID), axis=1)
    assert inside.sum() == len(held)  # no row of the rectangle is left in training
    assert 0.07 * len(GRID) < len(held) < 0.13 * len(GRID)
    assert len({splits.block(GRID, k).test[0] for k in range(5)}) > 2  # at different places


def test_where_no_block_has_enough_rows_the_error_says_what_to_do(rng):
    corners = rng.integers(0, 2, (200, 2)) + 1e-3 * rng.normal(size=(200, 2))
    with pytest.raises(ValueError, match="use a gap"):
        splits.block(corners, 0)


def test_a_gap_is_the_middle_fifth_and_then_another(rng):
    X = rng.uniform(3, 13, (2000, 1))
    x, first = X[:, 0], splits.hole(X, 0)
    middle = (x.min() + x.max()) / 2
    assert_array_equal(first.test, np.flatnonzero(np.abs(x - middle) <= np.ptp(x) / 10))
    for index in range(5):
        rows = splits.hole(X, index)
        held, learned = x[rows.test], x[rows.train]
        assert not np.any((held.min() <= learned) & (learned <= held.max()))
        assert_allclose(np.ptp(held), 2, rtol=0.02)
        assert held.min() > 4.5
    assert_array_equal(first.test, splits.hole(X, 5).test)


@pytest.mark.parametrize("index", range(5))
def test_a_gap_of_two_columns_is_a_round_disc_of_a_tenth_of_the_area(rng, index):
    X = rng.uniform([3, 0], [13, 30], (20_000, 2))
    rows = splits.hole(X, index)
    center, radius = X[rows.test].mean(axis=0), np.sqrt(30 / np.pi)
    distances = np.linalg.norm(X - center, axis=1)
    assert abs(len(rows.test) / 20_000 - 0.1) < 5 * np.sqrt(0.09 / 20_000)
    assert distances[rows.test].max() < radius + 0.2
    assert distances[rows.train].min() > radius - 0.2


def test_an_edge_is_beyond_all_that_is_learned_from(rng):
    X = rng.uniform(3, 13, (500, 1))
    x = X[:, 0]
    for index, share in enumerate((0.1, 0.1, 0.2, 0.2, 0.3)):
        rows = splits.edge(X, index)
        inside, outside = x[rows.train], x[rows.test]
        assert outside.min() > inside.max() if index % 2 == 0 else outside.max() < inside.min()
        assert abs(len(outside) / 500 - share) < 5 * np.sqrt(share * (1 - share) / 500)
    with pytest.raises(ValueError, match="use 0 to 17"):
        splits.edge(X, 18)


def test_a_task_is_split_as_its_name_says():
    assert tasks.hold_out("co2") is tasks.hold_out("electricity") is splits.quarter
    assert tasks.hold_out("volcano") is splits.random_tenth
    assert tasks.hold_out("volcano-block") is splits.block
    assert tasks.hold_out("six-plateaus-gap") is splits.hole
    assert tasks.parts("five-plateaus-quiet-edge") == ("five-plateaus-quiet", "-edge")
    assert tasks.unit("volcano-gap") == "m"
    assert tasks.unit("six-plateaus-gap") is None


@pytest.mark.parametrize("name", [*tasks.SERIES, *tasks.FIELDS])
def test_every_real_table_is_there(data_dir, name):
    from experiments.data.table import local_file

    assert local_file(name) is not None


# thresholding


@WAVELETS
@pytest.mark.parametrize("rule", [visushrink, translation_invariant])
@pytest.mark.parametrize("n", [64, 101])
def test_without_a_threshold_nothing_changes(rng, wavelet, rule, n):
    y = rng.normal(3.0, 2.0, n)
    assert_allclose(rule(y, wavelet, 0.0), y, rtol=1e-9)


@WAVELETS
def test_translation_invariant_is_the_average_over_shifts(rng, wavelet):
    y, levels, threshold = rng.normal(3.0, 2.0, 64), n_levels(64), 2.5
    periodic = np.concatenate([y[:32][::-1], y, y[32:][::-1]])

    def shifted(shift):
        coarse, *details = pywt.wavedec(np.roll(periodic, shift), wavelet, "periodization", levels)
        kept = [pywt.threshold(d, threshold, "hard") for d in details]
        return np.roll(pywt.waverec([coarse, *kept], wavelet, "periodization"), -shift)

    average = np.mean([shifted(shift) for shift in range(2**levels)], axis=0)
    assert_allclose(translation_invariant(y, wavelet, threshold), average[32:96], rtol=1e-9)
    assert not np.allclose(shifted(0), average)


@WAVELETS
def test_soft_thresholding_of_a_constant_in_noise_leaves_almost_the_constant(rng, wavelet):
    y = 3 + 0.5 * rng.standard_normal(4096)
    sigma = noise_deviation(y, wavelet)
    assert abs(sigma / 0.5 - 1) < 5 * 1.17 / np.sqrt(2048)  # of a median size of 2048 normals
    estimate = visushrink(y, wavelet, sigma * np.sqrt(2 * np.log(4096)))
    assert np.sqrt(np.mean((estimate - 3) ** 2)) < 0.5 * 1.5 * np.sqrt(64 / 4096)  # 64 stay


def test_the_noise_is_not_fooled_by_jumps():
    x = np.arange(1, 2049) / 2048
    y = 20 * blocks(x) + np.random.default_rng(5).standard_normal(2048)
    assert abs(noise_deviation(y, "haar") - 1) < 5 * 1.17 / np.sqrt(1024)


@pytest.mark.parametrize(
    "task, method, low, high",
    [
        ("blocks", "ti-haar", 0.15, 0.18),
        ("blocks", "visushrink-haar", 0.6, 0.72),
        ("doppler", "ti-sym8", 0.21, 0.26),
        ("doppler-irregular", "ti-sym8", 0.38, 0.47),
        ("heavisine", "ti-sym8", 0.17, 0.23),
    ],
)
def test_errors_of_thresholding_are_those_that_are_known(task, method, low, high):
    errors = [measure(Run(task, method, split))["rmse_f"] for split in range(3)]
    assert low < np.mean(errors) < high


def test_rows_may_come_in_any_order_and_repeat(rng):
    x, y = np.sort(rng.uniform(5, 9, 100)), rng.normal(3.0, 2.0, 100)
    order = rng.permutation(120) % 100  # twenty of them twice
    once = Shrinkage(translation_invariant, "haar").fit(x[:, None], y)
    again = Shrinkage(translation_invariant, "haar").fit(x[order][:, None], y[order])
    at = rng.uniform(4, 10, (30, 1))
    assert_allclose(once.predict(at), again.predict(at))
    assert_array_equal(once.predict(x[:, None])[0], once._estimate)
    assert once.facts()["n_points"] == 100


def test_thresholding_of_fields_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"X has 2 columns\. Give it one"):
        make("ti-haar", {}, 0).fit(GRID, GRID[:, 0])


# scores against the function


class Known:
    """Predicts zero, with error bars of half a unit for f, and of two for y."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X)), np.full(len(X), 2.0)

    def predict_function(self, X):
        return np.zeros(len(X)), np.full(len(X), 0.5)

    def facts(self):
        return {}


def test_scores_against_f_take_the_error_bars_of_f():
    X, f = np.zeros((4, 1)), np.array([0.9, -0.9, 1.0, 3.0])
    row = function_scores(Known(), X, np.zeros(4), f)
    assert_allclose(row["rmse_f"], np.sqrt((0.81 + 0.81 + 1 + 9) / 4))
    assert row["coverage95_f"] == coverage(f, np.zeros(4), np.full(4, 0.5)) == 0.5


def test_without_f_or_its_error_bars_scores_are_null(rng):
    X = rng.uniform(size=(40, 1))
    y = X[:, 0] + 3
    method = make("boosting", {"max_iter": 3}, 0)
    method.fit(X, y)
    mean, _ = method.predict(X)
    assert function_scores(Known(), X, mean, None) == {"rmse_f": None, "coverage95_f": None}
    row = function_scores(method, X, mean, y)
    assert row["coverage95_f"] is None
    assert_allclose(row["rmse_f"], np.sqrt(np.mean((mean - y) ** 2)))


@pytest.mark.parametrize(
    "name, settings",
    [
        ("rff-matern12", {"n_components": 40, "max_iter": 3, "n_restarts": 0}),
        ("exact-matern12", {"max_iter": 6, "short": 3}),
        ("nystroem", {"n_components": 20}),
    ],
)
def test_the_variance_of_f_is_that_of_y_without_the_noise(rng, name, settings):
    X = rng.uniform(5, 9, (60, 1))
    y = 300 + 20 * np.sin(3 * X[:, 0]) + rng.normal(0, 4.0, 60)
    method = make(name, settings, 0)
    method.fit(X, y)
    (mean, std), (mean_f, std_f) = method.predict(X), method.predict_function(X)
    assert_allclose(mean_f, mean)
    assert_allclose(std_f**2, std**2 - method.facts()["noise_variance"], rtol=1e-6, atol=1e-9)


def test_a_regressor_that_knows_f_itself_is_asked():
    method = make("rff", {}, 0)
    method.model.predict_function = lambda X: (X[:, 0], X[:, 0] + 1)
    assert_array_equal(method.predict_function(np.array([[2.0]])), [[2.0], [3.0]])


# the exact process over one column


def matern12_theta(rng):
    return rng.normal(0.0, 0.6, 5) - np.array([1, 0, 1, 1, 3])


def test_the_rough_kernel_is_scikit_learns_also_at_repeated_inputs(rng):
    X, theta = rng.normal(0.4, 1.3, (40, 1)), matern12_theta(rng)
    X[20:25] = X[:5]
    y = np.sign(X[:, 0]) + rng.normal(0.2, 0.1, 40)
    p = Parameters.from_theta(theta)
    kernel = (
        ConstantKernel(p.amplitude) * Matern(p.lengths, nu=0.5)
        + ConstantKernel(p.linear) * DotProduct(np.sqrt(p.constant / p.linear))
        + WhiteKernel(p.noise)
    )
    expected = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    value, gradient = log_evidence(matern12, theta, X, y)
    assert_allclose(value, expected.log_marginal_likelihood_value_, rtol=1e-6)
    steps = 1e-5 * np.eye(5)
    ahead, behind = (
        np.array([log_evidence(matern12, theta + sign * s, X, y)[0] for s in steps])
        for sign in (1, -1)
    )
    assert_allclose(gradient, (ahead - behind) / 2e-5, rtol=1e-4, atol=1e-4)
    at = rng.normal(0.4, 2.0, (7, 1))
    found = ExactGP("matern12", random_state=0).condition(X, y, theta).predict(at)
    assert_allclose(found, expected.predict(at, return_std=True), rtol=1e-6)


def test_a_fast_wave_over_one_column_is_found():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 300))
    X, y = (x[:, None] - 0.5) * np.sqrt(12), np.sin(2 * np.pi * 25 * x)
    gp = ExactGP("se", random_state=0).fit(X, y)
    assert gp.facts()["noise_variance"] < 0.01
    assert np.exp(log_bounds(1)[0][0]) < np.exp(log_bounds(2)[0][0])
