"""Fourier features against the inner product that defines them, and against the kernel."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.integrate import quad_vec

from experiments.baselines.matern_fourier import Matern32, Waves

A, B, FREQUENCIES = -0.7, 1.6, 4
LENGTHS, VARIANCES = np.array([0.6, 1.9]), np.array([2.3, 0.4])
RATES = np.sqrt(3) / LENGTHS


def double(values):
    return torch.as_tensor(values, dtype=torch.float64)


def processes(n_frequencies=FREQUENCIES):
    return Matern32(Waves(A, B, n_frequencies), double(LENGTHS), double(VARIANCES))


def waves_and_slopes(t):
    """φ, φ′ and φ″ at t: the definition, in an array of shape (3, waves)."""
    z = 2 * np.pi * np.arange(FREQUENCIES + 1) / (B - A)
    angle = z * (t - A)
    cos, sin = np.cos(angle), np.sin(angle)
    values = np.concatenate([cos, sin[1:]])
    slopes = np.concatenate([-z * sin, (z * cos)[1:]])
    curvatures = np.concatenate([-(z**2) * cos, (-(z**2) * sin)[1:]])
    return np.array([values, slopes, curvatures])


def kernel(t, x, j):
    """k(x, t) and its first two derivatives in t, shape (3, 1)."""
    rate, distance, side = RATES[j], abs(t - x), np.sign(t - x)
    fading = VARIANCES[j] * np.exp(-rate * distance)
    value = (1 + rate * distance) * fading
    slope = -(rate**2) * distance * side * fading
    curvature = rate**2 * (rate * distance - 1) * fading
    return np.array([[value], [slope], [curvature]])


def inner_products(g, h, j, kinks=()):
    """⟨g, h⟩ of process j for all pairs, by quadrature over [A, B] and from the ends."""
    rate, variance = RATES[j], VARIANCES[j]

    def operated(f):  # (λ + ∂)² f
        return rate**2 * f[0] + 2 * rate * f[1] + f[2]

    def integrand(t):
        return np.outer(operated(g(t)), operated(h(t)))

    integral, _ = quad_vec(integrand, A, B, points=kinks, epsabs=1e-11, epsrel=1e-11)
    ends = np.outer(g(A)[0], h(A)[0]) + np.outer(g(A)[1], h(A)[1]) / rate**2
    return (integral / (4 * rate**3) + ends) / variance


@pytest.mark.parametrize("j", [0, 1])
def test_the_covariance_of_the_features_is_their_inner_product(j):
    expected = inner_products(waves_and_slopes, waves_and_slopes, j)
    K = torch.diag(processes().diagonal()[j])
    for w in processes().outer_factors():
        K = K + torch.outer(w[j], w[j])
    assert_allclose(K, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("j", [0, 1])
@pytest.mark.parametrize("x", [-3.1, -0.9, A, 0.2, 1.1, B, 1.7, 4.4])
def test_the_covariance_with_a_value_is_the_inner_product_with_the_kernel(j, x):
    kinks = [x] if A < x < B else []
    expected = inner_products(waves_and_slopes, lambda t: kernel(t, x, j), j, kinks)[:, 0]
    found = processes().cross(double([[x], [x]]))[j, 0]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_the_covariance_reproduces_the_waves_between_the_ends(rng):
    t = rng.uniform(A, B, 30)
    found = processes().cross(double(np.stack([t, t])))
    for j in range(2):
        assert_allclose(found[j], [waves_and_slopes(x)[0] for x in t], atol=1e-12)


def test_whitening_makes_the_features_white():
    K = torch.diag_embed(processes().diagonal())
    for w in processes().outer_factors():
        K = K + w[:, :, None] * w[:, None, :]
    V = processes().whitening()
    assert_allclose(V @ K @ V.mT, np.stack([np.eye(len(K[0]))] * 2), atol=1e-12)


def left_over(n_frequencies, t, length):
    """k − c(t)ᵀ K⁻¹ c(t), of process 0 with another length."""
    lengths = double([length, length])
    model = Matern32(Waves(A, B, n_frequencies), lengths, double(VARIANCES))
    whitened = (model.cross(double(np.stack([t, t]))) @ model.whitening().mT)[0]
    distance = np.abs(t[:, None] - t) * np.sqrt(3) / length
    return VARIANCES[0] * (1 + distance) * np.exp(-distance) - (whitened @ whitened.T).numpy()


def test_more_waves_explain_more_of_the_kernel_until_nothing_is_left(rng):
    t = rng.uniform(A + 0.7, B - 0.7, 40)  # so far from the ends that k there is 1e-9
    left = [left_over(n, t, 0.05) for n in (80, 160, 320)]
    assert all(np.linalg.eigvalsh(part).min() > -1e-12 for part in left)
    # A spectrum of z⁻⁴ beyond the last frequency leaves a variance of order z⁻³: 8 times less.
    errors = [np.trace(part) for part in left]
    assert_allclose(np.divide(errors[:-1], errors[1:]), 8, rtol=0.15)


def test_waves_cannot_tell_one_end_from_the_other(rng):
    t = rng.uniform(A, B, 40)
    few, many = (np.linalg.eigvalsh(left_over(n, t, 0.6))[::-1] for n in (100, 400))
    assert few[1] > 0.01  # of differences of value and of slope, no more is ever explained
    assert_allclose(few[:2], many[:2], rtol=0.01)
    assert few[2] > 3 * many[2]
