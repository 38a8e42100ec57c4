"""Fewer columns: what is kept, what changes, and that error bars stay honest."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RFFRegressor, RWFRegressor
from rwf.dropped import NEAREST, Dropped
from rwf.errors import NoAtomsNearbyWarning
from rwf.features import FourierFamily, LinearFamily, RidgeFamily, WaveletFamily
from rwf.features.linear import ConstantFeatures
from rwf.features.mixture import HatMixture, ProjectedFeatures
from rwf.features.stack import Stack
from rwf.features.thinning import column_owners, thinned
from rwf.measures import Measure, Rows
from rwf.moments import accumulate, accumulate_root
from rwf.rows import Block
from rwf.selection import Columns, Target, backwards, fewest, refitted, so_many
from rwf.wavelets import ComplexMorlet, MexicanHat

PRIORS = ["cells", "adaptive", "independent", "projected"]


def uneven(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fast on the left, slow on the right, in units of its own."""
    x = rng.uniform(size=n)
    f = 5.0 + 3.0 * np.where(x < 0.3, np.sin(90 * x), 0.4 * np.sin(8 * x))
    return 10.0 + 4.0 * x[:, None], f + 0.3 * rng.normal(size=n), f


def rmse(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


# ---------------------------------------------------------------------------------------- selection


def problem(p: int, rng: np.random.Generator, n_outputs: int = 1) -> Columns:
    Z = rng.normal(size=(3 * p, p)) @ rng.normal(size=(p, p))
    G, targets = Z.T @ Z, []
    for k in range(n_outputs):
        A = G / (0.5 + k) + np.diag(rng.uniform(0.1, 9.0, p))
        targets.append(Target(A, rng.normal(size=p) * rng.uniform(size=p) ** 6, 0.7 + k))
    owners = np.arange(p) // 2 - 1  # pairs, and two columns that always stay
    return Columns(G / len(Z), tuple(targets), owners)


@given(p=st.integers(4, 30), k=st.integers(1, 2), tolerance=st.floats(1e-4, 10.0))
def test_the_fewest_columns_keep_to_the_tolerance_and_none_can_go(p, k, tolerance):
    columns = problem(p, np.random.default_rng(p), k)
    keep = fewest(columns, tolerance)
    assert_array_equal(keep, np.unique(keep))
    assert {0, 1} <= set(keep)
    assert columns.largest_change(keep) <= tolerance * (1 + 1e-6)
    for atom in np.unique(columns.owners[keep]):
        assert set(columns.of(atom)) <= set(keep)


@given(p=st.integers(4, 30), count=st.integers(1, 20))
def test_no_more_columns_are_kept_than_asked_for(p, count):
    columns = problem(p, np.random.default_rng(p))
    keep = so_many(columns, count)
    free = columns.free[keep].sum()
    assert free == p - 2 if p - 2 <= count else count - 1 <= free <= count


def test_refitting_is_the_posterior_mean_of_the_columns_left(rng):
    columns, keep = problem(12, rng), np.array([0, 1, 6, 7])
    (target,) = columns.targets
    A, b = target.precision, target.precision @ target.mean
    expected = np.linalg.solve(A[np.ix_(keep, keep)], b[keep])
    assert_allclose(refitted(target, keep), expected, rtol=1e-8, atol=1e-10)


def test_dropping_an_atom_by_the_schur_complement_is_refitting_without_it(rng):
    columns, seen = problem(12, rng, 2), []
    backwards(columns, np.arange(12), lambda keep, change: not seen.append((keep, change)))
    assert [len(keep) for keep, _ in seen] == [12, 10, 8, 6, 4]
    for (_, change), (left, _) in pairwise(seen):
        assert_allclose(change, columns.largest_change(left), rtol=1e-6)


def test_greedy_finds_columns_that_alone_carry_f(rng):
    A = np.diag(rng.uniform(1.0, 3.0, 20)) + 0.01
    mean = np.zeros(20)
    mean[[3, 11, 17]] = 2.0, -3.0, 1.0
    target = Target(A, mean, 1.0)
    columns = Columns(A, (target,), np.arange(20))
    assert_array_equal(fewest(columns, 1e-3), [3, 11, 17])
    assert_array_equal(so_many(columns, 2), [3, 11])


# ----------------------------------------------------------------------------------------- thinning


def stacks(rng: np.random.Generator) -> dict[str, Stack]:
    X, measure = rng.normal(size=(60, 2)), Measure(0.4, 2.0, Rows())
    families = {
        "wavelet": WaveletFamily(MexicanHat(), measure, 1.3, normalization="energy"),
        "complex": WaveletFamily(ComplexMorlet(), measure, 1.3),
        "ridge": RidgeFamily(MexicanHat(), measure, 1.3),
        "fourier": FourierFamily("se", 1.3),
    }
    maps = {name: family.draw(12, X, rng) for name, family in families.items()}
    kernel = HatMixture(np.array([0.3]), np.array([0.1]), np.array([[0.2, -0.3]]))
    maps["projected"] = ProjectedFeatures.at(kernel, X[:12], 1e-8)
    trend = LinearFamily().draw(0, X, rng)
    return {name: Stack((part, trend)) for name, part in maps.items()}


@pytest.mark.parametrize("kind", ["wavelet", "complex", "ridge", "fourier", "projected"])
def test_the_columns_left_are_the_combinations_that_they_are_said_to_be(kind, rng):
    stack, X = stacks(rng)[kind], rng.normal(size=(9, 2))
    owners = column_owners(stack)
    keep = np.flatnonzero(np.isin(owners, [-1, 1, 2, 5]))
    left = thinned(stack, keep)
    Z = stack(X)
    assert_allclose(left.stack(X), Z @ left.C, rtol=1e-6, atol=1e-9)
    if kind != "projected":
        assert_allclose(left.stack(X), Z[:, keep] * left.growth, rtol=1e-12)


def test_a_block_can_go_altogether_and_cells_are_numbered_anew(rng):
    first, trend = stacks(rng)["wavelet"].maps
    cells = (np.arange(12) // 3, np.arange(12) % 4, np.zeros(2, dtype=int))
    stack = Stack((first, first, trend), cells)
    left = thinned(stack, np.array([13, 14, 17, 24, 25])).stack
    assert len(left.maps) == 2
    assert_array_equal(left.groups, [0, 1, 0, 2, 2])
    assert_array_equal(left.parents, [0, 0, 1])


@pytest.mark.parametrize("gather", [accumulate, accumulate_root])
def test_moments_of_combinations_are_those_of_their_rows(gather, rng):
    stack, X, C = stacks(rng)["wavelet"], rng.normal(size=(50, 2)), rng.normal(size=(14, 5))
    rows = Block(X, rng.normal(3.0, 2.0, (50, 2)), rng.uniform(0.5, 2.0, 50))
    found = gather(stack, [rows], 2).combined(C)

    class Combined:
        n_features = 5

        def into(self, X, out):
            out[:] = stack(X) @ C

    expected = gather(Combined(), [rows], 2)
    priors, w = rng.uniform(0.5, 2.0, 5), rng.normal(size=5)
    a, b = (moments.posterior(1, priors, 0.3) for moments in (found, expected))
    assert_allclose(a.mean, b.mean, rtol=1e-8)
    assert_allclose(a.rss, b.rss, rtol=1e-8)
    assert_allclose(a.log_evidence, b.log_evidence, rtol=1e-8)
    assert_allclose(found.ZtZ, expected.ZtZ, rtol=1e-9, atol=1e-12)
    square = np.sum(rows.weights * (stack(X) @ C @ w) ** 2)
    assert_allclose(found.squared_norm(w), square, rtol=1e-9)


# --------------------------------------------------------------------------------- variance dropped


def test_dropped_variance_is_that_of_an_anchor_there_and_between_them_elsewhere(rng):
    anchors, values = rng.normal(size=(40, 2)), rng.uniform(1.0, 3.0, (40, 2))
    dropped = Dropped(anchors, values, values[:, 0] / 3)
    assert_allclose(dropped.missing(anchors, 1), values[:, 1], rtol=1e-6)
    assert_allclose(dropped.coverage(anchors), values[:, 0] / 3, rtol=1e-6)
    X = rng.normal(size=(200, 2))
    found = dropped.missing(X, 0)
    nearest = np.argsort(np.linalg.norm(X[:, None] - anchors, axis=2), axis=1)[:, :NEAREST]
    assert (found >= values[nearest, 0].min(axis=1)).all()
    assert (found <= values[nearest, 0].max(axis=1)).all()
    path = np.linspace(-1.0, 1.0, 20001)[:, None] * np.array([1.0, 0.7])
    assert np.abs(np.diff(dropped.missing(path, 0))).max() < 0.02  # no jumps


def test_one_anchor_is_everywhere():
    dropped = Dropped.everywhere(np.array([0.4, 0.9]), 3)
    assert_allclose(dropped.missing(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), 1), 0.9)


# ---------------------------------------------------------------------------------------- the model


@pytest.fixture(scope="module")
def fitted() -> dict[str, RWFRegressor]:
    X, y, _ = uneven(400, np.random.default_rng(5))
    return {
        prior: RWFRegressor(200, prior=prior, noise="constant", n_restarts=0, random_state=0).fit(
            X, y
        )
        for prior in PRIORS
    }


@pytest.mark.parametrize("prior", PRIORS)
def test_the_stated_change_is_the_measured_one(prior, fitted):
    X, _, _ = uneven(400, np.random.default_rng(5))
    model, before = fitted[prior], fitted[prior].predict(X)
    small = model.prune()
    pruning = small.pruning_
    assert pruning.kept == small.n_features_out_ < pruning.columns == model.n_features_out_
    assert_allclose(pruning.change, np.mean((before - small.predict(X)) ** 2), rtol=1e-4)
    assert 0 < pruning.relative[0] <= 0.1 * (1 + 1e-6)
    noise = model.noise_variance_
    gamma = sum(1 - model.model_.tuned[0].posterior.factor.inverse_diagonal())
    assert_allclose(pruning.change / pruning.relative, noise * gamma / 400, rtol=1e-6)
    assert_array_equal(model.predict(X), before)  # the larger model is untouched


@pytest.mark.parametrize("prior", PRIORS)
def test_pruning_is_refitting_with_these_columns_and_variances(prior, fitted):
    X, y, _ = uneven(400, np.random.default_rng(5))
    small = fitted[prior].prune(30).model_
    assert len(small.tuned[0].posterior.mean) == 32
    rows = small.scaler.rows(Block(X, y[:, None], np.ones(400)))
    p = small.tuned[0].posterior
    again = accumulate(small.shape.features, [rows], 1).posterior(
        0, p.prior_variances, p.noise_variance
    )
    Z = small.features(X)
    assert_allclose(Z @ p.mean, Z @ again.mean, atol=1e-5)
    assert_allclose(p.rss, again.rss, rtol=1e-5)


@pytest.mark.parametrize("prior", PRIORS)
def test_keeping_everything_changes_nothing(prior, fitted):
    X, _, _ = uneven(50, np.random.default_rng(6))
    model = fitted[prior]
    small = model.prune(10_000)
    assert_array_equal(small.predict(X, return_std=True), model.predict(X, return_std=True))
    assert small.pruning_.change == 0


@pytest.mark.parametrize("prior", PRIORS)
def test_error_bars_keep_the_variance_of_dropped_columns(prior, fitted):
    X, y, _ = uneven(1000, np.random.default_rng(7))
    model = fitted[prior]
    small = model.prune(20)
    wide, narrow = model.predict_function(X)[1], small.predict_function(X)[1]
    expected = np.hypot(rmse(wide, 0), np.sqrt(small.pruning_.change[0]))
    assert 0.95 < rmse(narrow, 0) / expected < 1.25  # measured 1.00 to 1.13
    mean, std = small.predict(X, return_std=True)
    assert 0.92 < np.mean(np.abs(y - mean) < 1.96 * std) < 0.985
    _, covariance = small.predict(X[:5], return_cov=True)
    assert_allclose(np.diag(covariance), std[:5] ** 2, rtol=1e-6)
    draws = small.sample_y(X[:3], 20_000, random_state=1)
    assert_allclose(draws.std(axis=1), std[:3], rtol=0.05)
    alone = replace(small.model_, dropped=Dropped.everywhere(np.zeros(1), 1))
    alone.__dict__["tuned"] = small.model_.tuned
    assert rmse(alone.predict(X, noise=False)[1], 0) < 0.8 * rmse(narrow, 0)


@pytest.mark.parametrize("prior", PRIORS)
def test_rows_can_be_added_after_pruning(prior, fitted):
    X, y, f = uneven(2600, np.random.default_rng(8))
    small = fitted[prior].prune(40)
    before = rmse(small.predict(X), f)
    small.partial_fit(X[:600], y[:600])
    assert small.model_.n_rows == 1000
    assert rmse(small.predict(X[600:]), f[600:]) < before
    mean, std = small.predict(X[600:], return_std=True)
    assert 0.92 < np.mean(np.abs(y[600:] - mean) < 1.96 * std) < 0.985


@pytest.mark.parametrize("prior", ["cells", "projected"])
def test_ten_times_fewer_columns_predict_as_well(prior):
    rng = np.random.default_rng(9)
    X, y, _ = uneven(500, rng)
    new, _, f = uneven(700, rng)
    model = RWFRegressor(500, prior=prior, n_restarts=0, random_state=0).fit(X, y)
    small = model.prune(50)
    assert small.n_features_out_ <= 0.11 * model.n_features_out_
    assert rmse(small.predict(new), f) < 1.02 * rmse(model.predict(new), f)


@pytest.mark.parametrize("prior", PRIORS)
def test_in_a_gap_the_prior_still_comes_back(prior, rng):
    x = np.concatenate([rng.uniform(0, 0.4, 200), rng.uniform(0.6, 1.0, 200)])[:, None]
    y = np.sin(50 * x[:, 0]) + 0.1 * rng.normal(size=400)
    model = RWFRegressor(150, prior=prior, trend="constant", n_restarts=0, random_state=0)
    model.fit(x, y)
    gap = np.linspace(0.42, 0.58, 9)[:, None]
    narrow, wide = model.prune().predict_function(gap)[1], model.predict_function(gap)[1]
    assert (narrow > 0.95 * wide).all()
    assert (narrow < 1.3 * wide).all()


@pytest.mark.parametrize("prior", ["cells", "projected"])
def test_far_away_the_prior_still_comes_back(prior, fitted):
    model = fitted[prior]
    far = np.array([[-90.0], [4.0], [22.0], [140.0]])
    _, wide = model.predict_function(far)
    small = model.prune(20)
    _, narrow = small.predict_function(far)
    assert (narrow > 0.8 * wide).all()
    assert (narrow < 1.3 * wide + 0.1).all()
    assert_allclose(small.coverage(far[[0, 3]]), model.coverage(far[[0, 3]]), atol=0.02)


def test_rows_without_atoms_are_still_warned_about(fitted):
    with pytest.warns(NoAtomsNearbyWarning, match="1 of 2 rows"):
        fitted["cells"].prune(20).predict(np.array([[12.0], [900.0]]), return_std=True)


def test_several_outputs_are_pruned_together(rng):
    X, y, _ = uneven(300, rng)
    Y = np.column_stack([y, 100.0 * np.cos(20 * X[:, 0])])
    model = RWFRegressor(150, prior="cells", noise="constant", random_state=0).fit(X, Y)
    small = model.prune()
    change = np.mean((model.predict(X) - small.predict(X)) ** 2, axis=0)
    assert_allclose(small.pruning_.change, change, rtol=1e-4)
    assert small.pruning_.relative.max() <= 0.1 * (1 + 1e-6)


def test_waves_are_pruned_by_frequencies(rng):
    X = rng.normal(size=(300, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    model = RFFRegressor(120, n_restarts=0, random_state=0).fit(X, y)
    small = model.prune(41)
    assert small.model_.maps[0].n_atoms == 20
    wide, narrow = model.predict_function(X)[1], small.predict_function(X)[1]
    expected = np.mean(wide**2) + small.pruning_.change[0]
    assert_allclose(np.mean(narrow**2), expected, rtol=1e-5)


def test_two_dimensions(rng):
    X = rng.uniform(-1, 1, (400, 2))
    f = np.where(X[:, 0] > 0, np.sin(9 * X[:, 0]), 0.2 * X[:, 1])
    model = RWFRegressor(300, prior="cells", random_state=0).fit(X, f + 0.1 * rng.normal(size=400))
    small = model.prune()
    new = rng.uniform(-1, 1, (300, 2))
    truth = np.where(new[:, 0] > 0, np.sin(9 * new[:, 0]), 0.2 * new[:, 1])
    assert small.n_features_out_ < 0.6 * model.n_features_out_
    assert rmse(small.predict(new), truth) < 1.1 * rmse(model.predict(new), truth)
    ratio = small.predict_function(new)[1] / model.predict_function(new)[1]
    assert 0.9 < np.median(ratio) < 1.2


def test_what_cannot_be_pruned_is_said(fitted):
    model = fitted["cells"]
    with pytest.raises(ValueError, match="n_components=0 must be a positive"):
        model.prune(0)
    with pytest.raises(ValueError, match="tolerance=0 must be positive"):
        model.prune(tolerance=0)
    with pytest.raises(ValueError, match="call partial_fit first"):
        model.without_rows().prune()


def test_a_trend_alone_can_be_left(rng):
    X = rng.uniform(size=(200, 1))
    model = RWFRegressor(60, prior="cells", random_state=0).fit(X, 3 * X[:, 0] + 1)
    small = model.prune(tolerance=1e12)
    assert all(not part.local for part in small.model_.maps)
    assert isinstance(small.model_.maps[0], ConstantFeatures)
    assert np.isfinite(small.predict(X, return_std=True)).all()
