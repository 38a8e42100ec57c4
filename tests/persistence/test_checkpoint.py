"""A fit that was killed goes on to the same numbers; a damaged or foreign checkpoint is refused."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.data import stream
from rwf.data.readers import BlockReader
from rwf.errors import CheckpointError, DamagedCheckpointWarning
from rwf.fit import pipeline as fitting
from rwf.persistence import checkpoint as checkpoints
from rwf.persistence import file

N = 6000
DENSE = {"n_components": 30, "prior": "random_features", "noise": "constant"}
CELLS = {
    "n_components": 30,
    "prior": "multiscale",
    "noise": "heteroscedastic",
    "calibration": "global",
}
TREE = {
    "n_components": 60,
    "solver": "multifrontal",
    "noise": "heteroscedastic",
    "calibration": "global",
}
USUAL = {"max_iter": 2, "n_restarts": 0, "random_state": 0}


def data(columns):
    rng = np.random.default_rng(7)
    X = rng.uniform(2.0, 5.0, (N, columns))
    y = 4.0 + np.sin(5 * X[:, 0]) + 0.1 * X[:, 0] * rng.normal(size=N)
    return X, y


class Blocks:
    """Blocks of rows that come to a sudden end in one of the passes over them."""

    def __init__(self, columns, end=None, sums=1, row=4000):
        self.X, self.y = data(columns)
        self.end, self.left, self.row = end, sums, row

    def __iter__(self):
        for i in range(0, N, 250):
            if i >= self.row and self.left == 0 and self.end is not None:
                self.end()
            yield self.X[i : i + 250], self.y[i : i + 250]
        self.left -= 1


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Small blocks and short segments, each of which is written down."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1)
    monkeypatch.setattr(stream, "SEGMENT", 2)
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    monkeypatch.setattr(fitting, "STREAM_SAMPLE", 3000)


class Lost(Exception):
    """The power fails."""


def lose():
    raise Lost


def interrupt():
    raise KeyboardInterrupt


def model(settings):
    return RWFRegressor(**USUAL, **settings)


def assert_same(a, b):
    ours, theirs = (m.model_.base.statistics for m in (a, b))
    for name in ("grams", "ZtZ", "Zty", "yty"):
        if hasattr(ours, name):
            exact = getattr(theirs, name)
            assert_allclose(
                getattr(ours, name), exact, rtol=1e-12, atol=1e-12 * np.abs(exact).max()
            )
    X = data(a.n_features_in_)[0][:50]
    assert_allclose(a.predict(X, return_std=True), b.predict(X, return_std=True), rtol=1e-9)
    assert a.fit_report_.n_rows == b.fit_report_.n_rows == N


def broken_off(settings, path, columns, sums=1, end=lose, error=Lost, row=4000):
    with pytest.raises(error):
        model(settings).fit(Blocks(columns, end, sums, row), checkpoint=path)
    assert path.exists()


def test_a_complete_fit_leaves_nothing_behind_and_is_the_fit_without_checkpoints(tmp_path):
    path = tmp_path / "fit.checkpoint"
    kept = model(DENSE).fit(Blocks(4), checkpoint=path)
    plain = model(DENSE).fit(Blocks(4))
    assert_array_equal(kept.model_.base.statistics.ZtZ, plain.model_.base.statistics.ZtZ)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "settings, columns, sums",
    [(DENSE, 4, 1), (CELLS, 1, 1), (CELLS, 1, 2), (CELLS, 1, 3), (TREE, 1, 1), (TREE, 1, 3)],
    ids=["dense", "cells, first", "cells, second", "cells, third", "tree, first", "tree, third"],
)
def test_a_fit_goes_on_where_it_stopped(tmp_path, monkeypatch, settings, columns, sums):
    path = tmp_path / "fit.checkpoint"
    broken_off(settings, path, columns, sums)
    header, _, _ = file.read(path)
    assert [entry["done"] for entry in header["entries"]] == [True] * (sums - 1) + [False]
    assert 2000 <= header["entries"][-1]["rows"] < 4100
    whole = model(settings).fit(Blocks(columns))
    # Nothing is learned, and no row drawn, a second time.
    monkeypatch.setattr(BlockReader, "sample", None)
    again = model(settings).fit(Blocks(columns), checkpoint=path)
    assert_same(again, whole)
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import test_checkpoint as t
from rwf.persistence import checkpoint as checkpoints
from rwf.data import stream

stream.BLOCK_BYTES, stream.SEGMENT, checkpoints.SECONDS, checkpoints.SHARE = 1, 2, 0.0, 1e9
blocks = t.Blocks(4, lambda: os.kill(os.getpid(), signal.SIGKILL))
t.model(t.DENSE).fit(blocks, checkpoint=sys.argv[1])
"""


