"""Stacking with a straight line or a constant: where it happens, and its leave-one-out errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.models.base import Prediction
from rwf.models.stacked import CAUTION, Line, Stacked, stack_with_line

QUICK = {"prior": "nystrom", "n_restarts": 0, "max_iter": 10, "random_state": 0}


def rows(rng, n=60, groups=None):
    X = 3.0 + 2.0 * rng.normal(size=(n, 2))
    y = np.column_stack([4.0 + X @ [1.0, -2.0], X[:, 0]]) + rng.normal(size=(n, 2))
    return Block(X, y, rng.uniform(0.5, 2.0, n), groups=groups)


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_left_out_is_predicted_by_the_line_of_the_others(columns, grouped, rng):
    groups = np.repeat(np.arange(12), 5) if grouped else None
    block = rows(rng, groups=groups)
    found = Line.fit(block, columns).leave_one_out(block)
    for row in (0, 17, 59):
        rest = np.arange(60) != row if groups is None else groups != groups[row]
        other = Line.fit(block.part(rest), columns)
        assert_allclose(found[row], other(block.X[[row]])[0], rtol=1e-6)


def test_a_line_is_that_of_least_squares(rng):
    block = rows(rng)
    A, root = np.column_stack([np.ones(60), block.X]), np.sqrt(block.weights)[:, None]
    expected = np.linalg.lstsq(root * A, root * block.y, rcond=None)[0]
    assert_allclose(Line.fit(block, 2).coefficients, expected, rtol=1e-6)
    constant = Line.fit(block, 0)(block.X[:3])
    assert_allclose(constant, np.tile(np.average(block.y, axis=0, weights=block.weights), (3, 1)))


def test_columns_that_repeat_are_harmless(rng):
    block = rows(rng)
    twice = Block(np.hstack([block.X, block.X[:, :1]]), block.y, block.weights)
    assert_allclose(Line.fit(twice, 3)(twice.X), Line.fit(block, 2)(block.X), atol=1e-5)


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
@pytest.mark.parametrize("seed", range(3))
def test_shuffled_targets_are_predicted_by_their_mean(seed):
    rng = np.random.default_rng(seed)
    X, y, test = rng.normal(size=(200, 8)), rng.normal(size=200), rng.normal(size=(500, 8))
    model = RWFRegressor(**{**QUICK, "max_iter": 40}).fit(X, y)
    alone = RWFRegressor(**{**QUICK, "max_iter": 40}, calibration=None).fit(X, y)
    # The risk of a mean μ̂ where y ~ N(0, 1) is 1 + μ̂².
    means = model.predict(test), alone.predict(test), y.mean()
    ours, worse, constant = (np.sqrt(1.0 + np.mean(m**2)) for m in means)
    assert worse > 1.03 * constant
    assert ours - constant < 0.2 * (worse - constant)


def test_a_signal_is_left_to_the_model(rng):
    X = rng.uniform(size=(300, 2))
    y = np.sin(9.0 * X[:, 0]) + 0.1 * rng.normal(size=300)
    model = RWFRegressor(**QUICK).fit(X, y)
    assert model.fit_report_.line_share == 0.0
    assert not isinstance(model.model_.model, Stacked)


@pytest.fixture(scope="module")
def stacked():
    """A model whose second output is stacked, and that is half a line."""
    rng = np.random.default_rng(0)
    X = rng.uniform(3.0, 5.0, (200, 2))
    Y = np.column_stack([np.sin(5.0 * X[:, 0]), 4.0 + X[:, 1] + 0.5 * rng.normal(size=200)])
    base = RWFRegressor(**QUICK, calibration=None).fit(X, Y).model_
    known = base.units.rows(Block(X, Y, np.ones(200)))
    return Stacked(base, Line.fit(known, 2), np.array([1.0, 0.4])), known


def test_means_are_weighted_and_the_variance_has_their_difference(stacked):
    model, known = stacked
    p, q, line = model.model.predict(known.X), model.predict(known.X), model.line(known.X)
    assert_array_equal(q.mean[:, 0], p.mean[:, 0])
    assert_allclose(q.mean[:, 1], 0.4 * p.mean[:, 1] + 0.6 * line[:, 1])
    assert_allclose(model.mean(known.X), q.mean, rtol=1e-9, atol=1e-12)
    between = 0.4 * 0.6 * (p.mean[:, 1] - line[:, 1]) ** 2
    assert_allclose(q.function_variance[:, 1], p.function_variance[:, 1] + between)
    assert_allclose(q.noise_variance, p.noise_variance)
    assert model.line_share == pytest.approx(0.3)


def test_leave_one_out_predictions_are_stacked_alike(stacked):
    model, known = stacked
    p = model.model.leave_one_out(known)
    q = model.leave_one_out(known)
    line = model.line.leave_one_out(known)
    assert_allclose(q.mean[:, 1], 0.4 * p.mean[:, 1] + 0.6 * line[:, 1])
    assert np.abs(q.mean - model.predict(known.X).mean)[:, 1].max() > 1e-3


def test_the_share_minimises_squared_errors_and_hidden_ones(stacked):
    model, known = stacked
    base, hidden = model.model, 0.4
    p = base.leave_one_out(known)
    found = stack_with_line(base, p, known, known, hidden)
    assert found is not None
    assert found.shares[0] == 1.0
    own = (known.y - p.mean)[:, 1]
    other = (known.y - found.line.leave_one_out(known))[:, 1]

    def loss(w):
        unseen = CAUTION * hidden * np.mean(own**2)
        return np.mean((w * own + (1 - w) * other) ** 2) + w**2 * unseen

    best = loss(found.shares[1])
    assert best < min(loss(found.shares[1] - 0.01), loss(found.shares[1] + 0.01))


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_groups_are_stacked_at_any_weight(rng):
    """Leave-one-out errors of the model and of a line that are as large, and independent."""
    block = rows(rng, 600)
    line = Line.fit(block, 2).leave_one_out(block)
    errors = rng.normal(size=line.shape) * (block.y - line).std()
    p = Prediction(block.y + 0.8 * errors, *np.ones((2, *line.shape)), np.ones(600))
    assert stack_with_line(None, p, block, block, 0.0) is None
    grouped = replace(block, groups=np.arange(600))
    found = stack_with_line(None, p, grouped, grouped, 0.0)
    assert_allclose(found.shares, 1.0 / (1.0 + 0.8**2), atol=0.1)


def test_a_few_large_errors_do_not_replace_a_model_that_is_mostly_right(rng):
    block = rows(rng, 600)
    line = Line.fit(block, 2).leave_one_out(block)
    wild = np.where(np.arange(600)[:, None] < 3, 1e4, 0.0) * rng.normal(size=line.shape)

    def stack(error):
        mean = block.y + error * (block.y - line) + wild
        p = Prediction(mean, *np.ones((2, *line.shape)), np.ones(600))
        return stack_with_line(None, p, block, block, 0.0)

    assert stack(0.1) is None
    assert (stack(0.9).shares < 0.01).all()


def test_saved_equals_loaded(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(150, 6)), rng.normal(size=150)
    model = RWFRegressor(**{**QUICK, "max_iter": 40}).fit(X, y)
    assert model.fit_report_.line_share > 0.4
    assert isinstance(model.model_.model, Stacked)
    model.save(tmp_path / "model.rwf")
    again = rwf.load(tmp_path / "model.rwf")
    assert again.fit_report_.line_share == model.fit_report_.line_share
    for a, b in zip(again.predict(X, True), model.predict(X, True), strict=True):
        assert_array_equal(a, b)
