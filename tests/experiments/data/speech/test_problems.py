"""Tasks on speech by name: splits by speaker, and no leak from test recordings."""

import wave

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import tasks
from experiments.data.speech import PROBLEMS, TIMIT_VARIABLE
from experiments.data.speech.corpus import Recording
from experiments.data.speech.loading import corpus, location
from experiments.data.speech.mel import log_mel
from experiments.data.speech.problems import other_speakers, within_speakers
from experiments.data.table import DataError
from harness import vowel, write_wav


def speakers_of(found, rows):
    return {found[k].speaker for k in rows}


def test_without_parts_a_tenth_of_speakers_is_held_out():
    found = [Recording("", f"{s:02d}", str(k), 0, "") for s in range(20) for k in range(3 + s % 4)]
    rows = other_speakers(found, 1)
    train, test = speakers_of(found, rows.train), speakers_of(found, rows.test)
    assert not train & test
    assert (len(train), len(test)) == (18, 2)
    assert sorted([*rows.train, *rows.test]) == list(range(len(found)))
    assert test != speakers_of(found, other_speakers(found, 2).test)
    assert_array_equal(rows.test, other_speakers(found, 1).test)


def test_within_speakers_every_speaker_is_in_training():
    sizes = [1, 2, 8, 18]
    found = [Recording("", str(s), str(k), 0, "") for s, n in enumerate(sizes) for k in range(n)]
    rows = within_speakers(found, 3)
    held = [sum(found[k].speaker == str(s) for k in rows.test) for s in range(4)]
    assert held == [0, 1, 1, 2]
    assert sorted([*rows.train, *rows.test]) == list(range(len(found)))
    assert not np.array_equal(rows.test, within_speakers(found, 4).test)


def test_a_disc_has_its_own_split_and_no_dialect_sentences(disc):
    table, rows = tasks.problem("timit-mel-bin", 0)
    assert table.name == "timit-mel-bin"
    assert table.X.shape == (18, 79)
    found, _ = corpus(location("timit"), False)
    assert speakers_of(found, rows.test) == {"feee0", "mfff1"}
    assert speakers_of(found, rows.train) == {"faaa0", "fbbb0", "mccc0", "mddd0"}
    again, same = tasks.problem("timit-mel-bin", 3)
    assert_array_equal(again.y, table.y)
    assert_array_equal(same.test, rows.test)
    assert tasks.problem("timit-sa-mel-pca", 0)[0].X.shape == (24, 64)
    with pytest.raises(ValueError, match="splits of its own: leave out -tenth"):
        tasks.problem("timit-mel-bin-tenth", 0)


def test_training_rows_do_not_depend_on_test_recordings(disc, rng):
    names = ["timit-mel-bin", "timit-mel-pca"]
    before = [tasks.problem(name, 0) for name in names]
    found, _ = corpus(location("timit"), False)
    for each in (each for each in found if each.part == "test"):
        write_wav(disc / each.file, vowel(rng, 300.0))
    corpus.cache_clear()
    for name, (first, rows) in zip(names, before, strict=True):
        second, _ = tasks.problem(name, 0)
        assert_array_equal(first.X[rows.train], second.X[rows.train])
        assert_array_equal(first.y[rows.train], second.y[rows.train])
        assert not np.allclose(first.X[rows.test], second.X[rows.test])


def test_statistics_by_speaker_do_not_depend_on_test_recordings(disc, rng):
    first, rows = tasks.problem("timit-mel-bin-known", 0)
    found, _ = corpus(location("timit"), False)
    assert len(rows.test) == 6  # one of each speaker's three
    for k in rows.test:
        write_wav(disc / found[k].file, vowel(rng, 300.0))
    corpus.cache_clear()
    second, _ = tasks.problem("timit-mel-bin-known", 0)
    assert_array_equal(first.X[rows.train], second.X[rows.train])
    assert_array_equal(first.y[rows.train], second.y[rows.train])


def _samples(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)


def test_inputs_are_all_bands_but_the_hidden_ones(disc):
    found, _ = corpus(location("timit"), False)
    table, rows = tasks.problem("timit-mel-bin", 0)
    frames = [log_mel(_samples(disc / each.file)) for each in found]
    learned = np.concatenate([frames[k] for k in rows.train])
    means = np.array([L.mean(0) for L in frames])
    features = (means - learned.mean(0)) / learned.std(0)
    assert_allclose(table.X, features[:, [b for b in range(80) if b != 40]], atol=1e-9)
    assert_allclose(table.y, means[:, 40] - learned.mean(0)[40], atol=1e-9)
    wide, _ = tasks.problem("timit-mel-pca", 0)
    assert_allclose(wide.X, features[:, [*range(32), *range(48, 80)]], atol=1e-9)


