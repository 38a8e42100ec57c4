"""Seeds, as scikit-learn names them, turned into generators."""

from __future__ import annotations

import numpy as np

RandomState = int | np.random.RandomState | np.random.Generator | None


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state.

    An integer seeds a stream of our own: users make data with ``default_rng(0)`` too, and rows
    sampled with the very numbers that became X would all lie at one end of it.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(0x727766,)))
