"""The file itself: a JSON header and the bytes of arrays, checksummed, and written all or nothing.

====================  ==========================================================================
bytes                 content
====================  ==========================================================================
8                     ``RWFMODEL``
4                     version of the format, as all integers here unsigned and little-endian
8                     h, the length of the header
h                     the header, JSON in UTF-8; its ``arrays`` say how the rest is to be read
rest                  the entries of the arrays, one array after another, little-endian
32                    SHA-256 of everything before
====================  ==========================================================================

The reader checks everything before it uses it: no length may exceed the size of the file, and
nothing but JSON and numbers is ever read.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Collection, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rwf.data.atomic import replace_file
from rwf.errors import ModelFileError, NewerModelFileError
from rwf.persistence.arrays import AnyArray, ArraySpec, Json, damaged, short

MAGIC = b"RWFMODEL"
VERSION = 2  # the version that is written and read

PREFIX = struct.Struct("<8sIQ")
DIGEST = 32  # bytes of SHA-256


def write(
    path: Path,
    header: dict[str, Json],
    arrays: Sequence[AnyArray],
    derived: Collection[int] = (),
) -> None:
    """Write a file, or leave what was there before untouched if that fails.

    Args:
        path: of the file.
        header: what JSON has words for.
        arrays: their entries follow it.
        derived: the numbers of those whose entries are left out.
    """
    plain = [ArraySpec.of(array, derived=i in derived) for i, array in enumerate(arrays)]
    specs, packed = zip(*map(ArraySpec.deflate, plain, arrays), strict=True) if arrays else ((), ())
    described: list[Json] = [spec.to_json() for spec in specs]
    text = json.dumps({**header, "arrays": described}, allow_nan=False, ensure_ascii=False).encode()

    def content() -> Iterator[bytes | memoryview]:
        yield PREFIX.pack(MAGIC, VERSION, len(text))
        yield text
        for spec, array, deflated in zip(specs, arrays, packed, strict=True):
            yield from spec.pack(array) if deflated is None else (deflated,)

    def fill(file: BinaryIO) -> None:
        digest = hashlib.sha256()
        for part in content():
            digest.update(part)
            file.write(part)
        file.write(digest.digest())

    replace_file(Path(os.path.realpath(path)), fill)


def read(path: Path) -> tuple[dict[str, Json], list[AnyArray], set[int]]:
    """Header and arrays of a file, all checked, and the numbers of arrays yet to be derived."""
    with path.open("rb") as file:
        reader = _Reader(file, path)
        header = reader.header()
        specs = reader.specs(header.pop("arrays", None))
        arrays = reader.arrays(specs)
        reader.finish()
    return header, arrays, {i for i, spec in enumerate(specs) if spec.layout == "derived"}


class _Reader:
    """Reads a file once, from its beginning to its end, and adds up its checksum."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._size = os.fstat(file.fileno()).st_size
        self._digest = hashlib.sha256()

    def _take(self, count: int) -> NDArray[np.uint8]:
        buffer = np.empty(count, dtype=np.uint8)
        if count and self._file.readinto(buffer.data) != count:
            raise damaged(f"{self._path} ended while it was read")
        self._digest.update(buffer.data)
        return buffer

    @property
    def _left(self) -> int:
        """Bytes between here and the checksum."""
        return self._size - self._file.tell() - DIGEST

    def header(self) -> dict[str, Json]:
        start = self._file.read(len(MAGIC))
        if start != MAGIC:
            raise ModelFileError(
                f"{self._path} is no model file of rwf: it begins with {start!r}, not {MAGIC!r}. A "
                "file by pickle or joblib is for these to load, if you trust who wrote it: it can "
                "run anything."
            )
        self._file.seek(0)
        if self._left < PREFIX.size:
            raise damaged(f"{self._path} has only {self._size} bytes")
        _, version, length = PREFIX.unpack(self._take(PREFIX.size).tobytes())
        if version not in (0, VERSION):
            other, remedy = ModelFileError, "load it with the rwf that wrote it, or fit again"
            if version > VERSION:
                other, remedy = NewerModelFileError, "install a newer rwf, or save it with this one"
            raise other(
                f"{self._path} has version {version} of the format, and this rwf reads version "
                f"{VERSION}: {remedy}."
            )
        if version < 1 or length > self._left:
            raise damaged(
                f"{self._path} claims version {version} and a header of {length} bytes, and has "
                f"{self._size} bytes in all"
            )
        return self._parsed(self._take(length).tobytes())

    def _parsed(self, text: bytes) -> dict[str, Json]:
        try:
            header = json.loads(text.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise damaged(f"the header of {self._path} cannot be read: {error}") from None
        if not isinstance(header, dict):
            raise damaged(f"the header of {self._path} is {short(header)}")
        return header

    def specs(self, described: Json) -> list[ArraySpec]:
        if not isinstance(described, list):
            raise damaged(f"the header of {self._path} describes no arrays")
        specs = [ArraySpec.from_json(entry, self._size) for entry in described]
        total = sum(spec.n_bytes for spec in specs)
        if total != self._left:
            raise damaged(
                f"{self._path} holds {max(self._left, 0)} bytes of arrays, and its header "
                f"describes {total}"
            )
        return specs

    def arrays(self, specs: Sequence[ArraySpec]) -> list[AnyArray]:
        return [spec.unpack(self._take(spec.n_bytes)) for spec in specs]

    def finish(self) -> None:
        if self._file.read() != self._digest.digest():
            raise damaged(f"the checksum of {self._path} is wrong")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
