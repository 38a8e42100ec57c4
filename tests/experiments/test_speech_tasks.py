"""Tasks on speech: nothing is learned from test rows, no target is an input, speakers differ."""

import os
import wave

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.__main__ import main
from experiments.data import tasks
from experiments.data.speech import PROBLEMS, TIMIT_VARIABLE
from experiments.data.speech.corpus import Recording
from experiments.data.speech.loading import corpus, location
from experiments.data.speech.mel import log_mel
from experiments.data.speech.normalization import by_everyone, by_speaker
from experiments.data.speech.problems import other_speakers, within_speakers
from experiments.data.speech.sums import GROUP, frame_sums, together
from experiments.data.speech.targets import MelBin, MelPCA
from experiments.data.table import DataError
from experiments.runner.methods import make
from experiments.runner.run import Run
from experiments.runner.session import Conditions, outcome_of


def write_wav(path, samples):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(np.asarray(samples).astype("<i2").tobytes())


def expert(rng, pitch, n=1600):
    """Harmonics that fade, in noise: every band has energy, and all vary."""
    t = np.arange(n) / 16_000
    tone = sum(np.sin(2 * np.pi * k * pitch * t) / k for k in range(1, 20))
    return 700 * tone * rng.uniform(0.3, 1) * (1 + t * 9) + rng.normal(0, 20, n)


@pytest.fixture
def disc(tmp_path, rng, monkeypatch):
    """A small TIMIT: six speakers, two of them for testing, each with SA1 and three others."""
    for number, speaker in enumerate(["FAAA0", "FBBB0", "MCCC0", "MDDD0", "FEEE0", "MFFF1"]):
        part = "TEST" if number >= 4 else "TRAIN"
        for sentence in ("SA1", "SX1", "SI2", "SX3"):
            sound = expert(rng, 100 + 20 * number, 1600 + 160 * number)
            write_wav(tmp_path / f"TIMIT/{part}/DR1/{speaker}/{sentence}.WAV", sound)
    monkeypatch.setenv(TIMIT_VARIABLE, str(tmp_path))
    corpus.cache_clear()
    return tmp_path


@pytest.fixture
def spectrograms(rng):
    """Frames of six recordings of different lengths, each band with its own level and spread."""
    level, spread = rng.normal(30, 8, 80), rng.uniform(2, 6, 80)
    return [rng.normal(level + rng.normal(0, 3), spread, (n, 80)) for n in (9, 4, 12, 7, 20, 5)]


# sums and normalisation


def test_features_are_the_time_averages_of_normalised_frames(spectrograms):
    train = np.array([0, 2, 3])
    sums = together([frame_sums(L) for L in spectrograms])
    frames = np.concatenate([spectrograms[k] for k in train])
    expected = [((L - frames.mean(0)) / frames.std(0)).mean(0) for L in spectrograms]
    assert_allclose(by_everyone(sums, train).features(sums), expected, atol=1e-10)
    levels = [(L - frames.mean(0)).mean(0) for L in spectrograms]
    assert_allclose(by_everyone(sums, train).levels(sums), levels, atol=1e-10)
    assert_allclose(sums.covariance(train), np.cov(frames[:, GROUP].T, bias=True), atol=1e-9)


def test_by_speaker_only_the_training_frames_of_the_speaker_count(spectrograms):
    train, speakers = np.array([0, 2, 3]), list("abaaba")
    sums = together([frame_sums(L) for L in spectrograms])
    with pytest.raises(ValueError, match=r"speaker b has no training .* normalise by everyone"):
        by_speaker(sums, train, speakers)
    train = np.array([0, 4, 3])
    features = by_speaker(sums, train, speakers).features(sums)
    a = np.concatenate([spectrograms[0], spectrograms[3]])
    assert_allclose(features[5], ((spectrograms[5] - a.mean(0)) / a.std(0)).mean(0), atol=1e-10)
    b = spectrograms[4]
    assert_allclose(features[1], ((spectrograms[1] - b.mean(0)) / b.std(0)).mean(0), atol=1e-10)


def test_normalised_by_itself_a_recording_has_no_average_left(rng):
    L = log_mel(expert(rng, 120.0))
    assert_allclose(((L - L.mean(0)) / L.std(0)).mean(0), 0, atol=1e-12)
    sums = frame_sums(L)
    assert_allclose(by_everyone(sums, np.array([0])).features(sums), 0, atol=1e-12)


def test_a_band_that_does_not_vary_is_not_divided_by_zero(spectrograms):
    for L in spectrograms:
        L[:, 79] = 10 * np.log10(1 / 12)
    sums = together([frame_sums(L) for L in spectrograms])
    features = by_everyone(sums, np.arange(6)).features(sums)
    assert_allclose(features[:, 79], 0, atol=1e-9)


