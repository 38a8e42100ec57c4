"""The spectral mixture: its kernel by formula, its evidence by scipy, its posterior by algebra."""

import gpytorch
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from experiments.baselines import spectral_mixture
from experiments.baselines.spectral_mixture import (
    Mixture,
    SpectralMixture,
    cosine_features,
    start,
)
from experiments.baselines.tensors import double
from experiments.runner.methods import make

Q = 3
UNBOUND = {"budget": 1e4}  # so that steps end a training, on a busy machine too


def mixture(rng, d):
    return Mixture.from_values(
        rng.uniform(0.3, 2.0, Q), rng.uniform(0.5, 2, (Q, d)), rng.uniform(0.1, 0.6, (Q, d)), 0.3
    )


def kernel(parameters, X, V):
    return parameters.covariance(double(X), double(V)).detach().numpy()


@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_kernel_is_its_formula(d, rng):
    X, V = rng.normal(0.7, 1.5, (6, d)), rng.normal(-0.4, 1.2, (4, d))
    parameters = mixture(rng, d)
    w, lengths, mu, _ = (np.exp(t.detach().numpy()) for t in parameters.tensors)
    v = 1 / (2 * np.pi * lengths) ** 2
    tau = X[:, None, None, :] - V[None, :, None, :]  # (n, m, 1, d) against (Q, d)
    terms = np.exp(-2 * np.pi**2 * tau**2 * v) * np.cos(2 * np.pi * tau * mu)
    assert_allclose(kernel(parameters, X, V), terms.prod(axis=-1) @ w, rtol=1e-9, atol=1e-12)


def test_over_one_column_the_kernel_is_that_of_gpytorch(rng):
    X = rng.normal(0.7, 1.5, (9, 1))
    parameters = mixture(rng, 1)
    w, lengths, mu, _ = (t.detach().exp() for t in parameters.tensors)
    theirs = gpytorch.kernels.SpectralMixtureKernel(num_mixtures=Q).double()
    theirs.mixture_weights = w
    theirs.mixture_means = mu[:, None, :]
    theirs.mixture_scales = 1 / (2 * np.pi * lengths[:, None, :])
    expected = theirs(double(X)).to_dense().detach().numpy()
    assert_allclose(kernel(parameters, X, X), expected, rtol=1e-6)


def test_it_is_stationary_and_positive_semidefinite(rng):
    X = rng.normal(0.7, 1.5, (60, 3))
    parameters = mixture(rng, 3)
    K = kernel(parameters, X, X)
    assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.trace(K)
    assert_allclose(kernel(parameters, X + 4.0, X + 4.0), K, atol=1e-10)
    assert_allclose(np.diag(K), parameters.weights.exp().sum().item())


def test_features_multiply_cosines(rng):
    A, B = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    product = np.cos(A[:, None] - B).prod(axis=2)
    features = [cosine_features(double(phases)).numpy() for phases in (A, B)]
    assert features[0].shape == (5, 16)
    assert_allclose(features[0] @ features[1].T, product, rtol=1e-10, atol=1e-14)


def test_the_evidence_is_the_gaussian_density_and_its_gradient_that_of_differences(rng):
    X, y = rng.normal(0.7, 1.5, (25, 2)), rng.normal(0.4, 1.3, 25)
    parameters = mixture(rng, 2)
    K = kernel(parameters, X, X) + 0.3 * np.eye(25)
    evidence = parameters.log_evidence(double(X), double(y))
    assert_allclose(evidence.item(), multivariate_normal(cov=K).logpdf(y), rtol=1e-10)
    assert torch.autograd.gradcheck(
        lambda *tensors: Mixture(*tensors).log_evidence(double(X), double(y)), parameters.tensors
    )


