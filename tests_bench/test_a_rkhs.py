"""The filtered process against integrals of its definition, γ = λ included, and what it learns."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.integrate import quad, quad_vec

from experiments.baselines.a_rkhs import AdaptiveRKHS, FilteredMatern32, answers
from experiments.baselines.matern_fourier import Waves
from experiments.baselines.standardized import Standardized
from experiments.baselines.tensors import double
from rwf.datasets import multi_step

A, B = -0.7, 1.6
LENGTH, VARIANCE, BETA = 0.8, 2.3, 0.6
RATE = np.sqrt(3) / LENGTH

GAMMAS = (0.3 * RATE, 0.999 * RATE, RATE, 1.001 * RATE, 4 * RATE)
"""γ below λ, about it, λ itself, and above it."""


def filtered(gamma, n_frequencies=3):
    """One process, in tensors of shape (1,)."""
    parameters = (LENGTH, VARIANCE, gamma * BETA, BETA)
    return FilteredMatern32(Waves(A, B, n_frequencies), *(double([p]) for p in parameters))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("t", [-1.9, A, -0.4, 1.1, B, 1.9, 4.0])
def test_the_covariance_with_the_features_is_the_filtered_one_of_the_force(gamma, t):
    process = filtered(gamma)

    def integrand(tau):
        of_force = process.force.cross(double([[tau]]))[0, 0].numpy()
        return np.exp(-gamma * (t - tau)) / BETA * of_force

    ends = [end for end in (A, B) if end < t]
    expected, _ = quad_vec(integrand, t - 60 / RATE, t, points=ends, epsabs=1e-11, epsrel=1e-11)
    found = process.cross(double([[t]]))[0, 0]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("tau", [0.0, 0.05, 0.7, 3.1])
def test_the_covariance_is_the_filtered_one_of_the_force_twice(gamma, tau):
    def integrand(w):  # two filters, a distance w of each other, have the product e^(−γ|w|)/2γβ²
        distance = RATE * abs(tau + w)
        of_force = VARIANCE * (1 + distance) * np.exp(-distance)
        return of_force * np.exp(-gamma * abs(w)) / (2 * gamma * BETA**2)

    edges = [-tau - 80 / RATE, -tau, 0.0, 80 / RATE]
    expected = sum(
        quad(integrand, low, high, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for low, high in pairwise(edges)
    )
    found = filtered(gamma).covariance(double([[tau]]))
    assert_allclose(found.item(), expected, rtol=1e-9)


def test_answers_are_continuous_through_equal_rates():
    r, rate = double([[0.4, 2.0]]), double([[RATE]])
    at, *around = (answers(r, rate, rate * (1 + e)) for e in (0.0, 1e-9, -1e-9))
    for near in around:
        for one, other in zip(at, near, strict=True):
            assert_allclose(one, other, rtol=1e-8)
    at_the_seam = 0.5 / r[0, 1]  # where the series hands over to the quotient
    below, above = (answers(r[:, 1:], rate, rate - at_the_seam * (1 + e)) for e in (-1e-12, 1e-12))
    for one, other in zip(below, above, strict=True):
        assert_allclose(one, other, rtol=1e-11)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_gradients_are_those_of_differences(gamma):
    t = double([[-1.1, 0.3, 2.0]])

    def outputs(*parameters):
        process = FilteredMatern32(Waves(A, B, 2), *parameters)
        return process.cross(t), process.covariance(t.abs())

    values = [LENGTH, VARIANCE, gamma * BETA, BETA]
    inputs = [double([value]).requires_grad_() for value in values]
    assert torch.autograd.gradcheck(outputs, inputs, eps=1e-6, atol=1e-6, rtol=1e-5)


def test_the_features_explain_the_filtered_covariance():
    t = double(np.linspace(0.3, 0.6, 7))[None, :]
    process = FilteredMatern32(
        Waves(A, B, 300), double([0.05]), double([VARIANCE]), double([1.2]), double([0.06])
    )
    whitened = process.cross(t) @ process.whitening().mT
    expected = process.covariance((t[0, :, None] - t[0]).abs().view(1, -1)).view(7, 7)
    assert_allclose((whitened @ whitened.mT)[0], expected, rtol=1e-4)


def test_a_fast_filter_is_the_force_itself():
    alpha = 3.0
    process = FilteredMatern32(
        Waves(A, B, 3), *(double([p]) for p in (LENGTH, VARIANCE, alpha, 1e-7))
    )
    t = double([[-0.2, 0.9, 2.1]])
    assert_allclose(process.cross(t), process.force.cross(t) / alpha, atol=1e-5)
    assert_allclose(process.prior_variance(), [VARIANCE / alpha**2], rtol=1e-5)


@pytest.mark.slow
def test_it_learns_steps(rng):
    train, test = multi_step(500, rng), multi_step(200, rng)
    model = Standardized(AdaptiveRKHS(0, max_steps=500)).fit(train.X, train.y)
    mean, std = model.predict_function(test.X)
    assert np.sqrt(np.mean((mean - test.f) ** 2)) < 0.2 * test.f.std()
    assert np.mean(np.abs(mean - test.f) < 2 * std) > 0.8
