"""Inter-domain deep Gaussian processes: what they learn."""

import numpy as np
import pytest

from experiments.baselines.idd_gp import IDDGP
from experiments.baselines.standardized import Standardized
from rwf.datasets import multi_step


@pytest.mark.slow
def test_it_learns_a_surface(surface):
    X, y, f = surface
    model = IDDGP(0, max_steps=400, n_samples=5)
    fitted = Standardized(model).fit(X[:400], y[:400])
    mean, std = fitted.predict(X[400:])
    assert np.sqrt(np.mean((mean - f[400:]) ** 2)) < 0.1 * f.std()
    assert np.mean(np.abs(mean - y[400:]) < 2 * std) > 0.85


@pytest.mark.slow
def test_it_learns_steps(rng):
    train, test = multi_step(500, rng), multi_step(200, rng)
    model = Standardized(IDDGP(0, max_steps=500)).fit(train.X, train.y)
    mean, std = model.predict_function(test.X)
    assert np.sqrt(np.mean((mean - test.f) ** 2)) < 0.2 * test.f.std()
    assert np.mean(np.abs(mean - test.f) < 2 * std) > 0.8
