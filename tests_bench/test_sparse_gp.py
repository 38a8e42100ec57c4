"""The sparse variational process: bounds, sums and kernels against dense ones."""

import gpytorch
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from experiments.baselines import sparse_gp
from experiments.baselines.exact_gp import (
    ExactGP,
    Parameters,
    covariance,
    matern32,
    squared_exponential,
)
from experiments.baselines.sparse_gp import RowSums, SparseGP
from experiments.baselines.svgp import start_length
from experiments.baselines.tensors import double

LENGTHS, AMPLITUDE, NOISE, MEAN = (0.8, 1.9), 1.6, 0.2, 0.7


PROFILES = {"se": squared_exponential, "matern32": matern32}


def process(kernel, Z):
    model = SparseGP(kernel, double(Z), 1.0)
    model.covar_module.base_kernel.lengthscale = double(np.array(LENGTHS))
    model.covar_module.outputscale = AMPLITUDE
    model.likelihood.noise = NOISE
    model.mean_module.initialize(constant=MEAN)
    return model


def exact(kernel, X, y):
    """The exact process, whose linear and constant terms are off, with its own mean."""
    theta = np.log([*LENGTHS, AMPLITUDE, 1e-300, 1e-300, NOISE])
    gp = ExactGP(kernel, random_state=0).condition(X, y - MEAN, theta)

    def predict_function(new):
        mean, std = gp.predict_function(new)
        return MEAN + mean, std

    K = covariance(PROFILES[kernel], Parameters.from_theta(theta), X, X) + NOISE * np.eye(len(y))
    density = torch.distributions.MultivariateNormal(
        torch.full((len(y),), MEAN).double(), double(K)
    )
    return predict_function, density.log_prob(double(y)).item()


@pytest.mark.parametrize("kernel", PROFILES)
def test_a_natural_step_with_a_point_at_every_row_finds_the_exact_posterior(kernel, rng):
    X, y = rng.normal(0.4, 1.3, (40, 2)), rng.normal(0.5, 1.2, 40)
    predict_function, evidence = exact(kernel, X, y)
    model = process(kernel, X)
    model.variational_strategy.jitter_val = 1e-9  # what keeps it from being exact
    model.train()
    before = model.bound(double(X), double(y), 40)
    assert before < evidence / 40 - 0.1
    (-before).backward()
    gpytorch.optim.NGD(model.variational_parameters(), num_data=40, lr=1.0).step()
    assert_allclose(model.bound(double(X), double(y), 40).item(), evidence / 40, rtol=1e-6)
    model.eval()
    new = rng.normal(0.4, 2.0, (9, 2))
    with torch.no_grad():
        found = model(double(new))
    mean, std = predict_function(new)
    assert_allclose(found.mean, mean, atol=1e-6)
    assert_allclose(found.variance, std**2, atol=1e-6)


@pytest.mark.parametrize("kernel", PROFILES)
def test_the_best_bound_is_reached_by_one_natural_step_and_by_no_other_q(kernel, rng):
    X, y = rng.normal(0.4, 1.3, (60, 2)), rng.normal(0.5, 1.2, 60)
    model = process(kernel, X[:9])
    model.variational_strategy.jitter_val = 1e-9
    model.train()
    rows, targets = double(X), double(y)
    best = model.best_bound(rows, targets).item()
    before = model.bound(rows, targets, 60)
    assert before < best - 0.1
    (-before).backward()
    gpytorch.optim.NGD(model.variational_parameters(), num_data=60, lr=1.0).step()
    assert_allclose(model.bound(rows, targets, 60).item(), best, rtol=1e-7)
    q = model.variational_strategy._variational_distribution
    stepped = q.natural_vec.detach().clone(), q.natural_mat.detach().clone()
    model.take_best(rows, targets)
    assert_allclose(q.natural_vec.detach(), stepped[0], rtol=1e-6)
    assert_allclose(q.natural_mat.detach(), stepped[1], rtol=1e-6, atol=1e-9)
    assert_allclose(model.bound(rows, targets, 60).item(), best, rtol=1e-7)


