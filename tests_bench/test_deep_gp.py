"""The deep process: one layer against algebra and gpytorch, and what is left of two without one."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from experiments.baselines import deep_gp
from experiments.baselines.deep_gp import (
    DeepGP,
    Layer,
    Stack,
    linear_mean,
    stack,
)
from experiments.baselines.sparse_gp import SparseGP
from experiments.baselines.standardized import predicted_by
from experiments.baselines.tensors import double, seeded
from experiments.runner.methods import make
from rwf.diagnostics.metrics import linear_reference, rmse

M, D = 12, 2
UNBOUND = {"budget": 1e4}  # so that steps end a training, on a busy machine too


def random_layer(rng, outputs=2, mean=True):
    """A layer away from where it starts."""
    W = rng.normal(0.2, 1.0, (D, outputs)) if mean else np.zeros((D, outputs))
    layer = Layer(double(rng.normal(0.3, 1.2, (M, D))), double(W), 1.3, 0.5)
    with torch.no_grad():
        layer.log_lengths.copy_(double(np.log([0.8, 1.7])))
        layer.log_amplitude.fill_(np.log(1.6))
        layer.mean.copy_(double(rng.normal(size=(M, outputs))))
        layer.root.add_(0.2 * double(rng.normal(size=(outputs, M, M))))
    return layer


def unwhitened(layer):
    """K(Z, Z), and mean and covariance of q(U) for each output, as numpy has them."""
    with torch.no_grad():
        Z, R = layer.Z.numpy(), layer.root.tril().numpy()
        lengths, a2 = layer.log_lengths.exp().numpy(), layer.log_amplitude.exp().item()
        m = layer.mean.numpy()

    def k(A, B):
        return a2 * np.exp(-0.5 * (((A[:, None] - B) / lengths) ** 2).sum(axis=2))

    K = k(Z, Z) + a2 * deep_gp.JITTER * np.eye(M)
    L = np.linalg.cholesky(K)
    return k, Z, K, L @ m, L @ R @ R.transpose(0, 2, 1) @ L.T


def test_marginals_are_those_of_the_unwhitened_process(rng):
    layer, X = random_layer(rng), rng.normal(0.5, 1.5, (7, D))
    k, Z, K, mean, covariance = unwhitened(layer)
    P = np.linalg.solve(K, k(Z, X))  # E f = PᵀU
    found_mean, found_variance = (t.detach().numpy() for t in layer(double(X)))
    assert_allclose(found_mean, X @ layer.W.numpy() + P.T @ mean, rtol=1e-6)
    for j in range(2):
        variance = np.diag(k(X, X) - P.T @ (K - covariance[j]) @ P)
        assert_allclose(found_variance[:, j], variance, rtol=1e-6)


def test_the_divergence_is_that_of_the_unwhitened_gaussians(rng):
    layer = random_layer(rng)
    _, _, K, mean, covariance = unwhitened(layer)
    prior = torch.distributions.MultivariateNormal(torch.zeros(M).double(), double(K))
    expected = sum(
        torch.distributions.kl_divergence(
            torch.distributions.MultivariateNormal(double(mean[:, j]), double(covariance[j])), prior
        )
        for j in range(2)
    )
    assert_allclose(layer.divergence().item(), expected.item(), rtol=1e-6)


def same_in_gpytorch(layer, noise):
    """The sparse process of gpytorch with the parameters of a layer with one output."""
    model = SparseGP("se", layer.Z.detach().clone(), 1.0)
    strategy = model.variational_strategy
    q = strategy._variational_distribution
    S = layer.root[0].detach().tril()
    with torch.no_grad():
        strategy.variational_params_initialized.fill_(1)
        precision = torch.linalg.inv(S @ S.T)
        q.natural_vec.copy_(precision @ layer.mean[:, 0])
        q.natural_mat.copy_(-0.5 * precision)
    model.covar_module.outputscale = layer.log_amplitude.exp().item()
    model.covar_module.base_kernel.lengthscale = layer.log_lengths.exp().detach()
    model.likelihood.noise = noise
    strategy.jitter_val = deep_gp.JITTER * layer.log_amplitude.exp().item()  # theirs has units
    return model


def test_one_layer_is_the_sparse_process_of_gpytorch(rng):
    X, y = double(rng.normal(0.5, 1.5, (40, D))), double(rng.normal(0.4, 1.3, 40))
    layer = random_layer(rng, outputs=1, mean=False)
    model = Stack([layer])
    theirs = same_in_gpytorch(layer, model.log_noise.exp().item())
    theirs.train()
    assert_allclose(model.bound(X, y, 90).item(), theirs.bound(X, y, 90).item(), rtol=1e-6)
    theirs.eval()
    expected = theirs(X)
    mean, variance = model(X, 5)
    assert_allclose(mean[0].detach(), expected.mean.detach(), atol=1e-7)
    # gpytorch adds its jitter to k(x, x) too.
    assert_allclose(
        variance[0].detach() + 1.6 * deep_gp.JITTER, expected.variance.detach(), atol=1e-7
    )


@pytest.mark.parametrize("width", [D, D + 3])
def test_with_inner_layers_switched_off_it_is_the_sparse_process(width, rng, monkeypatch):
    monkeypatch.setattr(deep_gp, "INNER_NOISE", 1e-16)
    X = rng.normal(0.5, 1.5, (30, D))
    rows, y = double(X), double(rng.normal(0.4, 1.3, 30))
    outer = random_layer(rng, outputs=1, mean=False)
    deep = stack(X, outer.Z.detach().numpy(), 3, width, start=0)
    *hidden, last = deep.layers
    with torch.no_grad():
        for layer in hidden:
            layer.log_amplitude.fill_(-40.0)
        last.log_lengths[:D].copy_(outer.log_lengths)  # columns of zeros have no distances
        last.log_amplitude.copy_(outer.log_amplitude)
        last.mean.copy_(outer.mean)
        last.root.copy_(outer.root)
    alone = Stack([outer])
    for ours, expected in zip(deep(rows, 4), alone(rows, 1), strict=True):
        assert ours.shape == (4, 30)
        assert_allclose(ours.detach(), expected.detach().expand(4, -1), rtol=1e-5, atol=1e-8)
    kl = sum(layer.divergence() for layer in hidden)
    bounds = deep.bound(rows, y, 90) + kl / 90, alone.bound(rows, y, 90)
    assert_allclose(bounds[0].item(), bounds[1].item(), rtol=1e-5)


def test_draws_have_the_moments_of_the_hidden_layer(rng):
    """With a last layer that is almost linear, moments go through it by its slope."""
    X = rng.normal(0.5, 1.0, (4, D))
    hidden = random_layer(rng, outputs=1, mean=False)
    mean, variance = (t.detach().numpy()[:, 0] for t in hidden(double(X)))
    Z = double(np.array([[-400.0], [400.0]]))
    last = Layer(Z, double(np.array([[2.0]])), 1.0, 1e-5)  # far from Z only the linear mean is left
    with torch.no_grad():
        last.log_amplitude.fill_(-40.0)
    n = 40_000
    with seeded(3):
        means, variances = Stack([hidden, last])(double(X), n)
    assert_allclose(variances.detach(), 0, atol=1e-12)
    found = means.detach().numpy()
    assert np.all(np.abs(found.mean(axis=0) - 2 * mean) < 5 * 2 * np.sqrt(variance / n))
    assert_allclose(found.var(axis=0), 4 * variance, rtol=5 * np.sqrt(2 / n))


def test_a_prediction_is_the_mixture_over_draws(rng):
    X = rng.normal(0.5, 1.0, (6, D))
    model = DeepGP(random_state=4, n_draws=7)
    last = random_layer(rng, outputs=1, mean=False)
    model._model = Stack([random_layer(rng), last])
    with torch.no_grad(), seeded(4):
        means, variances = model._model(double(X), 7)
    p = model.predict_distribution(X)
    assert_allclose(p.means, means.T)
    assert_allclose(p.stds**2, variances.T + model._noise)
    assert_allclose(model.predict(X), (p.mean, p.std))
    mean, std = model.predict_function(X)
    assert_allclose(mean, p.mean)
    assert_allclose(std**2 + model._noise, p.std**2)


def test_it_is_scored_by_the_mixture_in_the_units_of_the_data(surface):
    X, y, _ = surface
    settings = {**UNBOUND, "max_steps": 5, "n_inducing": 10, "n_draws": 20, "n_starts": 1}
    method = make("dgp", settings, 0).fit(X, y)
    p = predicted_by(method, X[:30])
    assert p.means.shape == (30, 20)
    assert_allclose((p.mean, p.std), method.predict(X[:30]))


def test_the_bound_is_that_of_the_evidence(rng):
    """Below the log evidence of the exact process, and with its posterior as q, equal to it."""
    X, y = rng.normal(0.5, 1.5, (M, D)), rng.normal(0.4, 1.3, M)
    layer = Layer(double(X), torch.zeros(D, 1).double(), 1.1, 1.0)
    model = Stack([layer])
    noise = model.log_noise.exp().item()
    k, _, K, _, _ = unwhitened(layer)
    exact = torch.distributions.MultivariateNormal(
        torch.zeros(M).double(), double(k(X, X) + noise * np.eye(M))
    ).log_prob(double(y))
    assert model.bound(double(X), double(y), M) < exact / M
    L = np.linalg.cholesky(K)
    S = np.linalg.inv(np.eye(M) + L.T @ L / noise)  # of V, for which f = LV
    with torch.no_grad():
        layer.root[0].copy_(double(np.linalg.cholesky(S)))
        layer.mean[:, 0].copy_(double(S @ L.T @ y / noise))
    assert_allclose(model.bound(double(X), double(y), M).item(), exact.item() / M, rtol=1e-3)


def test_means_of_hidden_layers_lose_no_more_than_they_must(rng):
    X = rng.normal(3.0, 1.0, (200, 4)) @ np.diag([3.0, 0.1, 2.0, 0.1])
    assert_allclose(linear_mean(X, 4), np.eye(4))
    assert_allclose(linear_mean(X, 6)[:, :4], np.eye(4))
    assert_allclose(linear_mean(X, 6)[:, 4:], 0)
    W = linear_mean(X, 2)
    assert_allclose(W.T @ W, np.eye(2), atol=1e-12)
    kept = np.var(X @ W, axis=0).sum() / np.var(X, axis=0).sum()
    assert kept > 0.99


def test_layers_begin_with_inducing_points_among_their_rows(rng):
    X = rng.normal(3.0, 1.0, (60, 4))
    model = stack(X, X[:9], 3, 2, start=0)
    W = linear_mean(X, 2)
    for layer, expected in zip(model.layers, (X[:9], X[:9] @ W, X[:9] @ W), strict=True):
        assert_allclose(layer.Z.detach(), expected)
    assert [layer.W.shape for layer in model.layers] == [(4, 2), (2, 2), (2, 1)]


def test_a_surface_is_found_within_its_error_bars(surface):
    X, y, f = surface
    settings = {**UNBOUND, "max_steps": 600, "n_inducing": 40, "n_starts": 1, "rate": 0.03}
    method = make("dgp", settings, 0).fit(X[:350], y[:350])
    mean, std = method.predict(X[350:])
    _, std_f = method.predict_function(X[350:])
    assert rmse(f[350:], mean) < 0.8
    assert rmse(f[350:], mean) < 0.2 * rmse(f[350:], linear_reference(X[:350], y[:350], X[350:])[0])
    assert 0.88 < np.mean(np.abs(mean - y[350:]) < 1.96 * std) < 0.99
    facts = method.facts()
    assert_allclose(std**2 - std_f**2, facts["noise_variance"], rtol=1e-6)
    assert facts["converged"] is False  # 600 steps are too few for a plateau at the last rate
    assert facts["n_inducing"] == 40


def test_a_seed_gives_the_same_model_and_another_one_another(surface):
    X, y, _ = surface
    settings = {
        **UNBOUND,
        "max_steps": 10,
        "n_inducing": 10,
        "n_starts": 2,
        "batch": 50,
        "n_draws": 5,
    }
    means = [make("dgp", settings, seed).fit(X, y).predict(X[:30])[0] for seed in (3, 3, 4)]
    assert_allclose(means[0], means[1], rtol=1e-12)
    assert not np.allclose(means[0], means[2], rtol=1e-6)


def test_predictions_do_not_depend_on_blocks_but_for_their_draws(surface, monkeypatch):
    X, y, _ = surface
    method = DeepGP(
        random_state=0, budget=1e4, max_steps=5, n_inducing=10, n_draws=2000, n_starts=1
    )
    method.fit((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
    new = (X[:40] - X.mean(axis=0)) / X.std(axis=0)
    whole = method.predict(new)
    monkeypatch.setattr(deep_gp, "POINTS", 2000 * 15)
    for a, b in zip(method.predict(new), whole, strict=True):
        assert_allclose(a, b, atol=5 * whole[1].max() / np.sqrt(2000))
