"""Distributions of transformed targets: against the log-normal, integrals and draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from rwf.data.target_transform import TargetTransform
from rwf.diagnostics.metrics import METRICS
from rwf.uncertainty.student_t import StudentT
from rwf.uncertainty.transformed import TransformedT

LOG = TargetTransform(np.array([0.0]), np.array([0.0]))
ROOT = TargetTransform(np.array([0.5]), np.array([0.3]))
BOTH = {"log": LOG, "sqrt": ROOT}


def of(transform, mean=1.3, scale=0.4, dof=4.0):
    return TransformedT(StudentT(*(np.array([v]) for v in (mean, scale, dof))), transform)


def test_with_a_normal_logarithm_it_is_the_log_normal():
    p, expected = of(LOG, dof=np.inf), stats.lognorm(0.4, scale=np.exp(1.3))
    y = np.array([0.1, 2.0, 3.7, 40.0])
    assert_allclose(p.logpdf(y), expected.logpdf(y), rtol=1e-9)
    assert_allclose(p.cdf(y), expected.cdf(y), rtol=1e-9)
    assert_allclose(p.mean, expected.mean(), rtol=1e-9)
    assert_allclose(p.std, expected.std(), rtol=1e-9)
    assert_allclose(p.median, expected.median(), rtol=1e-12)


@pytest.mark.parametrize("mean", [0.2, 0.7, 5.0])
def test_the_mean_of_a_square_is_that_of_its_draws(mean, rng):
    # Some of the draws are below the lower end in the first two, and none is in the last.
    p = of(ROOT, mean=mean, dof=np.inf)
    drawn = p.sample(400_000, rng)[0]
    assert drawn.min() >= 0
    assert_allclose(p.mean, drawn.mean(), atol=4 * p.std[0] / np.sqrt(400_000))
    assert_allclose(p.std, drawn.std(), rtol=0.02)


@pytest.mark.parametrize("name", BOTH)
def test_the_density_is_that_of_the_probability(name):
    p = of(BOTH[name])
    for a, b in ((0.2, 1.0), (2.0, 9.0)):
        inside = quad(lambda y: p.pdf(y)[0], a, b)[0]
        assert_allclose(inside, p.cdf(b) - p.cdf(a), rtol=1e-7)
    assert p.logpdf(-1.0) == -np.inf
    assert p.cdf(-1.0) == 0.0


@pytest.mark.parametrize("name", BOTH)
def test_quantiles_invert_the_probability_and_intervals_are_not_negative(name):
    p = of(BOTH[name], mean=0.9)
    levels = np.array([0.3, 0.5, 0.9, 0.999])
    assert_allclose(p.cdf(p.ppf(levels)), levels, atol=1e-9)
    assert (p.interval(0.9999)[0] >= 0).all()


@pytest.mark.parametrize("y", [0.5, 3.0, 12.0])
def test_the_crps_approaches_the_integral(y):
    p, expected = of(LOG, dof=np.inf), stats.lognorm(0.4, scale=np.exp(1.3))
    below = quad(lambda x: expected.cdf(x) ** 2, 0.0, y)[0]
    above = quad(lambda x: expected.sf(x) ** 2, y, np.inf)[0]
    assert_allclose(p.crps(y), below + above, rtol=0.01)


def test_outputs_have_transforms_of_their_own_and_metrics_take_them():
    mixed = TargetTransform(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.2, 0.0]))
    base = StudentT(*(np.full((4, 3), v) for v in (1.5, 0.2, 5.0)))
    p = TransformedT(base, mixed)
    assert_allclose(p.median[0], [np.exp(1.5), 1.5**2 - 0.2, 1.5])
    assert_allclose(p.std[:, 2], base.std[:, 2])
    single, y = p.output(1), np.array([1.0, 2.0, 3.0, 4.0])
    assert_allclose(single.cdf(y), p.cdf(np.repeat(y[:, None], 3, axis=1))[:, 1])
    assert_allclose(TransformedT.joined([single.part(slice(2)), single.part(slice(2, 4))]).mean,
                    single.mean)  # fmt: skip
    found = {name: metric(y, single) for name, metric in METRICS.items()}
    assert_allclose(found["nll"], -single.logpdf(y).mean())
    assert_allclose(found["crps"], single.crps(y).mean())
