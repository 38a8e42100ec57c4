"""Models of transformed targets: chosen with care, and everything in the units of the target."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import rwf
from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.diagnostics.sensitivity import partial_dependence
from rwf.fit.targets import suited


def prices(n, rng, spread=0.15):
    X = rng.normal(size=(n, 4))
    return X, np.exp(7 + 1.2 * X[:, 0] + 0.3 * np.sin(2 * X[:, 1]) + spread * rng.normal(size=n))


def model(**given):
    return RWFRegressor(prior="nystrom", neighbors=None, random_state=0, **given)


@pytest.fixture(scope="module")
def fitted():
    X, y = prices(400, np.random.default_rng(1))
    return model().fit(X[:300], y[:300]), X, y


def test_a_price_gets_a_logarithm_and_no_interval_below_zero(fitted):
    found, X, y = fitted
    assert found.model_.units.transform.names == ("log",)
    p = found.predict_distribution(X[300:])
    low, high = found.predict_interval(X[300:], 0.9)
    assert (low > 0).all()
    assert 0.8 < ((low < y[300:]) & (y[300:] < high)).mean() < 0.98
    mean, std = found.predict(X[300:], return_std=True)
    assert_allclose(mean, p.mean)
    assert_allclose(std, p.std)
    assert_array_equal(found.predict(X[300:]), mean)
    # Errors grow with the price: about spread times price.
    assert_allclose(std / mean, 0.15, rtol=0.5)
    plain = model(target_transform=None).fit(X[:300], y[:300])
    before = plain.predict_distribution(X[300:])
    assert p.crps(y[300:]).mean() < 0.8 * before.crps(y[300:]).mean()
    assert p.logpdf(y[300:]).mean() > 0.3 + before.logpdf(y[300:]).mean()


def test_the_report_is_in_the_units_of_the_target(fitted):
    found, X, y = fitted
    plain = model(target_transform=None).fit(X[:300], y[:300])
    assert found.fit_report_.nll < plain.fit_report_.nll - 0.1
    held = -found.predict_distribution(X[300:]).logpdf(y[300:]).mean()
    assert abs(found.fit_report_.nll - held) < 0.4  # the target's unit would be exp(7)
    tenfold = clone(found).fit(X[:300], 10 * y[:300])
    assert_allclose(tenfold.fit_report_.nll, found.fit_report_.nll + np.log(10), atol=0.01)


def test_draws_combinations_and_covariances_agree(fitted):
    found, X, _ = fitted
    rows = X[300:306]
    drawn = found.sample_y(rows, 20_000, random_state=0, noise=False)
    f, sd = found.predict_function(rows)
    assert_allclose(drawn.mean(axis=1), f, rtol=0.02)
    assert_allclose(drawn.std(axis=1), sd, rtol=0.1)
    weights = np.array([[0.5, 0.5, 0, 0, 0, 0], [1.0, 0, -1.0, 0, 0, 0]])
    mean, both = found.predict_combination(rows, weights)
    assert_allclose(mean, weights @ f)
    assert_allclose(both, (weights @ drawn).std(axis=1), rtol=0.15)
    std = found.predict(rows, return_std=True)[1]
    assert_allclose(np.sqrt(np.diag(found.predict(rows, return_cov=True)[1])), std)
    dependence = partial_dependence(found, X[:300], 0)
    assert (dependence.mean > 0).all()
    assert (np.diff(dependence.mean) > 0).mean() > 0.9


def test_rows_are_added_merged_saved_and_refused(fitted, tmp_path):
    found, X, y = fitted
    more = clone(found).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    other = found.empty_copy().partial_fit(X[300:], y[300:])
    merged = clone(found).fit(X[:300], y[:300]).merge(other)
    assert_allclose(merged.predict(X), more.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match=r"no logarithm.*target_transform="):
        more.partial_fit(X[:1], [-1.0])
    found.save(tmp_path / "model.rwf")
    loaded = rwf.load(tmp_path / "model.rwf")
    assert_array_equal(loaded.predict_interval(X), found.predict_interval(X))
    assert loaded.target_transform == "auto"


def test_outputs_have_transforms_of_their_own(rng):
    X, price = prices(200, rng)
    y = np.column_stack([price, X[:, 2] - X[:, 0]])
    found = model().fit(X, y)
    assert found.model_.units.transform.names == ("log", None)
    mean, std = found.predict(X, return_std=True)
    assert mean.shape == std.shape == (200, 2)
    assert mean[:, 0].min() > 0 > mean[:, 1].min()
    assert found.sample_y(X[:3], 5, random_state=0).shape == (3, 2, 5)
    assert found.sample_y(X[:3], 5, random_state=0)[:, 0].min() > 0


def test_groups_are_scored_in_the_units_of_the_target(rng):
    X, y = prices(240, rng)
    found = model().fit(X, y, groups=np.repeat(np.arange(24), 10))
    left = found.leave_group_out()
    assert left.rmse.shape == (24,)
    assert_allclose(found.fit_report_.group_scores.rmse, np.sqrt(((left.mean - y) ** 2).mean()))
    assert 0.85 < found.fit_report_.group_scores.coverage <= 1.0


def chosen(X, y):
    return suited(Block(X, y[:, None], np.ones(len(y))))[0]


def test_targets_stay_where_no_transform_clearly_wins(rng):
    X, price = prices(600, rng)
    assert chosen(X, price) == "log"
    assert chosen(X, (3 + 0.3 * rng.normal(size=600) + X[:, 0]).clip(0.01) ** 2) in (None, "sqrt")
    # The inputs make the skewness, and errors are of one size.
    assert chosen(np.exp(X), 5 + np.exp(X[:, 0]) + 0.3 * rng.normal(size=600).clip(-3)) is None
    # A mass at zero, targets that are symmetric, or of one size, and few rows.
    assert chosen(X, np.where(price < 500, 0.0, price)) is None
    assert chosen(X, 10 + X[:, 0] + 0.1 * rng.normal(size=600)) is None
    assert chosen(X, 1e6 + price) is None
    assert chosen(X[:40], price[:40]) is None


def test_streams_have_a_transform_only_if_it_is_given(rng):
    X, y = prices(900, rng)

    def blocks():
        return iter([(X[:500], y[:500]), (X[500:], y[500:])])

    given = {"n_components": 50, "random_state": 0, "neighbors": None, "max_iter": 5}
    auto = RWFRegressor(prior="random_features", **given).fit(blocks)
    log = RWFRegressor(prior="random_features", target_transform="log", **given).fit(blocks)
    assert log.model_.units.transform.names == ("log",)
    assert (log.predict_interval(X)[0] > 0).all()
    assert auto.predict(X).shape == (900,)


def test_names_are_checked():
    with pytest.raises(ValueError, match="target_transform='ln' must be 'auto', 'log', 'sqrt' or"):
        model(target_transform="ln").fit(np.eye(3), np.arange(3.0))
