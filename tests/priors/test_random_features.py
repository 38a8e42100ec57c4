"""Learning the shape: several trials, the best kept, all reported, always uphill."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf.data.rows import Block
from rwf.features import ConstantFamily, LinearFamily, WaveletFamily
from rwf.inference.evidence import evidence
from rwf.priors.random_features import (
    draw_stack,
    first_hyperparameters,
    learn_hyperparameters,
    maximize_evidence,
    restart,
)
from rwf.wavelets import MexicanHat
from rwf.wavelets.measure import Measure, Rows

FAMILY = WaveletFamily(MexicanHat(), Measure(0.5, 2.0, Rows()), 1.4)
FAMILIES = [FAMILY, FAMILY, ConstantFamily(), LinearFamily()]


def rows_of(rng, n=150, d=2):
    X = rng.normal(size=(n, d))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return Block(X, y[:, None], np.ones(n))


def value(shape, rows):
    e = evidence(shape.features, rows, shape.features.groups, shape.log_priors, shape.log_noise)
    return e.value / rows.weights.sum()


def test_columns_are_shared_evenly_and_the_trend_has_its_own(rng):
    rows = rows_of(rng)
    stack = draw_stack(FAMILIES, 31, rows.X, rng)
    assert [part.n_features for part in stack.maps] == [16, 15, 1, 2]


def test_climbing_raises_the_evidence_and_finds_the_relevant_column(rng):
    rows = rows_of(rng)
    start = first_hyperparameters(FAMILIES, draw_stack(FAMILIES, 60, rows.X, rng), 1)
    shape, report = maximize_evidence(start, rows, 40)
    assert report.log_evidence_per_row > value(start, rows) + 0.5
    assert_allclose(report.log_evidence_per_row, value(shape, rows), rtol=1e-9)
    # y depends on the first column only: its length-scale is the shorter one.
    lengths = shape.features.maps[int(np.argmax(shape.log_priors[:2]))].theta[:2]
    assert lengths[0] < lengths[1]


def test_the_best_of_all_trials_is_chosen_and_every_start_is_reported(rng):
    rows = rows_of(rng, d=1)
    shape, trials = learn_hyperparameters(
        FAMILIES, rows, rng, n_features=40, n_trials=3, max_iter=24
    )
    chosen = [s for s in trials if s.chosen]
    assert len(trials) == 3
    assert len(chosen) == 1
    assert chosen[0].log_evidence_per_row == max(s.log_evidence_per_row for s in trials)
    assert_allclose(value(shape, rows), chosen[0].log_evidence_per_row, rtol=1e-9)


def test_atoms_are_not_drawn_again_while_learning(rng):
    rows = rows_of(rng)
    start = first_hyperparameters(FAMILIES, draw_stack(FAMILIES, 20, rows.X, rng), 1)
    shape, _ = maximize_evidence(start, rows, 5)
    assert_array_equal(shape.features.maps[0].atoms.shifts, start.features.maps[0].atoms.shifts)
    assert_array_equal(shape.features.maps[0].atoms.draws, start.features.maps[0].atoms.draws)


@pytest.mark.parametrize("d", [1, 5])
def test_trials_differ_in_their_lengths_only(d, rng):
    rows = rows_of(rng, d=d)
    first = first_hyperparameters(FAMILIES, draw_stack(FAMILIES, 20, rows.X, rng), 1)
    second = restart(first, 1, d, rng)
    mask = first.features.length_mask
    moved = first.features.theta - second.features.theta
    assert (moved[mask] != 0).all()
    assert (moved[~mask] == 0).all()
    if d == 1:
        assert_allclose(moved[mask], np.log(4.0))


def test_prior_variances_can_be_left_alone(rng):
    rows = rows_of(rng)
    start = first_hyperparameters(FAMILIES, draw_stack(FAMILIES, 20, rows.X, rng), 1)
    shape, _ = maximize_evidence(start, rows, 10, learn_priors=False)
    assert_array_equal(shape.log_priors, start.log_priors)
