"""Predictions do not depend on how many rows are asked for at a time, or on which core."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features import ConstantFeatures, Stack, WaveletFamily
from rwf.inference.moments import accumulate
from rwf.models.dense import DenseModel
from rwf.models.hyperparameters import Hyperparameters
from rwf.wavelets import MexicanHat
from rwf.wavelets.measure import Measure, Rows


@pytest.fixture
def model(rng):
    X = rng.normal(3.0, 2.0, (200, 2))
    y = np.column_stack([np.sin(X[:, 0]), 4.0 * X[:, 1]]) + rng.normal(5.0, 0.3, (200, 2))
    rows = Block(X, y, np.ones(200))
    scaler = Standardizer.learn(rows, ard=True)
    family = WaveletFamily(MexicanHat(), Measure(0.4, 3.0, Rows()), 1.7)
    stack = Stack((family.draw(30, scaler.inputs(X), rng), ConstantFeatures()))
    shape = Hyperparameters(stack, np.zeros(2), np.full(2, np.log(0.1)))
    return DenseModel(scaler, shape, accumulate(stack, [scaler.rows(rows)], 2))


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_blocks_and_cores_change_nothing(model, cores, rng, monkeypatch):
    X = rng.normal(3.0, 3.0, (1100, 2))
    mean, deviation = model.predict(X)
    alone = [model.predict(row[None]) for row in X[::100]]
    monkeypatch.setattr("rwf.models.dense.CHUNK_BYTES", 1)  # the fewest rows at a time: 256
    monkeypatch.setattr("rwf.models.dense.cores", lambda: cores)
    for found, expected in zip(model.predict(X), (mean, deviation), strict=True):
        assert found.shape == (1100, 2)
        assert_allclose(found, expected, rtol=1e-10)
    assert_allclose(model.mean(X), mean, rtol=1e-10)
    assert_allclose(np.vstack([m for m, _ in alone]), mean[::100], rtol=1e-10)
    assert_allclose(np.vstack([s for _, s in alone]), deviation[::100], rtol=1e-10)


def test_no_rows_have_no_predictions(model):
    mean, deviation = model.predict(np.empty((0, 2)))
    assert mean.shape == deviation.shape == model.mean(np.empty((0, 2))).shape == (0, 2)
