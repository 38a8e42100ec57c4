"""Regression on Fourier layers: predictions, and how a fit is reported."""

import math

import numpy as np
import torch
from numpy.testing import assert_allclose

from experiments.baselines.deep_fourier import DeepFourierGP
from experiments.baselines.idd_gp import IDDGP
from experiments.baselines.matern_fourier import Matern32
from experiments.baselines.tensors import double


def test_a_prediction_is_a_mixture_over_samples():
    class TwoWorlds:
        """f = x in one sample and −x in the other, both with variance 0.3."""

        log_noise = double(math.log(0.5))

        def sample(self, X, n_samples):
            signs = torch.tensor([1.0, -1.0]).double().repeat(n_samples // 2)
            return signs[:, None] * X[:, 0], torch.full((n_samples, len(X)), 0.3).double()

    model = DeepFourierGP(Matern32, {"length": 0.1}, random_state=0)
    model._middle, model._range, model._model = 1.0, 2.0, TwoWorlds()
    X = np.array([[1.0], [5.0]])
    mean, std = model.predict_function(X)
    assert_allclose(mean, 0, atol=1e-12)
    assert_allclose(std**2, [0.3, 4.3])
    assert_allclose(model.predict(X)[1] ** 2, [0.8, 4.8])
    p = model.predict_distribution(X)
    assert_allclose(p.stds**2, 0.8)
    assert_allclose(np.sort(p.means[1])[[0, -1]], [-2, 2])


def test_a_fit_reports_how_it_ended(surface):
    X, y, _ = surface
    facts = IDDGP(0, n_starts=2, n_frequencies=3, max_steps=5).fit(X, y).facts()
    assert facts["n_features"] == 7
    assert facts["steps"] == 5
    assert len(facts["loss_by_start"]) == 2
    assert not facts["converged"]


def test_few_columns_have_more_frequencies(surface):
    X, y, _ = surface
    for d, expected in ((1, 101), (4, 41)):
        columns = np.tile(X[:40, :1], d) + 0.1 * np.arange(d)
        facts = IDDGP(0, max_steps=1).fit(columns, y[:40]).facts()
        assert facts["n_features"] == expected
