"""The Matérn process of celerite2 against the dense one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from experiments.baselines import celerite
from experiments.runner.methods import make


@pytest.fixture
def needs_celerite2():
    pytest.importorskip("celerite2", reason="the extra bench has celerite2")


def dense(parameters, x, y):
    """The same process by scikit-learn, which has no mean."""
    kernel = ConstantKernel(parameters.amplitude) * Matern(parameters.length, nu=1.5)
    noisy = kernel + WhiteKernel(parameters.noise)
    model = GaussianProcessRegressor(noisy, optimizer=None, alpha=0.0)
    return model.fit(x[:, None], y - parameters.mean)


def series(n, rng):
    x = np.sort(rng.uniform(3, 9, n))
    x[n // 2 : n // 2 + 5] = x[n // 2]  # five rows at one place
    return x, 5 + np.sin(3 * x) + rng.normal(0, 0.2, n)


@pytest.mark.usefixtures("needs_celerite2")
@pytest.mark.parametrize("length, amplitude, noise", [(0.05, 0.7, 0.04), (0.6, 2.0, 0.01)])
def test_it_is_the_dense_process_of_the_same_parameters(length, amplitude, noise, rng):
    x, y = series(200, rng)
    parameters = celerite.Matern32(length, amplitude, noise, 4.3)
    exact = dense(parameters, x, y)
    assert_allclose(
        celerite.log_evidence(parameters, x, y), exact.log_marginal_likelihood_value_, rtol=1e-6
    )
    method = celerite.CeleriteMatern32()
    method._x, method._y, method._parameters = x, y, parameters
    new = rng.permutation(np.concatenate([rng.uniform(2, 10, 240), x[95:105]]))
    mean, std = exact.predict(new[:, None], return_std=True)
    found, found_std = method.predict(new[:, None])
    assert_allclose(found, 4.3 + mean, atol=1e-6)
    assert_allclose(found_std, std, atol=1e-6)
    _, std_f = method.predict_function(new[:, None])
    assert_allclose(std_f**2, std**2 - noise, atol=1e-6)


@pytest.mark.usefixtures("needs_celerite2")
def test_a_distant_row_does_not_change_a_variance(rng):
    x = np.array([0.0, 0.1, 5.0, 5.1, 5.3])
    parameters = celerite.Matern32(0.1, 2.0, 0.1, 0.0)
    new = np.array([-9.0, 0.05, 2.5, 5.2])
    kernel = ConstantKernel(2.0) * Matern(0.1, nu=1.5)
    K = kernel(x[:, None]) + 0.1 * np.eye(5)
    k = kernel(new[:, None], x[:, None])
    expected = 2.0 - np.sum(k * np.linalg.solve(K, k.T).T, axis=1)
    assert_allclose(celerite.variance(parameters, x, new), expected, atol=1e-6)
    assert_allclose(celerite.variance(parameters, x, new[:1]), 2.0)  # no row within reach at all


@pytest.mark.usefixtures("needs_celerite2")
def test_mean_and_amplitude_of_the_closed_form_are_the_best(rng):
    x, y = series(120, rng)
    best, evidence = celerite.best_scale(0.6, 0.05, x, y)
    R = Matern(0.6, nu=1.5)(x[:, None]) + 0.05 * np.eye(120)

    def exact(mean, amplitude):
        return multivariate_normal(np.full(120, mean), amplitude * R).logpdf(y)

    assert_allclose(evidence, exact(best.mean, best.amplitude), rtol=1e-6)
    assert_allclose(best.noise, 0.05 * best.amplitude)
    for step in (0.9, 1.1):
        assert exact(step * best.mean, best.amplitude) < evidence
        assert exact(best.mean, step * best.amplitude) < evidence


@pytest.mark.usefixtures("needs_celerite2")
def test_learning_climbs_to_the_parameters_of_the_draw():
    rng = np.random.default_rng(4)
    truth = celerite.Matern32(0.08, 3.0, 0.2, 10.0)
    x = np.sort(rng.uniform(5, 25, 1500))
    K = truth.amplitude * Matern(truth.length, nu=1.5)(x[:, None]) + truth.noise * np.eye(1500)
    y = rng.multivariate_normal(np.full(1500, truth.mean), K, method="cholesky")
    found = celerite.learn(x, y)
    evidence = celerite.log_evidence(found, x, y)
    assert evidence >= celerite.log_evidence(truth, x, y)
    assert_allclose([found.length, found.amplitude, found.noise], [0.08, 3.0, 0.2], rtol=0.3)
    assert abs(found.mean - 10) < 5 * np.sqrt(3.0 * 2 * 0.08 / 20)  # a draw forgets itself in 2ℓ
    for field in ("length", "noise"):  # a maximum along each
        for step in (0.98, 1.02):
            moved = celerite.Matern32(**{**vars(found), field: step * getattr(found, field)})
            assert celerite.log_evidence(moved, x, y) < evidence


def coverage_is_nominal(errors, std):
    """Within five standard errors, and 0.02 more for what is learned from few rows."""
    covered = np.mean(np.abs(errors) < 1.96 * std)
    return abs(covered - 0.95) < 0.02 + 5 * np.sqrt(0.05 * 0.95 / len(errors))


@pytest.mark.usefixtures("needs_celerite2")
def test_a_series_is_found_within_its_error_bars(rng):
    x = rng.uniform(300, 340, 3000)
    f = 900 + 50 * np.sin(x)
    y = f + rng.normal(0, 4.0, 3000)
    method = make("celerite-matern32", {}, 0).fit(x[:2000, None], y[:2000])
    mean, std = method.predict(x[2000:, None])
    _, std_f = method.predict_function(x[2000:, None])
    assert np.sqrt(np.mean((mean - f[2000:]) ** 2)) < 1.5
    assert np.all(std_f > 0)
    assert coverage_is_nominal(mean - y[2000:], std)
    facts = method.facts()
    assert_allclose(facts["noise_variance"], 16, rtol=0.15)
    assert_allclose(std**2 - std_f**2, facts["noise_variance"], rtol=1e-6)


@pytest.mark.usefixtures("needs_celerite2")
def test_a_constant_series_is_no_failure():
    X = np.arange(30.0)[:, None]
    mean, std = make("celerite-matern32", {}, 0).fit(X, np.full(30, 7.0)).predict(X + 0.5)
    assert_allclose(mean, 7.0)
    assert np.all((std > 0) & (std < 0.01))


def test_two_columns_are_refused_with_a_remedy(rng):
    with pytest.raises(ValueError, match=r"X has 2\. Give it one"):
        make("celerite-matern32", {}, 0).fit(rng.normal(size=(20, 2)), rng.normal(size=20))


def test_without_celerite2_the_error_names_the_package(monkeypatch, rng):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(celerite, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install celerite2, or the extra bench"):
        make("celerite-matern32", {}, 0).fit(rng.normal(size=(20, 1)), rng.normal(size=20))
