"""Predictions of dense models do not depend on block sizes or on the number of cores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features import ConstantFeatures, Stack, WaveletFamily
from rwf.inference.moments import accumulate
from rwf.models.dense import DenseModel, Hyperparameters
from rwf.wavelets import MexicanHat
from rwf.wavelets.measure import Measure, Rows


@pytest.fixture
def model(rng):
    X = rng.normal(3.0, 2.0, (200, 2))
    y = np.column_stack([np.sin(X[:, 0]), 4.0 * X[:, 1]]) + rng.normal(5.0, 0.3, (200, 2))
    rows = Block(X, y, np.ones(200))
    units = Standardizer.learn(rows, ard=True)
    family = WaveletFamily(MexicanHat(), Measure(0.4, 3.0, Rows()), 1.7)
    stack = Stack((family.draw(30, units.inputs(X), rng), ConstantFeatures()))
    parameters = Hyperparameters(stack, np.zeros(2), np.full(2, np.log(0.1)))
    statistics = accumulate(stack, [units.rows(rows)], 2)
    return DenseModel(units=units, hyperparameters=parameters, statistics=statistics)


def parts(p):
    return p.mean, p.function_variance, p.noise_variance, p.support


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_blocks_and_cores_change_nothing(model, cores, rng, monkeypatch):
    X = rng.normal(0.5, 2.0, (1100, 2))
    expected = parts(model.predict(X))
    alone = zip(*(parts(model.predict(row[None])) for row in X[::100]), strict=True)
    monkeypatch.setattr("rwf.models.dense.CHUNK_BYTES", 1)  # the fewest rows at a time: 256
    monkeypatch.setattr("rwf.models.dense.cores", lambda: cores)
    for found, part in zip(parts(model.predict(X)), expected, strict=True):
        assert found.shape == part.shape
        assert_allclose(found, part, rtol=1e-10, atol=1e-12)
    assert_allclose(model.mean(X), expected[0], rtol=1e-10, atol=1e-12)
    for single, part in zip(alone, expected, strict=True):
        assert_allclose(np.concatenate(single), part[::100], rtol=1e-10, atol=1e-12)


def test_leave_one_out_predictions_do_not_depend_on_blocks(model, rng, monkeypatch):
    rows = Block(rng.normal(0.5, 1.0, (700, 2)), rng.normal(size=(700, 2)), np.ones(700))
    expected = parts(model.leave_one_out(rows))
    monkeypatch.setattr("rwf.models.dense.block_rows", lambda *_: 256)
    for found, part in zip(parts(model.leave_one_out(rows)), expected, strict=True):
        assert_allclose(found, part, rtol=1e-10, atol=1e-12)


def test_no_rows_have_no_predictions(model):
    nothing = np.empty((0, 2))
    p = model.predict(nothing)
    assert p.mean.shape == p.variance.shape == model.mean(nothing).shape == (0, 2)
    assert p.support.shape == (0,)


def test_inducing_rows_do_not_judge_the_model_that_they_stay_in(rng):
    X = rng.normal(size=(400, 4))
    rows = Block(X, np.sin(2 * X[:, :1]), np.ones(400))
    fit = RWFRegressor(
        60, prior="nystrom", neighbors=None, max_iter=2, random_state=0, n_restarts=0
    )
    model = fit.fit(X, rows.y[:, 0]).model_.base
    known = model.units.rows(rows)
    unbiased = model.unbiased_rows(known)
    inducing = {center.tobytes() for center in model.nystrom.centers}
    assert len(inducing) == 60
    assert len(unbiased) == 340
    assert not inducing & {row.tobytes() for row in unbiased.X}
    few = known.part(np.array([row.tobytes() in inducing for row in known.X]))
    assert model.unbiased_rows(few) is few  # too few are left: all are used
