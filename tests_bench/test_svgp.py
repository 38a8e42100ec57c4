"""SVGP: samples, centres, convergence and seeds."""

import numpy as np
from numpy.testing import assert_allclose

from experiments.baselines.svgp import centres, sample_sizes
from experiments.runner.methods import make
from rwf.diagnostics.metrics import linear_reference, rmse


def test_samples_grow_threefold_up_to_all_rows():
    assert sample_sizes(5000) == [5000]
    assert sample_sizes(41_157) == [4573, 13_719, 41_157]


def test_inducing_points_are_centres_of_the_rows(rng):
    places = rng.normal(3.0, 5.0, (6, 2))
    X = np.repeat(places, 50, axis=0) + rng.normal(0, 0.01, (300, 2))
    found = centres(X, 6, random_state=0)
    assert found.shape == (6, 2)
    nearest = np.linalg.norm(found[:, None] - X, axis=2).min(axis=1)
    assert nearest.max() < 2.0  # within the cloud of places, whose spread is 5
    assert_allclose(centres(np.repeat(places, 9, axis=0), 20, 0), np.unique(places, axis=0))


UNBOUND = {"budget": 1e4}  # so that steps end a training, on a busy machine too


def test_a_surface_is_found_within_its_error_bars(surface):
    X, y, f = surface
    settings = {**UNBOUND, "max_steps": 90, "n_inducing": 60, "n_starts": 1}
    method = make("svgp", settings, 0).fit(X[:350], y[:350])
    mean, std = method.predict(X[350:])
    _, std_f = method.predict_function(X[350:])
    assert rmse(f[350:], mean) < 0.6
    assert rmse(f[350:], mean) < 0.1 * rmse(f[350:], linear_reference(X[:350], y[:350], X[350:])[0])
    assert 0.88 < np.mean(np.abs(mean - y[350:]) < 1.96 * std) < 0.99
    facts = method.facts()
    assert_allclose(facts["noise_variance"], 1.0, rtol=0.35)
    assert_allclose(std**2 - std_f**2, facts["noise_variance"], rtol=1e-6)
    assert facts["n_inducing"] == 60
    assert facts["steps"] <= 180  # of Adam, and of L-BFGS after it


def test_a_signal_of_many_waves_is_found_from_the_shorter_of_its_starts(rng):
    x = rng.uniform(300, 340, 800)
    f = 900 + 50 * np.sin(3 * x)
    settings = {**UNBOUND, "max_steps": 150, "n_inducing": 80, "batch": 256}
    method = make("svgp", settings, 0).fit(x[:, None], f + rng.normal(0, 5, 800))
    mean, _ = method.predict(x[:, None])
    assert rmse(f, mean) < 10
    assert len(method.facts()["loss_by_start"]) == 3


def test_facts_tell_whether_it_has_converged(surface):
    X, y, _ = surface
    small = {"n_inducing": 10, "n_starts": 1}
    assert make("svgp", {**small, "budget": 0.0}, 0).fit(X, y).facts()["converged"] is False
    converged = make("svgp", {**small, **UNBOUND, "tolerance": 10.0}, 0).fit(X, y).facts()
    assert converged["converged"] is True
    assert converged["steps"] == 100  # a window to compare with and another, of both


def test_a_seed_gives_the_same_model_and_another_one_another(surface):
    X, y, _ = surface
    settings = {**UNBOUND, "max_steps": 8, "n_inducing": 10, "n_starts": 2, "batch": 50}
    means = [make("svgp", settings, seed).fit(X, y).predict(X[:30])[0] for seed in (3, 3, 4)]
    assert_allclose(means[0], means[1], rtol=1e-12)
    assert not np.allclose(means[0], means[2], rtol=1e-6)