# targets


def test_a_bin_is_its_band_and_a_component_that_of_the_group(rng):
    levels = rng.normal(3.0, 2.0, (30, 80))
    frames = rng.normal(size=(500, 16)) @ rng.normal(size=(16, 16)) + 5
    covariance = np.cov(frames.T, bias=True)
    assert_array_equal(MelBin().hidden, [40])
    assert_allclose(MelBin()(levels, covariance), levels[:, 40])
    assert_array_equal(MelPCA().hidden, np.arange(32, 48))
    _, _, V = np.linalg.svd(frames - frames.mean(0))
    for k in (0, 1):
        v = V[k] * np.sign(V[k].sum())
        assert_allclose(MelPCA(k)(levels, covariance), levels[:, 32:48] @ v, atol=1e-9)


# splits


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


def test_within_speakers_everyone_is_heard_in_training():
    sizes = [1, 2, 8, 18]
    found = [Recording("", str(s), str(k), 0, "") for s, n in enumerate(sizes) for k in range(n)]
    rows = within_speakers(found, 3)
    held = [sum(found[k].speaker == str(s) for k in rows.test) for s in range(4)]
    assert held == [0, 1, 1, 2]
    assert sorted([*rows.train, *rows.test]) == list(range(len(found)))
    assert not np.array_equal(rows.test, within_speakers(found, 4).test)


# tasks


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
        write_wav(disc / each.file, expert(rng, 300.0))
    corpus.cache_clear()
    for name, (first, rows) in zip(names, before, strict=True):
        second, _ = tasks.problem(name, 0)
        assert_array_equal(first.X[rows.train], second.X[rows.train])
        assert_array_equal(first.y[rows.train], second.y[rows.train])
        assert not np.allclose(first.X[rows.test], second.X[rows.test])


def test_statistics_by_speaker_do_not_depend_on_test_recordings(disc, rng):
    first, rows = tasks.problem("timit-mel-bin-heard", 0)
    found, _ = corpus(location("timit"), False)
    assert len(rows.test) == 6  # one of each speaker's three
    for k in rows.test:
        write_wav(disc / found[k].file, expert(rng, 300.0))
    corpus.cache_clear()
    second, _ = tasks.problem("timit-mel-bin-heard", 0)
    assert_array_equal(first.X[rows.train], second.X[rows.train])
    assert_array_equal(first.y[rows.train], second.y[rows.train])


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


def _samples(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float)


def test_damaged_recordings_are_left_out_with_a_warning(disc, rng):
    path = disc / "TIMIT/TRAIN/DR1/FAAA0/SX1.WAV"
    whole = np.round(expert(rng, 150.0)).astype("<i2").tobytes()
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


def test_missing_corpora_say_what_to_do(tmp_path, monkeypatch):
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


# the harness


def test_the_option_names_the_copy_for_the_processes_of_the_runs(disc, rng, monkeypatch, capsys):
    for k in range(100, 180):  # more training rows than columns
        write_wav(disc / f"TIMIT/TRAIN/DR1/MCCC0/SX{k}.WAV", expert(rng, float(k)))
    monkeypatch.setenv(TIMIT_VARIABLE, "")
    monkeypatch.chdir(disc)
    nothing = ["run", "--suite", "tables", "--splits", "99", "--results", str(disc)]
    assert main([*nothing, "--timit", "missing"]) == 2
    assert "--timit missing: nothing is there" in capsys.readouterr().err
    assert main([*nothing, "--timit", "TIMIT"]) == 0
    assert os.environ[TIMIT_VARIABLE] == str((disc / "TIMIT").resolve())
    outcome = outcome_of(Run("timit-mel-bin", "constant", 0), Conditions())
    assert outcome.get("error") is None
    assert (outcome["n_train"], outcome["n_test"], outcome["n_inputs"]) == (92, 6, 79)


@pytest.mark.filterwarnings("ignore:the model predicts no better")  # 20 atoms, two iterations
def test_morlet_wavelets_work_in_many_columns(rng):
    X = rng.normal(3.0, 2.0, (60, 79))
    y = 5 + np.sin(X[:, 0]) + X[:, 1]
    method = make("rwf-morlet", {"n_components": 20, "max_iter": 2, "n_restarts": 0}, 0)
    mean, std = method.fit(X, y).predict(X[:5])
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


# real recordings


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
    given, rows = tasks.problem("audiomnist-mel-bin-heard", 0)
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