def test_damaged_recordings_are_left_out_with_a_warning(disc, rng):
    path = disc / "TIMIT/TRAIN/DR1/FAAA0/SX1.WAV"
    whole = np.round(vowel(rng, 150.0)).astype("<i2").tobytes()
    write_wav(path, np.frombuffer(whole[1:] + whole[:1], "<i2"))
    with pytest.warns(UserWarning, match="1 of 18 recordings .* lost bytes"):
        table, _ = tasks.problem("timit-mel-bin", 0)
    assert len(table.y) == 17


def test_a_recording_without_one_window_is_named(disc):
    write_wav(disc / "TIMIT/TEST/DR1/FEEE0/SX9.WAV", np.ones(399))
    with pytest.raises(DataError, match=r"SX9\.WAV has 399 samples, .* 400"):
        tasks.problem("timit-mel-bin", 0)


def test_all_tasks_are_known_and_have_a_unit():
    assert len(PROBLEMS) == 20
    assert set(PROBLEMS) <= tasks.KNOWN
    assert {tasks.unit(name) for name in PROBLEMS} == {"dB"}
    assert {tasks.parts(name) for name in PROBLEMS} == {(name, "") for name in PROBLEMS}


def test_half_a_disc_is_refused(disc, monkeypatch):
    monkeypatch.setenv(TIMIT_VARIABLE, str(disc / "TIMIT"))
    (disc / "TIMIT/TEST").rename(disc / "elsewhere")
    with pytest.raises(DataError, match="12 training and 0 test recordings"):
        tasks.problem("timit-mel-bin", 0)


def test_missing_corpora_raise_errors_with_advice(tmp_path, monkeypatch):
    monkeypatch.delenv(TIMIT_VARIABLE, raising=False)
    with pytest.raises(DataError, match=r"RWF_TIMIT is not set.*--timit PATH"):
        tasks.problem("timit-mel-bin", 0)
    monkeypatch.setenv(TIMIT_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nowhere', which is not there"):
        tasks.problem("timit-mel-pca", 0)
    for directory in (None, str(tmp_path)):
        if directory is None:
            monkeypatch.delenv("RWF_DATA", raising=False)
        else:
            monkeypatch.setenv("RWF_DATA", directory)
        with pytest.raises(DataError, match=r"RWF_DATA .* speech_audiomnist16k\.zip"):
            tasks.problem("audiomnist-mel-bin", 0)
        with pytest.raises(DataError, match=r"RWF_DATA .* speech_timit_sample\.zip.*NLTK"):
            tasks.problem("timit-sample-mel-bin", 0)


def test_digits_are_a_task_of_a_thousand_rows(data_dir):
    for name, d in (("audiomnist-mel-bin", 79), ("audiomnist-mel-pca", 64)):
        table, rows = tasks.problem(name, 0)
        assert table.X.shape == (1080, d)
        assert (len(rows.train), len(rows.test)) == (972, 108)
        found, _ = corpus(location("audiomnist"), False)
        assert not speakers_of(found, rows.train) & speakers_of(found, rows.test)
        Z = np.column_stack([table.X, np.ones(1080)])
        weights = np.linalg.lstsq(Z[rows.train], table.y[rows.train], rcond=None)[0]
        residual = np.std(table.y[rows.test] - Z[rows.test] @ weights)
        assert 0.05 < residual / np.std(table.y) < 0.5  # neither an input, nor out of reach
        r = [np.corrcoef(column, table.y)[0, 1] for column in table.X.T]
        assert 0.8 < max(r) < 0.999
    given, rows = tasks.problem("audiomnist-mel-bin-known", 0)
    assert (len(rows.train), len(rows.test)) == (960, 120)
    names = np.array([each.speaker for each in found])
    for speaker in np.unique(names)[:5]:
        own = rows.train[names[rows.train] == speaker]
        assert abs(given.y[own].mean()) < 3  # dB; of frames, not of recordings, it is zero
        assert abs(given.X[own].mean()) < 0.3


def test_the_sample_loses_what_is_damaged(data_dir):
    corpus.cache_clear()
    with pytest.warns(UserWarning, match="27 of 128 recordings in speech_timit_sample.zip"):
        table, rows = tasks.problem("timit-sample-mel-bin", 0)
    assert table.X.shape == (101, 79)
    found, _ = corpus(location("timit-sample"), False)
    assert len(speakers_of(found, rows.test)) == 2
    assert not speakers_of(found, rows.train) & speakers_of(found, rows.test)
