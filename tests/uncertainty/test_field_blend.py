"""Experts are weighed, and their variances calibrated, by the distance to data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.inference.posterior import Marginals
from rwf.uncertainty.field_blend import (
    FieldErrors,
    FieldScores,
    _log_factors,
    between_knots,
    learn_field_blend,
)


def errors_of(rng, n=4000, near=(1.0, 2.0), far=(2.0, 1.0), truth=1.0):
    """Two experts with these errors among data and in gaps; variances say one."""
    gap = np.where(np.arange(n) % 2 == 0, 1.0, 30.0)
    y = rng.normal(size=n)
    experts = []
    for among, beyond in zip(near, far, strict=True):
        size = np.where(gap > 2, beyond, among) * truth
        experts.append(Marginals(y + size * rng.normal(size=n), np.ones(n)))
    return FieldErrors(y, experts, gap, np.zeros((n, 24), dtype=np.intp), np.arange(n))


ONES = FieldScores(np.ones(10), np.ones(10))


def test_knots_interpolate(rng):
    B = between_knots(np.exp(rng.normal(size=100) * 3))
    assert_allclose(B.sum(axis=1), 1.0)
    assert (B >= 0).all()
    assert_allclose(between_knots(np.array([0.0, 1e9])), [[1, 0, 0, 0], [0, 0, 0, 1]])


def test_the_better_expert_has_more_weight_at_its_distance(rng):
    blend = learn_field_blend(errors_of(rng), ONES, "local")
    assert_allclose(blend.weights.sum(axis=0), 1.0)
    # Of independent errors the inverse variances are best: four to one.
    assert_allclose(blend.weights[:, 0], [0.8, 0.2], atol=0.02)
    assert_allclose(blend.weights[:, -1], [0.2, 0.8], atol=0.02)


def test_weights_are_those_of_the_smallest_squared_error(rng):
    errors = errors_of(rng, near=(1.0, 2.0, 0.5), far=(1.0, 1.0, 30.0))
    weights = learn_field_blend(errors, ONES, "local").weights
    assert_allclose(weights.sum(axis=0), 1.0)
    precisions = np.array([1.0, 0.25, 4.0])
    assert_allclose(weights[:, 0], precisions / precisions.sum(), atol=0.02)
    assert_allclose(weights[:, -1], [0.5, 0.5, 0.0], atol=0.02)


def test_an_expert_that_repeats_the_errors_of_a_better_one_has_no_weight(rng):
    errors = errors_of(rng, near=(1.0, 1.0), far=(1.0, 1.0))
    first = errors.experts[0]
    worse = Marginals(errors.y + 2.0 * (first.mean - errors.y), first.variance)
    both = replace(errors, experts=[first, worse])
    assert_allclose(learn_field_blend(both, ONES, "local").weights[1, [0, -1]], 0.0, atol=0.02)


@pytest.mark.parametrize("truth", [0.5, 3.0])
def test_scores_have_unit_variance_once_calibrated(rng, truth):
    errors = errors_of(rng, near=(1.0, 1.0), far=(2.0, 2.0), truth=truth)
    z = learn_field_blend(errors, ONES, "local").scores(errors, ONES)
    for its in (errors.gap < 2, errors.gap > 2):
        assert np.mean(np.abs(z[its]) < 1.96) == pytest.approx(0.95, abs=0.02)


def test_without_a_mode_variances_stay(rng):
    errors = errors_of(rng, truth=3.0)
    blend = learn_field_blend(errors, ONES, None)
    assert_allclose(blend.factor(errors.gap, errors.near, ONES), 1.0)


def test_log_factors_are_at_the_maximum_of_their_density(rng):
    gap, squares = np.exp(rng.normal(size=200)), rng.chisquare(1, size=200) * 2
    counts = rng.uniform(size=200)
    theta = _log_factors(gap, squares, counts, np.zeros(4))

    def density(theta):
        f = between_knots(gap) @ theta
        return -0.5 * counts @ (f + squares * np.exp(-f)) - 0.5 * theta @ theta / 0.25

    for step in 1e-5 * np.eye(4):
        assert density(theta + step) - density(theta - step) == pytest.approx(0, abs=1e-8)


def test_scores_nearby_scale_the_variance(rng):
    n = 3000
    rough = np.arange(n) % 2
    y = np.zeros(n)
    experts = [Marginals(np.where(rough, 3.0, 0.3) * rng.normal(size=n), np.ones(n))] * 2
    scores = FieldScores(np.array([0.09, 9.0]), np.array([0.09, 9.0]))
    near = np.repeat(rough[:, None], 24, axis=1)
    errors = FieldErrors(y, experts, np.ones(n), near, np.arange(n))
    local, flat = (learn_field_blend(errors, scores, mode) for mode in ("local", "global"))
    assert np.std(local.scores(errors, scores)[rough == 0]) == pytest.approx(1.0, abs=0.2)
    assert np.std(flat.scores(errors, scores)[rough == 0]) < 0.3


def test_a_blob_counts_as_few_rows(rng):
    errors = errors_of(rng, n=100)
    together = FieldErrors(
        errors.y, errors.experts, errors.gap, errors.near, np.minimum(np.arange(100), 60)
    )
    assert_allclose(together.counts[:60], 1.0)
    assert_allclose(together.counts[60:].sum(), 4.0)
    assert together.alone.sum() == 60


def test_hold_outs_join_with_blobs_of_their_own(rng):
    parts = [errors_of(rng, n=10), errors_of(rng, n=20)]
    both = FieldErrors.joined(parts)
    assert len(np.unique(both.blob)) == 30
    assert_allclose(both.experts[1].mean[10:], parts[1].experts[1].mean)
