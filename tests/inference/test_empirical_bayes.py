"""Variances from the moments alone: the evidence is at its maximum, and the noise is found."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from rwf.data.rows import Block
from rwf.features import ConstantFamily, FourierFamily, LinearFamily, Stack
from rwf.inference.empirical_bayes import Variances, average_information, empirical_bayes
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import accumulate, accumulate_root


def problem(rng, noise_sd=0.3, n=600):
    X = rng.normal(3.0, 2.0, (n, 2))
    features = Stack(
        tuple(
            f.draw(30, X, rng) for f in (FourierFamily("se", 2.0), ConstantFamily(), LinearFamily())
        )
    )
    scale = np.sqrt(np.array([4.0, 1.0, 0.5])[features.groups])
    y = features(X) @ (scale * rng.normal(size=features.n_features)) + noise_sd * rng.normal(size=n)
    return features, Block(X, y[:, None], np.ones(n))


START = Variances(np.zeros(3), np.log(0.1))


def test_the_evidence_is_flat_where_tuning_stops_and_the_noise_is_the_true_one(rng):
    features, rows = problem(rng)
    for collect in (accumulate, accumulate_root):
        fits = empirical_bayes(collect(features, [rows], 1), 0, features.groups, START)
        g = variance_gradient(fits.posterior, features.groups, 3)
        assert abs(g.log_noise) / 600 < 1e-3
        assert (np.abs(g.log_priors) / 600 < 1e-3).all()
        # σ̂² has a relative standard error of about √(2/(n - p)).
        assert abs(fits.variances.noise_variance / 0.09 - 1) < 5 * np.sqrt(2 / 560)


def test_both_forms_of_the_statistics_are_tuned_alike(rng):
    features, rows = problem(rng)
    a, b = (
        empirical_bayes(collect(features, [rows], 1), 0, features.groups, START)
        for collect in (accumulate, accumulate_root)
    )
    assert_allclose(a.posterior.log_evidence, b.posterior.log_evidence, rtol=1e-7)
    assert_allclose(a.variances.log_noise, b.variances.log_noise, atol=1e-4)


def test_prior_variances_stay_when_they_are_not_learned(rng):
    features, rows = problem(rng)
    fits = empirical_bayes(
        accumulate(features, [rows], 1), 0, features.groups, START, learn_priors=False
    )
    assert_allclose(fits.variances.log_priors, 0.0)
    g = variance_gradient(fits.posterior, features.groups, 3)
    assert abs(g.log_noise) / 600 < 1e-3


def test_parameters_at_their_bounds_are_named(rng):
    features, rows = problem(rng)
    silent = Block(rows.X, np.zeros_like(rows.y), rows.weights)
    fits = empirical_bayes(accumulate(features, [silent], 1), 0, features.groups, START)
    assert "noise variance at its lower bound" in fits.at_bounds


def test_the_average_information_is_the_mean_of_the_observed_and_the_expected(rng):
    features, rows = problem(rng, n=80)
    v, groups = np.log([0.2, 3.0, 0.7, 0.4]), features.groups
    Z, y = features(rows.X), rows.y[:, 0]
    prior_variances = np.exp(v[1:])[groups]
    posterior = accumulate(features, [rows], 1).posterior(0, prior_variances, 0.2)
    parts = [0.2 * np.eye(80)]
    parts += [(Z * prior_variances * (groups == g)) @ Z.T for g in range(3)]
    inverse = np.linalg.inv(sum(parts))
    slopes = [inverse @ part for part in parts]  # K⁻¹ ∂K/∂log
    quadratic = [[y @ a @ b @ inverse @ y for b in slopes] for a in slopes]
    trace = 0.5 * np.array([[np.trace(a @ b) for b in slopes] for a in slopes])
    observed, expected = quadratic - trace, trace  # but for first derivatives, of mean zero
    found = average_information(posterior, groups, 3)
    assert_allclose(found, 0.5 * (observed + expected), rtol=1e-7, atol=1e-9)


def test_a_few_steps_suffice(rng):
    features, rows = problem(rng)
    fits = empirical_bayes(accumulate(features, [rows], 1), 0, features.groups, START)
    assert fits.evaluations <= 10
