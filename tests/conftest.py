"""What all tests share: a generator, hypothesis' settings, and where real data lie."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from rwf.inference.spike_slab import Schedule
from rwf.priors import PRIORS, SpikeSlab

settings.register_profile(
    "rwf",
    deadline=None,  # the first example may compile
    max_examples=25,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("rwf")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of real data sets, named by the environment variable RWF_DATA."""
    directory = Path(os.environ.get("RWF_DATA", ""))
    if not os.environ.get("RWF_DATA") or not directory.is_dir():
        pytest.skip("RWF_DATA names no directory of data sets")
    return directory


@pytest.fixture(scope="module")
def short_chains():
    """Spike-and-slab weights are sampled for a short time, where how well does not matter."""
    short = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRIORS, "spike_slab", partial(SpikeSlab, short))
        yield
