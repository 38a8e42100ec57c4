"""Single precision halves the time of a pass, and its moments know how much they have lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf import RFFRegressor, load
from rwf.features import (
    ConstantFeatures,
    FourierFamily,
    LinearFeatures,
    RidgeFamily,
    Stack,
    WaveletFamily,
)
from rwf.measures import Measure, Rows
from rwf.moments import Moments, accumulate
from rwf.rows import Block
from rwf.single import SingleMoments, accumulate_single
from rwf.wavelets import CompactHat, MexicanHat

EPS = float(np.finfo(np.float32).eps)
DATA = Measure(0.4, 3.0, Rows())
FAMILIES = {
    "hat": WaveletFamily(MexicanHat(), DATA, 1.7),
    "compact": WaveletFamily(CompactHat(), DATA, 1.1),
    "ridge": RidgeFamily(MexicanHat(), DATA, 1.7),
    "fourier": FourierFamily("matern32", 2.1),
}


def problem(name, rng, n=3000, p=100):
    X = rng.normal(3.0, 2.0, (n, 2))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + rng.normal(1.5, 0.5, (n, 2))
    weights = rng.uniform(0.5, 2.0, n)
    maps = (FAMILIES[name].draw(p, X, rng), ConstantFeatures(), LinearFeatures(2))
    return Stack(maps), Block(X, y, weights)


def relative_error(found, exact):
    scale = np.sqrt(exact.ZtZ.diagonal())
    scale[scale == 0] = 1.0
    return np.linalg.norm((found.ZtZ - exact.ZtZ) / (scale[:, None] * scale), 2)


@pytest.mark.parametrize("name", FAMILIES)
def test_moments_are_those_in_double_precision_to_the_rounding_of_singles(name, rng):
    features, rows = problem(name, rng)
    found, exact = accumulate_single(features, [rows], 2), accumulate(features, [rows], 2)
    diagonal = np.sqrt(exact.ZtZ.diagonal())
    # An entry is a sum of 3000 products, rounded as it grows.
    bound = 50 * EPS * (diagonal[:, None] * diagonal)
    assert (np.abs(found.ZtZ - exact.ZtZ) <= bound).all()
    assert (np.abs(found.Zty - exact.Zty) <= 50 * EPS * np.outer(diagonal, exact.yty**0.5)).all()
    assert_allclose(found.yty, exact.yty, rtol=50 * EPS)
    assert_allclose(found.ZtZ, found.ZtZ.T, rtol=0)
    assert found.n == exact.n
    assert found.log_volume == exact.log_volume


@pytest.mark.parametrize("name", FAMILIES)
def test_the_error_measured_on_first_rows_stands_for_all(name, rng, monkeypatch):
    monkeypatch.setattr("rwf.single.SINGLE_BYTES", 1)  # the fewest rows at a time: 256
    features, rows = problem(name, rng)
    found, exact = accumulate_single(features, [rows], 2), accumulate(features, [rows], 2)
    actual = relative_error(found, exact)
    assert 0.2 * EPS < actual < 2.0 * found.rounding
    assert found.rounding < 100 * EPS


@pytest.mark.parametrize("p", [12, 100])  # the norm at once, and by iteration
def test_of_one_block_the_error_is_what_it_is(p, rng):
    features, rows = problem("ridge", rng, 300, p)
    found, exact = accumulate_single(features, [rows], 2), accumulate(features, [rows], 2)
    assert_allclose(found.rounding, relative_error(found, exact), rtol=0.1)


def test_noise_that_does_not_stand_out_is_not_resolved(rng):
    features, rows = problem("hat", rng)
    found, exact = accumulate_single(features, [rows], 2), accumulate(features, [rows], 2)
    prior = np.full(features.n_features, 1.7)
    least = found.resolvable_noise(prior)
    assert least > 100 * exact.resolvable_noise(prior)
    assert found.resolves(prior, 1.1 * least)
    assert not found.resolves(prior, 0.9 * least)
    assert exact.resolves(prior, 0.9 * least)


@pytest.mark.parametrize("name", FAMILIES)
def test_where_noise_is_resolved_predictions_are_those_of_double_precision(name, rng):
    features, rows = problem(name, rng)
    prior = np.full(features.n_features, 1.7)
    f = features(rows.X) @ (np.sqrt(prior) * rng.normal(size=features.n_features))
    silent = accumulate_single(features, [replace(rows, y=f[:, None])], 1)
    noise = 1.1 * silent.resolvable_noise(prior)
    y = f + np.sqrt(noise / rows.weights) * rng.normal(size=len(rows))
    rows = replace(rows, y=y[:, None])
    found, exact = accumulate_single(features, [rows], 1), accumulate(features, [rows], 1)
    a, b = (moments.posterior(0, prior, noise) for moments in (found, exact))
    assert_allclose(a.rss, b.rss, rtol=0.02)
    Z = features(rng.normal(3.0, 2.0, (200, 2)))
    single, double = a.predict(Z), b.predict(Z)
    assert (np.abs(single.mean - double.mean) < 0.05 * np.sqrt(double.variance)).all()
    assert_allclose(single.variance, double.variance, rtol=0.01)


def test_least_noise_grows_with_the_targets_or_with_the_prior(rng):
    features, rows = problem("hat", rng)
    silent, small, large = (
        accumulate_single(features, [replace(rows, y=size * rows.y)], 2)
        for size in (1e-6, 1.0, 1000.0)
    )
    flat, wide, wider = (np.full(features.n_features, size) for size in (1e-6, 1.0, 10.0))
    assert_allclose(large.resolvable_noise(flat), 1e6 * small.resolvable_noise(flat), rtol=1e-3)
    assert_allclose(silent.resolvable_noise(wider), 10 * silent.resolvable_noise(wide), rtol=1e-9)


def test_errors_add_as_moments_do(rng):
    features, rows = problem("hat", rng)
    parts = [rows.part(slice(0, 1000)), rows.part(slice(1000, 3000))]
    a, b = (accumulate_single(features, [part], 2) for part in parts)
    total = a + b
    assert isinstance(total, SingleMoments)
    assert_allclose(total.ZtZ, a.ZtZ + b.ZtZ, rtol=0)
    expected = (a.rounding * a.n + b.rounding * b.n) / (a.n + b.n)
    assert_allclose(total.rounding, expected, rtol=1e-12)
    beside = a + accumulate(features, parts[1:], 2)
    assert_allclose(beside.rounding, a.rounding * a.n / (a.n + b.n), rtol=1e-12)


def test_moments_come_back_from_plain_arrays(rng):
    features, rows = problem("hat", rng, 300, 20)
    found = accumulate_single(features, [rows], 2)
    again = SingleMoments.from_arrays(found.to_arrays())
    assert again.rounding == found.rounding
    assert_allclose(again.ZtZ, found.ZtZ, rtol=0)
    assert again.n == found.n


def test_of_no_rows_nothing_is_lost(rng):
    features, _ = problem("hat", rng, 300, 20)
    empty = accumulate_single(features, [], 2)
    assert isinstance(empty, Moments)
    assert empty.n == 0.0
    assert empty.rounding == 0.0
    assert not empty.ZtZ.any()


def rough(n, noise, seed=0):
    """Rows of two columns with so much noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + noise * rng.normal(size=n)


