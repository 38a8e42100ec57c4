"""A second opinion over a regressor: when it is asked, what it adds, and rows that it keeps."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.fit import pipeline as fitting
from rwf.inference.posterior import Prediction
from rwf.models.blended import NeighborBlend, learn_neighbor_blend
from rwf.models.calibrated import LocalCalibration
from rwf.priors import recipes
from rwf.uncertainty.calibration import Calibration


def terrain(n, seed):
    """Smooth on the left and rough on the right of the first input, nearly without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 2.0, (n, 2))
    rough = np.prod(np.sin(30.0 * X), axis=1) * np.where(X[:, 0] > 1.5, 1.0, 0.1)
    return X, 30.0 + 10.0 * (X.sum(axis=1) + rough + rng.normal(0.0, 0.01, n))


def tree(n_components=60, **options):
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
    return tree().fit(*data)


@pytest.fixture(scope="module")
def alone(data):
    return tree(neighbors=None).fit(*data)


def layer(model, output=0):
    return model.correction_.layers[output]


def test_it_adds_what_few_atoms_miss(fitted, alone, new):
    X, y = new
    errors, densities = [], []
    for model in (fitted, alone):
        mean, std = model.predict(X, return_std=True)
        errors.append(np.sqrt(np.mean((y - mean) ** 2)))
        densities.append(norm.logpdf(y, mean, std).mean())
    assert errors[0] < 0.5 * errors[1]
    assert densities[0] > densities[1] + 1.0
    assert densities[0] - densities[1] == pytest.approx(layer(fitted).gain, rel=0.3)
    assert isinstance(fitted.correction_, NeighborBlend)
    assert isinstance(alone.correction_, LocalCalibration)
    assert "second opinion" in fitted.fit_report_.seconds
    assert "second opinion" not in alone.fit_report_.seconds


def test_the_model_under_it_is_the_plain_one(fitted, alone, new):
    for a, b in zip(fitted.model_.predict(new[0]), alone.model_.predict(new[0]), strict=True):
        assert_array_equal(a, b)
    assert fitted.correction_.scale.gain == alone.correction_.gain
    assert fitted.fit_report_.nll == alone.fit_report_.nll


def test_its_error_bars_hold_where_the_terrain_is_smooth_and_where_it_is_rough(fitted, new):
    X, y = new
    error = np.sqrt(0.2 * 0.8 * (1 / 120 + 1 / 2000))  # rows that were held out, and new ones
    for calibration in ("gaussian", "loo"):
        low, high = fitted.predict_interval(X, 0.95, calibration)
        inside = (low < y) & (y < high)
        assert all(inside[side].mean() > 0.9 for side in (X[:, 0] < 1.48, X[:, 0] > 1.52))
    low, high = fitted.predict_interval(X, 0.8, "loo")
    assert abs(np.mean((low < y) & (y < high)) - 0.8) < 5 * error
    _, std = fitted.predict(X, return_std=True)
    assert np.median(std[X[:, 0] > 1.52]) > 1.5 * np.median(std[X[:, 0] < 1.48])


@pytest.mark.filterwarnings("ignore::rwf.errors.NoAtomsNearbyWarning")
def test_every_kind_of_prediction_has_the_same_mean_and_error_bars(fitted, new):
    X = np.vstack([new[0][:25], [[5.0, 5.0]]])
    mean, std = fitted.predict(X, return_std=True)
    assert_allclose(fitted.predict(X), mean, rtol=1e-12)
    assert np.abs(mean - fitted.model_.mean(X)[:, 0]).max() > 1.0
    again, covariance = fitted.predict(X, return_cov=True)
    assert_allclose(again, mean, rtol=1e-12)
    assert_allclose(np.diag(covariance), std**2, rtol=1e-7)
    assert_allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * covariance.max()
    function_mean, function_std = fitted.predict_function(X)
    assert_allclose(function_mean, mean, rtol=1e-12)
    assert (function_std <= std).all()
    for noise, spread in ((True, std), (False, function_std)):
        draws = fitted.sample_y(X, 4000, random_state=0, noise=noise)
        assert_allclose(draws.std(1), spread, rtol=5 / np.sqrt(2 * 4000))
        assert (np.abs(draws.mean(1) - mean) < 5 * spread / np.sqrt(4000)).all()
    low, high = fitted.predict_interval(X, 0.9, "loo")
    assert_allclose(high - low, 2 * fitted.correction_.calibration.reach(0.9) * std)


