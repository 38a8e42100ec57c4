"""Student-t distributions: against scipy's, against integrals, and their normal limit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from rwf.uncertainty.student_t import NORMAL, StudentT, draw_roots, mean_root, variance_ratio

DOFS = (2.6, 3.0, 5.5, 10.0, 400.0, 1e7, np.inf)


def of(dof, mean=3.0, scale=2.0):
    return StudentT(np.array([mean]), np.array([scale]), np.array([float(dof)]))


def scipys(dof):
    return stats.norm(3.0, 2.0) if np.isinf(dof) else stats.t(dof, 3.0, 2.0)


@pytest.mark.parametrize("dof", DOFS)
def test_density_and_probability_are_those_of_scipy(dof):
    y = np.array([-40.0, -1.0, 2.9, 3.0, 8.0, 60.0])
    p, expected = of(dof), scipys(dof)
    assert_allclose(p.logpdf(y), expected.logpdf(y), rtol=1e-6, atol=1e-9)
    assert_allclose(p.pdf(y), expected.pdf(y), rtol=1e-5, atol=1e-300)
    assert_allclose(p.cdf(y), expected.cdf(y), rtol=1e-9, atol=1e-300)
    assert_allclose(p.std, expected.std(), rtol=1e-7)


@pytest.mark.parametrize("dof", DOFS)
def test_quantiles_invert_the_probability(dof):
    levels = np.array([1e-4, 0.01, 0.05, 0.5, 0.77, 0.95, 0.999])
    p = of(dof)
    assert_allclose(p.cdf(p.ppf(levels)), levels, atol=1e-10)
    low, high = p.interval(0.8)
    assert_allclose(p.cdf(high) - p.cdf(low), 0.8, atol=1e-10)
    assert_allclose(low + high, 2 * p.mean, rtol=1e-9)


@pytest.mark.parametrize("dof", [2.6, 3.0, 7.0, 1e5, np.inf])
@pytest.mark.parametrize("y", [-4.0, 3.0, 3.5, 20.0])
def test_the_crps_is_its_integral(dof, y):
    expected = scipys(dof)
    below = quad(lambda x: expected.cdf(x) ** 2, -np.inf, y, epsabs=1e-10)[0]
    above = quad(lambda x: expected.sf(x) ** 2, y, np.inf, epsabs=1e-10)[0]
    assert_allclose(of(dof).crps(y), below + above, atol=1e-6)


def test_the_density_integrates_to_one_and_its_mean_log_is_the_nll():
    p, expected = of(4.0), scipys(4.0)
    assert_allclose(quad(lambda y: p.pdf(y)[0], -np.inf, np.inf)[0], 1.0, atol=1e-8)
    entropy = quad(lambda y: -p.pdf(y)[0] * p.logpdf(y)[0], -500.0, 500.0, limit=400)[0]
    assert_allclose(entropy, expected.entropy(), atol=1e-6)


def test_many_degrees_of_freedom_are_a_normal():
    y = np.linspace(-20.0, 25.0, 9)
    limit, many = of(np.inf), of(NORMAL / 2)
    for name in ("logpdf", "cdf", "crps"):
        assert_allclose(getattr(many, name)(y), getattr(limit, name)(y), rtol=1e-5, atol=1e-9)
    assert_array_equal(variance_ratio(np.inf), 1.0)
    assert_array_equal(mean_root(np.inf), 1.0)
    assert mean_root(1e6) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("dof", [4.5, 30.0, np.inf])
def test_draws_have_the_distribution(dof, rng):
    p = StudentT(np.full((2, 2), 3.0), np.full((2, 2), 2.0), np.full((2, 2), dof))
    draws = p.sample(4000, rng)
    assert draws.shape == (2, 2, 4000)
    assert stats.kstest(draws.ravel(), scipys(dof).cdf).pvalue > 1e-3


def test_roots_have_their_mean(rng):
    roots = draw_roots(np.full((1, 1), 5.0), 40_000, rng)
    assert abs(roots.mean() - mean_root(5.0)) < 5 * roots.std() / np.sqrt(40_000)
    assert (roots**2).mean() == pytest.approx(variance_ratio(5.0), rel=0.1)


def test_probability_transforms_are_uniform_for_a_t_and_not_for_a_normal(rng):
    p = StudentT(np.linspace(-3.0, 9.0, 5000), np.linspace(0.5, 4.0, 5000), np.full(5000, 3.0))
    y = p.sample(1, rng)[:, 0]
    assert stats.kstest(p.cdf(y), "uniform").pvalue > 1e-3
    normal = StudentT.normal(p.mean, p.std)
    assert stats.kstest(normal.cdf(y), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, [0.5, 1.2]])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        of(3.0).ppf(level)


def test_parts_join_to_the_whole():
    whole = StudentT(np.arange(4.0), np.arange(1.0, 5.0), np.arange(3.0, 7.0))
    again = StudentT.joined([whole.part(slice(0, 1)), whole.part(slice(1, None))])
    for name in ("mean", "scale", "dof"):
        assert_array_equal(getattr(again, name), getattr(whole, name))
