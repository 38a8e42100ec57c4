"""The closed-form wavelet kernel, its exact evidence, and the Nyström prior on inducing rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.features import ConstantFamily, LinearFamily, Stack, inducing
from rwf.features.inducing import HatMixture, NystromFeatures, NystromResidual
from rwf.inference.evidence import SINGLE_ROWS, exact_evidence
from rwf.priors import nystrom
from rwf.priors.nystrom import (
    LENGTH_SPREAD,
    MIXING_SPREAD,
    KernelParameters,
    climb_kernel,
    first_kernel,
    induced,
    kernel_prior,
    learn_kernel,
    missing_variance,
    other_kernel,
    theta_names,
)


def make_kernel(rng, d=2, blocks=2, ard=True, mix=False):
    lengths = rng.normal(0.4, 0.3, (blocks, d if ard else 1))
    lengths = np.broadcast_to(lengths, (blocks, d)).copy()
    mixing = rng.normal(0.1, 0.3, (blocks, d, d)) * (1 - np.eye(d)) if mix else None
    heights, roughness = rng.normal(0.3, 0.4, blocks), rng.normal(0.2, 0.5, blocks)
    return HatMixture(heights, roughness, lengths, ard, mixing)


def by_definition(kernel, X, Y):
    d, K = X.shape[1], 0.0
    for b in range(kernel.n_blocks):
        mixing = np.eye(d) if kernel.mixing is None else np.eye(d) + kernel.mixing[b]
        U = np.einsum("nmj,jk->nmk", X[:, None] - Y, mixing)
        Q = ((U / np.exp(kernel.log_lengths[b])) ** 2).sum(-1)
        s = 2.0 ** (-np.arange(9) / 2)
        w = s ** (2 * np.exp(kernel.log_roughness[b]))
        hats = [(1 - Q / t**2 / d) * np.exp(-Q / t**2 / 2) for t in s]
        K = K + np.exp(kernel.log_variances[b]) * sum(
            a * h for a, h in zip(w / w.sum(), hats, strict=True)
        )
    return K


@given(seed=st.integers(0, 99), d=st.integers(1, 5), n=st.integers(1, 12), m=st.integers(1, 9))
def test_the_kernel_is_its_formula(seed, d, n, m):
    rng = np.random.default_rng(seed)
    kernel = make_kernel(rng, d, 1 + seed % 3, mix=seed % 2 == 1)
    X, Y = rng.normal(3.0, 2.0, (n, d)), rng.normal(3.0, 2.0, (m, d))
    assert_allclose(kernel(X, Y), by_definition(kernel, X, Y), atol=1e-13 * kernel.diagonal)


@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_the_kernel_is_positive_definite_with_a_constant_diagonal(d, mix, rng):
    kernel = make_kernel(rng, d, 3, mix=mix)
    K = kernel(*[rng.normal(3.0, 2.0, (80, d))] * 2)
    assert_allclose(np.diag(K), kernel.diagonal, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * kernel.diagonal


def test_roughness_is_that_of_a_matern_kernel(rng):
    """1 - k(h) falls as h^(2ν) between the finest and the coarsest scale."""
    for nu in (0.5, 0.75):
        kernel = HatMixture(np.zeros(1), np.array([np.log(nu)]), np.zeros((1, 1)))
        h = np.array([0.12, 0.24])
        drop = 1 - kernel(np.zeros((1, 1)), h[:, None])[0]
        assert abs(np.log(drop[1] / drop[0]) / np.log(2) - 2 * nu) < 0.25


def test_far_rows_are_exactly_uncorrelated(rng):
    kernel = make_kernel(rng)
    assert (kernel(np.zeros((1, 2)), np.full((1, 2), 1e6)) == 0.0).all()


def test_lengths_say_how_far_one_column_must_move_alone(rng):
    plain, mixed = (make_kernel(rng, 3, 2, mix=mix) for mix in (False, True))
    assert_allclose(plain.lengths, np.exp(plain.log_lengths), rtol=1e-12)
    for b in range(2):
        steps = mixed.coordinates(b, np.diag(mixed.lengths[b]))
        assert_allclose(np.linalg.norm(steps, axis=1), 1.0, rtol=1e-12)
    none = replace(mixed, mixing=np.zeros_like(mixed.mixing))
    X = rng.normal(3.0, 2.0, (7, 3))
    assert_allclose(none(X, X), replace(none, mixing=None)(X, X), rtol=1e-12)


def make_problem(rng, n=30, k=1, ard=True, mix=False):
    X = rng.normal(3.0, 2.0, (n, 2))
    rows = Block(X, rng.normal(1.5, 1.0, (n, k)), rng.integers(1, 4, n).astype(float))
    trend = Stack((ConstantFamily().draw(0, X, rng), LinearFamily().draw(0, X, rng)))
    return make_kernel(rng, ard=ard, mix=mix), rows, trend


def test_the_exact_evidence_is_the_gaussian_density_of_repeated_rows(rng):
    kernel, rows, trend = make_problem(rng)
    log_priors, log_noise = np.array([0.4, -0.7]), np.array([-0.9])
    e = exact_evidence(kernel, rows, trend(rows.X), trend.groups, log_priors, log_noise)
    again = np.repeat(np.arange(len(rows)), rows.weights.astype(int))
    X, y = rows.X[again], rows.y[again, 0]
    Z = trend(X) * np.exp(0.5 * log_priors)[trend.groups]
    C = kernel(X, X) + Z @ Z.T + np.exp(log_noise[0]) * np.eye(len(y))
    assert_allclose(e.value, multivariate_normal(cov=C).logpdf(y), rtol=1e-9)


@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.parametrize("ard", [True, False])
@pytest.mark.parametrize("k", [1, 2])
def test_every_gradient_of_the_exact_evidence_is_its_central_difference(ard, k, mix, rng):
    kernel, rows, trend = make_problem(rng, k=k, ard=ard, mix=mix)

    def at(v):
        moved = kernel.with_theta(v[k + 2 :])
        return exact_evidence(moved, rows, trend(rows.X), trend.groups, v[k : k + 2], v[:k])

    for _ in range(3):
        v = np.concatenate([rng.normal(-1, 0.3, k), rng.normal(size=2), kernel.theta])
        v[k + 2 :] += 0.2 * rng.normal(size=len(kernel.theta))
        e = at(v)
        gradient = np.concatenate([e.log_noise, e.log_priors, e.theta])
        step = 1e-5
        difference = [
            (at(v + step * u).value - at(v - step * u).value) / (2 * step) for u in np.eye(len(v))
        ]
        assert_allclose(gradient, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 30, 700])
def test_lower_triangles_of_the_kernel_are_those_of_all_pairs(n, rng):
    kernel, X = make_kernel(rng, 5, 3, mix=True), rng.normal(3.0, 2.0, (n, 5))
    K = kernel.lower(X)
    assert K.flags.f_contiguous
    assert_allclose(np.tril(K), np.tril(kernel(X, X)), atol=1e-13 * kernel.diagonal)


def test_the_kernel_pulls_back_what_lower_triangles_hold_in_tiles_of_any_size(rng):
    """2 Σ_{i>j} G_ij ∂k_ij plus the diagonal, of more rows than are taken at a time."""
    kernel, X = make_kernel(rng, 2, 2, mix=True), rng.normal(3.0, 2.0, (1300, 2))
    half = rng.normal(size=(len(X), len(X)))
    G, step, theta = np.asfortranarray(half + half.T), 1e-5, kernel.theta
    found = kernel.pull_back(X, np.asfortranarray(np.tril(G)))
    for u, slope in zip(np.eye(len(theta)), found, strict=True):
        above, below = (kernel.with_theta(theta + s * u)(X, X) for s in (step, -step))
        assert_allclose(slope, np.vdot(G, above - below) / (2 * step), rtol=1e-5, atol=1e-3)


def test_products_of_matrices_pull_back_what_loops_over_pairs_do(rng, monkeypatch):
    kernel, X = make_kernel(rng, 7, 2, mix=True), rng.normal(3.0, 2.0, (130, 7))
    half = rng.normal(size=(len(X), len(X)))
    G = np.asfortranarray(np.tril(half + half.T))
    found = []
    for columns in (7, 8):
        monkeypatch.setattr(inducing, "MANY_COLUMNS", columns)
        found.append(kernel.pull_back(X, G))
    assert not np.array_equal(*found)  # they are computed in two ways
    assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("log_noise", [-2.0, -9.0])
def test_a_gradient_in_single_precision_has_four_digits(log_noise, rng, monkeypatch):
    kernel, rows, trend = make_problem(rng, n=SINGLE_ROWS)
    rows = replace(rows, weights=np.ones(len(rows)))

    def at(log_noise):
        e = exact_evidence(
            kernel, rows, trend(rows.X), trend.groups, np.zeros(2), np.array([log_noise])
        )
        return e.value, np.concatenate([e.log_noise, e.log_priors, e.theta])

    (value, single), (_, noiseless) = at(log_noise), at(-30.0)
    monkeypatch.setattr("rwf.inference.evidence.SINGLE_ROWS", len(rows) + 1)
    (other, double), (_, exact) = at(log_noise), at(-30.0)
    assert value == other
    assert 0 < np.abs(single - double).max() < 2e-4 * np.abs(double).max()
    assert (noiseless == exact).all()  # below the noise that it resolves


def test_whitened_features_reproduce_the_kernel_at_their_centres(rng):
    kernel, rows, _ = make_problem(rng)
    atoms = NystromFeatures.at(kernel, rows.X, 1e-10)
    Z = atoms(rows.X)
    assert_allclose(Z @ Z.T, kernel(rows.X, rows.X), atol=1e-8)
    assert_allclose(atoms.missing(Z), 0.0, atol=1e-8)
    far = np.full((1, 2), 1e6)
    assert_allclose(atoms.missing(atoms(far)), kernel.diagonal)
    few = NystromFeatures.at(kernel, rows.X[:5], 1e-10)
    Z = few(rows.X)
    missing = few.missing_covariance(rows.X, Z)
    assert_allclose(np.diag(missing), few.missing(Z), atol=1e-9)
    assert np.linalg.eigvalsh(missing).min() > -1e-9  # Z Zᵀ never exceeds the kernel


def test_features_keep_the_precision_they_are_given(rng):
    kernel, rows, _ = make_problem(rng)
    atoms = NystromFeatures.at(kernel, rows.X, 1e-8)
    assert atoms(rows.X.astype(np.float32)).dtype == np.float32


def test_the_jitter_hides_only_what_is_far_below_the_noise(rng):
    kernel, rows, trend = make_problem(rng)
    for noise in (1e-1, 1e-7):
        shape = KernelParameters(kernel, np.zeros(2), np.log([noise]))
        atoms = induced(shape, trend, rows.X).features.maps[0]
        assert atoms.jitter <= max(1e-3 * noise, 1e-11 * kernel.diagonal) * 1.01


def test_what_atoms_miss_is_added_up_to_what_the_noise_already_holds():
    full = NystromResidual.learn(variance=2.0, missing=0.0, noise=0.3)
    assert_allclose(full.extra(np.array([0.0, 0.5])), [0.0, 1.0])
    few = NystromResidual.learn(variance=2.0, missing=0.4, noise=0.3)  # r̄ = 0.8, g = 0.3/1.6
    assert_allclose(few.extra(np.array([0.4])), 0.0, atol=1e-15)
    assert few.extra(np.array([0.0]))[0] > -0.3  # never all of the noise
    assert_allclose(few.extra(np.array([1.0])), 0.3 / 1.6 * (2.0 - 0.8))


def test_the_residual_of_a_nystrom_model_keeps_half_of_the_noise():
    few = NystromResidual.learn(variance=2.0, missing=0.5, noise=0.2)
    assert few.in_noise == pytest.approx(0.1)
    assert few.share == pytest.approx(0.2)  # g = σ²/2r̄ = 0.1
    many = NystromResidual.learn(variance=2.0, missing=0.01, noise=0.2)
    assert (many.share, many.in_noise) == (2.0, pytest.approx(0.02))
    exact = NystromResidual.learn(variance=2.0, missing=-1e-16, noise=0.2)
    assert (exact.share, exact.in_noise) == (2.0, 0.0)
    assert_allclose(few.extra(np.array([0.0, 0.5])), [-0.1, 0.0], atol=1e-16)


def prior_differences(kernel, step=1e-6):
    theta = kernel.theta
    ends = [
        [kernel_prior(kernel.with_theta(theta + sign * e))[0] for sign in (1, -1)]
        for e in step * np.eye(len(theta))
    ]
    return -np.diff(ends)[:, 0] / (2 * step)


@pytest.mark.parametrize("d, ard", [(1, True), (16, True), (17, True), (40, True), (40, False)])
def test_the_prior_holds_many_length_scales_together(d, ard, rng):
    """It is a normal density about their mean, with that mean as a free parameter."""
    kernel = make_kernel(rng, d, 2, ard)
    value, gradient = kernel_prior(kernel)
    assert_allclose(gradient, prior_differences(kernel), atol=1e-8)
    if d <= 16 or not ard:
        assert value == 0.0
    else:
        expected = -kernel.log_lengths.var(axis=1).sum() * d / (2 * LENGTH_SPREAD**2)
        assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize("d, ard", [(1, True), (4, True), (18, True), (4, False)])
def test_the_prior_keeps_columns_apart(d, ard, rng):
    kernel = make_kernel(rng, d, 2, ard, mix=True)
    plain = kernel_prior(replace(kernel, mixing=None))[0]
    value, gradient = kernel_prior(kernel)
    assert_allclose(value - plain, -((kernel.mixing / MIXING_SPREAD) ** 2).sum() / 2, rtol=1e-10)
    assert_allclose(gradient, prior_differences(kernel), atol=1e-7)


def test_a_full_metric_finds_columns_that_act_together(rng):
    """A wave along the sum of two columns: the evidence gains by a full metric."""
    X = rng.normal(size=(160, 2))
    y = np.sin(3 * X.sum(axis=1, keepdims=True)) + 0.1 * rng.normal(size=(160, 1))
    rows = Block(X, y, np.ones(160))
    shape, report = climb_kernel(first_kernel(1, 2, (), 1, ard=True, full=True), None, rows, 60)
    _, alone = climb_kernel(first_kernel(1, 2, (), 1, ard=True), None, rows, 60)
    assert report.log_evidence_per_row > alone.log_evidence_per_row + 0.3
    along, across = shape.kernel.coordinates(0, np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert np.linalg.norm(along) > 3 * np.linalg.norm(across)


def test_many_length_scales_do_not_follow_the_noise(rng):
    """Of forty columns one matters: its length is apart, and the others stay together."""
    X = rng.normal(size=(120, 40))
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(120, 1))
    rows = Block(X, y, np.ones(120))
    shape, _ = climb_kernel(first_kernel(1, 40, (), 1, ard=True), None, rows, 40)
    own, *others = shape.kernel.log_lengths[0]
    assert own < min(others) - 1.0
    assert np.std(others) < 1.5 * LENGTH_SPREAD


def test_the_variance_that_atoms_miss_falls_to_zero_at_their_centres(rng):
    kernel, rows, trend = make_problem(rng)
    shape = KernelParameters(kernel, np.zeros(2), np.array([-3.0]))
    few, all_of_them = (induced(shape, trend, rows.X[:m]) for m in (5, 30))
    K, K_T = kernel(rows.X, rows.X), kernel(rows.X, rows.X[:5])
    reached = np.einsum("nm,mn->n", K_T, np.linalg.solve(K[:5, :5], K_T.T))
    assert_allclose(missing_variance(few, rows), np.mean(kernel.diagonal - reached), rtol=1e-5)
    assert missing_variance(all_of_them, rows) < 1e-6 * kernel.diagonal


def test_climbing_finds_the_relevant_column_and_the_noise(rng):
    X = rng.normal(size=(200, 2))
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=200)
    rows = Block(X, y[:, None], np.ones(200))
    shape, report = climb_kernel(first_kernel(1, 2, [], 1, ard=True), None, rows, 40)
    assert report.log_evidence_per_row > -0.5
    assert shape.kernel.log_lengths[0, 1] > shape.kernel.log_lengths[0, 0] + 1
    assert 0.5 < np.exp(shape.log_noise[0]) / 0.04 < 2.0


def test_the_best_start_is_chosen_and_all_are_reported(rng):
    X = rng.uniform(size=(60, 1))
    rows = Block(X, np.sin(40 * X), np.ones(60))
    first = first_kernel(1, 1, [], 1, ard=True)
    messages = []
    shape, trials = learn_kernel(
        first, None, rows, rng, n_trials=3, max_iter=12, progress=messages.append
    )
    chosen = [s for s in trials if s.chosen]
    assert len(trials) == 3
    assert len(messages) >= 3
    assert chosen[0].log_evidence_per_row == max(s.log_evidence_per_row for s in trials)
    value = exact_evidence(
        shape.kernel, rows, np.empty((60, 0)), np.empty(0, int), np.empty(0), shape.log_noise
    ).value
    assert_allclose(value / 60, chosen[0].log_evidence_per_row, rtol=1e-9)


def test_blocks_start_apart_and_low_dimensions_start_shorter_and_shorter(rng):
    first = first_kernel(3, 8, [], 1, ard=True)
    lengths = other_kernel(first, 0, rng).kernel.log_lengths
    assert np.abs(lengths[0] - lengths[1]).max() > 0.01
    low = first_kernel(1, 2, [], 1, ard=True)
    assert_allclose(
        other_kernel(low, 2, rng).kernel.log_lengths, low.kernel.log_lengths - 2 * np.log(4.0)
    )


@pytest.fixture
def small(monkeypatch):
    """The same rules for fewer rows and atoms."""
    monkeypatch.setattr(nystrom, "ALL_ROWS", 200)
    monkeypatch.setattr(nystrom, "COMPONENTS", 40)
    monkeypatch.setattr(nystrom, "MORE_ROWS", 600)


def table(n, noise, rng):
    X = rng.uniform(2.0, 5.0, (n, 4))
    return X, 7.0 + np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.normal(size=n)


def n_atoms(n, noise, rng, n_components=None):
    model = RWFRegressor(n_components, n_restarts=0, max_iter=15, trend="constant", random_state=0)
    return model.fit(*table(n, noise, rng)).n_features_out_ - 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "n, noise, expected",
    [(150, 0.5, 150), (400, 0.5, 40), (400, 1e-4, 400), (900, 1e-4, 40)],
    ids=["few rows", "noisy rows", "rows without noise", "too many rows"],
)
def test_inducing_inputs_are_as_many_as_the_noise_needs(n, noise, expected, rng):
    assert n_atoms(n, noise, rng) == expected


@pytest.mark.usefixtures("small")
def test_a_given_number_is_kept(rng):
    assert n_atoms(400, 0.5, rng, n_components=300) == 300


def test_the_number_of_inducing_inputs_by_rows():
    prior = nystrom.Nystrom()
    numbers = [prior.n_components(n) for n in (10, 3000, 3001, 9000, 20_000, 20_001)]
    assert numbers == [10, 3000, 3001, 4000, 4000, 2500]
    # In model selection there are no more than with much noise.
    assert prior.cheap().n_components(9000) == 2500


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "n, d, options, full",
    [
        (400, 4, {}, True),
        (400, 16, {}, True),
        (400, 17, {}, False),
        (400, 3, {"prior": "nystrom"}, False),
        (150, 4, {}, False),
        (400, 4, {"metric": "isotropic"}, False),
        (400, 4, {"metric": "ard"}, False),
        (150, 4, {"metric": "full"}, True),
        (400, 2, {"metric": "full", "prior": "nystrom"}, True),
    ],
)
def test_when_the_metric_is_full(n, d, options, full, rng):
    X = rng.uniform(2.0, 5.0, (n, d))
    y = 7.0 + np.sin(3 * (X[:, 0] + X[:, 1])) + 0.1 * rng.normal(size=n)
    settings = {"n_restarts": 0, "max_iter": 3, "neighbors": None, "random_state": 0}
    model = RWFRegressor(30, **settings, **options).fit(X, y)
    mixing = model.model_.base.nystrom.kernel.mixing
    assert (mixing is not None) == full
    if full:
        assert np.abs(mixing).max() > 0
        assert model.length_scales_.shape[1] == d


@pytest.mark.parametrize("ard, mix", [(True, True), (True, False), (False, False)])
def test_entries_of_theta_have_names(rng, ard, mix):
    kernel = make_kernel(rng, d=3, ard=ard, mix=mix)
    names = np.array(theta_names(kernel))
    assert len(names) == len(kernel.theta)
    moved = kernel.with_theta(kernel.theta + (names == "length-scale"))
    assert_allclose(moved.log_lengths, kernel.log_lengths + 1)
    assert_allclose(moved.log_variances, kernel.log_variances)
    assert_allclose(moved.log_roughness, kernel.log_roughness)
    moved = kernel.with_theta(kernel.theta + (names == "roughness"))
    assert_allclose(moved.log_roughness, kernel.log_roughness + 1)
    assert (names == "rotation").sum() == (2 * 6 if mix else 0)
