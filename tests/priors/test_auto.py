"""How many atoms projected weights take, which columns they mix, and which recipe is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features import Stack
from rwf.models.hyperparameters import Hyperparameters
from rwf.priors import auto as choice
from rwf.priors import recipes
from rwf.priors.base import LearningTask


@pytest.fixture
def small(monkeypatch):
    """The same rules for fewer rows and atoms."""
    monkeypatch.setattr(recipes, "ALL_ROWS", 200)
    monkeypatch.setattr(recipes, "PROJECTED_COMPONENTS", 40)
    monkeypatch.setattr(recipes, "MORE_ROWS", 600)


def rows(n, noise, rng):
    X = rng.uniform(2.0, 5.0, (n, 4))
    return X, 7.0 + np.sin(2 * X[:, 0]) * X[:, 1] + noise * rng.normal(size=n)


def n_atoms(n, noise, rng, n_components=None):
    model = RWFRegressor(n_components, n_restarts=0, max_iter=15, trend="constant", random_state=0)
    return model.fit(*rows(n, noise, rng)).n_features_out_ - 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "n, noise, expected",
    [(150, 0.5, 150), (400, 0.5, 40), (400, 1e-4, 400), (900, 1e-4, 40)],
    ids=["few rows", "noisy rows", "rows without noise", "too many rows"],
)
def test_atoms_are_as_many_as_the_noise_asks_for(n, noise, expected, rng):
    assert n_atoms(n, noise, rng) == expected


@pytest.mark.usefixtures("small")
def test_a_number_that_was_asked_for_is_kept(rng):
    assert n_atoms(400, 0.5, rng, n_components=300) == 300


def test_the_number_of_atoms_by_rows():
    recipe = recipes.Nystrom(())
    numbers = [recipe.default_n_components(n) for n in (10, 3000, 3001, 9000, 20_000, 20_001)]
    assert numbers == [10, 3000, 3001, 5000, 5000, 2500]
    # Recipes compete with no more than they would have with much noise.
    assert recipe.cheap().default_n_components(9000) == 2500


# ---------------------------------------------------------------------------------- mixed columns


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "n, d, options, mixed",
    [
        (400, 4, {}, True),
        (400, 16, {}, True),
        (400, 17, {}, False),
        (400, 3, {"prior": "nystrom"}, False),
        (150, 4, {}, False),
        (400, 4, {"ard": False}, False),
        (400, 4, {"mix_columns": False}, False),
    ],
)
def test_many_rows_of_some_columns_are_mixed(n, d, options, mixed, rng):
    X = rng.uniform(2.0, 5.0, (n, d))
    y = 7.0 + np.sin(3 * (X[:, 0] + X[:, 1])) + 0.1 * rng.normal(size=n)
    settings = {"n_restarts": 0, "max_iter": 3, "neighbors": None, "random_state": 0}
    model = RWFRegressor(30, **settings, **options).fit(X, y)
    mixing = model.model_.base.nystrom.kernel.mixing
    assert (mixing is not None) == mixed
    if mixed:
        assert np.abs(mixing).max() > 0
        assert model.length_scales_.shape == (1, d)


# ------------------------------------------------------------------------------ which one is chosen


@pytest.fixture
def lesson(rng):
    settings = RWFRegressor()._settings()
    known = Block(rng.normal(size=(40, 1)), rng.normal(size=(40, 1)), np.ones(40))
    scaler = Standardizer.learn(known, ard=True)
    return LearningTask(scaler, known, True, 5, settings, rng, lambda message: None)


@pytest.mark.parametrize(
    "best, gains, tried, expected",
    [
        (None, 0.2, ["auto"], 1.2),
        (1.25, 0.2, ["constant", "auto"], 1.2),  # not hopeless, and behind all the same
        (1.25, 0.6, ["constant", "auto"], 1.6),
        (1.6, 0.7, ["constant"], 1.0),  # hopeless, so that nothing is tried
    ],
)
def test_who_is_far_behind_gets_no_noise_of_its_own(
    best, gains, tried, expected, lesson, monkeypatch
):
    asked = []

    def build(shape, lesson, source):
        asked.append(lesson.settings.noise)
        return 1.0 + gains * (lesson.settings.noise == "auto"), None

    monkeypatch.setattr(choice, "build", build)
    monkeypatch.setattr(choice, "log_density", lambda model, held, factors: np.array([model]))
    shape = Hyperparameters(Stack(()), np.zeros(0), np.zeros(1))
    assert choice._held_out(shape, lesson, lesson.known, best) == pytest.approx(expected)
    assert asked == tried


@pytest.mark.parametrize(
    ("d", "options", "competing"),
    [
        (1, {}, {"adaptive", "spike_slab", "cells on a tree", "nystrom"}),
        (1, {"n_components": 40}, {"adaptive", "multiscale", "nystrom"}),
        (2, {}, {"adaptive", "multiscale", "cells on a tree", "nystrom"}),
        (3, {}, {"adaptive", "multiscale", "nystrom"}),
    ],
)
def test_which_priors_compete(d, options, competing):
    model = RWFRegressor(**options)
    model.n_features_in_ = d
    assert set(model._recipe(500).candidates) == competing
