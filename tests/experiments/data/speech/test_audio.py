"""Samples of audio files."""

import io
import struct
import wave

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from experiments.data.speech.audio import samples_of
from experiments.data.speech.corpus import contents, recordings
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
