"""The layouts in which corpora are distributed."""

from zipfile import ZipFile

import pytest

from experiments.data.speech.corpus import contents, files, recordings
from experiments.data.table import DataError

TIMIT = ["train/dr1/fcjf0/sa1.wav", "train/dr1/fcjf0/sx37.wav", "test/dr8/mpam0/si1961.wav"]


KEYS = [("test", "mpam0", "si1961"), ("train", "fcjf0", "sx37")]


def write(folder, names, content=b"RIFF"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def keys(found):
    return [(each.part, each.speaker, each.sentence) for each in found]


@pytest.mark.parametrize(
    "names",
    [
        [f"TIMIT/{name.upper()}" for name in TIMIT],
        TIMIT,
        [f"timit/TIMIT/{name.upper()}" for name in TIMIT],
        [f"data/{name.upper()}{end}" for name in TIMIT for end in ("", ".wav")],
        [f"train/TIMIT/{name}" for name in TIMIT],
    ],
    ids=["disc", "lower case", "nested", "Kaggle", "in a folder called train"],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_recording_of_timit_is_found_once(tmp_path, names, zipped):
    others = ["TIMIT/DOC/SPKRINFO.TXT", *(f"{name[:-4]}.PHN" for name in names)]
    folder = tmp_path / "copy"
    write(folder, [*names, *others, "__MACOSX/TIMIT/TRAIN/DR1/FCJF0/._SX37.WAV"])
    source = folder
    if zipped:
        source = tmp_path / "copy.zip"
        with ZipFile(source, "w") as archive:
            for name in files(folder):
                archive.write(folder / name, name)
    found = recordings(source)
    assert keys(found) == KEYS
    assert all(each.file in names and not each.file.endswith(".WAV.wav") for each in found)
    assert keys(recordings(source, dialect_sentences=True)) == [
        KEYS[0],
        ("train", "fcjf0", "sa1"),
        KEYS[1],
    ]
    assert list(contents(source, [each.file for each in found])) == [b"RIFF", b"RIFF"]


def test_a_converted_copy_alone_counts_too(tmp_path):
    write(tmp_path, ["data/TRAIN/DR1/FCJF0/SX37.WAV.wav"])
    assert keys(recordings(tmp_path)) == KEYS[1:]


def test_the_sample_has_speakers_and_no_parts(tmp_path):
    write(tmp_path, ["timit/dr1-fvmh0/sa1.wav", "timit/dr1-fvmh0/sx116.wav", "timit/README"])
    assert keys(recordings(tmp_path)) == [("", "fvmh0", "sx116")]
    assert len(recordings(tmp_path, dialect_sentences=True)) == 2


def test_a_digit_may_be_spoken_twice(tmp_path):
    write(tmp_path, ["a/12/7_12_0.wav", "a/12/7_12_1.wav", "a/12/3_13_0.wav"])
    found = recordings(tmp_path)
    assert keys(found) == [("", "12", "7")] * 2  # the third is not speaker 12's
    assert [each.take for each in found] == [0, 1]


def test_real_archives_have_all_their_recordings(data_dir):
    timit = recordings(data_dir / "speech_timit_sample.zip", dialect_sentences=True)
    digits = recordings(data_dir / "speech_audiomnist16k.zip")
    an4 = recordings(data_dir / "speech_an4_sphere.zip")
    assert (len(timit), len({each.speaker for each in timit})) == (160, 16)
    assert (len(digits), len({each.speaker for each in digits})) == (1080, 60)
    assert {each.sentence for each in digits} == set("0123456789")
    assert [each.part for each in an4].count("test") == 2
    assert keys(an4)[0] == ("test", "fcaw", "cen8")


def test_strange_folders_are_refused_with_advice(tmp_path):
    write(tmp_path, ["FCJF0/SX37.WAV"])
    with pytest.raises(DataError, match=r"no recording.*TRAIN/DR1"):
        recordings(tmp_path)
    with pytest.raises(DataError, match="neither a folder nor a zip archive"):
        recordings(tmp_path / "FCJF0" / "SX37.WAV")
    with pytest.raises(DataError, match="neither a folder nor a zip archive"):
        recordings(tmp_path / "missing")
    write(tmp_path, [TIMIT[1], "dr1-fvmh0/sx116.wav"])
    with pytest.raises(DataError, match="disc or Kaggle and of TIMIT, NLTK's sample"):
        recordings(tmp_path)
