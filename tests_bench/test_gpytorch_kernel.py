"""The GPyTorch kernel: its matrix, its slopes, and the regressor's posterior from GPyTorch."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gpytorch
import numpy as np
import pytest
import torch
from linear_operator.operators import LowRankRootLinearOperator, RootLinearOperator
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from rwf import (
    Cliff,
    CompactHat,
    ComplexMorlet,
    GaussianDerivative,
    MexicanHat,
    Morlet,
    RandomFourierFeatures,
    RandomWaveletFeatures,
    RWFRegressor,
)
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features import (
    ConstantFamily,
    FourierFamily,
    LinearFamily,
    RidgeFamily,
    Stack,
    WaveletFamily,
)
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.features.lattice import draw_lattice
from rwf.integrations.gpytorch import FeatureKernel, in_units, input_slopes
from rwf.wavelets import TensorWavelet
from rwf.wavelets.measure import Measure, Rows

ROOT = Path(__file__).parent.parent
MEASURE = Measure(0.4, 1.8, Rows())


class Plateau(TensorWavelet):
    """u(1 - u²)₊² in every column: a tensor wavelet that is smooth."""

    def line(self, u):
        h = np.maximum(1 - u * u, 0.0)
        return u * h**2, h**2 - 4 * u * u * h

    def line_constants(self):
        raise NotImplementedError


WAVELETS = [
    MexicanHat(),
    CompactHat(order=5),
    Morlet(frequency=1.7),
    ComplexMorlet(frequency=2.1),
    GaussianDerivative(),
    Cliff(aspect=1.5),
]
FAMILIES = [
    *(WaveletFamily(psi, MEASURE, 1.3) for psi in WAVELETS),
    WaveletFamily(MexicanHat(), MEASURE, 1.3, False, "energy"),
    WaveletFamily(Plateau(), MEASURE, 2.3),
    RidgeFamily(MexicanHat(), MEASURE, 1.3),
    RidgeFamily(Morlet(frequency=1.7), MEASURE, 1.3, False),
    FourierFamily("matern32", 1.3),
    LinearFamily(),
    ConstantFamily(),
]


def maps(d, rng):
    """One map of every kind over rows of mean 3 and spread 2, with lengths that differ."""
    X = rng.normal(3.0, 2.0, (15, d))
    drawn = [family.draw(12, X, rng) for family in FAMILIES]
    drawn = [
        part.with_theta(part.theta + rng.uniform(-0.4, 0.4, len(part.theta))) for part in drawn
    ]
    shape = np.log(rng.uniform(0.5, 3.0, (2, 2))), np.log(rng.uniform(2.0, 9.0, (2, d)))
    plain = HatMixture(*shape[0], shape[1])
    mixed = replace(plain, mixing=rng.normal(0.0, 0.3, (2, d, d)) * (1 - np.eye(d)))
    nystrom = [NystromFeatures.at(kernel, X, 1e-6) for kernel in (plain, mixed)]
    return [*drawn, *draw_lattice(CompactHat(), X, 30, rng), *nystrom, Stack(tuple(drawn))]


def waves(rng, n=80):
    X = rng.normal(3.0, 2.0, (n, 2))
    return X, 5.0 + np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n)


def plain(**settings):
    """A regressor whose error bars are its posterior's and nothing more."""
    usual = {"noise": "constant", "calibration": None, "solver": "dense"}
    return RWFRegressor(**{**usual, "n_restarts": 0, "max_iter": 5, "random_state": 0, **settings})


class GP(gpytorch.models.ExactGP):
    def __init__(self, X, y, kernel, mean, noise):
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(1e-9)
        )
        super().__init__(torch.as_tensor(X), torch.as_tensor(y), likelihood)
        self.mean, self.kernel = gpytorch.means.ConstantMean(), kernel
        self.double()
        self.mean.initialize(constant=mean)
        likelihood.initialize(noise=noise)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