def test_a_fit_that_is_killed_goes_on_in_another_process(tmp_path):
    path = tmp_path / "fit.checkpoint"
    here = str(checkpoints.Path(__file__).parent)
    run = subprocess.run([sys.executable, "-c", KILLED, str(path), here], capture_output=True)
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()
    entries = file.read(path)[0]["entries"]
    assert entries[0]["rows"] >= 2000
    assert_same(model(DENSE).fit(Blocks(4), checkpoint=path), model(DENSE).fit(Blocks(4)))


def test_an_interrupted_fit_writes_a_last_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 1e9)
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4, end=interrupt, error=KeyboardInterrupt)
    assert file.read(path)[0]["entries"][0]["rows"] >= 2000
    assert_same(model(DENSE).fit(Blocks(4), checkpoint=path), model(DENSE).fit(Blocks(4)))


def test_between_two_checkpoints_time_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 1e9)
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    assert file.read(path)[0]["entries"] == []  # what was learned, and no sums
    assert_same(model(DENSE).fit(Blocks(4), checkpoint=path), model(DENSE).fit(Blocks(4)))


def test_writing_takes_a_small_share_of_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SHARE", 1e-9)
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    assert file.read(path)[0]["entries"] == []


def truncated(content):
    return content[: len(content) // 2]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [truncated, flipped, lambda content: b""])
def test_a_damaged_checkpoint_is_refused_and_the_previous_one_is_taken(tmp_path, damage):
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    previous = tmp_path / "fit.checkpoint.previous"
    rows = [file.read(p)[0]["entries"][0]["rows"] for p in (previous, path)]
    assert 0 < rows[0] < rows[1]
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(DamagedCheckpointWarning, match=r"cannot be read.*goes on from .*previous"):
        again = model(DENSE).fit(Blocks(4), checkpoint=path)
    assert_same(again, model(DENSE).fit(Blocks(4)))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_never_takes_the_place_of_a_good_one(tmp_path, monkeypatch):
    path, previous = tmp_path / "fit.checkpoint", tmp_path / "fit.checkpoint.previous"
    broken_off(DENSE, path, 4)
    path.write_bytes(truncated(path.read_bytes()))
    rows = file.read(previous)[0]["entries"][0]["rows"]
    with pytest.warns(DamagedCheckpointWarning):
        lost_after(rows + 1, lambda: model(DENSE).fit(Blocks(4), checkpoint=path), monkeypatch)
    assert file.read(path)[0]["entries"][0]["rows"] > rows
    assert file.read(previous)[0]["entries"][0]["rows"] >= rows


def test_without_a_good_checkpoint_the_error_says_what_to_do(tmp_path):
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    for damaged in (path, tmp_path / "fit.checkpoint.previous"):
        damaged.write_bytes(truncated(damaged.read_bytes()))
    message = r"cannot be read.*cannot be read.*remove the file to start anew"
    with pytest.raises(CheckpointError, match=message):
        model(DENSE).fit(Blocks(4), checkpoint=path)


def test_a_kill_between_two_renamings_loses_nothing(tmp_path):
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    path.rename(tmp_path / "fit.checkpoint.previous")
    assert_same(model(DENSE).fit(Blocks(4), checkpoint=path), model(DENSE).fit(Blocks(4)))


def test_a_checkpoint_of_another_fit_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "fit.checkpoint"
    broken_off(DENSE, path, 4)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="parameter n_components is 31, and was 30"):
        model({**DENSE, "n_components": 31}).fit(Blocks(4), checkpoint=path)
    with pytest.raises(CheckpointError, match="columns is 3 and 1, and was 4 and 1"):
        model(DENSE).fit(Blocks(3), checkpoint=path)
    other = Blocks(4)
    other.y[3] += 1e-9
    with pytest.raises(CheckpointError, match="first block is"):
        model(DENSE).fit(other, checkpoint=path)
    assert path.read_bytes() == before
    # How much is told is nobody's business.
    assert_same(
        model({**DENSE, "verbose": 1}).fit(Blocks(4), checkpoint=path), model(DENSE).fit(Blocks(4))
    )


