"""The blend with a nearest-neighbor GP: when it is used, what it adds, and its error bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.data.holdout import held_out_rows
from rwf.data.rows import Block
from rwf.features import ConstantFeatures, LinearFeatures, Stack
from rwf.inference.multifrontal import (
    AtomTree,
    accumulate_tree,
    draw_multifrontal_lattice,
    power_law,
    tree_fixed_point,
)
from rwf.inference.posterior import Marginals, normal_log_density
from rwf.uncertainty.blending import (
    BlendWeights,
    Expert,
    ExpertInputs,
    LocalScale,
    _experts,
    learn_output_blend,
)
from rwf.uncertainty.vecchia import MaternKernel, VecchiaGP
from rwf.wavelets.radial import Bump


def rows_of(n):
    return Block(np.zeros((n, 1)), np.zeros((n, 1)), np.ones(n))


def block(X, y):
    return Block(X, y[:, None], np.ones(len(y)))


def terrain(n, rng, d=2):
    """Smooth on the left and rough on the right of the first input, nearly without noise."""
    X = rng.uniform(1.0, 2.0, (n, d))
    rough = np.prod(np.sin(60.0 * X), axis=1) * np.where(X[:, 0] > 1.5, 1.0, 0.02)
    return X, 3.0 + X.sum(axis=1) + rough + rng.normal(0.0, 0.002, n)


class Fitted:
    """A tree of few atoms on some rows, blended with a nearest-neighbor GP."""

    def __init__(self, X, y, rng, n_features=60):
        local = draw_multifrontal_lattice(Bump(), X, n_features, rng)
        features = Stack((LinearFeatures(X.shape[1]), *local, ConstantFeatures()))
        tree = AtomTree.of(features, X.shape[1])
        moments = accumulate_tree(tree, [Block(X, y[:, None], np.ones(len(X)))], 1)
        self.posterior = tree_fixed_point(
            moments, 0, features.groups, power_law(features)
        ).posterior
        held = held_out_rows(rows_of(len(X)), rng)
        unseen = self.posterior.leave_one_out(X[held], y[held], np.ones(len(held)))
        found = learn_output_blend(block(X, y), held, unseen, rng)
        self.blend = None if found is None else found.blend

    def predict(self, X):
        model = self.posterior.predict(X)
        return model, self.blend.predict(X, model)


def scores(y, p):
    return (y - p.mean) / np.sqrt(p.variance)


def density(y, p):
    return float(normal_log_density(y - p.mean, p.variance).mean())


def rmse(y, p):
    return float(np.sqrt(np.mean((y - p.mean) ** 2)))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(4)
    X, y = terrain(5000, rng)
    return Fitted(X[:3500], y[:3500], rng), X[3500:], y[3500:]


def test_it_adds_what_atoms_are_too_coarse_for(fitted):
    model, X, y = fitted
    alone, both = model.predict(X)
    assert rmse(y, both) < 0.5 * rmse(y, alone)
    gain = density(y, both) - density(y, alone)
    assert model.blend.gain == pytest.approx(gain, rel=0.15)


def test_its_error_bars_hold_where_the_terrain_is_smooth_and_where_it_is_rough(fitted):
    model, X, y = fitted
    _, both = model.predict(X)
    for side in (X[:, 0] < 1.48, X[:, 0] > 1.52):
        covered = np.mean(np.abs(scores(y, both)[side]) < 1.96)
        assert 0.9 < covered < 0.99
    deviation = np.sqrt(both.variance)
    assert deviation[X[:, 0] > 1.52].mean() > 5 * deviation[X[:, 0] < 1.48].mean()


def test_squares_are_relative_to_those_of_all_rows(fitted):
    model, _, _ = fitted
    assert model.blend.squares.mean() == pytest.approx(1.0)


def test_far_from_rows_the_blend_is_the_model(fitted):
    model, _, _ = fitted
    far = np.array([[1.5, 9.0], [-20.0, 3.0]])
    certain = Marginals(np.array([4.0, 5.0]), np.full(2, 1e-3))
    found = model.blend.predict(far, certain)
    assert_allclose(found.mean, certain.mean, atol=1e-4)
    # There is no row nearby, so that the scale is one.
    experts = model.blend.experts
    given = sum(expert.weight for expert in experts)
    factor = sum(expert.weight * expert.mixing.model for expert in experts) + 1.0 - given
    assert_allclose(found.variance, factor * certain.variance, rtol=1e-2)


@pytest.mark.parametrize("d", [1, 3])
def test_it_helps_in_one_and_three_dimensions(d, rng):
    X = rng.uniform(1.0, 2.0, (2300, d))
    y = np.sin((150.0 if d == 1 else 12.0) * X).sum(axis=1) + rng.normal(0.0, 0.02, len(X))
    model = Fitted(X[:2000], y[:2000], rng, n_features=30)
    alone, both = model.predict(X[2000:])
    assert rmse(y[2000:], both) < 0.5 * rmse(y[2000:], alone)
    assert 0.9 < np.mean(np.abs(scores(y[2000:], both)) < 1.96) < 0.99


@pytest.mark.parametrize("seed", range(2))
def test_where_only_noise_is_left_there_is_no_blend(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 2.0, (1000, 2))
    y = 3.0 + X[:, 0] + rng.normal(0.0, 0.5, 1000)
    assert Fitted(X, y, rng).blend is None


def test_few_or_constant_rows_have_no_blend(rng):
    X = rng.normal(2.0, 1.0, (400, 2))
    for rows, y in ((200, X[:, 0]), (400, np.full(400, 7.0))):
        held = held_out_rows(rows_of(rows), rng)
        unseen = Marginals(y[held], np.ones(len(held)))
        assert learn_output_blend(block(X[:rows], y[:rows]), held, unseen, rng) is None


def test_repeated_rows_are_no_failure(rng):
    X, y = terrain(500, rng)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3) + rng.normal(0.0, 0.01, 1500)
    model = Fitted(X, y, rng)
    _, both = model.predict(X[:30])
    assert np.isfinite(both.mean).all()
    assert (both.variance > 0).all()


def test_units_of_y_do_not_matter(rng):
    X, y = terrain(900, rng)
    held = held_out_rows(rows_of(800), rng)
    constant = Marginals(np.full(900, 6.0), np.full(900, 0.1))

    def predicted(factor, shift):
        model = Marginals(factor * constant.mean + shift, factor**2 * constant.variance)
        unseen, there = (Marginals(model.mean[i], model.variance[i]) for i in (held, np.s_[800:]))
        generator = np.random.default_rng(8)
        found = learn_output_blend(
            block(X[:800], factor * y[:800] + shift), held, unseen, generator
        )
        return found.blend.predict(X[800:], there)

    one, other = predicted(1.0, 0.0), predicted(50.0, -9.0)
    assert_allclose((other.mean + 9.0) / 50.0, one.mean, rtol=1e-6)
    assert_allclose(other.variance / 2500.0, one.variance, rtol=1e-6)


# -------------------------------------------------------------------------------------- its parts


def test_the_blend_has_the_least_variance_of_all_weights(rng):
    model = Marginals(rng.normal(2.0, 1.0, 30), rng.uniform(0.5, 3.0, 30))
    neighbors = Marginals(rng.normal(2.0, 1.0, 30), rng.uniform(0.5, 3.0, 30))
    mixing, scale = BlendWeights(0.7, 1.4, 0.6), rng.uniform(0.5, 2.0, 30)
    found = mixing.blend(model, neighbors, scale)
    a, b = np.sqrt(0.7 * model.variance), np.sqrt(1.4 * neighbors.variance)
    weights = np.linspace(0.0, 1.0, 20001)[:, None]
    variances = scale * (
        ((1 - weights) * a) ** 2 + (weights * b) ** 2 + 1.2 * weights * (1 - weights) * a * b
    )
    assert_allclose(found.variance, variances.min(axis=0), rtol=1e-6)
    best = weights[variances.argmin(axis=0), 0]
    assert_allclose(found.mean, (1 - best) * model.mean + best * neighbors.mean, atol=1e-3)


def test_the_local_scale_is_the_mean_of_squares_nearby_and_one_far_from_rows(rng):
    X = np.concatenate([rng.normal(0.0, 0.1, (50, 2)), rng.normal(9.0, 0.1, (50, 2))])
    squares = np.repeat([0.2, 1.8], 50)
    gp = VecchiaGP(MaternKernel(3, np.ones(2), 1.0, 0.1), X, np.zeros(100))
    distances, near = gp.nearest(np.array([[0.0, 0.0], [9.0, 9.0], [4.5, -40.0]]), 30)
    found = LocalScale(nearby=20, prior_rows=0.5, radius=1.0)(distances, squares[near])
    assert_allclose(found[:2], [0.2, 1.8], atol=0.03)
    assert found[2] == 1.0


def test_a_scale_uses_no_more_rows_than_nearby():
    distances, squares = np.zeros((1, 3)), np.array([[2.0, 4.0, 900.0]])
    assert LocalScale(2, prior_rows=1.0, radius=1.0)(distances, squares) == pytest.approx(7.0 / 3.0)


def two_predictions(rng, n=300, better=1.0):
    """A model that errs by one, and neighbors that err by ``better``; scores of one everywhere."""
    y = rng.normal(5.0, 3.0, n)
    model = Marginals(y + rng.normal(0.0, 1.0, n), np.ones(n))
    neighbors = Marginals(y + rng.normal(0.0, better, n), np.full(n, better**2))
    return y, ExpertInputs(model, neighbors, np.ones((n, 80)), np.ones((n, 80)))


def test_an_average_is_a_mixture_of_experts_and_of_the_model_alone(rng):
    _, given = two_predictions(rng, 7, better=0.3)
    scale = LocalScale(20, 4.0, 1.0)
    experts = [
        Expert(0.5, scale, BlendWeights(1.3, 0.8, 0.2)),
        Expert(0.2, scale, BlendWeights(2.0, 1.0, 0.9)),
    ]
    found = given.average(experts)
    parts = [v.mixing.blend(given.model, given.neighbors, np.ones(7)) for v in experts]
    draws = [
        w * np.array([p.mean, p.variance + p.mean**2])
        for w, p in zip([0.5, 0.2, 0.3], [*parts, given.model], strict=True)
    ]
    mean, square = np.sum(draws, axis=0)
    assert_allclose(found.mean, mean)
    assert_allclose(found.variance, square - mean**2)


def test_experts_are_weighted_by_the_fourth_root_of_their_likelihood(rng):
    y, given = two_predictions(rng, better=2.0)
    experts = _experts(given, y)

    def log_density(p):
        return normal_log_density(y - p.mean, p.variance).sum()

    gains = [
        log_density(
            v.mixing.blend(given.model, given.neighbors, v.scale(given.distances, given.squares))
        )
        - log_density(given.model)
        for v in experts
    ]
    weights = np.array([expert.weight for expert in experts])
    assert (np.diff(weights) <= 0).all()
    assert_allclose(np.log(weights / weights[0]), (np.array(gains) - gains[0]) / 4, atol=1e-9)
    # The weight of the dropped experts, a hundredth of all, goes to these.
    alone = np.log(128 * weights[0] / (1 - weights.sum()))
    assert gains[0] / 4 <= alone <= gains[0] / 4 - np.log(0.99)


def test_an_expert_with_zero_errors_is_dropped(rng):
    y, given = two_predictions(rng)
    perfect = replace(given, neighbors=Marginals(y, np.ones(len(y))))
    with np.errstate(all="ignore"):
        assert _experts(perfect, y) == ()
