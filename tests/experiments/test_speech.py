"""From files of speech to spectrograms: formats and layouts are read, every recording once."""

import io
import struct
import wave
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data.speech.alignment import is_misaligned
from experiments.data.speech.audio import samples_of
from experiments.data.speech.corpus import contents, files, recordings
from experiments.data.speech.mel import corners, log_mel, triangles
from experiments.data.table import DataError


def riff(samples, rate=16_000, channels=1, width=2):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(np.asarray(samples).astype("<i2").tobytes())
    return file.getvalue()


def sphere(samples, order="01", size=1024, **fields):
    """A file as on TIMIT's disc; fields that are None are left out."""
    fields = {
        "database_id": ("-s5", "TIMIT"),
        "channel_count": ("-i", 1),
        "sample_count": ("-i", len(samples)),
        "sample_rate": ("-i", 16_000),
        "sample_n_bytes": ("-i", 2),
        "sample_byte_format": ("-s2", order),
        **fields,
    }
    lines = [f"{name} {' '.join(map(str, f))}" for name, f in fields.items() if f is not None]
    head = "\n".join(["NIST_1A", f"{size:7d}", *lines, "end_head", ""])
    data = np.asarray(samples).astype({"01": "<i2", "10": ">i2"}.get(order, "<i2")).tobytes()
    return head.ljust(size).encode() + data


@pytest.fixture
def samples(rng):
    """Integers of both signs and all sizes, whose bytes differ."""
    return np.concatenate([rng.integers(-32768, 32768, 900), [-32768, 32767, 1, -2, 256]])


# audio


