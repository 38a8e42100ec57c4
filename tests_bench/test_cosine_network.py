"""The networks of deep random features."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from experiments.baselines.cosine_network import (
    AMPLITUDES,
    LENGTHS,
    NOISES,
    Choice,
    CosineLayer,
    Network,
    choices,
)
from experiments.baselines.tensors import seeded


@pytest.fixture(autouse=True)
def _same_draws():
    with seeded(7):
        yield


def test_products_of_features_are_the_kernel_on_average():
    length, amplitude, draws = 0.8, 1.7, 400
    X = torch.randn(5, 3)
    products = []
    for _ in range(draws):
        phi = CosineLayer.draw(3, 50, length, amplitude)(X)
        products.append(phi @ phi.T)
    mean = torch.stack(products).mean(dim=0)
    error = torch.stack(products).std(dim=0) / math.sqrt(draws)
    expected = amplitude**2 * torch.exp(-0.5 * (torch.cdist(X, X) / length) ** 2)
    assert torch.all((mean - expected).abs() < 5 * error)


def test_a_layer_knows_its_inputs_dimension():
    """ℓ is in units of √inputs, and the input joins every layer but the first."""
    network = Network.draw(3, 4000, 6, Choice(0.5, 1.0, 0.1, 3))
    spreads = [layer.frequencies.std().item() for layer in network.layers]
    assert [layer.frequencies.shape[0] for layer in network.layers] == [3, 9, 9]
    assert_allclose(spreads, 1 / (0.5 * np.sqrt([3, 9, 9])), rtol=0.03)
    assert [tuple(m.shape) for m in network.maps] == [(4000, 6), (4000, 6), (4000, 1)]


def test_the_first_function_has_the_prior_variance():
    values = [
        Network.draw(2, 300, 8, Choice(1.0, 0.6, 0.1, 2))(torch.ones(1, 2)).item()
        for _ in range(400)
    ]
    assert_allclose(np.var(values), 0.6**2, rtol=5 * math.sqrt(2 / 400))


def in_double(network):
    layers = tuple(
        CosineLayer(layer.frequencies.double(), layer.phases.double(), layer.amplitude)
        for layer in network.layers
    )
    return Network(layers, tuple(m.detach().double().requires_grad_() for m in network.maps))


@pytest.mark.parametrize("n_layers", [1, 3])
def test_the_last_map_is_ridge_regression_given_the_others(n_layers, rng):
    """From zero it moves to (ΦᵀΦ + σ²I)⁻¹Φᵀy, where the loss has no slope in it."""
    X = torch.as_tensor(rng.normal(3, 2, (40, 2)))
    y, noise = torch.sin(X[:, 0]), 0.3
    network = in_double(Network.draw(2, 15, 4, Choice(1.1, 1.2, noise, n_layers)))
    with torch.no_grad():
        network.maps[-1].zero_()
    network.move_last(X, y, noise)
    phi = network.last_features(X).detach().numpy()
    closed = np.linalg.solve(phi.T @ phi + noise * np.eye(15), phi.T @ y.numpy())
    assert_allclose(network.maps[-1][:, 0].detach(), closed, rtol=1e-9)
    gradient = torch.autograd.grad(network.loss(X, y, noise, 40), network.maps)[-1]
    assert gradient.abs().max() < 1e-12


def test_a_draw_is_moved_only_where_there_are_rows(rng):
    """Away from all rows f is still the draw: there an ensemble keeps its prior variance."""
    X = torch.as_tensor(rng.uniform(-1, 1, (40, 1)))
    network = in_double(Network.draw(1, 2000, 4, Choice(0.2, 1.0, 0.01, 1)))
    near, far = X[:5], X[:5] + 4
    before = network(far).detach()
    network.move_last(X, torch.sin(X[:, 0]), 1e-4)
    assert_allclose(network(near).detach(), torch.sin(near[:, 0]), atol=0.02)
    assert_allclose(network(far).detach(), before, atol=0.3)


def test_the_gradient_is_that_of_differences():
    X, y = torch.randn(9, 2).double(), torch.randn(9).double()
    drawn = in_double(Network.draw(2, 6, 3, Choice(1.0, 0.8, 0.2, 3)))
    assert torch.autograd.gradcheck(
        lambda *maps: Network(drawn.layers, maps).loss(X, y, 0.2, 30), drawn.maps
    )


def test_batches_estimate_the_loss_of_all_rows():
    X, y = torch.randn(12, 2).double(), torch.randn(12).double()
    network = in_double(Network.draw(2, 6, 3, Choice(1.0, 0.8, 0.2, 2)))
    with torch.no_grad():
        parts = [network.loss(X[rows], y[rows], 0.2, 12) for rows in torch.arange(12).split(4)]
        whole = network.loss(X, y, 0.2, 12)
        squares = sum((m**2).sum() for m in network.maps)
        expected = ((y - network(X)) ** 2).sum() / 0.2 + squares
    assert_allclose(torch.stack(parts).mean(), whole)
    assert_allclose(whole, 0.5 * expected / 12)


def test_choices_fill_their_ranges(rng):
    drawn = choices(41, rng)[1:]
    for name, (low, high) in (("length", LENGTHS), ("amplitude", AMPLITUDES), ("noise", NOISES)):
        shares = np.log([getattr(choice, name) / low for choice in drawn]) / np.log(high / low)
        assert_allclose(np.sort(shares), (np.arange(40) + 0.5) / 40, atol=0.5 / 40)
    assert sorted(choice.n_layers for choice in drawn) == [2] * 20 + [4] * 20
