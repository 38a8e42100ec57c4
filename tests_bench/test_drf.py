"""The ensemble of deep random features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.baselines.drf import DeepRandomFeatures, best_noise
from experiments.baselines.standardized import Standardized
from experiments.baselines.tensors import seeded


@pytest.fixture(autouse=True)
def _same_draws():
    with seeded(7):
        yield


def test_the_noise_is_what_the_variances_leave(rng):
    variances = rng.uniform(0.1, 3.0, 50_000)
    errors = rng.normal(0, np.sqrt(variances + 0.5))
    assert_allclose(best_noise(errors, variances), 0.5, rtol=0.05)


@pytest.mark.slow
def test_a_surface_is_found_and_its_variance_grows_away_from_rows(surface):
    X, y, f = surface
    settings = {"n_starts": 4, "n_members": 4, "width": 200, "bottleneck": 16}
    model = DeepRandomFeatures(0, **settings, rate=3e-3, max_steps=400)
    fitted = Standardized(model).fit(X[:400], y[:400])
    mean, std = fitted.predict(X[400:])
    assert np.sqrt(np.mean((mean - f[400:]) ** 2)) < 0.2 * f.std()
    assert np.mean(np.abs(mean - y[400:]) < 2 * std) > 0.85
    _, near = fitted.predict_function(X[400:])
    _, far = fitted.predict_function(X[400:] + 3 * np.ptp(X, axis=0))
    assert np.median(far) > 3 * np.median(near)
    facts = fitted.facts()
    assert len(facts["loss_by_start"]) == facts["n_members"] == 4
    assert_allclose(fitted.predict(X[:5])[0], fitted.predict(X[:5])[0])
