"""Varying lengths: the kernel against its integral and its special cases, and what it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal, norm

from experiments.baselines.exact_gp import ExactGP
from experiments.baselines.ns_gp import NonStationaryGP
from experiments.baselines.standardized import Standardized
from experiments.baselines.tensors import double
from experiments.baselines.varying_lengths import KERNELS, Parameters, VaryingGP, correlation
from rwf.datasets import multi_step

STATIONARY = {
    "se": lambda r: np.exp(-(r**2) / 2),
    "matern32": lambda r: (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r),
}


def random_gp(rng, d, kernel="matern32", m=4, spread=1.0):
    parameters = Parameters(
        double(rng.normal(0.3, 0.4, d)),
        double(rng.normal(0, spread, (m, d))),
        *(double(rng.normal(centre, 0.3)) for centre in (0.5, 0.7, -2.0)),
    )
    return VaryingGP(KERNELS[kernel], double(rng.normal(0.4, 1.3, (m, d))), 1.4, parameters)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_any_lengths_give_a_covariance(kernel, d, rng):
    for _ in range(5):
        X, lengths = (
            double(rng.normal(0.4, 1.3, (60, d))),
            double(np.exp(rng.normal(0, 1, (60, d)))),
        )
        K = correlation(KERNELS[kernel], X, lengths, X, lengths).numpy()
        assert_allclose(K, K.T)
        assert_allclose(np.diag(K), 1)
        assert np.linalg.eigvalsh(K).min() > -1e-12 * len(K)


@pytest.mark.parametrize("kernel", KERNELS)
def test_equal_lengths_give_the_stationary_kernel(kernel, rng):
    X, V, ell = rng.normal(3, 2, (7, 3)), rng.normal(3, 2, (5, 3)), np.array([0.6, 2.0, 5.0])
    r = np.linalg.norm((X[:, None] - V) / ell, axis=-1)
    found = correlation(
        KERNELS[kernel], double(X), double(ell).expand(7, 3), double(V), double(ell).expand(5, 3)
    )
    assert_allclose(found, STATIONARY[kernel](r), rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_lengths_that_vary_together_give_the_same_in_matrix_products(kernel, rng):
    gp = random_gp(rng, 4, kernel)
    together = replace(
        gp, parameters=replace(gp.parameters, whites=gp.parameters.whites[:, :1].clone())
    )
    X, V = double(rng.normal(3, 2, (9, 4))), double(rng.normal(3, 2, (6, 4)))
    assert_allclose((together.lengths(X) / together.lengths(X)[:1]).std(dim=1), 0, atol=1e-12)
    expected = correlation(gp.profile, X, together.lengths(X), V, together.lengths(V))
    assert_allclose(together.covariance(X, V), together.parameters.variance * expected, rtol=1e-10)


def test_lengths_of_many_columns_vary_together(rng):
    X = rng.normal(3, 2, (40, 17))
    for d, profiles in ((16, 16), (17, 1)):
        found = NonStationaryGP(random_state=0, n_starts=1, max_steps=2).fit(X[:, :d], X[:, 0])
        assert found._gp.parameters.whites.shape == (20, profiles)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_prefactor_of_one_length_is_of_order_half_the_columns(d):
    x, one, other = double(np.full((1, d), 0.3)), double(np.full((1, d), 0.5)), 1.7
    found = correlation(KERNELS["se"], x, one, x, double(np.full((1, d), other)))
    expected = (2 * 0.5 * other / (0.5**2 + other**2)) ** (d / 2)
    assert_allclose(found.item(), expected)


def test_the_squared_exponential_is_an_integral_of_two_bumps():
    x, v, ell, other = 0.3, 1.1, 0.5, 1.7

    def bump(u, place, length):  # of variance ℓ²/2: that of a product of two is (ℓ² + ℓ′²)/2
        return norm.pdf(u, place, length / math.sqrt(2))

    def integral(first, second):
        return quad(lambda u: bump(u, *first) * bump(u, *second), -9, 9, points=[x, v])[0]

    size = integral((x, ell), (x, ell)) * integral((v, other), (v, other))  # so that k(x, x) = 1
    found = correlation(KERNELS["se"], *(double([[p]]) for p in (x, ell, v, other)))
    assert_allclose(found.item(), integral((x, ell), (v, other)) / math.sqrt(size), rtol=1e-8)


@pytest.mark.parametrize("Q", [0.01, 0.6, 7.0])
def test_matern_is_a_mixture_of_squared_exponentials_over_widths(Q):
    """Squared widths have the gamma density of shape and rate 3/2."""
    se, matern = (KERNELS[name] for name in ("se", "matern32"))
    mixture = quad(lambda w: gamma.pdf(w, 1.5, scale=1 / 1.5) * se(double(Q / w)).item(), 0, 60)[0]
    assert_allclose(matern(double(Q)).item(), mixture, rtol=1e-7)


def test_lengths_are_a_draw_of_their_process(rng):
    """log ℓ − log c has covariance κ(P, P) at the pseudo-inputs: v = e gives a column of L."""
    gp = random_gp(rng, 2)
    columns = []
    for k in range(4):
        whites = torch.zeros(4, 2).double()
        whites[k] = 1.0
        field = replace(gp, parameters=replace(gp.parameters, whites=whites)).lengths(gp.places)
        columns.append((field.log() - gp.parameters.log_lengths)[:, 1])
    L = torch.stack(columns, dim=1)
    distance = torch.cdist(gp.places, gp.places) / gp.parameters.log_reach.exp()
    assert_allclose(L @ L.T, torch.exp(-0.5 * distance**2), atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_evidence_is_the_density_of_the_targets(kernel, rng):
    gp, X, y = (
        random_gp(rng, 2, kernel),
        double(rng.normal(0.4, 1.3, (30, 2))),
        rng.normal(0, 1, 30),
    )
    K = gp.covariance(X, X).numpy() + gp.parameters.noise.item() * np.eye(30)
    expected = multivariate_normal(cov=K).logpdf(y)
    assert_allclose(gp.log_evidence(X, double(y)).item(), expected, rtol=1e-9)


def test_the_prior_is_of_white_values_and_of_a_reach_about_its_start(rng):
    gp = random_gp(rng, 2)
    nearest = replace(
        gp.parameters,
        whites=torch.zeros_like(gp.parameters.whites),
        log_reach=double(math.log(gp.reach)),
    )
    found = gp.log_prior() - replace(gp, parameters=nearest).log_prior()
    z = [*gp.parameters.whites.flatten(), gp.parameters.log_reach - math.log(gp.reach)]
    assert_allclose(found, sum(norm.logpdf(z) - norm.logpdf(0)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_that_of_differences(kernel, rng):
    gp, X = random_gp(rng, 2, kernel), double(rng.normal(0.4, 1.3, (12, 2)))
    y = double(rng.normal(0.2, 1, 12))

    def objective(*tensors):
        own = replace(gp, parameters=Parameters(*tensors))
        return own.log_evidence(X, y) + own.log_prior()

    inputs = [tensor.requires_grad_() for tensor in gp.parameters.tensors()]
    assert torch.autograd.gradcheck(objective, inputs, eps=1e-6, atol=1e-5, rtol=1e-5)


def test_predictions_are_the_gaussian_conditional(rng):
    X, y, at = rng.normal(0.4, 1.3, (25, 2)), rng.normal(0.2, 1, 25), rng.normal(0.4, 1.3, (6, 2))
    model = NonStationaryGP(random_state=0)
    gp = model._gp = random_gp(rng, 2)
    mean, std = model.condition(double(X), double(y)).predict_function(at)
    noise = gp.parameters.noise.item()
    K, C, P = (gp.covariance(double(a), double(b)).numpy() for a, b in ((X, X), (X, at), (at, at)))
    solved = np.linalg.solve(K + noise * np.eye(25), C)
    assert_allclose(mean, solved.T @ y, rtol=1e-9)
    assert_allclose(std**2, np.diag(P - C.T @ solved), rtol=1e-8)
    assert_allclose(model.predict(at)[1] ** 2, std**2 + noise)


def test_many_rows_are_sampled_which_the_row_records(rng):
    X = rng.normal(3, 2, (60, 2))
    model = NonStationaryGP(0, max_rows=40, learning_rows=30, max_steps=3)
    facts = model.fit(X, np.sin(X[:, 0])).facts()
    assert facts["subset"]
    assert (facts["n_rows"], facts["n_learning_rows"]) == (40, 30)
    assert len(facts["loss_by_start"]) == 5
    assert not facts["converged"]


@pytest.mark.slow
def test_steps_are_learned_better_than_by_one_length(rng):
    train, test = multi_step(300, rng), multi_step(1000, rng)
    varying = NonStationaryGP(0, "se", n_starts=2, max_steps=200)
    errors = []
    for method in (varying, ExactGP("se", random_state=0)):
        mean, _ = Standardized(method).fit(train.X, train.y).predict_function(test.X)
        errors.append(np.sqrt(np.mean((mean - test.f) ** 2)))
    assert errors[0] < 0.85 * errors[1]
    low, high = varying.facts()["lengths"]
    assert high[0] > 10 * low[0]  # long on plateaus, short at steps
