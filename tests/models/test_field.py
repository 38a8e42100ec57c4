"""Fields: what the lattice and kriging add up to, gaps, stored rows, and updates."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf import RWFRegressor
from rwf.models.field import FieldModel


def landscape(n, seed, d=2):
    """Hills with ridges along a diagonal, and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, size=(n, d))
    hills = np.sin(X[:, 0]) + np.cos(0.7 * X[:, 1])
    ridges = 0.4 * np.sin(6.0 * (X[:, 0] - X[:, 1]))
    return X, 100.0 + 10.0 * (hills + ridges + 0.02 * rng.normal(size=n))


def field(**options):
    return RWFRegressor(**({"prior": "field", "random_state": 0} | options))


def is_field(model):
    return isinstance(getattr(model.model_, "model", None), FieldModel)


@pytest.fixture(scope="module")
def data():
    return landscape(1500, 0)


@pytest.fixture(scope="module")
def fitted(data):
    return field().fit(*data)


@pytest.fixture(scope="module")
def new():
    return landscape(500, 1)


@pytest.fixture(scope="module")
def with_larger(data):
    """A field of as many rows as get a lattice of more atoms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rwf.priors.field.MOST_COMPONENTS", 100)
        patch.setattr("rwf.priors.field.LARGER", 300)
        return field().fit(*data)


def test_a_field_resolves_fine_and_coarse(fitted, new):
    X, y = new
    mean, std = fitted.predict(X, return_std=True)
    assert is_field(fitted)
    assert np.sqrt(np.mean((y - mean) ** 2)) < 0.15 * y.std()
    assert 0.9 < np.mean(np.abs(y - mean) < 1.96 * std) < 0.99


def test_auto_takes_the_field_of_a_map(data, fitted, new):
    model = RWFRegressor(random_state=0).fit(*data)
    assert is_field(model)
    assert_allclose(model.predict(new[0]), fitted.predict(new[0]), rtol=0.05)


@pytest.mark.parametrize(
    "options",
    [{"neighbors": None}, {"noise": "heteroscedastic"}, {"noise": "student"}, {"solver": "dense"}],
)
def test_auto_does_not_take_a_field_that_cannot_do_what_is_asked(options):
    X, y = landscape(1100, 2)
    model = RWFRegressor(50, n_restarts=0, max_iter=3, random_state=0, **options).fit(X, y)
    assert not is_field(model)


def test_the_error_bar_opens_with_the_distance_and_the_mean_stays_in_range(data):
    X, y = data
    hole = np.linalg.norm(X - 5.0, axis=1) < 2.5
    model = field().fit(X[~hole], y[~hole])
    line = np.column_stack([np.full(40, 5.0), np.linspace(1.0, 5.0, 40)])
    mean, std = model.predict(line, return_std=True)
    assert std[-1] > 5.0 * std[:5].mean()
    assert (np.abs(mean - y.mean()) < np.ptp(y)).all()
    far, wide = model.predict(np.full((1, 2), 1e4), return_std=True)
    assert wide[0] > 0.5 * y.std()
    assert np.isfinite(far).all()


@pytest.mark.parametrize("seed", range(4))
def test_under_random_clouds_no_mean_leaves_the_range_by_half_its_span(seed):
    rng = np.random.default_rng(seed)
    X, y = landscape(900, seed)
    middles, sizes = rng.uniform(0, 10, size=(6, 2)), rng.uniform(0.5, 3.0, size=6)
    clouds = (np.linalg.norm(X[:, None] - middles, axis=2) < sizes).any(axis=1)
    model = field(random_state=seed).fit(X[~clouds], y[~clouds])
    mean = model.predict(rng.uniform(0, 10, size=(3000, 2)))
    span = np.ptp(y[~clouds])
    assert mean.min() > y[~clouds].min() - 0.5 * span
    assert mean.max() < y[~clouds].max() + 0.5 * span


def test_predictions_do_not_depend_on_the_rows_beside_them(fitted, new, monkeypatch):
    X = new[0]
    whole = fitted.predict(X, return_std=True)
    monkeypatch.setattr("rwf.models.field.BLOCK_ROWS", 60)
    for a, b in zip(fitted.predict(X, return_std=True), whole, strict=True):
        assert_allclose(a, b, rtol=1e-12)


def test_a_row_left_out_is_unseen(fitted, data):
    """Leave-one-out errors are those of new rows, not of rows that were fitted."""
    X, y = data
    rows = fitted.model_.units.rows(rwf.data.rows.Block(X[:300], y[:300, None], np.ones(300)))
    unseen, seen = fitted.model_.leave_one_out(rows), fitted.model_.predict(rows.X)
    errors = [np.sqrt(np.mean((rows.y - p.mean) ** 2)) for p in (unseen, seen)]
    assert errors[0] > 2.0 * errors[1]
    assert 0.9 < np.mean(np.abs(rows.y - unseen.mean) < 1.96 * np.sqrt(unseen.variance)) < 0.99


def test_many_rows_have_a_lattice_of_more_atoms(with_larger, fitted, new):
    field = with_larger.model_.model
    (larger,) = field.larger
    assert larger.summary.n_features > 2 * field.model.summary.n_features
    assert field.outputs[0].blend.weights.shape == (3, 4)
    assert fitted.model_.model.larger == ()
    mean = with_larger.predict(new[0])
    assert np.sqrt(np.mean((new[1] - mean) ** 2)) < 0.15 * new[1].std()


@pytest.mark.parametrize("name", ["fitted", "with_larger"])
def test_saved_equals_loaded(name, new, tmp_path, request):
    fitted = request.getfixturevalue(name)
    fitted.save(tmp_path / "field.rwf", include_rows=True)
    again = rwf.load(tmp_path / "field.rwf")
    for a, b in zip(
        again.predict(new[0], return_std=True), fitted.predict(new[0], return_std=True), strict=True
    ):
        assert_array_equal(a, b)
    copied = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copied.predict(new[0]), fitted.predict(new[0]))


@pytest.mark.parametrize("name", ["fitted", "with_larger"])
def test_rows_in_parts_give_the_model_of_all_rows(name, data, new, request):
    fitted = request.getfixturevalue(name)
    X, y = data
    parts = []
    for its in (slice(None, 700), slice(700, None)):
        parts.append(fitted.empty_copy().partial_fit(X[its], y[its]))
    merged = parts[0].merge(parts[1])
    chained = fitted.empty_copy().partial_fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    for model in (merged, chained):
        mean, std = model.predict(new[0], return_std=True)
        wanted = fitted.predict(new[0], return_std=True)
        # Only the random subsets, from which rows far away are taken, depend on their order.
        near = np.abs(mean - wanted[0]) < 1e-6 * np.abs(wanted[0])
        assert near.mean() > 0.9
        assert_allclose(std, wanted[1], rtol=0.2)


def test_models_with_and_without_a_larger_lattice_do_not_merge(fitted, with_larger):
    with pytest.raises(rwf.errors.IncompatibleModelsError):
        fitted.merge(with_larger)


def test_several_outputs_are_those_of_one_each(data, new):
    X, y = data
    both = np.column_stack([y, -2.0 * y + 7.0])
    model = field().fit(X, both)
    mean, std = model.predict(new[0], return_std=True)
    assert_allclose(mean[:, 1], -2.0 * mean[:, 0] + 7.0, rtol=0.05, atol=3.0)
    assert std.shape == (500, 2)


@pytest.mark.parametrize("name", ["fitted", "with_larger"])
def test_draws_have_the_mean_and_the_intervals_of_predictions(name, new, request):
    fitted = request.getfixturevalue(name)
    X = new[0][:50]
    mean, std = fitted.predict(X, return_std=True)
    draws = fitted.sample_y(X, n_samples=2000, random_state=0)
    assert_allclose(draws.mean(axis=1), mean, atol=6 * std.max() / np.sqrt(2000))
    # Deviations of draws with heavy tails converge slowly; shares within intervals do not.
    for level in (0.5, 0.9):
        low, high = fitted.predict_interval(X, level)
        share = np.mean((draws > low[:, None]) & (draws < high[:, None]), axis=1)
        assert_allclose(share, level, atol=5 * np.sqrt(level * (1 - level) / 2000))


def test_the_raw_posterior_has_no_calibration(data, new):
    model = field(calibration=None).fit(*data)
    assert isinstance(model.model_, FieldModel)
    assert_allclose(model.model_.outputs[0].blend.tails, 1.0)
    assert np.isfinite(model.predict(new[0], return_std=True)[1]).all()


@pytest.mark.parametrize("d", [1, 3])
def test_one_and_three_columns(d):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, d))
    y = np.sin(8.0 * X[:, 0]) + X[:, -1] + 0.01 * rng.normal(size=600)
    model = field().fit(X[:500], y[:500])
    assert np.sqrt(np.mean((model.predict(X[500:]) - y[500:]) ** 2)) < 0.1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.repeat(X[:100], 5, axis=0), y[:500]),  # repeated inputs
        lambda X, y: (np.column_stack([X[:500, 0], X[:500, 0]]), y[:500]),  # on a line
        lambda X, y: (X[:500], np.zeros(500)),  # a constant
        lambda X, y: (np.round(X[:500]), y[:500]),  # on few places
        lambda X, y: (X[:500] * [1.0, 1e-9], y[:500]),  # of different sizes
    ],
)
def test_degenerate_rows_have_finite_predictions(data, spoil):
    X, y = spoil(*data)
    mean, std = field().fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_too_few_rows_are_refused_with_a_remedy(data):
    with pytest.raises(ValueError, match=r"needs 200 of them, but X has 50: leave the prior out"):
        field().fit(data[0][:50], data[1][:50])


def test_weights_of_zero_leave_rows_out(data, new):
    X, y = data
    wrong, weights = y.copy(), np.ones(len(y))
    wrong[1000:] += 1e3
    weights[1000:] = 0.0
    kept = field().fit(X[:1000], y[:1000])
    weighted = field().fit(X, wrong, sample_weight=weights)
    # The number of atoms follows from that of all rows.
    assert_allclose(weighted.predict(new[0]), kept.predict(new[0]), rtol=0.02)


def test_draws_are_as_smooth_in_a_gap_as_the_covariance_says(fitted):
    line = np.linspace(3.0, 3.8, 12)
    X = np.array([(a, b) for a in line for b in line])
    C = fitted.model_.covariance(fitted.model_.units.inputs(X), noise=False)[..., 0]
    scale = fitted.model_.units.y.scale[0]
    _, std = fitted.predict_function(X)
    assert_allclose(np.sqrt(np.diag(C)) * scale, std, rtol=1e-8)
    draws = fitted.sample_y(X, 1500, random_state=0, noise=False) / scale
    assert_allclose(np.cov(draws), C, atol=6 * C.max() / np.sqrt(1500))
    weights = np.stack([np.full(144, 1 / 144), np.eye(144)[0] - np.eye(144)[1]])
    _, deviations = fitted.predict_combination(X, weights)
    assert_allclose(deviations, np.sqrt(np.diag(weights @ C @ weights.T)) * scale, rtol=1e-8)
    assert deviations[1] < 0.95 * np.hypot(*std[:2])  # neighbors are correlated


def test_draws_of_many_places_have_the_variance_of_predictions(fitted):
    """More places than a dense factor would take: some of them, within five standard errors."""
    line = np.linspace(-0.5, 10.5, 72)
    X = np.array([(a, b) for a in line for b in line])
    some = np.arange(7, len(X), 101)
    A = np.eye(len(X))[some]
    _, std = fitted.predict_function(X[some])
    mean, C = fitted.predict_combination(X, A, return_cov=True)
    ratios = np.diag(C) / std**2
    assert np.abs(ratios - 1.0).max() < 0.03
    assert abs(ratios.mean() - 1.0) < 0.003
    draws = fitted.sample_y(X, 40, random_state=0, noise=False)[some]
    scores = (draws - mean[:, None]) / std[:, None]
    R = C / std[:, None] / std
    error = np.sqrt(2.0 * np.sum(R**2) / 40) / len(some)  # of a quadratic form of a Gaussian
    assert abs(np.mean(scores**2) - 1.0) < 5.0 * error


def test_the_covariance_with_noise_has_the_variance_of_observations(fitted, new):
    X = new[0][:40]
    C = fitted.predict(X, return_cov=True)[1]
    assert_allclose(np.sqrt(np.diag(C)), fitted.predict(X, return_std=True)[1], rtol=1e-8)


def test_the_parts_of_a_field_have_its_variance_even_if_residuals_have_none(fitted, new):
    X = fitted.model_.units.inputs(new[0][:30])
    field = fitted.model_.model
    (own,) = field.outputs
    flat = replace(own, residuals=replace(own.residuals, short=0.0, long=0.0))
    for model in (field, replace(field, outputs=(flat,))):
        C = model.covariance(X, noise=False)[..., 0]
        assert_allclose(np.diag(C), model.predict(X).function_variance[:, 0], rtol=1e-8)