@pytest.mark.parametrize(
    "make",
    [
        riff,
        sphere,
        lambda x: sphere(x, "10"),
        lambda x: sphere(x, "10", size=2048),
        lambda x: sphere(x, sample_coding=("-s3", "pcm")),
        lambda x: sphere(x) + b"what follows the samples",
    ],
)
def test_all_formats_give_the_same_samples(samples, make):
    read = samples_of(make(samples), "sa1.wav")
    assert read.dtype == np.float64
    assert_array_equal(read, samples)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", r"sa1\.wav begins with b''"),
        (b"fLaC\x00\x00\x00\x22", r"b'fLaC.*neither NIST SPHERE .* nor RIFF: convert"),
        (b"NIST_1A", "how long"),
        (b"NIST_1A\n   many\n", "how long"),
        (sphere([1, 2, 3])[:99], "without end_head in its first 1024 bytes, of which 99"),
        (sphere([1] * 500)[:-200], r"cut short: .* 500 samples and 400 are there"),
        (riff([1] * 500)[:-200], r"cut short: .* 500 samples and 400 are there"),
        (riff([1] * 500)[:30], "no RIFF file of plain PCM"),
        (b"RIFF\x10\x00\x00\x00AVI LIST", "no RIFF file of plain PCM"),
        (riff([1, 2], rate=8000), "8000 samples a second, not .* convert it"),
        (riff([1, 2], channels=2), r"2 channel\(s\)"),
        (riff([1, 2], width=1), "8 bits"),
        (sphere([1], sample_rate=("-i", 8000)), "8000 samples a second"),
        (sphere([1], sample_rate=None), "sample_rate is nothing"),
        (sphere([1], sample_count=("-i", "x")), "sample_count is x"),
        (sphere([1], sample_coding=("-s4", "ulaw")), r"sample_coding ulaw.*sph2pipe"),
        (sphere([1], sample_coding=("-s26", "pcm,embedded-shorten-v2.00")), "compressed"),
        (sphere([1], order="1"), "sample_byte_format 1, not 01 or 10"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_was_seen(content, message):
    with pytest.raises(DataError, match=message):
        samples_of(content, "sa1.wav")


def test_a_compressed_riff_file_is_refused():
    content = bytearray(riff([1, 2, 3]))
    content[20:22] = struct.pack("<H", 7)  # the tag of µ-law
    with pytest.raises(DataError, match="plain PCM"):
        samples_of(bytes(content), "sa1.wav")


def test_real_sphere_files_have_the_checksum_of_their_headers(data_dir):
    source = data_dir / "speech_an4_sphere.zip"
    found = recordings(source)
    assert len(found) == 8
    for content in contents(source, [each.file for each in found]):
        head = content[:1024].decode()
        count, checksum = (
            int(head.split(f"{field} -i ")[1].split()[0])
            for field in ("sample_count", "sample_checksum")
        )
        read = samples_of(content, "an4")
        assert len(read) == count
        assert int(read.sum()) % 2**16 == checksum


# recordings that lost a byte


def test_a_lost_byte_is_noticed(rng):
    t = np.arange(8000)
    speech = np.round(800 * np.sin(t / 9) * np.exp(-(((t - 4000) / 2000) ** 2)))
    speech += rng.integers(-5, 6, 8000)
    content = speech.astype("<i2").tobytes()
    shifted = content[:5001] + content[5002:9000] + content[9001:]  # two bytes: an even number
    assert not is_misaligned(speech)
    assert is_misaligned(np.frombuffer(shifted, "<i2").astype(float))
    assert not is_misaligned(np.zeros(8000))
    assert not is_misaligned(speech[:10])


# layouts

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


def test_a_digit_may_be_said_twice(tmp_path):
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


# spectrograms


def by_definition(samples):
    """The same spectrogram, an energy at a time."""
    x = [samples[0]]
    for t in range(1, len(samples)):
        x.append(samples[t] - 0.97 * samples[t - 1])
    window = [0.54 - 0.46 * np.cos(2 * np.pi * t / 399) for t in range(400)]
    hertz = [k * 16_000 / 2048 for k in range(1025)]
    wave_table = np.exp(-2j * np.pi * np.outer(range(1025), range(400)) / 2048)
    corner = [
        700 * (10 ** (b * 2595 * np.log10(1 + 8000 / 700) / 81 / 2595) - 1) for b in range(82)
    ]
    rows = []
    for start in range(0, len(samples) - 399, 160):
        frame = [window[t] * x[start + t] for t in range(400)]
        power = np.abs(wave_table @ frame) ** 2 / sum(w * w for w in window)
        row = []
        for b in range(80):
            total = weights = 0.0
            for f, p in zip(hertz, power, strict=True):
                if corner[b] < f <= corner[b + 1]:
                    weight = (f - corner[b]) / (corner[b + 1] - corner[b])
                elif corner[b + 1] < f < corner[b + 2]:
                    weight = (corner[b + 2] - f) / (corner[b + 2] - corner[b + 1])
                else:
                    continue
                total, weights = total + weight * p, weights + weight
            row.append(10 * np.log10(max(total / weights, 1 / 12)))
        rows.append(row)
    return np.array(rows)


def test_spectrograms_are_their_definition(rng):
    t = np.arange(1000) / 16_000
    samples = 900 * np.sin(2 * np.pi * (300 + 20_000 * t) * t) + rng.normal(3.0, 40.0, 1000)
    samples[600:] *= np.linspace(1, 0, 400) ** 4  # quiet, so that decibels of all sizes occur
    expected = by_definition(samples)
    assert expected.shape == (4, 80)
    assert np.ptp(expected) > 30
    assert_allclose(log_mel(samples), expected, atol=1e-9)


def test_silence_is_the_rounding_of_sixteen_bits():
    assert_allclose(log_mel(np.zeros(560)), np.full((2, 80), 10 * np.log10(1 / 12)))


def test_no_band_is_empty_and_no_two_are_the_same():
    weights = triangles()
    assert weights.shape == (1025, 80)
    assert_allclose(weights.sum(axis=0), 1)
    assert np.sum(weights > 0, axis=0).min() >= 5
    assert np.linalg.matrix_rank(weights) == 80
    assert_allclose(corners()[[0, 41, 81]], [0, 1806.48, 8000], atol=0.01)


@pytest.mark.parametrize("band", [3, 40, 76])
def test_a_tone_is_in_its_band(band):
    t = np.arange(4000) / 16_000
    frames = log_mel(2000 * np.sin(2 * np.pi * corners()[band + 1] * t))
    assert_array_equal(frames.argmax(axis=1), band)
