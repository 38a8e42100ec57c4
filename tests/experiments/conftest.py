"""Small data sets: a table and a grid in RWF_DATA, and a copy of TIMIT."""

import numpy as np
import pytest

from experiments.data.speech import TIMIT_VARIABLE
from experiments.data.speech.loading import corpus
from harness import vowel, write_grid, write_table, write_wav


@pytest.fixture
def waves(tmp_path, monkeypatch, rng):
    """A task of 80 rows in RWF_DATA, with a column that does not vary."""
    X = np.column_stack([rng.normal(3.0, 2.0, (80, 2)), np.full(80, 0.998)])
    y = 5 + 4 * np.sin(X[:, 0]) + X[:, 1] + rng.normal(0, 0.2, 80)
    write_table(tmp_path, "waves", X, y)
    monkeypatch.setenv("RWF_DATA", str(tmp_path))
    return X, y


@pytest.fixture
def disc(tmp_path, rng, monkeypatch):
    """A small TIMIT: six speakers, two of them for testing, each with SA1 and three others."""
    for number, speaker in enumerate(["FAAA0", "FBBB0", "MCCC0", "MDDD0", "FEEE0", "MFFF1"]):
        part = "TEST" if number >= 4 else "TRAIN"
        for sentence in ("SA1", "SX1", "SI2", "SX3"):
            sound = vowel(rng, 100 + 20 * number, 1600 + 160 * number)
            write_wav(tmp_path / f"TIMIT/{part}/DR1/{speaker}/{sentence}.WAV", sound)
    monkeypatch.setenv(TIMIT_VARIABLE, str(tmp_path))
    corpus.cache_clear()
    return tmp_path


@pytest.fixture
def hills(tmp_path, monkeypatch):
    monkeypatch.setenv("RWF_DATA", str(tmp_path))
    return write_grid(tmp_path, "dem_jacksboro")
