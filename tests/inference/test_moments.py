"""Moments, posterior and evidence: weight space is function space, however rows are split."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from rwf.data.rows import Block, blocks
from rwf.features import (
    ConstantFamily,
    FourierFamily,
    LinearFamily,
    RidgeFamily,
    Stack,
    WaveletFamily,
)
from rwf.inference.evidence import evidence, variance_gradient
from rwf.inference.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.inference.posterior import Posterior
from rwf.linalg.dense import stack_triangle
from rwf.wavelets import CompactHat, ComplexMorlet, Daubechies, MexicanHat, Morlet
from rwf.wavelets.measure import Box, Measure, Rows

HAT = MexicanHat()
DATA = Measure(0.4, 3.0, Rows())
FAMILIES = {
    "hat": [WaveletFamily(HAT, DATA, 1.7)],
    "paper": [
        WaveletFamily(MexicanHat("paper"), Measure(0.2, 3.0, Box(0.0)), 1.3, False, "energy")
    ],
    "mixed": [
        WaveletFamily(HAT, DATA, 1.7),
        WaveletFamily(HAT, DATA, 1.7),
        RidgeFamily(HAT, DATA, 1.7),
        ConstantFamily(),
        LinearFamily(),
    ],
    "morlet": [WaveletFamily(Morlet(2.0), DATA, 1.4, True, "energy"), ConstantFamily()],
    "complex morlet": [WaveletFamily(ComplexMorlet(2.0), DATA, 1.4, False)],
    "compact hat": [WaveletFamily(CompactHat(), DATA, 1.4), LinearFamily()],
    "db4": [WaveletFamily(Daubechies(4), DATA, 1.4)],
    "fourier": [FourierFamily("matern32", 2.1), ConstantFamily()],
}


def posterior_of_rows(Z, y, prior, noise) -> Posterior:
    """From all rows by one QR decomposition."""
    size = Z.shape[1] + 1
    R = stack_triangle(np.zeros((size, size)), np.column_stack([Z, y]))
    return RootMoments(R, float(len(y)), 1).posterior(0, prior, noise)


class Problem:
    """Features, rows and variances away from every neutral element."""

    def __init__(self, name: str, rng: np.random.Generator, n: int = 40, k: int = 1) -> None:
        X = rng.normal(3.0, 2.0, (n, 2))
        self.rows = Block(X, rng.normal(1.5, 1.0, (n, k)), np.ones(n))
        families = FAMILIES[name]
        self.features = Stack(tuple(f.draw(9, X, rng) for f in families))
        self.groups = self.features.groups
        self.log_priors = rng.normal(0.3, 0.5, len(families))
        self.log_noise = rng.normal(-1.0, 0.3, k)

    @property
    def prior(self) -> np.ndarray:
        return np.exp(self.log_priors)[self.groups]

    @property
    def noise(self) -> float:
        return float(np.exp(self.log_noise[0]))

    @property
    def Z(self) -> np.ndarray:
        return self.features(self.rows.X)

    @property
    def y(self) -> np.ndarray:
        return self.rows.y[:, 0]

    @property
    def covariance(self) -> np.ndarray:
        return (self.Z * self.prior) @ self.Z.T + self.noise * np.eye(len(self.rows))

    def posteriors(self) -> dict:
        gram = accumulate(self.features, [self.rows], 1)
        root = accumulate_root(self.features, [self.rows], 1)
        return {
            "rows": posterior_of_rows(self.Z, self.y, self.prior, self.noise),
            "gram": gram.posterior(0, self.prior, self.noise),
            "root": root.posterior(0, self.prior, self.noise),
        }


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [3, 40, 300])
def test_the_evidence_is_the_gaussian_density_of_y(name, n, rng):
    problem = Problem(name, rng, n)
    exact = multivariate_normal(cov=problem.covariance).logpdf(problem.y)
    for posterior in problem.posteriors().values():
        assert_allclose(posterior.log_evidence, exact, rtol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_predictions_are_those_of_the_gaussian_process_with_the_same_kernel(name, rng):
    problem = Problem(name, rng)
    queries = rng.normal(3.0, 3.0, (15, 2))
    Z = problem.features(queries)
    cross = (Z * problem.prior) @ problem.Z.T
    gain = np.linalg.solve(problem.covariance, cross.T)
    mean = gain.T @ problem.y
    covariance = (Z * problem.prior) @ Z.T - cross @ gain
    for posterior in problem.posteriors().values():
        predicted = posterior.predict(Z)
        assert_allclose(predicted.mean, mean, rtol=1e-9, atol=1e-11)
        assert_allclose(predicted.variance, np.diag(covariance) + problem.noise, rtol=1e-9)
        assert_allclose(posterior.covariance_of(Z), covariance, rtol=1e-7, atol=1e-10)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 200),
    cuts=st.lists(st.integers(0, 200), max_size=5),
)
def test_any_split_and_order_of_rows_gives_the_same_moments(seed, n, cuts):
    rng = np.random.default_rng(seed)
    problem = Problem("mixed", rng, n, k=2)
    rows = problem.rows
    order = rng.permutation(n)
    edges = [0, *sorted(min(c, n) for c in cuts), n]
    parts = [order[a:b] for a, b in itertools.pairwise(edges)]
    for collect in (accumulate, accumulate_root):
        whole = collect(problem.features, [rows], 2)
        pieces = [
            collect(problem.features, [Block(rows.X[i], rows.y[i], rows.weights[i])], 2)
            for i in parts
        ]
        total = pieces[0]
        for piece in pieces[1:]:
            total = total + piece
        assert total.n == n
        for output in (0, 1):
            a = whole.posterior(output, problem.prior, problem.noise)
            b = total.posterior(output, problem.prior, problem.noise)
            assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-10)
            assert_allclose(a.mean, b.mean, rtol=1e-8, atol=1e-10)


def test_blocks_under_a_memory_budget_give_the_moments_of_all_rows(rng):
    problem = Problem("mixed", rng, 700)
    p = problem.features.n_features
    small = accumulate(problem.features, blocks(problem.rows, p, budget=1), 1)
    Z = problem.Z
    assert_allclose(small.ZtZ, Z.T @ Z, rtol=1e-12, atol=1e-12)
    assert_allclose(small.Zty[:, 0], Z.T @ problem.y, rtol=1e-11, atol=1e-12)
    assert_allclose(small.yty[0], problem.y @ problem.y, rtol=1e-13)


def test_whole_number_weights_are_repeated_rows(rng):
    problem = Problem("mixed", rng, 30)
    weights = rng.integers(0, 4, 30)
    X, y = problem.rows.X, problem.rows.y
    heavy = Block(X, y, weights.astype(float))
    repeated = Block(X.repeat(weights, 0), y.repeat(weights, 0), np.ones(weights.sum()))
    for collect in (accumulate, accumulate_root):
        a = collect(problem.features, [heavy], 1).posterior(0, problem.prior, problem.noise)
        b = collect(problem.features, [repeated], 1).posterior(0, problem.prior, problem.noise)
        assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-12)
        assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-12)
    arguments = (problem.groups, problem.log_priors, problem.log_noise)
    a, b = (evidence(problem.features, rows, *arguments) for rows in (heavy, repeated))
    assert_allclose(a.value, b.value, rtol=1e-12)
    assert_allclose(a.theta, b.theta, rtol=1e-9, atol=1e-11)


def central_difference(f, v, step=1e-6):
    return np.array([(f(v + step * e) - f(v - step * e)) / (2 * step) for e in np.eye(len(v))])


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "db4"])  # whose table has kinks
@pytest.mark.parametrize("k", [1, 2])
def test_every_gradient_of_the_evidence_is_its_central_difference(name, k, rng):
    problem = Problem(name, rng, 30, k)
    rows = Block(problem.rows.X, problem.rows.y, rng.uniform(0.5, 3.0, 30))
    b = len(problem.log_priors)

    def at(v):
        features = problem.features.with_theta(v[k + b :])
        return evidence(features, rows, problem.groups, v[k : k + b], v[:k])

    for _ in range(3):
        v = np.concatenate([problem.log_noise, problem.log_priors, problem.features.theta])
        v = v + 0.2 * rng.normal(size=len(v))
        e = at(v)
        gradient = np.concatenate([e.log_noise, e.log_priors, e.theta])
        difference = central_difference(lambda u: at(u).value, v)
        assert_allclose(gradient, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2])
def test_the_evidence_is_that_of_all_rows_together_however_many_are_taken_at_a_time(
    k, rng, monkeypatch
):
    problem = Problem("mixed", rng, 700, k)
    rows = Block(problem.rows.X, problem.rows.y, rng.uniform(0.5, 3.0, 700))
    arguments = (problem.features, rows, problem.groups, problem.log_priors, problem.log_noise)
    whole, gram = evidence(*arguments), accumulate(problem.features, [rows], k)
    monkeypatch.setattr("rwf.inference.moments.CHUNK_BYTES", 1)  # the fewest rows at a time: 256
    parts, split = evidence(*arguments), accumulate(problem.features, [rows], k)
    for field in ("value", "log_noise", "log_priors", "theta"):
        assert_allclose(getattr(parts, field), getattr(whole, field), rtol=1e-9, atol=1e-9)
    for field in ("ZtZ", "Zty", "yty"):
        assert_allclose(getattr(split, field), getattr(gram, field), rtol=1e-11, atol=1e-11)
    Z, root = problem.features(rows.X), np.sqrt(rows.weights)[:, None]
    assert_allclose(gram.ZtZ, (Z * root).T @ (Z * root), rtol=1e-11, atol=1e-12)
    assert_allclose(gram.Zty, (Z * root).T @ (rows.y * root), rtol=1e-11, atol=1e-11)
    assert_allclose(gram.yty, np.sum((rows.y * root) ** 2, axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    "log_noise, digits, error", [(-6.0, 1e-9, 1e-9), (-18.0, 3e-7, 3e-6), (-28.0, 5e-3, 1e-7)]
)
def test_the_evidence_keeps_its_digits_as_the_noise_shrinks(log_noise, digits, error, rng):
    """Plain moments, moments and a refined mean, and the square root, one after the other."""
    X = rng.uniform(2.0, 4.0, (300, 1))
    features = WaveletFamily(HAT, DATA, 2.5).draw(25, X, rng)  # so wide that columns are alike
    Z, prior, noise = features(X), np.full(25, 1.3), float(np.exp(log_noise))
    y = Z @ rng.normal(size=25) + np.sqrt(noise) * rng.normal(size=300)
    rows, groups = Block(X, y[:, None], np.ones(300)), np.zeros(25, dtype=int)
    found = evidence(features, rows, groups, np.log([1.3]), np.array([log_noise]))
    exact = accumulate_root(features, [rows], 1).posterior(0, prior, noise)
    R = np.outer(y - Z @ exact.mean, exact.mean) - Z @ exact.weight_covariance()
    theta = features.pull_back(X, R / noise)
    assert_allclose(found.theta, theta, rtol=digits)
    assert_allclose(found.value, exact.log_evidence, rtol=0, atol=error)


def test_the_gradient_by_variances_from_moments_is_the_one_from_rows(rng):
    problem = Problem("mixed", rng, 60)
    e = evidence(
        problem.features, problem.rows, problem.groups, problem.log_priors, problem.log_noise
    )
    for posterior in problem.posteriors().values():
        g = variance_gradient(posterior, problem.groups, len(problem.log_priors))
        assert_allclose(g.log_noise, e.log_noise[0], rtol=1e-8)
        assert_allclose(g.log_priors, e.log_priors, rtol=1e-8, atol=1e-10)


def test_weights_are_drawn_from_the_posterior(rng):
    problem = Problem("hat", rng)
    posterior = problem.posteriors()["rows"]
    W = posterior.sample_weights(40_000, rng)
    S = posterior.weight_covariance()
    sd = np.sqrt(np.diag(S))
    assert (np.abs(W.mean(1) - posterior.mean) < 5 * sd / 200).all()
    # The standard error of a sample covariance is √((S_ii S_jj + S_ij²)/n).
    error = np.sqrt((np.outer(sd**2, sd**2) + S**2) / 40_000)
    assert (np.abs(np.cov(W) - S) < 5 * error).all()


def test_leave_one_out_predictions_are_those_of_refits(rng):
    problem = Problem("mixed", rng, 25)
    weights = rng.integers(1, 3, 25).astype(float)
    root = np.sqrt(weights)
    full = posterior_of_rows(
        problem.Z * root[:, None], problem.y * root, problem.prior, problem.noise
    )
    loo = full.leave_one_out(problem.Z, problem.y, weights)
    for i in (0, 7, 24):
        keep = np.arange(25) != i
        refit = posterior_of_rows(
            (problem.Z * root[:, None])[keep],
            (problem.y * root)[keep],
            problem.prior,
            problem.noise,
        )
        expected = refit.predict(problem.Z[[i]])
        assert_allclose(loo.mean[i], expected.mean[0], rtol=1e-8)
        assert_allclose(loo.variance[i], expected.variance[0], rtol=1e-8)


def exact_evidence(Z, y, noise):
    """log N(y; 0, ZZᵀ + σ²I) in rational arithmetic, by elimination in M = I + ZᵀZ/σ²."""
    rows = [[Fraction(v) for v in row] for row in Z]
    targets, variance, p = [Fraction(v) for v in y], Fraction(noise), Z.shape[1]
    M = [
        [sum(r[i] * r[j] for r in rows) / variance + (i == j) for j in range(p)]
        + [sum(r[i] * t for r, t in zip(rows, targets, strict=True)) / variance]
        for i in range(p)
    ]
    quadratic, determinant = sum(t * t for t in targets) / variance, Fraction(1)
    for i in range(p):
        determinant *= M[i][i]
        quadratic -= M[i][p] ** 2 / M[i][i]
        for k in range(i + 1, p):
            ratio = M[k][i] / M[i][i]
            M[k] = [a - ratio * b for a, b in zip(M[k], M[i], strict=True)]
    log_determinant = np.log(float(determinant)) + len(y) * np.log(2 * np.pi * noise)
    return -0.5 * (float(quadratic) + log_determinant)


def test_exact_evidence_is_the_density(rng):
    Z, y = rng.normal(3.0, 2.0, (6, 2)), rng.normal(5.0, 1.0, 6)
    density = multivariate_normal(cov=Z @ Z.T + 0.3 * np.eye(6)).logpdf(y)
    assert_allclose(exact_evidence(Z, y, 0.3), density, rtol=1e-10)


def test_square_root_moments_resolve_noise_that_a_gram_matrix_does_not(rng):
    n, p, noise = 30, 5, 1e-13
    Z = rng.normal(size=(n, p)) * np.array([1e4, 1e4, 1.0, 1e-2, 1e2])
    Z[:, 1] = Z[:, 0] + 1e-3 * Z[:, 1] / 1e4
    y = Z @ np.array([0.3, -0.2, 0.5, 2.0, 0.1]) + np.sqrt(noise) * rng.normal(size=n)
    exact = exact_evidence(Z, y, noise)

    class Identity:
        n_features = p

        def into(self, X, out):
            out[:] = X

    rows = Block(Z, y[:, None], np.ones(n))
    parts = [
        Block(rows.X[i : i + 7], rows.y[i : i + 7], np.ones(len(y[i : i + 7])))
        for i in range(0, n, 7)
    ]
    root = accumulate_root(Identity(), parts, 1)
    assert_allclose(root.posterior(0, np.ones(p), noise).log_evidence, exact, rtol=1e-5)
    assert_allclose(posterior_of_rows(Z, y, np.ones(p), noise).log_evidence, exact, rtol=1e-5)
    gram = accumulate(Identity(), parts, 1)
    assert gram.resolvable_noise(np.ones(p)) > noise
    assert abs(gram.posterior(0, np.ones(p), noise).log_evidence - exact) > 1


def test_moments_add_as_values():
    a = Moments(np.eye(2), np.ones((2, 1)), np.array([3.0]), 5.0)
    total = a + a
    assert total.n == 10.0
    assert_allclose(total.ZtZ, 2 * np.eye(2))
    assert a.n == 5.0


def test_rows_with_their_own_noise(rng):
    """Evidence is the density under σ² diag(v), by Gram and by QR; leaving one out is a refit."""
    problem = Problem("mixed", rng)
    v = rng.uniform(0.2, 5.0, len(problem.rows))
    rows = Block(problem.rows.X, problem.rows.y, problem.rows.weights, v)
    C = (problem.Z * problem.prior) @ problem.Z.T + problem.noise * np.diag(v)
    expected = multivariate_normal(np.zeros(len(v)), C).logpdf(problem.y)
    for collect in (accumulate, accumulate_root):
        halves = [rows.part(slice(None, 17)), rows.part(slice(17, None))]
        total = collect(problem.features, halves[:1], 1) + collect(problem.features, halves[1:], 1)
        posterior = total.posterior(0, problem.prior, problem.noise)
        assert_allclose(posterior.log_evidence, expected, rtol=1e-9)
    left = posterior.leave_one_out(problem.Z, problem.y, rows.weights, v)
    others = np.arange(len(v)) != 3
    refit = accumulate(problem.features, [rows.part(others)], 1)
    once = refit.posterior(0, problem.prior, problem.noise).predict(problem.Z[[3]], v[[3]])
    assert_allclose([left.mean[3], left.variance[3]], [once.mean[0], once.variance[0]], rtol=1e-8)


def test_rounding_hardly_changes_a_posterior_and_adds_exactly(rng):
    Z = rng.normal(size=(60, 9)) * np.exp2(rng.uniform(-12, 12, 9))
    y = Z @ rng.normal(size=(9, 1)) + rng.normal(size=(60, 1))
    priors, noise = np.exp(rng.normal(size=9)), 0.3
    parts = [
        Moments(z.T @ z, z.T @ t, (t**2).sum(axis=0), float(len(z)))
        for z, t in zip(np.split(Z, 2), np.split(y, 2), strict=True)
    ]
    first, second = (part.rounded(priors / noise) for part in parts)
    root = np.sqrt(priors / noise)
    change = root[:, None] * (first.ZtZ - parts[0].ZtZ) * root
    assert 0 < np.abs(change).max() <= 2.0**-31
    both = first + second
    np.testing.assert_array_equal(both.rounded(priors / noise).ZtZ, both.ZtZ)
    before = (parts[0] + parts[1]).posterior(0, priors, noise)
    after = both.posterior(0, priors, noise)
    # M ≥ I, so that M⁻¹ changes by no more than M does, whose entries change by 2⁻³¹ in each part.
    most = 9 * 2.0**-30
    assert_allclose(after.factor.inverse(), before.factor.inverse(), rtol=0, atol=most)
    longest = np.linalg.norm(before.whitened_mean)
    assert_allclose(after.whitened_mean, before.whitened_mean, rtol=0, atol=most * longest)