@pytest.mark.parametrize("n", [7, 40], ids=["fewer rows", "fewer columns"])
def test_the_matrix_is_the_weighted_product_of_features(n, rng):
    X, new = rng.normal(3.0, 2.0, (n, 2)), rng.normal(3.0, 2.0, (5, 2))
    features = RandomWaveletFeatures(20, random_state=0).fit(X).features_
    v = rng.uniform(0.1, 3.0, 20)
    kernel, x = FeatureKernel(features, v), torch.as_tensor(X)
    Z, Z_new = features(X), features(new)
    operator = kernel(x).evaluate_kernel()
    assert type(operator) is (LowRankRootLinearOperator if n > 20 else RootLinearOperator)
    assert_allclose(operator.to_dense().numpy(), Z * v @ Z.T, rtol=1e-12, atol=1e-14)
    cross = kernel(torch.as_tensor(new), x).to_dense().numpy()
    assert_allclose(cross, Z_new * v @ Z.T, rtol=1e-12, atol=1e-14)
    assert_allclose(kernel(x, diag=True).numpy(), (Z**2) @ v, rtol=1e-12)


def test_batches_of_rows_have_a_matrix_each(rng):
    X = rng.normal(3.0, 2.0, (4, 3, 6, 2))
    features = RandomFourierFeatures(10, random_state=0).fit(X.reshape(-1, 2)).features_
    K = FeatureKernel(features, 2.0)(torch.as_tensor(X)).to_dense().numpy()
    assert K.shape == (4, 3, 6, 6)
    Z = features(X[2, 1])
    assert_allclose(K[2, 1], 2.0 * Z @ Z.T, rtol=1e-12, atol=1e-14)


def test_single_precision_stays_single(rng):
    X = rng.normal(3.0, 2.0, (6, 2))
    features = RandomWaveletFeatures(9, random_state=0).fit(X).features_
    K = FeatureKernel(features)(torch.as_tensor(X, dtype=torch.float32)).to_dense()
    assert K.dtype == torch.float32
    assert_allclose(K.detach().numpy(), features(X) @ features(X).T, atol=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_slopes_by_x_are_central_differences(d, rng):
    for features in maps(d, rng):
        X = rng.normal(3.0, 1.0, (4, d))
        R = rng.normal(1.0, 2.0, (4, features.n_features))
        slopes, step = input_slopes(features, X, R), 1e-6
        for k in range(d):
            nudge = step * (np.arange(d) == k)
            rise = np.sum(R * (features(X + nudge) - features(X - nudge)), axis=1)
            size = np.abs(R).sum() * max(1.0, np.abs(features(X)).max())
            assert_allclose(rise / (2 * step), slopes[:, k], rtol=1e-6, atol=1e-8 * size)


def test_gradients_reach_x_theta_and_the_amplitude(rng):
    X, _ = waves(rng, 12)
    features = RandomWaveletFeatures(6, wavelet="morlet", random_state=0).fit(X).features_
    inner = FeatureKernel(features, 1.7, learn_hyperparameters=True)
    kernel = gpytorch.kernels.ScaleKernel(inner).double()
    x, others = torch.tensor(X[:5], requires_grad=True), torch.tensor(X[3:])
    R = torch.as_tensor(rng.normal(size=(5, 9)))

    def value():
        return (R * kernel(x, others).to_dense()).sum()

    leaves = [x, inner.theta, kernel.raw_outputscale]
    for leaf, gradient in zip(leaves, torch.autograd.grad(value(), leaves), strict=True):
        assert gradient.abs().max() > 1e-3
        for index in np.ndindex(*leaf.shape):
            sides = []
            for step in (1e-6, -2e-6, 1e-6):
                leaf.data[index] += step
                sides.append(value().item())
            assert_allclose((sides[0] - sides[1]) / 2e-6, gradient[index].item(), atol=1e-7)


def test_theta_stays_within_the_bounds_of_the_map(rng):
    X, _ = waves(rng)
    features = RandomWaveletFeatures(6, random_state=0).fit(X).features_
    kernel = FeatureKernel(features, learn_hyperparameters=True)
    kernel.theta.data += 100.0
    edge = features.with_theta(features.bounds[:, 1])
    assert_allclose(kernel.root(torch.as_tensor(X)).detach().numpy(), edge(X), rtol=1e-12)


@pytest.mark.parametrize("skewed", [False, True])
def test_units_are_those_of_the_regressor(skewed, rng):
    X = np.exp(rng.normal(0.5, 1.0, (60, 3))) * [1.0, 1.0, -1.0]  # long tails on either side
    X[:, 1] = 7.0  # a constant column, which is left out
    rows = Block(X, np.ones((60, 1)), np.ones(60))
    scaler = Standardizer.learn(rows, ard=True, log_skewed=skewed)
    new = np.exp(rng.normal(0.0, 2.0, (9, 3))) * [1.0, 1.0, -1.0]
    assert_allclose(in_units(scaler, torch.as_tensor(new)).numpy(), scaler.inputs(new), rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": "random_features", "n_components": 30},
        {"prior": "random_features", "n_components": 120},
        {"prior": "multiscale", "n_components": 40},
        {"prior": "nystrom", "n_components": 20, "trend": "constant"},
    ],
    ids=["few columns", "many columns", "multiscale", "nystrom"],
)
def test_gpytorch_has_the_regressors_posterior(settings, rng):
    X, y = waves(rng)
    new = rng.normal(3.0, 2.0, (20, 2))
    model = plain(**settings).fit(X, y)
    mean, posterior = model.predict(new), model.model_.base.fits[0].posterior
    prediction = posterior.predict(
        model.model_.base.features(model.model_.units.inputs(new)), np.ones(20)
    )
    y_scale = model.model_.units.y.scale[0]
    gp = GP(X, y, FeatureKernel.of(model), y.mean(), model.noise_variance_)
    gp.eval()
    gp.likelihood.eval()
    with torch.no_grad():
        found = gp.likelihood(gp(torch.as_tensor(new)))
    assert_allclose(found.mean.numpy(), mean, rtol=1e-6)
    assert_allclose(found.variance.numpy(), prediction.variance * y_scale**2, rtol=1e-6)
    if settings["prior"] != "nystrom":  # of which error bars know more than the posterior
        std = model.predict(new, return_std=True)[1]
        assert_allclose(found.variance.numpy(), std**2, rtol=1e-6)