def lost_after(rows, fit, monkeypatch):
    """Let a fit come to a sudden end once so many rows are written down."""
    note = checkpoints.Checkpoint.note

    def noted(self, entry):
        note(self, entry)
        if entry.rows >= rows:
            raise Lost

    monkeypatch.setattr(checkpoints.Checkpoint, "note", noted)
    with pytest.raises(Lost):
        fit()
    monkeypatch.setattr(checkpoints.Checkpoint, "note", note)


def test_files_of_a_checkpoint_are_told_apart(tmp_path, monkeypatch):
    X, y = data(2)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    rows, path = tmp_path / "rows.csv", tmp_path / "fit.checkpoint"
    frame.to_csv(rows, index=False)

    def fit():
        return model(DENSE).fit(rows, "y", checkpoint=path)

    lost_after(1500, fit, monkeypatch)
    with pytest.raises(CheckpointError, match="targets is b, and was y"):
        model(DENSE).fit(rows, "b", checkpoint=path)
    whole = model(DENSE).fit(rows, "y", checkpoint=tmp_path / "another.checkpoint")
    assert_array_equal(fit().model_.base.statistics.ZtZ, whole.model_.base.statistics.ZtZ)
    lost_after(1500, fit, monkeypatch)
    frame[:-1].to_csv(rows, index=False)
    with pytest.raises(CheckpointError, match=r"file rows\.csv is \d+ bytes"):
        fit()


def test_arrays_have_checkpoints_too(tmp_path, monkeypatch):
    X, y = data(4)
    path = tmp_path / "fit.checkpoint"
    lost_after(3000, lambda: model(DENSE).fit(X, y, checkpoint=path), monkeypatch)
    with pytest.raises(CheckpointError, match="content is"):
        model(DENSE).fit(X, y + 1.0, checkpoint=path)
    again = model(DENSE).fit(X, y, checkpoint=path)
    assert_same(again, model(DENSE).fit(Blocks(4)))


def test_small_fits_need_no_checkpoint(tmp_path):
    X, y = data(4)
    kept = model(DENSE).fit(X[:300], y[:300], checkpoint=tmp_path / "fit.checkpoint")
    assert_array_equal(kept.predict(X), model(DENSE).fit(X[:300], y[:300]).predict(X))
    assert list(tmp_path.iterdir()) == []


def test_another_file_in_the_place_of_a_checkpoint_is_not_overwritten(tmp_path):
    X, y = data(4)
    path = tmp_path / "model"
    model(DENSE).fit(X[:300], y[:300]).save(path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        model(DENSE).fit(Blocks(4), checkpoint=path)
    assert path.read_bytes() == before
    (tmp_path / "notes").write_text("do not lose this")
    with pytest.raises(CheckpointError, match="no model file of rwf"):
        model(DENSE).fit(Blocks(4), checkpoint=tmp_path / "notes")
    with pytest.raises(CheckpointError, match="there is no folder"):
        model(DENSE).fit(Blocks(4), checkpoint=tmp_path / "absent" / "fit.checkpoint")


def test_a_generator_of_the_users_own_goes_on_too(tmp_path):
    path = tmp_path / "fit.checkpoint"
    settings = {**DENSE, "random_state": np.random.default_rng(5)}
    with pytest.raises(Lost):
        RWFRegressor(**{**USUAL, **settings}).fit(Blocks(4, lose), checkpoint=path)
    settings["random_state"] = np.random.default_rng(5)
    whole = RWFRegressor(**{**USUAL, **settings}).fit(Blocks(4))
    settings["random_state"] = np.random.default_rng(99)
    again = RWFRegressor(**{**USUAL, **settings}).fit(Blocks(4), checkpoint=path)
    assert_same(again, whole)


def test_sums_are_recalled_by_their_own_name_only(tmp_path):
    def entry(name):
        return stream.Entry(name, 10, True, {})

    checkpoint = checkpoints.Checkpoint(tmp_path / "fit.checkpoint", {}, lambda message: None)
    checkpoint._entries = [entry("first"), entry("second"), entry("third")]
    assert checkpoint.recall("first").name == "first"
    assert checkpoint.recall("another") is None
    # Those that follow were made by another course of the fit.
    assert [e.name for e in checkpoint._entries] == ["first"]
    assert checkpoint.recall("second") is None
