"""The exact Gaussian process against scikit-learn's, and its gradient against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)

from experiments.baselines import exact_gp
from experiments.baselines.exact_gp import (
    KERNELS,
    ExactGP,
    Parameters,
    cholesky,
    log_bounds,
    log_evidence,
    matern12,
)

D = 3


SHAPES = {
    "se": lambda lengths: RBF(lengths),
    "matern32": lambda lengths: Matern(lengths, nu=1.5),
    "matern52": lambda lengths: Matern(lengths, nu=2.5),
}


@pytest.fixture
def rows(rng):
    X = rng.normal(0.4, 1.3, (50, D))
    return X, np.sin(X[:, 0]) - 0.5 * X[:, 1] + rng.normal(0.2, 0.1, 50)


def random_theta(rng):
    return rng.normal(0.0, 0.6, D + 4) - np.array([0, 0, 0, 0, 1, 1, 3])


def sklearn_gp(name, theta, X, y):
    """The same kernel: DotProduct is σ₀² + xᵀx′, so β²/d times it holds γ² too."""
    p = Parameters.from_theta(theta)
    kernel = (
        ConstantKernel(p.amplitude) * SHAPES[name](p.lengths)
        + ConstantKernel(p.linear / D) * DotProduct(np.sqrt(p.constant * D / p.linear))
        + WhiteKernel(p.noise)
    )
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)


@pytest.mark.parametrize("name", KERNELS)
def test_the_evidence_is_that_of_scikit_learn(name, rows, rng):
    theta = random_theta(rng)
    value, _ = log_evidence(KERNELS[name], theta, *rows)
    assert_allclose(value, sklearn_gp(name, theta, *rows).log_marginal_likelihood_value_)


@pytest.mark.parametrize("name", KERNELS)
def test_the_gradient_is_that_of_central_differences(name, rows, rng):
    for theta in (random_theta(rng) for _ in range(3)):
        _, gradient = log_evidence(KERNELS[name], theta, *rows)
        steps = 1e-6 * np.eye(len(theta))
        ahead, behind = (
            np.array([log_evidence(KERNELS[name], theta + sign * s, *rows)[0] for s in steps])
            for sign in (1, -1)
        )
        assert_allclose(gradient, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_predictions_are_those_of_scikit_learn(name, rows, rng):
    theta, X = random_theta(rng), rng.normal(0.4, 2.0, (7, D))
    mean, std = ExactGP(name, random_state=0).condition(*rows, theta).predict(X)
    expected_mean, expected_std = sklearn_gp(name, theta, *rows).predict(X, return_std=True)
    assert_allclose(mean, expected_mean, rtol=1e-8)
    assert_allclose(std, expected_std, rtol=1e-8)


def test_learning_raises_the_evidence_of_every_start(rows):
    X, y = rows
    gp = ExactGP("matern32", random_state=3, max_iter=20, short=4).fit(X, y)
    final, _ = log_evidence(KERNELS["matern32"], gp._theta, X, y)
    facts = gp.facts()
    assert len(facts["evidence_by_start"]) == 3
    assert final / len(y) >= max(facts["evidence_by_start"])
    assert not facts["subset"]


def test_many_rows_are_sampled_which_the_row_records(rows, monkeypatch):
    monkeypatch.setattr(exact_gp, "MAX_ROWS", 20)
    monkeypatch.setattr(exact_gp, "SUBSET", 20)
    facts = ExactGP("se", random_state=0, max_iter=4, short=2).fit(*rows).facts()
    assert facts["subset"]
    assert facts["n_rows"] == 20


def test_parameters_of_some_rows_may_serve_for_more(rows, monkeypatch):
    monkeypatch.setattr(exact_gp, "SUBSET", 20)
    X, y = rows
    gp = ExactGP("se", random_state=0, max_iter=4, short=2, conditioned=30).fit(X, y)
    assert gp.facts()["n_rows"] == 30
    order = np.random.default_rng(0).permutation(len(y))
    by_hand = ExactGP("se", random_state=0)
    by_hand._evidences, by_hand._n_available = [], len(y)
    by_hand.condition(X[order[:30]], y[order[:30]], gp._theta)
    for a, b in zip(gp.predict(X), by_hand.predict(X), strict=True):
        assert_allclose(a, b)
    small = ExactGP("se", random_state=0, max_iter=4, short=2).fit(X[order[:20]], y[order[:20]])
    rng = np.random.default_rng(0)
    rng.permutation(len(y))
    assert_allclose(gp._theta, small._best_theta(X[order[:20]], y[order[:20]], rng))


def test_a_singular_covariance_gets_the_least_jitter_that_helps():
    K = np.ones((4, 4)) * 2.0
    L, jitter = cholesky(K)
    assert 0 < jitter < 1e-9
    assert_allclose(L @ L.T, K + jitter * np.eye(4), rtol=1e-12)


def matern12_theta(rng):
    return rng.normal(0.0, 0.6, 5) - np.array([1, 0, 1, 1, 3])


def test_the_rough_kernel_is_scikit_learns_also_at_repeated_inputs(rng):
    X, theta = rng.normal(0.4, 1.3, (40, 1)), matern12_theta(rng)
    X[20:25] = X[:5]
    y = np.sign(X[:, 0]) + rng.normal(0.2, 0.1, 40)
    p = Parameters.from_theta(theta)
    kernel = (
        ConstantKernel(p.amplitude) * Matern(p.lengths, nu=0.5)
        + ConstantKernel(p.linear) * DotProduct(np.sqrt(p.constant / p.linear))
        + WhiteKernel(p.noise)
    )
    expected = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    value, gradient = log_evidence(matern12, theta, X, y)
    assert_allclose(value, expected.log_marginal_likelihood_value_, rtol=1e-6)
    steps = 1e-5 * np.eye(5)
    ahead, behind = (
        np.array([log_evidence(matern12, theta + sign * s, X, y)[0] for s in steps])
        for sign in (1, -1)
    )
    assert_allclose(gradient, (ahead - behind) / 2e-5, rtol=1e-4, atol=1e-4)
    at = rng.normal(0.4, 2.0, (7, 1))
    found = ExactGP("matern12", random_state=0).condition(X, y, theta).predict(at)
    assert_allclose(found, expected.predict(at, return_std=True), rtol=1e-6)


def test_a_fast_wave_over_one_column_is_found():
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 300))
    X, y = (x[:, None] - 0.5) * np.sqrt(12), np.sin(2 * np.pi * 25 * x)
    gp = ExactGP("se", random_state=0).fit(X, y)
    assert gp.facts()["noise_variance"] < 0.01
    assert np.exp(log_bounds(1)[0][0]) < np.exp(log_bounds(2)[0][0])
