"""The density of errors: what simulated errors have, it finds, and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import approx_fprime

from rwf.uncertainty.density_learning import _mode, learn_error_density
from rwf.uncertainty.error_density import (
    HEAVIEST,
    LIGHTEST,
    ScaleFeatures,
    Scored,
    SmoothFeatures,
    heavier,
)
from rwf.uncertainty.student_t import StudentT


def scored(rng, n, scale, dof=4.0, d=2, variance=0.25):
    """Rows around a known mean, whose errors have scale(X, m) times the stated deviation."""
    X = rng.uniform(-1.0, 1.0, (n, d))
    mean = 3.0 + 2.0 * X[:, 0]
    v = np.full(n, variance) * np.exp(0.5 * rng.normal(size=n))
    y = mean + scale(X, mean, v) * np.sqrt(v) * rng.standard_t(dof, n)
    return Scored(X, y, mean, v, 0.5 * v, np.ones(n), np.ones(n))


def predicted(density, rows):
    factor, dof = density(rows.X, rows.mean, rows.variance, rows.function_variance, rows.support)
    return StudentT(rows.mean, np.sqrt(factor * rows.variance), dof)


def learn(rows, rng, local=True, growth=1.0):
    return learn_error_density(rows, rng, local=local, growth=growth)


SCALES = {
    "same": lambda X, m, v: np.full(len(X), 1.5),
    "place": lambda X, m, v: np.exp(1.2 * np.sin(3.0 * X[:, 1])),
    "mean": lambda X, m, v: np.exp(0.6 * (m - 3.0)),
    "variance": lambda X, m, v: (v / 0.25) ** 1.0,
}


@pytest.mark.parametrize("kind", SCALES)
def test_the_density_of_new_rows_is_nearly_that_of_the_truth(kind, rng):
    rows, new = (scored(rng, n, SCALES[kind]) for n in (800, 3000))
    truth = StudentT(
        new.mean, SCALES[kind](new.X, new.mean, new.variance) * np.sqrt(new.variance), 4.0
    )
    normal = StudentT.normal(new.mean, np.sqrt(new.variance * np.average(rows.squares)))
    found = predicted(learn(rows, rng), new)
    best, ours, plain = (-p.logpdf(new.y).mean() for p in (truth, found, normal))
    assert ours < best + 0.05
    assert ours < plain - 0.05
    assert stats.kstest(found.cdf(new.y), "uniform").statistic < 0.05


def test_without_place_the_density_is_the_same_for_all_rows(rng):
    rows = scored(rng, 500, SCALES["place"])
    factor, dof = learn(rows, rng, local=False)(
        rows.X, rows.mean, rows.variance, rows.function_variance, rows.support
    )
    low, high = np.quantile(rows.variance, [0.02, 0.98])
    inside = (rows.variance >= low) & (rows.variance <= high)
    assert_allclose(factor[inside], factor[0])
    assert_allclose(dof, dof[0])


@pytest.mark.parametrize("dof", [3.0, 200.0])
def test_the_tails_follow_the_errors(dof, rng):
    found = learn(scored(rng, 2000, SCALES["same"], dof), rng, local=False)
    assert found.dof == (HEAVIEST if dof == 3.0 else LIGHTEST)


def test_a_few_rows_do_not_tell_of_light_tails(rng):
    few, many = (scored(rng, n, SCALES["same"], dof=200.0) for n in (100, 2000))
    assert learn(few, rng, local=False).dof <= 4.0
    assert learn(many, rng, local=False).dof == LIGHTEST


def test_even_errors_have_an_even_scale(rng):
    found = learn(scored(rng, 600, SCALES["same"]), rng)
    assert max(found.features.amplitudes[1:]) < 0.5
    assert found.span[1] - found.span[0] < 0.8


def test_variances_grow_by_what_errors_do_not_show(rng):
    rows = scored(rng, 200, SCALES["place"])
    plain, grown = (learn(rows, np.random.default_rng(0), growth=growth) for growth in (1.0, 1.3))
    a, b = predicted(plain, rows), predicted(grown, rows)
    assert_allclose(b.scale**2, 1.3 * a.scale**2)
    assert_array_equal(a.dof, b.dof)


def test_in_gaps_the_variance_is_at_least_the_model_s(rng):
    rows = scored(rng, 500, lambda X, m, v: np.full(len(X), 0.2))
    density, few = learn(rows, rng), slice(0, 5)
    at = rows.X[few], rows.mean[few], rows.variance[few]
    among, _ = density(*at, rows.function_variance[few], rows.support[few])
    unknown, _ = density(*at, 1e6 * rows.function_variance[few], rows.support[few])
    alone, _ = density(*at, rows.function_variance[few], 0.0 * rows.support[few])
    assert (among < 0.2).all()
    assert (unknown > 0.9).all()
    assert (alone > 0.99).all()


@pytest.mark.parametrize("kind", ["same", "variance"])
def test_smaller_variances_than_errors_tell_of_count_as_the_smallest_seen(kind, rng):
    rows = scored(rng, 500, SCALES[kind])
    density = learn(rows, rng)
    low, tiny = (replace(rows, variance=np.full(500, v)) for v in (density.least, 1e-12))
    a, b = predicted(density, low), predicted(density, tiny)
    assert_allclose(b.scale, a.scale, rtol=1e-9)
    assert_array_equal(b.dof, a.dof)
    assert (rows.variance < density.least).mean() == pytest.approx(0.01, abs=2e-3)
    more = predicted(density, replace(rows, variance=np.full(500, 2.0 * density.least)))
    assert (more.scale > 1.2 * a.scale).all()


def test_weights_count_rows(rng):
    rows = scored(rng, 300, SCALES["place"])
    twice = rows.part(np.concatenate([np.arange(300), np.arange(100)]))
    weighted = replace(rows, weights=1.0 + (np.arange(300) < 100))
    features = ScaleFeatures.of(rows, 0.4, np.random.default_rng(0))
    features = replace(features, amplitudes=(4.0, 0.3, 0.7, 0.7))
    found = [
        _mode(features, features(r.X, r.mean, r.variance), r.squares, r.weights, 4.0)
        for r in (twice, weighted)
    ]
    assert_allclose(found[0].evidence, found[1].evidence, rtol=1e-9)
    assert_allclose(found[0].weights, found[1].weights, atol=1e-8)


def test_the_mode_has_no_slope(rng, monkeypatch):
    monkeypatch.setattr("rwf.uncertainty.density_learning.TOLERANCE", 1e-14)
    rows = scored(rng, 120, SCALES["place"])
    rows = replace(rows, weights=rng.uniform(0.5, 2.0, 120))
    features = ScaleFeatures.of(rows, 0.8, rng)
    features = replace(features, amplitudes=(4.0, 0.0, 0.7, 0.0))
    Z = features(rows.X, rows.mean, rows.variance)
    found = _mode(features, Z, rows.squares, rows.weights, 4.0)

    def density(w):
        scale = np.exp(0.5 * Z @ w)
        z = np.sqrt(rows.squares)
        return rows.weights @ stats.t.logpdf(z, 4.0, 0.0, scale) - 0.5 * w @ w

    assert_allclose(approx_fprime(found.weights, density, 1e-6), 0.0, atol=2e-2)
    # Laplace's evidence, with the expected information in place of the observed one.
    W = 4.0 / (2 * 7.0)
    P = np.eye(Z.shape[1]) + W * (Z * rows.weights[:, None]).T @ Z
    expected = density(found.weights) - 0.5 * np.linalg.slogdet(P)[1]
    assert_allclose(found.evidence, expected, rtol=1e-9)


def test_uncertain_scales_make_tails_heavier():
    unknown = np.array([0.0, 0.1, 0.3, 50.0])
    nu = heavier(6.0, unknown)
    assert_allclose(nu[0], 6.0, rtol=1e-3)
    assert (np.diff(nu) < 0).all()
    assert nu[-1] == pytest.approx(HEAVIEST)
    # The variance of log χ²: ψ'(ν/2) grows by that of h.
    from scipy.special import polygamma

    assert_allclose(polygamma(1, nu[1] / 2), polygamma(1, 3.0) + 0.1, rtol=1e-3)


def test_smooth_features_approximate_the_kernel(rng):
    U = rng.normal(size=(40, 2))
    Z = SmoothFeatures(U)(U)
    squares = ((U[:, None] - U) ** 2).sum(axis=2)
    assert_allclose(Z @ Z.T, np.exp(-0.5 * squares), atol=1e-4)


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e9])
def test_errors_of_any_size_have_a_density(size, rng):
    rows = scored(rng, 60, SCALES["same"])
    rows = replace(rows, y=rows.mean + size * (rows.y - rows.mean))
    p = predicted(learn(rows, rng), rows)
    for values in (p.scale, p.dof, p.logpdf(rows.y)):
        assert np.isfinite(values).all()
    assert (p.scale > 0).all()
