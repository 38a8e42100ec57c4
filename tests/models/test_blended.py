"""A model blended with its nearest neighbours: when it is, what that adds, and stored rows."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.fit import pipeline
from rwf.inference.posterior import Marginals
from rwf.models.base import Prediction
from rwf.models.blended import NeighborBlend, blend_neighbors
from rwf.models.corrected import CorrectedModel, Correction
from rwf.priors.nystrom import Nystrom


def terrain(n, seed):
    """Smooth on the left and rough on the right of the first input, nearly without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 2.0, (n, 2))
    rough = np.prod(np.sin(30.0 * X), axis=1) * np.where(X[:, 0] > 1.5, 1.0, 0.1)
    return X, 30.0 + 10.0 * (X.sum(axis=1) + rough + rng.normal(0.0, 0.01, n))


def multifrontal(n_components=60, **options):
    settings = {"solver": "multifrontal", "neighbors": 16, "random_state": 0}
    return RWFRegressor(n_components, **(settings | options))


@pytest.fixture(scope="module")
def data():
    return terrain(1200, 0)


@pytest.fixture(scope="module")
def new():
    return terrain(2000, 1)


@pytest.fixture(scope="module")
def fitted(data):
    return multifrontal().fit(*data)


@pytest.fixture(scope="module")
def alone(data):
    return multifrontal(neighbors=None).fit(*data)


def blend_in(model):
    """The blend that the outermost corrections wrap, if there is one."""
    found = model.model_
    while found is not found.base and not isinstance(found, NeighborBlend):
        found = found.model
    return found if isinstance(found, NeighborBlend) else None


def blended(model):
    return blend_in(model) is not None


def blend_of(model, output=0):
    return blend_in(model).blends[output]


def test_a_blend_adds_what_few_atoms_miss(fitted, alone, new):
    X, y = new
    errors, densities = [], []
    for model in (fitted, alone):
        mean, std = model.predict(X, return_std=True)
        errors.append(np.sqrt(np.mean((y - mean) ** 2)))
        densities.append(norm.logpdf(y, mean, std).mean())
    assert errors[0] < 0.5 * errors[1]
    assert densities[0] > densities[1] + 1.0
    assert blend_of(fitted).gain > 1.0
    assert blended(fitted)
    assert not blended(alone)
    assert "neighbours" in fitted.fit_report_.seconds
    assert "neighbours" not in alone.fit_report_.seconds


