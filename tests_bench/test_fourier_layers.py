"""Layers and their composition: against the exact process, and against what they are made of."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from torch.distributions import MultivariateNormal, kl_divergence

from experiments.baselines import fourier_layers
from experiments.baselines.fourier_layers import DeepProcess, Layer, linear_map, start
from experiments.baselines.matern_fourier import Matern32, Waves
from experiments.baselines.tensors import double, seeded

LENGTH, NOISE = 0.1, 0.04


@pytest.fixture(autouse=True)
def _same_draws():
    with seeded(3):
        yield


def random_model(d, n_layers, n_frequencies=3):
    """A model away from its start."""
    model = start(Matern32, {"length": 0.7}, torch.zeros(1, d).double(), n_layers, n_frequencies)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def kernel(x, v):
    r = math.sqrt(3) / LENGTH * np.abs(x[:, None] - v)
    return (1 + r) * np.exp(-r)


@pytest.fixture
def rows(rng):
    x = rng.uniform(-0.5, 0.5, 50)
    return x, np.sin(9 * x) + rng.normal(0.1, math.sqrt(NOISE), 50)


@pytest.fixture
def optimal(rows):
    """One layer of many waves with its best q, which is that of Bayesian linear regression."""
    x, y = rows
    waves = Waves(-1.0, 1.0, 300)
    layer = Layer.start(Matern32, waves, {"length": LENGTH}, (1, 1), 1.0, 1.0)
    with torch.no_grad():
        process = layer.process()
        Psi = (process.cross(double(x)[None, :]) @ process.whitening().mT)[0]
        S = torch.linalg.inv(torch.eye(len(waves)).double() + Psi.T @ Psi / NOISE)
        layer.mean.copy_((S @ Psi.T @ double(y) / NOISE)[None, None])
        layer.factor.copy_(torch.linalg.cholesky(S)[None, None])
    return DeepProcess((layer,), (), double(math.log(NOISE)))


def test_one_layer_with_its_best_posterior_is_the_exact_process(optimal, rows):
    x, y = rows
    at = np.linspace(-0.45, 0.48, 21)
    K, C = kernel(x, x) + NOISE * np.eye(len(x)), kernel(x, at)
    solved = np.linalg.solve(K, C)
    with torch.no_grad():
        mean, variance = (part[0] for part in optimal.sample(double(at)[:, None], 1))
    assert_allclose(mean, solved.T @ y, atol=1e-4)
    assert_allclose(variance, np.diag(kernel(at, at) - C.T @ solved), atol=1e-4)


def test_its_bound_is_the_evidence_and_cannot_be_raised(optimal, rows):
    x, y = rows
    layer = optimal.layers[0]
    bound = -optimal.negative_bound(double(x)[:, None], double(y), len(y), 1)
    exact = multivariate_normal(cov=kernel(x, x) + NOISE * np.eye(len(x))).logpdf(y) / len(y)
    assert exact - 1e-3 < bound.item() < exact
    for gradient in torch.autograd.grad(bound, [layer.mean, layer.factor]):
        assert gradient.abs().max() < 1e-9


def test_the_divergence_is_that_of_two_gaussians():
    layer = random_model(2, 2).layers[0]
    F, waves = layer.factor.tril(), len(layer.waves)
    expected = sum(
        kl_divergence(
            MultivariateNormal(m, S),
            MultivariateNormal(torch.zeros(waves).double(), torch.eye(waves).double()),
        )
        for m, S in zip(layer.mean.flatten(0, 1), (F @ F.mT).flatten(0, 1), strict=True)
    )
    assert_allclose(layer.divergence().item(), expected.item())


def test_marginals_are_those_of_the_joint_gaussian(rng):
    """By conditioning on u without whitening: K⁻¹ in full, and sums over the columns."""
    layer, t = random_model(2, 2).layers[0], double(rng.uniform(-1.3, 1.3, (2, 5)))
    process = layer.process()
    C, V, F = process.cross(t), process.whitening(), layer.factor.tril()
    K = torch.linalg.inv(V.mT @ V)
    A = C @ torch.linalg.inv(K)
    mean, variance = layer.marginals(t)
    assert mean.shape == variance.shape == (2, 5)
    assert not np.allclose(mean[0].detach(), mean[1].detach())
    for unit in range(2):
        m, S = torch.linalg.inv(V) @ layer.mean[unit, ..., None], torch.linalg.inv(V) @ F[unit]
        assert_allclose(mean[unit].detach(), (A @ m)[..., 0].sum(dim=0).detach(), rtol=1e-8)
        of_columns = (A @ (S @ S.mT - K) @ A.mT).diagonal(dim1=-2, dim2=-1)
        expected = (process.prior_variance()[:, None] + of_columns).sum(dim=0)
        assert_allclose(variance[unit].detach(), expected.detach(), rtol=1e-7)


def test_wide_tables_begin_with_principal_directions(rng, monkeypatch):
    monkeypatch.setattr(fourier_layers, "WIDEST", 2)
    X = double(rng.uniform(-0.5, 0.5, (50, 3)) * [0.2, 1.0, 0.7])
    W = linear_map(X)
    assert W.shape == (2, 3)
    assert_allclose((X @ W.T).abs().amax(dim=0), 0.5)
    assert_allclose(W[0] @ W[1], 0, atol=1e-12)
    kept = np.linalg.lstsq((X @ W.T).numpy(), X.numpy(), rcond=None)[1]
    assert kept.argmax() == 0  # the column that varies least is what is lost
    model = start(Matern32, {"length": 0.7}, X, 3, 4)
    assert [layer.mean.shape for layer in model.layers] == [(2, 3, 9), (2, 2, 9), (1, 2, 9)]
    assert_allclose(model.maps[0], W)
    means, variances = model.sample(X, 3)
    assert means.shape == variances.shape == (3, 50)


def test_a_deep_process_begins_as_a_shallow_one():
    X = double(np.linspace([-0.5, -0.3], [0.4, 0.5], 7))
    model = start(Matern32, {"length": 0.1}, X, 2, 300)
    with torch.no_grad():
        means, variances = model.sample(X, 50)
        shallow = model.layers[-1].marginals(torch.tanh(X.T))[1][0]
        prior = model.layers[-1].process().prior_variance()
    assert_allclose(prior.sum(), 1)  # of the two columns together
    assert_allclose(means, 0)
    assert_allclose(variances, shallow.expand(50, 7), rtol=0.02)


def test_a_sample_goes_through_mean_and_squash():
    """With no spread in the hidden layer, and waves that explain it all, nothing is random."""
    W = double([[1.2, -0.4], [0.3, 0.8]])
    model = replace(random_model(2, 2, 400), maps=(W,))
    X = double(np.array([[-0.4, 0.3], [0.1, 0.2], [0.5, -0.5]]))
    with torch.no_grad():
        first, last = model.layers
        first.factor.zero_()
        first.logarithms["length"].fill_(math.log(0.05))
        first.logarithms["variance"].fill_(math.log(1e-8))
        g, variance = first.marginals(X.T)
        assert variance.max() < 1e-10
        h = torch.tanh(W @ X.T + g)
        expected = [part[0] for part in last.marginals(h)]
        found = model.sample(X, 3)
    assert found[0].shape == (3, 3)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other.expand(3, 3), atol=1e-3)


def test_hidden_layers_spread_their_samples_as_their_marginals_do():
    model = random_model(1, 2)
    linear = replace(model.layers[1], factor=torch.zeros_like(model.layers[1].factor))
    model = replace(model, layers=(model.layers[0], linear))
    X = double([[0.1]])
    with torch.no_grad():
        means, _ = model.sample(X, 20_000)
        mean, variance = model.layers[0].marginals(X.T)
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        h = torch.tanh(X + mean + variance.sqrt() * double(nodes))
        expected = double(weights / weights.sum()) @ linear.marginals(h)[0][0]
    assert abs(means.mean() - expected) < 5 * means.std() / math.sqrt(20_000)


def test_the_gradient_is_that_of_differences(rng):
    model = random_model(2, 2, 2)
    X, y = double(rng.uniform(-0.5, 0.5, (4, 2))), double(rng.normal(0.3, 1, 4))

    def objective(*_):
        with seeded(5):
            return model.negative_bound(X, y, 9, 2)

    assert torch.autograd.gradcheck(objective, model.parameters(), eps=1e-6, atol=1e-6, rtol=1e-4)