def test_it_is_the_layer_over_the_scaled_model(fitted, new):
    X, model, found = new[0][:50], fitted.model_, fitted.correction_
    unit = model.scaler.inputs(X)
    own = model.standardized(unit, 0)
    scaled = replace(own, variance=own.variance * found.scale.variances(model, X)[:, 0])
    blend = layer(fitted).predict(unit, scaled)
    mean, std = fitted.predict(X, return_std=True)
    assert_allclose(mean, model.scaler.y.inverse(blend.mean[:, None])[:, 0])
    honest = np.sqrt(blend.variance * found.calibration.inflation[0])
    assert_allclose(std, honest * model.scaler.y.scale[0])


def test_variances_are_enlarged_where_held_out_errors_ask_for_it(fitted, new):
    X = new[0][:20]
    forced = copy.copy(fitted)
    forced.correction_ = replace(
        fitted.correction_, calibration=Calibration(np.full((120, 1), 3.0))
    )
    (mean, std), (same, wide) = (model.predict(X, return_std=True) for model in (fitted, forced))
    assert_array_equal(same, mean)
    assert_allclose(wide, std * 3.0 / np.sqrt(fitted.correction_.calibration.inflation))
    low, high = forced.predict_interval(X, 0.8, "loo")
    assert_allclose(high - low, 2 * wide)  # all scores are one enlarged deviation


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
@pytest.mark.parametrize("seed", range(2))
def test_where_only_noise_is_left_nothing_is_asked(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(1.0, 2.0, (500, 2))
    y = 3.0 + X[:, 0] + rng.normal(0.0, 0.5, 500)
    options = {"noise": "constant", "calibration": "global", "random_state": seed}
    model = tree(20, **options).fit(X, y)
    assert model.correction_ is None
    plain = tree(20, neighbors=None, **options).fit(X, y)
    for a, b in zip(model.predict(X, True), plain.predict(X, True), strict=True):
        assert_array_equal(a, b)


def test_few_rows_are_not_asked():
    X, y = terrain(333, 0)
    assert not isinstance(tree(40).fit(X, y).correction_, NeighborBlend)


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_an_output_that_is_noise_is_left_to_the_model(data, new):
    X, y = (part[:800] for part in data)
    noise = 9.0 + 4.0 * np.random.default_rng(6).normal(size=len(y))
    both = tree(noise="constant", calibration="global").fit(X, np.column_stack([noise, y]))
    assert layer(both, 0) is None
    assert layer(both, 1).gain > 0.5
    mean, std = both.predict(new[0], return_std=True)
    own, deviations = both.model_.predict(new[0])
    assert_array_equal(mean[:, 0], own[:, 0])
    assert_allclose(
        std[:, 0] / deviations[:, 0], np.sqrt(both.correction_.calibration.inflation[0])
    )
    rmse = [np.sqrt(np.mean((new[1] - p[:, 1]) ** 2)) for p in (mean, own)]
    assert rmse[0] < 0.5 * rmse[1]
    assert_allclose(both.predict(new[0]), mean, rtol=1e-12)
    assert both.sample_y(X[:3], 7, random_state=0).shape == (3, 2, 7)
    assert both.predict(X[:3], return_cov=True)[1].shape == (3, 3, 2)
    assert all(end.shape == (4, 2) for end in both.predict_interval(X[:4], 0.9, "loo"))
    more = both.empty_copy().partial_fit(X[:50], np.column_stack([noise, y])[:50])
    assert layer(more, 0) is None
    assert_allclose(layer(more, 1).rows[1], (y[:50] - y.mean()) / y.std(), rtol=1e-6, atol=1e-9)


def test_dense_models_have_it_too(new):
    X, y = terrain(600, 0)
    model = RWFRegressor(40, prior="multiscale", neighbors=16, random_state=0).fit(X, y)
    assert layer(model).gain > 0.5
    assert len(layer(model).rows[0]) == 600
    rmse = [np.sqrt(np.mean((new[1] - p) ** 2)) for p in (model.predict(new[0]), y.mean())]
    assert rmse[0] < 0.5 * rmse[1]


# -------------------------------------------------------------------------------- where it is asked


def table(n, d, seed=0):
    """Near a curve in many columns, along which y is rougher than a few atoms can tell."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(2.0, 9.0, n)
    X = np.sin(np.arange(1, d + 1) * u[:, None] / 4) + 1e-3 * rng.normal(size=(n, d))
    return X, 30.0 + np.sin(25 * u) + 0.01 * rng.normal(size=n)


QUICK = {"max_iter": 5, "n_restarts": 0, "random_state": 0}


def asked(model):
    return isinstance(model.correction_, NeighborBlend)


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_by_itself_a_table_of_projected_weights_asks_its_nearest_rows():
    X, y = table(700, 4)
    model = RWFRegressor(20, **QUICK).fit(X, y)
    assert asked(model)
    alone = RWFRegressor(20, neighbors=None, **QUICK).fit(X, y)
    assert not asked(alone)
    new, truth = table(500, 4, seed=1)
    errors = [np.sqrt(np.mean((truth - m.predict(new)) ** 2)) for m in (model, alone)]
    assert errors[0] < 0.5 * errors[1]
    assert not asked(RWFRegressor(20, **QUICK).fit(X[:, :3], y))
    assert not asked(RWFRegressor(20, prior="random_features", **QUICK).fit(X, y))
    assert asked(RWFRegressor(20, prior="random_features", neighbors=16, **QUICK).fit(X, y))
    assert not asked(RWFRegressor.from_paper(20, **QUICK).fit(X, y))


@pytest.mark.filterwarnings("ignore::rwf.errors.NoImprovementWarning")
def test_by_itself_it_keeps_neither_streams_nor_too_many_rows(monkeypatch):
    X, y = table(700, 4)
    begun = RWFRegressor(20, **QUICK).partial_fit(X, y)
    assert not asked(begun)
    assert asked(RWFRegressor(20, neighbors=16, **QUICK).partial_fit(X, y))
    assert asked(
        RWFRegressor(20, **QUICK).fit(lambda: iter([(X[:300], y[:300]), (X[300:], y[300:])]))
    )
    monkeypatch.setattr(fitting, "ASKED_ROWS", 699)
    assert not asked(RWFRegressor(20, **QUICK).fit(X, y))
    monkeypatch.setattr(fitting, "ASKED_ROWS", 700)
    assert asked(RWFRegressor(20, **QUICK).fit(X, y))
    monkeypatch.setattr(recipes.Nystrom, "enough_rows", 100)  # more rows are a stream
    assert not asked(RWFRegressor(20, **QUICK).fit(lambda: iter([(X, y)])))


def test_an_unknown_wish_is_refused():
    with pytest.raises(ValueError, match="use True, False or 'auto'"):
        RWFRegressor(second_opinion="always").fit(*table(50, 4))


# -------------------------------------------------------------------------------------- its rows


def test_further_rows_are_asked(data, fitted, new):
    X, y = new
    more = pickle.loads(pickle.dumps(fitted)).partial_fit(X[:700], y[:700])
    assert len(layer(more).rows[0]) == len(layer(more).squares) == 1900
    assert len(layer(fitted).rows[0]) == 1200
    unit = fitted.model_.units
    assert_allclose(layer(more).rows[0][1200:], unit.inputs(X[:700]))
    assert_allclose(layer(more).rows[1][1200:], unit.y(y[:700, None])[:, 0])
    errors = [np.sqrt(np.mean((y - m.predict(X))[700:] ** 2)) for m in (more, fitted)]
    assert errors[0] < errors[1]


def test_rows_of_no_weight_are_not_asked(data, fitted):
    X, y = data
    weights = (np.arange(300) % 3 > 0).astype(float)
    some = fitted.empty_copy().partial_fit(X[:300], y[:300], sample_weight=weights)
    assert len(layer(some).rows[0]) == 200
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
    assert len(layer(model).rows[0]) == 2550
    assert layer(model).rows[1].max() < 10.0


def test_rows_add_in_any_split(data, fitted, new):
    X, y = data
    halves = [fitted.empty_copy().partial_fit(X[i::2], y[i::2]) for i in (0, 1)]
    halves[1] = pickle.loads(pickle.dumps(halves[1]))
    merged = halves[0].merge(halves[1])
    order = np.concatenate([np.arange(0, 1200, 2), np.arange(1, 1200, 2)])
    whole = fitted.empty_copy().partial_fit(X[order], y[order])
    for a, b in zip(layer(merged).rows, layer(whole).rows, strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for other in (whole, fitted):
        for a, b in zip(merged.predict(new[0], True), other.predict(new[0], True), strict=True):
            assert_allclose(a, b, rtol=1e-5)


def test_without_rows_it_has_nothing_to_say(data, fitted, new):
    blank = fitted.empty_copy()
    with pytest.raises(ValueError, match="no rows yet"):
        blank.predict(new[0])
    assert layer(blank).rows[0].shape == (0, 2)
    found = blank.correction_.at(fitted.model_, new[0])
    own = fitted.correction_.scale.variances(fitted.model_, new[0])
    assert_array_equal(found.shift, 0.0)
    assert_allclose(found.factor**2, own * fitted.correction_.calibration.inflation)
    one = blank.partial_fit(data[0][:1], data[1][:1])
    assert_array_equal(one.predict(new[0]), one.model_.mean(new[0])[:, 0])
    assert len(layer(fitted).rows[0]) == 1200
    two = one.partial_fit(data[0][1:2], data[1][1:2])
    assert np.isfinite(two.predict(new[0], return_std=True)).all()


def test_a_pickled_model_predicts_the_same(fitted, new):
    again = pickle.loads(pickle.dumps(fitted))
    for a, b in zip(again.predict(new[0], True), fitted.predict(new[0], True), strict=True):
        assert_array_equal(a, b)
    assert again.get_params()["second_opinion"] is True


def test_a_layer_that_says_nothing_changes_nothing(fitted, new):
    silent = NeighborBlend((None,), Calibration(np.ones((40, 1))), None)
    found = silent.at(fitted.model_, new[0][:9])
    assert_array_equal(found.shift, 0.0)
    assert_array_equal(found.factor, 1.0)
    here = Prediction(np.zeros(3), np.ones(3))
    assert layer(fitted).empty_copy().predict(np.ones((3, 2)), here) is here


class Quadruple:
    """Stands for an error scale of four everywhere."""

    def variances(self, model, X):
        return np.full((len(X), model.n_outputs), 4.0)


def test_the_model_is_weighed_with_its_scaled_variances(data, fitted):
    X, y = (part[:500] for part in data)
    rows = fitted.model_.units.rows(Block(X, y[:, None], np.ones(500)))
    plain, scaled = (
        learn_neighbor_blend(fitted.model_, scale, rows, np.random.default_rng(3)).layers[0]
        for scale in (None, Quadruple())
    )
    mixing = scaled.experts[0].mixing
    other = next(
        expert.mixing
        for expert in plain.experts
        if expert.scale == scaled.experts[0].scale
        and expert.mixing.correlation == mixing.correlation
    )
    assert other.model == pytest.approx(4.0 * mixing.model, rel=1e-9)
    assert other.neighbors == pytest.approx(mixing.neighbors, rel=1e-9)
    assert plain.gain != pytest.approx(scaled.gain, rel=1e-3)


def test_the_rows_of_a_layer_are_those_that_it_was_given(fitted):
    moved = replace(layer(fitted), center=3.0)
    again = moved.empty_copy().with_rows(*moved.rows)
    assert_allclose(again.gp.values, moved.gp.values, rtol=1e-12, atol=1e-12)
    assert_allclose(moved.rows[1] - layer(fitted).rows[1], 3.0, atol=1e-9)
