"""Samples of audio files, by what the files contain and never by their names.

TIMIT's own files are called ``.WAV`` and are NIST SPHERE; converted copies have the same name and
are RIFF. Both must be uncompressed: 16 bits, one channel, 16 kHz.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from experiments.data.table import DataError
from rwf._types import Array

RATE = 16_000
"""Samples a second."""

BYTE_ORDERS = {"01": "<", "10": ">"}
"""SPHERE's names of byte orders, and numpy's."""


@dataclass(frozen=True)
class Encoded:
    """Samples as bytes, and the header's description of them.

    Args:
        rate: samples a second.
        channels: how many are interleaved.
        width: bytes a sample.
        count: samples a channel.
        order: "<" if the byte of low weight comes first, else ">".
        data: the bytes, maybe followed by others.
    """

    rate: int
    channels: int
    width: int
    count: int
    order: str
    data: bytes


def samples_of(content: bytes, name: str) -> Array:
    """The samples of a file, in steps of its 16 bits.

    Args:
        content: the whole file.
        name: what errors call it.
    """
    if content.startswith(b"NIST_1A"):
        return _decoded(_sphere(content, name), name)
    if content.startswith(b"RIFF"):
        return _decoded(_riff(content, name), name)
    raise DataError(
        f"{name} begins with {content[:8]!r}, so it is neither NIST SPHERE (NIST_1A) nor RIFF: "
        "convert it to one of these, 16-bit PCM."
    )


def _decoded(encoded: Encoded, name: str) -> Array:
    kind = (8 * encoded.width, encoded.channels, encoded.rate)
    if kind != (16, 1, RATE):
        raise DataError(
            f"{name} has {kind[0]} bits, {kind[1]} channel(s) and {kind[2]} samples a second, not "
            f"16 bits, 1 channel and {RATE}: convert it, which sox -b 16 -c 1 -r {RATE} does."
        )
    there = len(encoded.data) // encoded.width
    if there < encoded.count:
        raise DataError(
            f"{name} is cut short: its header promises {encoded.count} samples and {there} are "
            "there. Copy it again."
        )
    integers = np.frombuffer(encoded.data, dtype=f"{encoded.order}i2", count=encoded.count)
    return integers.astype(np.float64)


def _riff(content: bytes, name: str) -> Encoded:
    try:
        with wave.open(io.BytesIO(content)) as file:
            count = file.getnframes()
            return Encoded(
                rate=file.getframerate(),
                channels=file.getnchannels(),
                width=file.getsampwidth(),
                count=count,
                order="<",
                data=file.readframes(count),
            )
    except (wave.Error, EOFError) as error:
        reason = str(error) or "it ends within its header"
        raise DataError(
            f"{name} is no RIFF file of plain PCM: {reason}. Convert it, or copy it again."
        ) from error


def _sphere(content: bytes, name: str) -> Encoded:
    fields, size = _sphere_header(content, name)
    coding = fields.get("sample_coding", "pcm")  # TIMIT's headers leave it out
    if coding != "pcm":
        raise DataError(
            f"{name} is compressed or companded (sample_coding {coding}), which is not read here: "
            "sph2pipe -p -f wav makes plain PCM of it."
        )
    order = fields.get("sample_byte_format", "none")
    if order not in BYTE_ORDERS:
        raise DataError(
            f"{name} has the sample_byte_format {order}, not 01 or 10: 16-bit PCM is needed."
        )
    return Encoded(
        rate=_integer(fields, "sample_rate", name),
        channels=_integer(fields, "channel_count", name),
        width=_integer(fields, "sample_n_bytes", name),
        count=_integer(fields, "sample_count", name),
        order=BYTE_ORDERS[order],
        data=content[size:],
    )


def _sphere_header(content: bytes, name: str) -> tuple[Mapping[str, str], int]:
    """Fields by their names, and the length of the header, from its second line.

    A field is ``name -type value``; ``end_head`` ends them, and blanks fill what is left.
    """
    second_line = content[:64].split(b"\n")[1:2]
    try:
        size = int(second_line[0])
    except (IndexError, ValueError):
        raise DataError(
            f"{name} does not say how long its SPHERE header is: {content[:24]!r}. Copy it again."
        ) from None
    head, end, _ = content[:size].decode("latin-1").partition("\nend_head")
    if not end:
        raise DataError(
            f"{name} has a SPHERE header without end_head in its first {size} bytes, of which "
            f"{len(content[:size])} are there. Copy it again."
        )
    entries = [line.split(maxsplit=2) for line in head.split("\n")[2:]]
    return {entry[0]: entry[2].strip() for entry in entries if len(entry) == 3}, size


def _integer(fields: Mapping[str, str], field: str, name: str) -> int:
    text = fields.get(field, "nothing")
    if not text.isdecimal():
        raise DataError(f"{name} has a SPHERE header whose {field} is {text}. Copy it again.")
    return int(text)
