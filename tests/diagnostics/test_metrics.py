"""Each metric against a second implementation, and each in the direction it declares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from rwf.diagnostics.metrics import (
    LEVEL,
    LEVELS,
    METRICS,
    SKILLS,
    calibration_curve,
    calibration_error,
    constant_reference,
    coverage,
    crps,
    interval_width,
    linear_reference,
    nll,
    rmse,
)


@pytest.fixture
def predictions():
    """Targets with mean 3 and sd 2, and predictions that differ from row to row."""
    rng = np.random.default_rng(11)
    mean, std = rng.normal(3.0, 2.0, 60), rng.uniform(0.3, 4.0, 60)
    return mean + rng.normal(0.5, 2.0, 60), mean, std


def calibrated(rng, n):
    """Targets that really are draws of the predicted N(mean, 2²)."""
    mean = rng.normal(3.0, 2.0, n)
    return rng.normal(mean, 2.0), mean, np.full(n, 2.0)


def test_rmse_is_the_norm_of_the_residual(predictions):
    y, mean, _ = predictions
    assert_allclose(rmse(y, mean), np.linalg.norm(y - mean) / np.sqrt(len(y)), rtol=1e-14)


@pytest.mark.parametrize("y, mean, std", [(3.0, 3.0, 2.0), (-1.5, 3.0, 2.0), (9.0, 3.0, 0.7)])
def test_crps_is_the_integrated_squared_difference_of_distributions(y, mean, std):
    def squared_difference(x):
        return (norm.cdf(x, mean, std) - (y <= x)) ** 2

    lower, upper = min(y, mean) - 12 * std, max(y, mean) + 12 * std
    below, _ = quad(squared_difference, lower, y, epsabs=1e-12)
    above, _ = quad(squared_difference, y, upper, epsabs=1e-12)
    assert_allclose(crps([y], [mean], [std]), below + above, rtol=1e-8)


def test_crps_of_a_sharp_prediction_is_the_absolute_error(predictions):
    y, mean, _ = predictions
    assert_allclose(crps(y, mean, np.full(60, 1e-9)), np.mean(np.abs(y - mean)), rtol=1e-7)


def test_nll_is_the_normal_log_density(predictions):
    y, mean, std = predictions
    assert_allclose(nll(y, mean, std), -norm.logpdf(y, mean, std).mean(), rtol=1e-13)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_counts_the_targets_inside_the_normal_interval(predictions, level):
    y, mean, std = predictions
    lower, upper = norm.interval(level, mean, std)
    assert coverage(y, mean, std, level) == np.mean((lower <= y) & (y <= upper))
    assert_allclose(interval_width(std, level), np.mean(upper - lower), rtol=1e-13)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_a_calibrated_prediction_covers_what_it_says(level):
    n = 20_000
    observed = coverage(*calibrated(np.random.default_rng(5), n), level)
    assert abs(observed - level) < 5 * np.sqrt(level * (1 - level) / n)


def test_the_calibration_curve_is_the_coverage_at_every_level(predictions):
    curve = calibration_curve(*predictions)
    assert LEVELS[0] == 0.05
    assert LEVELS[-1] == 0.95
    assert len(LEVELS) == 19
    assert_allclose(curve, [coverage(*predictions, level) for level in LEVELS], rtol=1e-15)
    error = np.mean([abs(p - q) for p, q in zip(curve, LEVELS, strict=True)])
    assert_allclose(calibration_error(*predictions), error, rtol=1e-14)


def test_intervals_that_hold_everything_or_nothing_are_out_by_a_half():
    y, mean = np.array([3.0, 5.0]), np.array([2.0, 7.0])
    assert_allclose(calibration_error(y, mean, np.full(2, 1e-9)), 0.5, rtol=1e-12)
    assert_allclose(calibration_error(y, mean, np.full(2, 1e9)), 0.5, rtol=1e-12)


def test_the_calibration_error_of_a_calibrated_prediction_is_that_of_counting():
    n = 20_000
    error = calibration_error(*calibrated(np.random.default_rng(5), n))
    assert error < 5 * np.sqrt(0.25 / n)  # a mean of distances, each of at most this deviation


def test_a_calibrated_crps_is_rmse_over_root_pi():
    rng = np.random.default_rng(7)
    batches = [calibrated(rng, 400) for _ in range(50)]
    ratios = np.array([crps(y, mean, std) / rmse(y, mean) for y, mean, std in batches])
    standard_error = ratios.std() / np.sqrt(len(ratios))
    assert abs(ratios.mean() - 1 / np.sqrt(np.pi)) < 5 * standard_error  # 0.564


@pytest.mark.parametrize("name", [name for name in METRICS if name != "width"])
def test_the_truth_beats_a_shifted_truth_in_the_declared_direction(name):
    metric = METRICS[name]
    y, mean, std = calibrated(np.random.default_rng(3), 2000)
    truth, shifted = metric(y, mean, std), metric(y, mean + 1.5, std)
    match metric.better:
        case "lower":
            assert truth < shifted
        case "higher":
            assert truth > shifted
        case "nominal":
            assert abs(truth - LEVEL) < abs(shifted - LEVEL)


def test_a_narrower_interval_is_better():
    assert METRICS["width"].better == "lower"
    assert METRICS["width"]([3.0], [5.0], [1.0]) < METRICS["width"]([3.0], [5.0], [2.0])


@pytest.mark.parametrize("name", ["crps", "nll", "coverage", "width"])
@pytest.mark.parametrize("std", [0.0, -2.0])
def test_a_standard_deviation_that_is_not_positive_is_refused(name, std):
    with pytest.raises(ValueError, match="include the noise"):
        METRICS[name]([3.0, 4.0], [5.0, 5.0], [2.0, std])


@pytest.mark.parametrize("name", [name for name in METRICS if name != "width"])
def test_shapes_that_would_broadcast_are_refused(name):
    with pytest.raises(ValueError, match=r"mean \(3, 1\).*one shape"):
        METRICS[name](np.ones(3), np.ones((3, 1)), np.ones(3))


def test_what_is_not_finite_is_named_with_its_place():
    with pytest.raises(ValueError, match=r"mean has 1 non-finite values, the first at 1\. Drop"):
        rmse([3.0, 4.0], [3.0, np.nan])


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="at least one row"):
        rmse([], [])


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_outside_the_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="inside"):
        interval_width([2.0], level)


@pytest.mark.parametrize("name", SKILLS)
def test_skill_is_zero_for_the_reference_and_higher_for_the_truth(name):
    y, mean, std = calibrated(np.random.default_rng(3), 2000)
    reference, shifted = (np.full(2000, 3.0), np.full(2000, 2.8)), (mean + 1.5, std)
    skill = SKILLS[name]
    assert skill.metric.better == "lower"
    assert skill.better == "higher"
    assert skill(y, reference, reference) == 0
    assert skill(y, (mean, std), reference) > max(0, skill(y, shifted, reference))


def test_relative_skills_are_shares_and_the_log_density_is_a_difference(predictions):
    y, mean, std = predictions
    other = (np.full(60, 2.0), np.full(60, 5.0))
    ratio = rmse(y, mean) / rmse(y, other[0])
    assert_allclose(SKILLS["rmse"](y, (mean, std), other), 1 - ratio, rtol=1e-14)
    gain = nll(y, *other) - nll(y, mean, std)
    assert_allclose(SKILLS["nll"](y, (mean, std), other), gain, rtol=1e-14)


def test_a_perfect_reference_leaves_no_skill_to_measure():
    y = np.array([3.0, 5.0])
    with pytest.raises(ValueError, match="another reference"):
        SKILLS["rmse"](y, (y + 1, np.ones(2)), (y, np.ones(2)))


def test_the_constant_reference_predicts_a_new_row_of_the_same_normal(rng):
    y = rng.normal(3.0, 2.0, 40)
    mean, std = constant_reference(y, 5)
    assert_allclose(mean, np.full(5, y.mean()))
    assert_allclose(std, np.full(5, np.sqrt(y.var(ddof=1) * (1 + 1 / 40))))


def test_the_linear_reference_is_least_squares_with_its_predictive_deviation(rng):
    X, B = rng.normal(3.0, 2.0, (50, 3)), rng.normal(1.0, 4.0, (7, 3))
    y = X @ [1.0, -2.0, 0.5] + 4 + rng.normal(0, 0.3, 50)
    A, A_new = np.column_stack([np.ones(50), X]), np.column_stack([np.ones(7), B])
    weights, rss, _, _ = np.linalg.lstsq(A, y, rcond=None)
    inverse = np.linalg.inv(A.T @ A)
    variance = rss[0] / 46 * (1 + np.einsum("np,pq,nq->n", A_new, inverse, A_new))
    mean, std = linear_reference(X, y, B)
    assert_allclose(mean, A_new @ weights, rtol=1e-10)
    assert_allclose(std, np.sqrt(variance), rtol=1e-10)


def test_constant_and_repeated_columns_do_not_change_the_linear_reference(rng):
    X, B = rng.normal(3.0, 2.0, (50, 2)), rng.normal(1.0, 4.0, (7, 2))
    y = X @ [1.0, -2.0] + rng.normal(4, 0.3, 50)

    def widened(M):
        return np.column_stack([M, 2 * M[:, 0], np.full(len(M), 0.998)])

    plain, wide = linear_reference(X, y, B), linear_reference(widened(X), y, widened(B))
    assert_allclose(wide, plain, rtol=1e-9)


def test_a_line_through_as_many_rows_as_it_has_directions_is_refused(rng):
    X = rng.normal(3.0, 2.0, (4, 3))
    with pytest.raises(ValueError, match="constant_reference"):
        linear_reference(X, rng.normal(3.0, 2.0, 4), X)
