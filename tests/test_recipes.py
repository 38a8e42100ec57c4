"""How many atoms projected weights take, if nobody asked for a number."""

from __future__ import annotations

import numpy as np
import pytest

from rwf import RWFRegressor, recipes


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
    recipe = recipes.ProjectedRecipe(())
    numbers = [recipe.default_components(n) for n in (10, 3000, 3001, 9000, 20_000, 20_001)]
    assert numbers == [10, 3000, 3001, 5000, 5000, 2500]
    # Recipes compete with no more than they would have with much noise.
    assert recipe.sketch().default_components(9000) == 2500
