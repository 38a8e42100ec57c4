"""Mixtures of normals, against quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from experiments.baselines.mixtures import NormalMixture
from rwf.diagnostics.metrics import METRICS
from rwf.uncertainty.student_t import StudentT

MEANS = np.array([[3.0, 3.5, 9.0], [-2.0, -1.9, -2.2]])
STDS = np.array([[0.4, 1.3, 0.7], [0.5, 0.2, 2.0]])
Y = np.array([5.0, -2.5])


@pytest.fixture
def mixture():
    return NormalMixture(MEANS, STDS)


def density(row):
    return lambda y: norm.pdf(y, MEANS[row], STDS[row]).mean()


def integral(function, row):
    points = sorted([*MEANS[row], Y[row]])
    return quad(function, -25, 35, points=points, epsabs=1e-12, limit=500)[0]


@pytest.mark.parametrize("row", [0, 1])
def test_moments_and_scores_are_those_of_the_density(mixture, row):
    p = density(row)
    mean = integral(lambda y: y * p(y), row)
    assert_allclose(mixture.mean[row], mean)
    variance = integral(lambda y: (y - mean) ** 2 * p(y), row)
    assert_allclose(mixture.std[row] ** 2, variance)
    assert_allclose(mixture.standardized(Y)[row], (Y[row] - mean) / np.sqrt(variance))
    assert_allclose(mixture.logpdf(Y)[row], np.log(p(Y[row])))
    assert_allclose(mixture.cdf(Y)[row], quad(p, -25, Y[row], points=MEANS[row], limit=500)[0])

    def squared(y):
        return (norm.cdf(y, MEANS[row], STDS[row]).mean() - (y >= Y[row])) ** 2

    assert_allclose(mixture.crps(Y)[row], integral(squared, row), rtol=1e-8)


@pytest.mark.parametrize("probability", [0.001, 0.3, 0.975])
def test_a_quantile_has_its_probability(mixture, probability):
    assert_allclose(mixture.cdf(mixture.ppf(probability)), probability, rtol=1e-10)


def test_an_interval_has_equal_tails(mixture):
    low, high = mixture.interval(0.8)
    assert_allclose(mixture.cdf(low), 0.1)
    assert_allclose(mixture.cdf(high), 0.9)


def test_equal_normals_are_one(mixture):
    mean, std = np.array([3.0, -1.0]), np.array([0.7, 2.0])
    many = NormalMixture(np.tile(mean[:, None], 5), np.tile(std[:, None], 5))
    one = StudentT.normal(mean, std)
    for name in ("logpdf", "cdf", "crps", "standardized"):
        assert_allclose(getattr(many, name)(Y), getattr(one, name)(Y), rtol=1e-10)
    assert_allclose(many.interval(0.9), one.interval(0.9))


def test_it_is_moved_and_blurred_row_by_row(mixture):
    moved = mixture.moved(np.array([1.0, -4.0]), 3.0)
    assert_allclose(moved.mean, [1 + 3 * mixture.mean[0], -4 + 3 * mixture.mean[1]])
    assert_allclose(moved.std, 3 * mixture.std)
    blurred = mixture.blurred(np.array([0.5, 2.0]))
    assert_allclose(blurred.mean, mixture.mean)
    assert_allclose(blurred.std**2, mixture.std**2 + [0.5, 2.0])


def test_the_metrics_of_the_library_take_it(mixture):
    assert_allclose(METRICS["nll"](Y, mixture), -mixture.logpdf(Y).mean())
    assert_allclose(METRICS["crps"](Y, mixture), mixture.crps(Y).mean())
    low, high = mixture.interval(0.95)
    assert_allclose(METRICS["width"](Y, mixture), (high - low).mean())
    assert METRICS["coverage"](Y, mixture) == np.mean((low <= Y) & (high >= Y))