def test_the_wrapped_model_is_the_one_without_neighbors(fitted, alone, new):
    X = alone.model_.units.inputs(new[0])
    a, b = fitted.model_.base.predict(X), alone.model_.base.predict(X)
    for name in ("mean", "function_variance", "noise_variance", "support"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert fitted.fit_report_.nll < alone.fit_report_.nll


def test_intervals_cover_where_the_terrain_is_smooth_and_where_it_is_rough(fitted, new):
    X, y = new
    error = np.sqrt(0.2 * 0.8 * (1 / 120 + 1 / 2000))  # rows that were held out, and new ones
    low, high = fitted.predict_interval(X, 0.95)
    inside = (low < y) & (y < high)
    assert all(inside[side].mean() > 0.9 for side in (X[:, 0] < 1.48, X[:, 0] > 1.52))
    low, high = fitted.predict_interval(X, 0.8)
    assert abs(np.mean((low < y) & (y < high)) - 0.8) < 5 * error
    _, std = fitted.predict(X, return_std=True)
    assert np.median(std[X[:, 0] > 1.52]) > 1.5 * np.median(std[X[:, 0] < 1.48])


def test_predictions_are_those_of_the_output_blend_over_the_model(fitted, new):
    found, units = fitted.model_.model, fitted.model_.units
    unit = units.inputs(new[0][:50])
    own = found.base.predict(unit)
    assert found.model is found.base
    level = found.levels[0]
    blend = blend_of(fitted).predict(unit, Marginals(own.mean[:, 0], level * own.variance[:, 0]))
    p = found.predict(unit)
    assert_allclose(p.mean[:, 0], blend.mean)
    assert_allclose(p.variance[:, 0], blend.variance)
    assert np.abs(p.mean - own.mean).max() > 0.05
    assert_allclose(fitted.predict(new[0][:50]), units.y.inverse(p.mean)[:, 0])


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
@pytest.mark.parametrize("seed", range(2))
def test_where_only_noise_is_left_there_is_no_blend(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 2.0, (500, 2))
    y = 3.0 + X[:, 0] + rng.normal(0.0, 0.5, 500)
    options = {"noise": "constant", "calibration": "global", "random_state": seed}
    model = multifrontal(20, **options).fit(X, y)
    assert not blended(model)
    plain = multifrontal(20, neighbors=None, **options).fit(X, y)
    for a, b in zip(model.predict(X, True), plain.predict(X, True), strict=True):
        assert_array_equal(a, b)


def test_few_rows_have_no_blend():
    X, y = terrain(333, 0)
    assert not blended(multifrontal(40).fit(X, y))


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_an_output_that_is_noise_is_left_to_the_model(data, new):
    X, y = (part[:800] for part in data)
    noise = 9.0 + 4.0 * np.random.default_rng(6).normal(size=len(y))
    both = multifrontal(noise="constant", calibration="global").fit(X, np.column_stack([noise, y]))
    assert blend_of(both, 0) is None
    assert blend_of(both, 1).gain > 0.5
    units = both.model_.units
    unit = units.inputs(new[0])
    own = units.y.inverse(both.model_.base.mean(unit))
    mean = units.y.inverse(blend_in(both).mean(unit))
    assert_array_equal(mean[:, 0], own[:, 0])
    rmse = [np.sqrt(np.mean((new[1] - p[:, 1]) ** 2)) for p in (mean, own)]
    assert rmse[0] < 0.5 * rmse[1]
    assert_allclose(both.predict(new[0])[:, 1], mean[:, 1], rtol=1e-12)
    assert both.sample_y(X[:3], 7, random_state=0).shape == (3, 2, 7)
    assert both.predict(X[:3], return_cov=True)[1].shape == (3, 3, 2)
    assert all(end.shape == (4, 2) for end in both.predict_interval(X[:4], 0.9))
    more = both.empty_copy().partial_fit(X[:50], np.column_stack([noise, y])[:50])
    assert blend_of(more, 0) is None
    stored = np.sort(blend_of(more, 1).rows.y[:, 0])
    assert_allclose(stored, np.sort(y[:50] - y.mean()) / y.std(), rtol=1e-6, atol=1e-9)


def test_dense_models_can_be_blended_too(new):
    X, y = terrain(600, 0)
    model = RWFRegressor(40, prior="multiscale", neighbors=16, random_state=0).fit(X, y)
    assert blend_of(model).gain > 0.5
    assert len(blend_of(model).rows.X) == 600
    rmse = [np.sqrt(np.mean((new[1] - p) ** 2)) for p in (model.predict(new[0]), y.mean())]
    assert rmse[0] < 0.5 * rmse[1]


# -------------------------------------------------------------------------- when a blend is tried


def table(n, d, seed=0):
    """Near a curve in many columns, along which y is rougher than a few atoms can tell."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(2.0, 9.0, n)
    X = np.sin(np.arange(1, d + 1) * u[:, None] / 4) + 1e-3 * rng.normal(size=(n, d))
    return X, 30.0 + np.sin(25 * u) + 0.01 * rng.normal(size=n)


QUICK = {"max_iter": 5, "n_restarts": 0, "random_state": 0}


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_auto_blends_neighbors_with_the_nystrom_prior_in_four_columns():
    X, y = table(700, 4)
    model = RWFRegressor(20, **QUICK).fit(X, y)
    assert blended(model)
    alone = RWFRegressor(20, neighbors=None, **QUICK).fit(X, y)
    assert not blended(alone)
    new, truth = table(500, 4, seed=1)
    errors = [np.sqrt(np.mean((truth - m.predict(new)) ** 2)) for m in (model, alone)]
    assert errors[0] < 0.5 * errors[1]
    assert not blended(RWFRegressor(20, **QUICK).fit(X[:, :3], y))
    assert not blended(RWFRegressor(20, prior="random_features", **QUICK).fit(X, y))
    assert blended(RWFRegressor(20, prior="random_features", neighbors=16, **QUICK).fit(X, y))
    assert not blended(RWFRegressor.from_paper(20, **QUICK).fit(X, y))


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_auto_stores_neither_streams_nor_too_many_rows(monkeypatch):
    X, y = table(700, 4)
    begun = RWFRegressor(20, **QUICK).partial_fit(X, y)
    assert not blended(begun)
    assert blended(RWFRegressor(20, neighbors=16, **QUICK).partial_fit(X, y))
    assert blended(
        RWFRegressor(20, **QUICK).fit(lambda: iter([(X[:300], y[:300]), (X[300:], y[300:])]))
    )
    monkeypatch.setattr(pipeline, "NEIGHBOR_ROWS", 699)
    assert not blended(RWFRegressor(20, **QUICK).fit(X, y))
    monkeypatch.setattr(pipeline, "NEIGHBOR_ROWS", 700)
    assert blended(RWFRegressor(20, **QUICK).fit(X, y))
    monkeypatch.setattr(Nystrom, "sample_rows", 100)  # more rows are a stream
    assert not blended(RWFRegressor(20, **QUICK).fit(lambda: iter([(X, y)])))


@pytest.mark.parametrize("neighbors", ["always", 1, True, 2.5])
def test_unknown_neighbors_are_refused(neighbors):
    with pytest.raises(ValueError, match="'auto', None, or an integer of at least 2"):
        RWFRegressor(neighbors=neighbors).fit(*table(50, 4))


@pytest.mark.parametrize("neighbors", [3, 16])
def test_neighbors_is_the_number_of_rows_to_condition_on(neighbors):
    X, y = terrain(400, 0)
    model = multifrontal(30, neighbors=neighbors, noise="constant").fit(X, y)
    assert blend_of(model).gp.n_neighbors == neighbors


# ------------------------------------------------------------------------------------ stored rows


def test_further_rows_are_stored(data, fitted, new):
    X, y = new
    more = pickle.loads(pickle.dumps(fitted)).partial_fit(X[:700], y[:700])
    assert len(blend_of(more).rows.X) == len(blend_of(more).squares) == 1900
    assert len(blend_of(fitted).rows.X) == 1200
    unit = fitted.model_.units
    stored, added = blend_of(more).rows, unit.inputs(X[:700])
    place = np.searchsorted(stored.X[:, 0], added[:, 0])
    assert_allclose(stored.X[place], added)
    assert_allclose(stored.y[place], unit.y(y[:700, None]))
    errors = [np.sqrt(np.mean((y - m.predict(X))[700:] ** 2)) for m in (more, fitted)]
    assert errors[0] < errors[1]


def test_rows_of_no_weight_are_not_stored(data, fitted):
    X, y = data
    weights = (np.arange(300) % 3 > 0).astype(float)
    some = fitted.empty_copy().partial_fit(X[:300], y[:300], sample_weight=weights)
    assert len(blend_of(some).rows.X) == 200
    assert some.model_.n_rows == 200
    wild = np.where(weights > 0, y[:300], 1e6)
    again = fitted.empty_copy().partial_fit(X[:300], wild, sample_weight=weights)
    for a, b in zip(again.predict(X, True), some.predict(X, True), strict=True):
        assert_allclose(a, b, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_rows_of_no_weight_are_not_learned_from():
    X, y = terrain(3400, 0)
    weights = (np.arange(3400) % 4 > 0).astype(float)
    y = np.where(weights > 0, y, 1e6)
    model = RWFRegressor(
        30,
        prior="multiscale",
        neighbors=16,
        noise="constant",
        calibration="global",
        random_state=0,
    ).fit(X, y, weights)
    assert len(blend_of(model).rows.X) == 2550
    assert blend_of(model).rows.y[:, 0].max() < 10.0


def test_rows_add_in_any_split(data, fitted, new):
    X, y = data
    halves = [fitted.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    halves[1] = pickle.loads(pickle.dumps(halves[1]))
    merged = halves[0].merge(halves[1])
    order = np.concatenate([np.arange(0, 1200, 2), np.arange(1, 1200, 2)])
    whole = fitted.empty_copy().partial_fit(X[order], y[order])
    stored = [blend_of(model).rows for model in (merged, whole, fitted)]
    for other in stored[1:]:
        assert_array_equal(other.X, stored[0].X)
        assert_array_equal(other.y, stored[0].y)
    for other in (whole, fitted):
        for a, b in zip(merged.predict(new[0], True), other.predict(new[0], True), strict=True):
            assert_allclose(a, b, rtol=1e-5)


def test_without_rows_the_blend_is_the_wrapped_model(data, fitted, new):
    blank = fitted.empty_copy()
    with pytest.raises(ValueError, match="no rows yet"):
        blank.predict(new[0])
    assert blend_of(blank).rows.X.shape == (0, 2)
    units, inner = fitted.model_.units, fitted.model_.model
    unit = units.inputs(new[0])
    own = inner.model.predict(unit)
    found = blank.model_.model.correction(unit, own)
    assert_array_equal(found.shift, 0.0)
    assert_allclose(found.factor, inner.levels[0])
    one = blank.partial_fit(data[0][:1], data[1][:1])
    own = units.y.inverse(one.model_.base.predict(unit).mean)[:, 0]
    assert_array_equal(one.predict(new[0]), own)
    assert len(blend_of(fitted).rows.X) == 1200
    two = one.partial_fit(data[0][1:2], data[1][1:2])
    assert np.isfinite(two.predict(new[0], return_std=True)).all()


def test_a_pickled_model_predicts_the_same(fitted, new):
    again = pickle.loads(pickle.dumps(fitted))
    for a, b in zip(again.predict(new[0], True), fitted.predict(new[0], True), strict=True):
        assert_array_equal(a, b)
    assert again.get_params()["neighbors"] == 16


def test_outputs_without_a_blend_are_those_of_the_wrapped_model(fitted, new):
    wrapped, X = fitted.model_.base, fitted.model_.units.inputs(new[0][:9])
    silent = NeighborBlend(wrapped, (None,), np.ones(1))
    found = silent.correction(X, wrapped.predict(X))
    assert_array_equal(found.shift, 0.0)
    assert_array_equal(found.factor, 1.0)
    assert_array_equal(silent.predict(X).variance, wrapped.predict(X).variance)
    here = Marginals(np.zeros(3), np.ones(3))
    assert blend_of(fitted).empty().predict(np.ones((3, 2)), here) is here


class Quadruple(CorrectedModel):
    """All variances are four times those of the model."""

    def correction(self, X, p):
        return Correction(np.full_like(p.mean, 4.0))


def test_the_blend_does_not_depend_on_the_size_of_variances(data, fitted):
    X, y = (part[:500] for part in data)
    rows = fitted.model_.units.rows(Block(X, y[:, None], np.ones(500)))
    plain, scaled = (
        blend_neighbors(model, rows, 16, np.random.default_rng(3))
        for model in (fitted.model_.base, Quadruple(fitted.model_.base))
    )
    assert_allclose(scaled.levels, plain.levels / 4.0)
    assert scaled.blends[0].gain == pytest.approx(plain.blends[0].gain, rel=1e-9)
    a, b = (model.predict(rows.X[:20]) for model in (plain, scaled))
    assert_allclose(a.mean, b.mean, rtol=1e-9)
    assert_allclose(a.variance, b.variance, rtol=1e-9)


def test_the_stored_rows_are_those_that_were_given(fitted):
    moved = replace(blend_of(fitted), center=3.0)
    rows = moved.rows
    again = moved.empty().update(replace(rows, y=rows.y + 3.0))
    assert_allclose(again.gp.values, moved.gp.values, rtol=1e-12, atol=1e-12)
    assert_allclose(again.merge(blend_of(fitted)).counts.sum(), 2 * len(rows))


def test_leave_one_out_predictions_are_those_of_a_blend_without_the_row(fitted):
    """With the kernel, the experts and the model's own prediction kept, a row is taken out."""
    blend, units, found_blend = blend_of(fitted), fitted.model_.units, fitted.model_.model
    X, y = blend.rows.X, blend.rows.y[:, 0]
    rows = np.array([0, 7, 130])
    own = Marginals(np.array([0.1, -0.3, 0.2]), np.array([0.5, 0.4, 0.9]))
    found = blend.leave_one_out(rows, own)
    for i, row in enumerate(rows):
        kept = np.delete(np.arange(len(y)), row)
        gp = replace(blend.gp, X=X[kept], values=blend.gp.values[kept])
        without = replace(blend, gp=gp, squares=blend.squares[kept])
        one = without.predict(X[[row]], Marginals(own.mean[[i]], own.variance[[i]]))
        assert_allclose([found.mean[i], found.variance[i]], [one.mean[0], one.variance[0]])
    known = Block(X[rows], y[rows, None], np.ones(3))
    p, inner = found_blend.leave_one_out(known), found_blend.model.leave_one_out(known)
    alone = Marginals(inner.mean[:, 0], found_blend.levels[0] * inner.variance[:, 0])
    both = blend.leave_one_out(rows, alone)
    assert_allclose(p.mean[:, 0], both.mean)
    assert_allclose(p.variance[:, 0], both.variance)
    assert units.y.scale[0] > 0


def test_forgotten_rows_are_no_neighbors(fitted, data, new):
    X, y = data
    once = fitted.empty_copy().partial_fit(X, y).forget(X[700:], y[700:])
    never = fitted.empty_copy().partial_fit(X[:700], y[:700])
    for a, b in zip(
        *(m.predict(new[0][:200], return_std=True) for m in (once, never)), strict=True
    ):
        assert_allclose(a, b, rtol=1e-8)
    with pytest.raises(ValueError, match="row 0 is not among the stored rows"):
        once.forget(X[700:], y[700:])
    assert_allclose(once.forget(X[:700], y[:700]).model_.n_rows, 0.0)


class Memory:
    """A model that knows all rows by heart, and no others: leave-one-out errors are all of y."""

    n_outputs = 1
    level = 0.04

    @property
    def base(self):
        return self

    def predict(self, X):
        return self._normal(np.sin(6 * X[:, :1]))

    def leave_one_out(self, rows):
        return self._normal(np.zeros_like(rows.y))

    def left_out(self, seen):
        return seen.base

    def _normal(self, mean):
        variance = np.full_like(mean, self.level)
        return Prediction(mean, variance, 0.0 * variance, np.ones(len(mean)))


def test_the_blend_is_judged_on_leave_one_out_predictions_not_in_sample_ones(rng):
    X = rng.uniform(0, 2, (700, 2))
    y = np.sin(6 * X[:, :1])
    found = blend_neighbors(Memory(), Block(X, y, np.ones(700)), 16, rng)
    assert found is not None  # in-sample, the model has no errors that neighbors could mend
    assert found.blends[0].gain > 1.0
    assert_allclose(found.levels, 0.5 / Memory.level, rtol=0.2)  # E sin² / variance