@pytest.mark.parametrize("learn_hyperparameters", [False, True])
def test_training_raises_the_marginal_likelihood(learn_hyperparameters, rng):
    X, y = waves(rng)
    features = RandomWaveletFeatures(40, random_state=0).fit(X).features_
    inner = FeatureKernel(features, learn_hyperparameters=learn_hyperparameters)
    kernel = gpytorch.kernels.ScaleKernel(inner)
    gp = GP(X, y, kernel, y.mean(), 0.5)
    before = kernel.outputscale.item(), inner.theta.detach().clone()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(gp.likelihood, gp)
    trained = [p for p in gp.parameters() if p.requires_grad]
    optimizer, losses = torch.optim.Adam(trained, lr=0.1), []
    for _ in range(25):
        optimizer.zero_grad()
        loss = -likelihood(gp(*gp.train_inputs), gp.train_targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.05
    assert abs(kernel.outputscale.item() - before[0]) > 0.1
    assert bool((inner.theta != before[1]).any()) == learn_hyperparameters


def test_what_cannot_be_a_kernel_is_refused_with_advice(rng):
    x = np.linspace(0, 1, 60)[:, None]
    tree = RWFRegressor(solver="multifrontal", random_state=0).fit(x, np.sin(9 * x[:, 0]))
    with pytest.raises(ValueError, match="solver='dense'"):
        FeatureKernel.of(tree)
    with pytest.raises(NotFittedError):
        FeatureKernel.of(RWFRegressor())
    features = RandomWaveletFeatures(6, random_state=0).fit(x).features_
    with pytest.raises(ValueError, match="6 of them"):
        FeatureKernel(features, np.ones(5))
    with pytest.raises(ValueError, match="not negative"):
        FeatureKernel(features, -1.0)


def test_without_torch_the_error_names_the_extra():
    code = "import sys; sys.modules['gpytorch'] = None; import rwf.integrations.gpytorch"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "rwf[gpytorch]"' in found.stderr


def test_the_examples_of_the_docs_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "interoperability.md").read_text(encoding="utf-8")
    section = page.split("## GPyTorch")[1].split("\n## ")[0]
    namespace = {"__name__": "example"}
    for block in re.findall(r"```py\n(.*?)```", section, flags=re.DOTALL):
        exec(compile(block, "interoperability.md", "exec", dont_inherit=True), namespace)
    assert "gp" in namespace