def test_the_posterior_is_the_conditional_gaussian(rng):
    X, y, new = rng.normal(0.7, 1.5, (30, 2)), rng.normal(0.4, 1.3, 30), rng.normal(size=(5, 2))
    parameters = mixture(rng, 2)
    K, cross = kernel(parameters, X, X) + 0.3 * np.eye(30), kernel(parameters, X, new)
    weights = np.linalg.solve(K, cross)
    variance = np.diag(kernel(parameters, new, new) - cross.T @ weights)
    method = SpectralMixture(random_state=0).condition(double(X), double(y), parameters)
    mean, std = method.predict(new)
    assert_allclose(mean, weights.T @ y, rtol=1e-9)
    assert_allclose(std**2, variance + 0.3, rtol=1e-9)
    assert_allclose(method.predict_function(new)[1] ** 2, variance, rtol=1e-9)


def test_it_continues_a_periodic_signal_where_a_smooth_kernel_forgets_it(rng):
    x = np.sort(rng.uniform(0, 10, 200))
    wave = lambda t: 5 + 3 * np.sin(2 * np.pi * 0.9 * t) * np.cos(2 * np.pi * 0.35 * t)  # noqa: E731
    later = np.linspace(10.5, 13, 60)
    method = make("sm", {**UNBOUND, "max_steps": 400, "n_starts": 8}, 1)
    mean, std = method.fit(x[:, None], wave(x) + rng.normal(0, 0.1, 200)).predict(later[:, None])
    assert np.sqrt(np.mean((mean - wave(later)) ** 2)) < 0.3  # against 1.5 of a constant
    assert np.mean(np.abs(mean - wave(later)) < 3 * std) > 0.9


def test_a_surface_is_found_within_its_error_bars(surface):
    X, y, f = surface
    method = make("sm", {**UNBOUND, "max_steps": 150, "n_starts": 2}, 0).fit(X[:300], y[:300])
    mean, std = method.predict(X[300:])
    assert np.sqrt(np.mean((mean - f[300:]) ** 2)) < 0.6
    assert 0.88 < np.mean(np.abs(mean - y[300:]) < 1.96 * std) < 0.99
    facts = method.facts()
    assert_allclose(facts["noise_variance"], 1.0, rtol=0.3)
    assert facts["n_rows"] == 300
    assert not facts["subset"]


def test_many_rows_are_sampled_which_the_row_records(surface, monkeypatch):
    monkeypatch.setattr(spectral_mixture, "MAX_ROWS", 80)
    monkeypatch.setattr(spectral_mixture, "SUBSET", 60)
    facts = make("sm", {**UNBOUND, "max_steps": 3, "n_starts": 1}, 0).fit(*surface[:2]).facts()
    assert facts["n_rows"] == 60
    assert facts["subset"]
    assert facts["converged"] is False


def test_a_seed_gives_the_same_model_and_another_one_another(surface):
    X, y, _ = surface
    means = [
        make("sm", {**UNBOUND, "max_steps": 20, "n_starts": 2}, seed)
        .fit(X[:60], y[:60])
        .predict(X[60:90])[0]
        for seed in (3, 3, 4)
    ]
    assert_allclose(means[0], means[1], rtol=1e-12)
    assert not np.allclose(means[0], means[2], rtol=1e-4)


@pytest.mark.parametrize("d", [1, 4])
def test_starts_differ(d, rng):
    X = rng.normal(size=(50, d))
    first, second = (start(X, 4, rng) for _ in range(2))
    assert not torch.equal(first.frequencies, second.frequencies)
    assert not torch.equal(first.lengths, second.lengths)


def test_a_constant_column_is_no_failure(surface):
    X, y, _ = surface
    with_constant = np.column_stack([X, np.full(len(X), 7.0)])
    method = make("sm", {**UNBOUND, "max_steps": 60, "n_starts": 1}, 0).fit(
        with_constant[:200], y[:200]
    )
    mean, std = method.predict(with_constant[200:])
    assert np.isfinite(mean).all()
    assert np.all(std > 0)