@pytest.mark.parametrize("kernel", PROFILES)
def test_the_kernel_of_the_sums_is_that_of_the_model(kernel, rng):
    X, Z = double(rng.normal(0.4, 1.3, (40, 2))), rng.normal(0.4, 1.3, (9, 2))
    model = process(kernel, Z)
    shape = (double(Z), double([LENGTHS]), torch.tensor(AMPLITUDE).double())
    assert_allclose(model._kernel(X, *shape), model.covar_module(double(Z), X).to_dense().detach())


@pytest.mark.parametrize("whitened", [False, True])
def test_sums_over_blocks_and_their_gradients_are_those_of_all_rows(whitened, rng, monkeypatch):
    monkeypatch.setattr(sparse_gp, "BLOCK", 7)
    X, r = double(rng.normal(size=(24, 3))), double(rng.normal(size=24)).requires_grad_()
    W, b = (double(rng.normal(size=shape)).requires_grad_() for shape in ((4, 3), (4, 1)))

    def features(rows, W, b):
        return torch.tanh(W @ rows.T + b)

    L = double(rng.normal(size=(4, 4)) + 3 * np.eye(4)).tril().requires_grad_()
    own = (r, L, W, b) if whitened else (r, W, b)
    G, c = RowSums.apply(features, X, r, L if whitened else None, W, b)
    F = features(X, W, b)
    if whitened:
        F = torch.linalg.solve_triangular(L, F, upper=False)
    assert_allclose(G.detach(), (F @ F.T).detach())
    assert_allclose(c.detach(), (F @ r).detach())
    by_G, by_c = double(rng.normal(size=(4, 4))), double(rng.normal(size=4))
    found = torch.autograd.grad((G * by_G).sum() + c @ by_c, own)
    expected = torch.autograd.grad((F @ F.T * by_G).sum() + F @ r @ by_c, own)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other)


def test_the_bound_is_the_same_where_noise_is_too_small_for_products_of_kernels(rng, monkeypatch):
    X, y = double(rng.normal(0.4, 1.3, (60, 2))), double(rng.normal(0.5, 1.2, 60))
    found = []
    for unstable in (0.0, np.inf):
        monkeypatch.setattr(sparse_gp, "UNSTABLE", unstable)
        model = process("matern32", X[:9])
        bound = model.best_bound(X, y)
        bound.backward()
        slopes = [p.grad for p in model.hyperparameters()]
        found.append([bound.detach()[None], *slopes])
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, rtol=1e-5, atol=1e-8)


def test_the_best_q_is_not_replaced_by_the_prior_in_the_first_prediction(rng):
    X = rng.normal(0.4, 1.3, (30, 2))
    model = process("se", X)
    model.take_best(double(X), torch.full((30,), 5.0).double())
    model.eval()
    assert_allclose(model(double(X)).mean.detach(), 5.0, atol=0.5)  # the prior has MEAN


def test_batches_estimate_the_bound_without_bias(rng):
    X, y = rng.normal(0.4, 1.3, (60, 2)), rng.normal(0.5, 1.2, 60)
    model = process("matern32", X[:7])
    model.train()
    rows, targets = double(X), double(y)
    model.bound(rows, targets, 60)  # gpytorch sets q to the prior in its first call
    with torch.no_grad():
        model.variational_strategy._variational_distribution.natural_vec.add_(1.5)
    whole = model.bound(rows, targets, 60).item()
    parts = [model.bound(rows[k::4], targets[k::4], 60).item() for k in range(4)]
    assert_allclose(np.mean(parts), whole, rtol=1e-9)
    assert np.std(parts) > 1e-3


def test_it_starts_at_the_given_parameters():
    model = SparseGP("matern32", torch.zeros(3, 2).double(), 0.37)
    assert_allclose(model.covar_module.base_kernel.lengthscale.detach(), [[0.37, 0.37]])
    assert model.variational_strategy.inducing_points.dtype == torch.float64
    assert start_length(4, 0) == 2.0
    assert_allclose([start_length(1, k) for k in range(3)], [1, 0.1, 0.01])