def fitted(precision, noise, **parameters):
    model = RFFRegressor(60, precision=precision, n_restarts=0, random_state=0, **parameters)
    return model.fit(*rough(20_000, noise))


def test_noisy_rows_are_fitted_in_single_precision():
    single, double = fitted("auto", 0.5), fitted("double", 0.5)
    assert single.fit_report_.statistics == "gram32"
    assert double.fit_report_.statistics == "gram"
    X = rough(500, 0.5, 1)[0]
    (mean, std), (exact, exact_std) = (m.predict(X, return_std=True) for m in (single, double))
    assert 0 < np.abs(mean - exact).max() < 0.01 * exact_std.min()
    assert_allclose(std, exact_std, rtol=1e-3)


def test_where_rows_have_hardly_any_noise_precision_is_double():
    X = rough(500, 0.0, 1)[0]
    auto, double = fitted("auto", 1e-4), fitted("double", 1e-4)
    assert auto.fit_report_.statistics == double.fit_report_.statistics != "gram32"
    assert_allclose(auto.predict(X), double.predict(X), rtol=0)


def test_a_pass_that_does_not_resolve_the_noise_is_made_again(monkeypatch, capsys):
    monkeypatch.setattr(SingleMoments, "resolves", lambda *_: False)
    model = fitted("auto", 0.5, verbose=1)
    assert model.fit_report_.statistics == "gram"
    assert "gram32: the noise is below what it resolves" in capsys.readouterr().err


def test_moments_in_single_precision_stream_merge_and_are_saved(tmp_path):
    whole, X = fitted("auto", 0.5), rough(500, 0.5, 1)[0]
    a, b = whole.without_rows(), whole.without_rows()
    rows, y = rough(20_000, 0.5)
    a.partial_fit(rows[:7000], y[:7000])
    b.partial_fit(rows[7000:], y[7000:])
    a.merge(b)
    assert isinstance(a.model_.statistics, SingleMoments)
    assert_allclose(a.predict(X), whole.predict(X), rtol=1e-3, atol=1e-4)
    whole.save(tmp_path / "model.rwf")
    again = load(tmp_path / "model.rwf")
    assert isinstance(again.model_.statistics, SingleMoments)
    assert again.model_.statistics.rounding == whole.model_.statistics.rounding
    assert_allclose(again.predict(X), whole.predict(X), rtol=0)


def test_a_precision_has_one_of_two_names():
    with pytest.raises(ValueError, match="use 'double' or 'auto'"):
        fitted("half", 0.5)
