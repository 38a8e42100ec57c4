"""Rows that leave: forgetting is adding undone, decay, windows, and the influence of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.data.rows import Block, without
from rwf.estimators.unlearning import RecentRows
from rwf.inference.spike_slab import Schedule
from rwf.linalg.downdate import downdated
from rwf.priors import SpikeSlab

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)
KINDS = {
    "multiscale": {"prior": "multiscale"},
    "heteroscedastic": {"prior": "multiscale", "noise": "heteroscedastic"},
    "student": {"prior": "multiscale", "noise": "student"},
    "nystrom": {"prior": "nystrom", "neighbors": None, "max_iter": 5, "n_restarts": 0},
    "multifrontal": {"solver": "multifrontal", "prior": "multiscale"},
    "spike_slab": {"prior": SpikeSlab(SHORT), "n_components": None},
    "field": {"prior": "field"},
    "blended": {"prior": "multiscale", "neighbors": 16, "n_components": 8},
}


def rows(n=300, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(2.0, 5.0, (n, 1))
    wave = np.sin(5.0 * X[:, 0]) + 0.5 * np.sin(29.0 * X[:, 0])
    return X, 7.0 + wave + noise * rng.normal(size=n)


def _block(X, y):
    return Block(X, y[:, None], np.ones(len(y)))


@pytest.fixture(scope="module", params=KINDS.values(), ids=KINDS)
def fitted(request):
    options = {"n_components": 30, "random_state": 0} | request.param
    return RWFRegressor(**options).fit(*rows(500))


NEW = np.linspace(1.5, 5.5, 25)[:, None]


def assert_same(a, b, tolerance=1e-8):
    for x, y in zip(a.predict(NEW, return_std=True), b.predict(NEW, return_std=True), strict=True):
        assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@given(first=st.integers(60, 250))
@settings(max_examples=3)
def test_forgetting_is_adding_undone(fitted, first):
    X, y = rows()
    never = fitted.empty_copy().partial_fit(X[:first], y[:first])
    once = fitted.empty_copy().partial_fit(X, y).forget(X[first:], y[first:])
    assert once.model_.n_rows == pytest.approx(first)
    assert_same(once, never)


@given(copies=st.lists(st.integers(0, 59), min_size=1, max_size=20))
@settings(max_examples=3)
def test_copies_of_rows_are_forgotten_one_by_one(fitted, copies):
    """Rows that were given several times, and weights that are as many of them."""
    X, y = rows()
    more = fitted.empty_copy().partial_fit(X, y)
    once, twice = X[copies], y[copies]
    added = fitted.empty_copy().partial_fit(np.vstack([once, X]), np.append(twice, y))
    assert added.model_.n_rows == pytest.approx(300 + len(copies))
    weights = np.ones(300) + np.bincount(copies, minlength=300)
    assert_same(added, fitted.empty_copy().partial_fit(X, y, weights))
    assert_same(added.forget(once, twice), more)
    gone = sorted(set(copies))
    never = fitted.empty_copy().partial_fit(np.delete(X, gone, axis=0), np.delete(y, gone))
    assert_same(more.forget(X[gone], y[gone]), never)


@pytest.mark.parametrize("kind", ["multiscale", "field", "blended"])
def test_copies_among_the_rows_of_a_fit_can_be_forgotten(kind):
    X, y = rows(500)
    options = {"n_components": 30, "random_state": 0} | KINDS[kind]
    # So many of the repeated inputs have other targets that copies count as often as they come.
    X, y = np.vstack([X, X[:10]]), np.append(y, y[:10] + 0.1)
    model = RWFRegressor(**options).fit(np.vstack([X, X[:40]]), np.append(y, y[:40]))
    assert model.fit_report_.copies == 0
    assert model.model_.keeps_rows == (kind != "multiscale")
    assert_same(model, model.empty_copy().partial_fit(np.vstack([X[:40], X]), np.append(y[:40], y)))
    model.forget(X[:40], y[:40])
    assert_same(model, model.empty_copy().partial_fit(X, y))
    model.forget(X[:40], y[:40])
    assert_same(model, model.empty_copy().partial_fit(X[40:], y[40:]))


def test_forgetting_all_rows_leaves_none(fitted):
    X, y = rows()
    empty = fitted.empty_copy().partial_fit(X, y).forget(X[:100], y[:100]).forget(X[100:], y[100:])
    assert empty.model_.n_rows == 0
    assert_same(empty.partial_fit(X, y), fitted.empty_copy().partial_fit(X, y))


def test_the_evidence_of_what_is_left_is_that_of_its_rows():
    X, y = rows()
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    never = model.empty_copy().partial_fit(X[:200], y[:200])
    once = model.empty_copy().partial_fit(X, y).forget(X[200:], y[200:])
    assert_allclose(once.log_marginal_likelihood(), never.log_marginal_likelihood(), rtol=1e-8)


def test_weights_are_forgotten_as_they_were_added():
    X, y = rows()
    weights = np.where(np.arange(300) < 50, 3.0, 1.0)
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    never = model.empty_copy().partial_fit(X[50:], y[50:])
    once = model.empty_copy().partial_fit(X, y, weights).forget(X[:50], y[:50], weights[:50])
    assert_same(once, never)


def test_more_rows_than_were_seen_are_refused():
    X, y = rows()
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    with pytest.raises(
        ValueError, match="600 rows are to be forgotten, and the model has seen 300"
    ):
        model.forget(np.vstack([X, X]), np.append(y, y))
    with pytest.raises(ValueError, match="were not seen"):
        model.forget(X[:20] * 0 + 3.3, y[:20], np.full(20, 10.0))
    assert model.model_.n_rows == 300


def test_stored_rows_must_be_among_those_stored():
    X, y = rows()
    model = RWFRegressor(30, prior="field", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="row 1 is not among the stored rows"):
        model.forget(np.vstack([X[:1], X[:1] + 1.0]), y[:2])


def test_square_root_statistics_are_downdated_or_refused():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(60, 8)), rng.normal(size=(20, 8))
    both, first, last = (np.linalg.qr(M, mode="r") for M in (np.vstack([A, B]), A, B))
    R = downdated(both, last)
    assert_allclose(R.T @ R, first.T @ first, rtol=1e-10, atol=1e-10)
    assert downdated(both, both) is None  # nothing is left
    assert downdated(np.diag([1.0, 0.0]), np.zeros((1, 2))) is None


def test_rows_without_noise_are_forgotten_by_the_triangle():
    X, y = rows(400)
    y = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y).predict(X)
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    assert model.model_.summary.statistics == "root"
    never = model.empty_copy().partial_fit(X[:300], y[:300])
    assert_same(model.empty_copy().partial_fit(X, y).forget(X[300:], y[300:]), never, 1e-6)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_stored_rows_leave_as_often_as_they_are_forgotten(values, data):
    def counts(block):
        return np.bincount(block.X[:, 0].astype(int), block.weights, minlength=4)

    stored = _block(np.array(values, dtype=float)[:, None], np.zeros(len(values)))
    number = data.draw(st.integers(0, len(values)))
    gone = stored.part(np.array(data.draw(st.permutations(range(len(values)))))[:number])
    assert_array_equal(counts(without(stored, gone)), counts(stored) - counts(gone))
    twice = Block(stored.X, stored.y, 2.0 * stored.weights)
    assert_array_equal(counts(without(twice, gone)), counts(twice) - counts(gone))
    for wrong, row in ((9.0, len(values)), (values[0], 0)):
        more = _block(np.append(values, wrong)[:, None], np.zeros(len(values) + 1))
        with pytest.raises(ValueError, match=f"row {row} is not among"):
            without(stored, more)


# ------------------------------------------------------------------------------------- streams


def test_a_window_is_the_model_of_its_rows():
    X, y = rows()
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    recent = RecentRows(model.empty_copy(), window=90)
    for start in range(0, 300, 40):
        recent.partial_fit(X[start : start + 40], y[start : start + 40])
    assert recent.model.model_.n_rows == pytest.approx(90)
    assert_same(recent.model, model.empty_copy().partial_fit(X[210:], y[210:]))


def test_a_half_life_weighs_rows_by_their_age():
    X, y = rows()
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    recent = RecentRows(model.empty_copy().partial_fit(X[:100], y[:100]), half_life=50)
    recent.partial_fit(X[100:200], y[100:200]).partial_fit(X[200:], y[200:])
    weights = np.repeat([1 / 16, 1 / 4, 1.0], 100)
    assert_same(recent.model, model.empty_copy().partial_fit(X, y, weights))


def test_recent_rows_follow_a_change():
    X, y = rows()
    model = RWFRegressor(30, prior="multiscale", random_state=0).fit(X, y)
    for options in ({"window": 100}, {"half_life": 40}):
        recent = RecentRows(model.empty_copy().partial_fit(X, y), **options)
        for start in range(0, 300, 50):
            recent.partial_fit(X[start : start + 50], y[start : start + 50] + 4.0)
        if "window" in options:
            recent.model.forget(X, y)  # rows before the stream are not in the window
        assert abs(np.mean(recent.model.predict(X) - y) - 4.0) < 0.2


@pytest.mark.parametrize("options", [{}, {"window": 5, "half_life": 5}, {"window": 0}])
def test_a_window_or_a_half_life_is_needed(options):
    model = RWFRegressor(20, prior="multiscale", random_state=0).fit(*rows(60))
    with pytest.raises(ValueError, match="half_life"):
        RecentRows(model, **options)


def test_models_that_store_rows_do_not_decay():
    model = RWFRegressor(30, prior="field", random_state=0).fit(*rows())
    with pytest.raises(ValueError, match="use a window"):
        model.decay(0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.decay(0.0)


# ----------------------------------------------------------------------------------- influence


@pytest.mark.parametrize(
    "kind", ["multiscale", "heteroscedastic", "student", "nystrom", "multifrontal"]
)
def test_influence_is_what_changes_without_the_rows(kind):
    """Against the posterior of the other rows with the same hyperparameters."""
    X, y = rows(150)
    options = {"n_components": 25, "random_state": 0, "calibration": None} | KINDS[kind]
    model = RWFRegressor(**options).fit(X, y)
    groups = np.arange(150) // 25
    found = model.influence(X, y, groups=groups, at=NEW)
    inner, g = model.model_.gaussian, 4
    units, posterior = inner.units, inner.fits[0].posterior
    its = groups != g
    kept = units.rows(_block(X[its], y[its]))
    statistics = inner.collect(kept, inner.noise)
    rest = statistics.posterior(0, posterior.prior_variances, posterior.noise_variance)
    change = posterior.log_evidence - rest.log_evidence - 25 * np.log(units.y.scale[0])
    assert_allclose(found.log_evidence[g], change, rtol=1e-6)
    Z = inner.features_at(units.inputs(NEW))
    shift = Z @ (posterior.mean - rest.mean) * units.y.scale[0]
    assert_allclose(found.shift[g], shift, rtol=1e-5, atol=1e-8)
    assert_array_equal(found.groups, np.arange(6))


def test_an_outlier_has_the_lowest_log_density():
    X, y = rows(150)
    y[77] += 3.0
    model = RWFRegressor(25, prior="multiscale", random_state=0).fit(X, y)
    found = model.influence(X, y, at=X[77:78])
    assert found.log_evidence.argmin() == 77
    assert np.abs(found.shift[:, 0]).argmax() == 77
    assert found.shift.shape == (150, 1)


def test_influence_without_gaussian_weights_is_refused():
    model = RWFRegressor(30, prior="field", random_state=0).fit(*rows())
    with pytest.raises(ValueError, match="a copy that has forgotten"):
        model.influence(*rows(), at=NEW)
