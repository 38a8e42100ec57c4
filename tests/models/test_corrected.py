"""Corrections of a model: all kinds of predictions agree, and rows go to the wrapped model."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.errors import IncompatibleModelsError
from rwf.inference.spike_slab import Schedule
from rwf.models.blended import NeighborBlend, blend_neighbors
from rwf.models.corrected import (
    Calibrated,
    CorrectedModel,
    Correction,
    calibrate,
    calibrate_scores,
)
from rwf.models.stacked import Line, Stacked
from rwf.priors.spike_slab import SpikeSlab

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)
PARTS = ("mean", "function_variance", "noise_variance", "support")


def rough(n=400, seed=0):
    """A rough and a smooth output, with noise that grows along the input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, 1))
    noise = np.exp(X - 7.0) * rng.normal(size=(n, 2))
    f = np.column_stack([np.sin(30.0 * X[:, 0]), 5.0 * np.cos(X[:, 0])])
    return Block(X, 20.0 + f + 0.1 * noise, np.ones(n))


BASES = {
    "dense": {"n_components": 20, "prior": "multiscale"},
    "multifrontal": {"n_components": 20, "solver": "multifrontal"},
    "nystrom": {"n_components": 20, "prior": "nystrom", "max_iter": 5, "n_restarts": 0},
}


@pytest.fixture(scope="module")
def rows():
    return rough()


@pytest.fixture(scope="module", params=BASES.values(), ids=BASES)
def base(request, rows):
    options = {"noise": "constant", "calibration": "global", "random_state": 0}
    return RWFRegressor(**options, **request.param).fit(rows.X, rows.y).model_.base


def calibrated(model):
    rows, rng = model.units.rows(rough()), np.random.default_rng(1)
    return calibrate(model, rows, model.leave_one_out(rows), rng, local=True, growth=1.1)


def globally_calibrated(model):
    scores = [1.5 * np.linspace(-2.0, 2.0, 60), np.linspace(-2.0, 2.0, 60) ** 3]
    return calibrate_scores(model, scores, np.random.default_rng(1))


def blended(model):
    found = blend_neighbors(model, model.units.rows(rough()), 8, np.random.default_rng(2))
    assert found.blends[0] is not None
    return found


def stacked(model):
    return Stacked(model, Line.fit(model.units.rows(rough()), 1), np.array([0.3, 1.0]))


def all_three(model):
    return calibrated(stacked(blended(model)))


WRAPPERS = {
    "calibrated": calibrated,
    "globally calibrated": globally_calibrated,
    "blended": blended,
    "stacked": stacked,
    "all three": all_three,
}


@pytest.fixture(scope="module", params=WRAPPERS.values(), ids=WRAPPERS)
def model(request, base):
    return request.param(base)


X = np.array([-9.0, -1.9, -1.2, -0.4, -0.1, 0.2, 0.21, 0.9, 1.6, 1.8, 2.5, 40.0])[:, None]
"""Inputs in standardised units, among the data and away from them."""


def kinds(model):
    """The model and all that it wraps, outermost first."""
    return [type(model), *(kinds(model.model) if isinstance(model, CorrectedModel) else ())]


def same_correction(one, other):
    """Whether what was learned is the same, all but rows that are stored."""
    names = ("densities", "line", "shares", "levels")
    return all(getattr(one, name, None) is getattr(other, name, None) for name in names)


def assert_same(p, q, **tolerances):
    for name in PARTS:
        assert_allclose(getattr(p, name), getattr(q, name), **tolerances)


def test_predictions_are_the_corrected_ones_of_the_wrapped_model(model):
    p = model.model.predict(X)
    change, q = model.correction(X, p), model.predict(X)
    assert (change.factor > 0).all()
    assert_same(q, change.of(p))
    assert_array_equal(q.mean, p.mean + change.shift)
    assert_array_equal(q.function_variance, change.factor * p.function_variance)
    assert_array_equal(q.support, p.support)
    assert_allclose(model.mean(X), q.mean, rtol=1e-12, atol=1e-12)


def test_leave_one_out_predictions_are_corrected_alike(model, rows):
    known = model.units.rows(rows).part(np.arange(0, 400, 9))
    p, q = model.model.leave_one_out(known), model.leave_one_out(known)
    if type(model) is NeighborBlend:
        # Its neighbours are not those of new rows: a row must not be its own.
        ratios = q.noise_variance / p.noise_variance
        assert_allclose(q.function_variance, ratios * p.function_variance, rtol=1e-9)
        errors = [np.square(known.y - each.mean).mean() for each in (q, model.predict(known.X))]
        assert errors[0] > errors[1]
    elif type(model) is Calibrated:
        assert_same(q, model.correction(known.X, p).of(p), rtol=1e-12)
    else:
        assert_allclose(q.mean[:, 1], p.mean[:, 1], rtol=1e-9)


def test_the_covariance_has_the_variances_of_predictions(model):
    p = model.predict(X)
    for noise, variance in ((True, p.variance), (False, p.function_variance)):
        covariance = model.covariance(X, noise=noise)
        assert covariance.shape == (12, 12, 2)
        assert_allclose(np.einsum("iik->ik", covariance), variance, rtol=1e-7)
        assert_allclose(covariance, covariance.transpose(1, 0, 2), rtol=1e-9, atol=1e-12)
        assert np.linalg.eigvalsh(covariance.T).min() > -1e-9 * covariance.max()


