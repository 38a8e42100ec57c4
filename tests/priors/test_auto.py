"""Model selection: which priors compete, and how held-out rows choose between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.models.base import Prediction
from rwf.priors import PRIORS, auto
from rwf.priors.base import LearnedPrior, LearningTask


@pytest.fixture
def task(rng):
    config = RWFRegressor()._config()
    known = Block(rng.normal(size=(40, 1)), rng.normal(size=(40, 1)), np.ones(40))
    return LearningTask(config.units(known), known, True, 5, config, rng, lambda message: None)


@dataclass(frozen=True, kw_only=True)
class Learned(LearnedPrior):
    """A prior that model selection scores with constant noise first."""

    screened = True

    def condition(self, task, rows):
        raise NotImplementedError


@pytest.mark.parametrize(
    "best, gain, tried, expected",
    [
        (None, 0.2, ["auto"], 1.2),
        (1.25, 0.2, ["constant", "auto"], 1.2),  # not hopeless, and behind all the same
        (1.25, 0.6, ["constant", "auto"], 1.6),
        (1.6, 0.7, ["constant"], 1.0),  # hopeless, so that nothing else is tried
    ],
)
def test_a_prior_that_is_far_behind_gets_constant_noise_only(
    best, gain, tried, expected, task, monkeypatch
):
    noises = []

    class Model:
        def __init__(self, density):
            self.density = density

        def predict(self, X):
            variance = np.exp(-2 * self.density) / (2 * np.pi)  # log N(0; 0, variance) = density
            zeros = np.zeros((len(X), 1))
            return Prediction(zeros, zeros, zeros + variance, np.ones(len(X)))

    def calibrated_model(learned, task, rows):
        noises.append(task.config.noise)
        return Model(1.0 + gain * (task.config.noise == "auto"))

    monkeypatch.setattr(auto, "calibrated_model", calibrated_model)
    held = Block(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(3))
    learned = Learned(trials=(), n_learned=0)
    assert auto._held_out(learned, task, held, best) == pytest.approx(expected)
    assert noises == tried


@pytest.mark.parametrize(
    ("d", "options", "competing"),
    [
        (1, {}, {"adaptive", "spike_slab", "multiscale, multifrontal", "nystrom"}),
        (1, {"n_components": 40}, {"adaptive", "multiscale", "nystrom"}),
        (1, {"noise": "heteroscedastic"}, {"adaptive", "multiscale, multifrontal", "nystrom"}),
        (2, {}, {"adaptive", "multiscale", "multiscale, multifrontal", "nystrom"}),
        (2, {"solver": "dense"}, {"adaptive", "multiscale", "nystrom"}),
        (3, {}, {"adaptive", "multiscale", "nystrom"}),
    ],
)
def test_which_priors_compete(d, options, competing):
    config = RWFRegressor(**options)._config()
    assert set(PRIORS["auto"]().for_rows(500, d, config).candidates) == competing


@pytest.mark.parametrize(
    ("n", "d", "options", "name"),
    [
        (500, 4, {}, "Nystrom"),
        (30_000, 1, {}, "Lattice"),
        (30_000, 2, {}, "Field"),
        (30_000, 3, {}, "Field"),
        (2**20 + 1, 2, {}, "Lattice"),
        (30_000, 2, {"neighbors": None}, "Lattice"),
        (500, 2, {"solver": "multifrontal"}, "Lattice"),
        (500, 2, {"n_components": 9000}, "Lattice"),
        (30_000, 2, {"solver": "dense"}, "Auto"),
    ],
)
def test_where_nothing_competes(n, d, options, name):
    config = RWFRegressor(**options)._config()
    assert type(PRIORS["auto"]().for_rows(n, d, config)).__name__ == name


@pytest.mark.parametrize("prior", ["nystrom", "adaptive", "spike_slab", "random_features"])
def test_the_multifrontal_solver_is_for_the_multiscale_prior(prior, rng):
    with pytest.raises(ValueError, match="solver='multifrontal' is for prior='auto' or 'multi"):
        RWFRegressor(prior=prior, solver="multifrontal").fit(rng.normal(size=(9, 1)), np.ones(9))