def test_a_correction_keeps_correlations_of_f(model):
    def correlations(C):
        root = np.sqrt(np.einsum("iik->ik", C))
        return C / (root[:, None] * root)

    found, own = (correlations(m.covariance(X, noise=False)) for m in (model, model.model))
    assert_allclose(found, own, rtol=1e-9, atol=1e-12)


def test_samples_have_the_mean_and_the_variance_of_predictions(model):
    count, p = 4000, model.predict(X)
    for noise, variance in ((True, p.variance), (False, p.function_variance)):
        draws = model.sample(X, count, np.random.default_rng(0), noise=noise)
        assert draws.shape == (12, 2, count)
        assert (np.abs(draws.mean(axis=2) - p.mean) < 5 * np.sqrt(variance / count)).all()
        if p.dof is None or not noise:
            assert_allclose(draws.var(axis=2), variance, rtol=5 * np.sqrt(2 / count))
        else:
            shares = p.distribution.cdf(np.median(np.abs(draws - p.mean[..., None]), 2) + p.mean)
            assert_allclose(shares, 0.75, atol=5 * 0.5 / np.sqrt(count))


def test_a_wrapper_says_of_itself_what_the_wrapped_model_says(model, base):
    assert model.base is base
    assert model.units is base.units
    assert model.n_rows == model.summary.n_rows == 400
    assert model.n_outputs == model.summary.n_outputs == 2
    assert model.maps == base.maps
    assert model.summary.log_evidence == base.summary.log_evidence
    stored = NeighborBlend in kinds(model)
    assert model.keeps_rows == model.needs_all_rows == stored
    known = base.units.rows(rough())
    assert_array_equal(model.unbiased_rows(known).X, base.unbiased_rows(known).X)


def test_further_rows_go_to_the_wrapped_model(model):
    more = rough(60, 5)
    updated = model.update(more)
    assert type(updated) is type(model)
    assert same_correction(updated, model)
    assert updated.n_rows == 460
    assert model.n_rows == 400
    assert_same(updated.model.predict(X), model.model.update(more).predict(X), rtol=1e-12)


def test_an_empty_wrapper_has_an_empty_model_and_the_same_correction(model, rows):
    empty = model.empty()
    assert type(empty) is type(model)
    assert empty.n_rows == empty.model.n_rows == 0
    assert same_correction(empty, model)
    again = empty.update(rows)
    assert_same(again.predict(X), model.predict(X), rtol=1e-5, atol=1e-7)


def test_merged_halves_are_the_model_of_all_rows(model, rows):
    halves = [model.empty().update(rows.part(np.arange(i, 400, 2))) for i in (0, 1)]
    order = np.concatenate([np.arange(0, 400, 2), np.arange(1, 400, 2)])
    whole = model.empty().update(rows.part(order))
    merged = halves[0].merge(halves[1])
    assert type(merged) is type(model)
    assert merged.n_rows == 400
    assert_same(merged.model.predict(X), whole.model.predict(X), rtol=1e-6, atol=1e-8)
    assert_same(merged.predict(X), whole.predict(X), rtol=1e-6, atol=1e-8)


def test_models_with_different_corrections_do_not_merge(base):
    different = [base, calibrated(base), blended(base), stacked(base)]
    for one, other in permutations(different, 2):
        with pytest.raises(IncompatibleModelsError, match="do not add"):
            one.merge(other)
    with pytest.raises(IncompatibleModelsError, match="different corrections"):
        calibrated(blended(base)).merge(calibrated(stacked(base)))


@pytest.fixture(scope="module")
def others(rows):
    """Models with other features than those of ``base``."""
    options = {"noise": "constant", "calibration": None, "random_state": 7}
    return [
        RWFRegressor(25, prior="multiscale", **options).fit(rows.X, rows.y).model_,
        RWFRegressor(25, solver="multifrontal", **options).fit(rows.X, rows.y).model_,
        RWFRegressor(prior=SpikeSlab(SHORT), **options).fit(rows.X, rows.y).model_,
    ]


def test_wrappers_of_different_models_do_not_merge(model, base, others):
    for other in others:
        for one, two in ((base, other), (other, base)):
            with pytest.raises(IncompatibleModelsError, match="do not add"):
                one.merge(two)
            with pytest.raises(IncompatibleModelsError, match="do not add"):
                replace(model, model=one).merge(replace(model, model=two))


def test_a_correction_multiplies_both_variances_and_shifts_the_mean(base):
    p = base.predict(X)
    q = Correction(np.full(p.mean.shape, 3.0), np.full(p.mean.shape, 0.5)).of(p)
    assert_array_equal(q.mean, p.mean + 0.5)
    assert_array_equal(q.function_variance, 3.0 * p.function_variance)
    assert_array_equal(q.noise_variance, 3.0 * p.noise_variance)
    assert_array_equal(q.support, p.support)
    assert_array_equal(Correction(np.ones(p.mean.shape)).of(p).mean, p.mean)


def test_what_a_t_has_beyond_a_normal_counts_as_noise(base):
    p = base.predict(X)
    change = Correction(np.full(p.mean.shape, 3.0), dof=np.full(p.mean.shape, 4.0))
    q = change.of(p)
    assert_allclose(q.function_variance, 3.0 * p.function_variance)
    assert_allclose(q.variance, 2.0 * 3.0 * p.variance)  # ν/(ν - 2) = 2
    assert_allclose(q.distribution.scale**2, 3.0 * p.variance)
