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
import math
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rwf.data.atomic import replace_file
from rwf.errors import ModelFileError, NewerModelFileError

MAGIC = b"RWFMODEL"
VERSION = 2  # the version that is written and read

PREFIX = struct.Struct("<8sIQ")
DIGEST = 32  # bytes of SHA-256

DTYPES = {"float64": "<f8", "int64": "<i8", "bool": "|b1"}  # in memory, in the file
LAYOUTS = ("full", "lower", "upper", "symmetric")  # stored are all entries, or a triangle

AnyArray: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

AGAIN = "The file is damaged, or was not written by rwf: save the model again."


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(f"{what}. {AGAIN}")


@dataclass(frozen=True)
class ArraySpec:
    """How one array lies in the file."""

    dtype: str  # one of DTYPES
    shape: tuple[int, ...]
    order: str  # "C" or "F", as in memory, so that products are the same to the last bit
    layout: str  # one of LAYOUTS, of the array in C's order or else of its transpose

    @classmethod
    def of(cls, array: AnyArray) -> Self:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        rows = array.T if fortran else array
        return cls(array.dtype.name, array.shape, "F" if fortran else "C", _layout(rows))

    @classmethod
    def from_json(cls, entry: Json, most: int) -> Self:
        """A spec whose lengths are all at most ``most``."""
        names = ("dtype", "shape", "order", "layout")
        entries = entry if isinstance(entry, dict) and set(entry) == set(names) else {}
        dtype, shape, order, layout = (entries.get(name) for name in names)
        if not (
            isinstance(dtype, str)
            and dtype in DTYPES
            and isinstance(shape, list)
            and len(shape) <= 3
            and order in ("C", "F")
            and layout in LAYOUTS
            and (layout == "full" or (len(shape) == 2 and shape[0] == shape[1]))
        ):
            raise _damaged(f"the header describes an array by {_short(entry)}")
        lengths = tuple(n for n in shape if type(n) is int and 0 <= n <= most)
        if len(lengths) < len(shape):
            raise _damaged(
                f"the header claims an array of shape {_short(shape)}, in a file of {most} bytes"
            )
        return cls(dtype, lengths, str(order), str(layout))

    def to_json(self) -> Json:
        shape: list[Json] = [*self.shape]
        return {"dtype": self.dtype, "shape": shape, "order": self.order, "layout": self.layout}

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        entries = math.prod(self.shape)
        if self.layout != "full":
            entries = self.shape[0] * (self.shape[0] + 1) // 2
        return entries * np.dtype(DTYPES[self.dtype]).itemsize

    def pack(self, array: AnyArray) -> Iterator[bytes | memoryview]:
        """The bytes of the array."""
        rows = np.ascontiguousarray(array.T if self.order == "F" else array)
        rows = rows.astype(DTYPES[self.dtype], copy=False)
        if self.layout == "full":
            if rows.size:
                yield rows.reshape(-1).view(np.uint8).data
            return
        for i, row in enumerate(rows):
            yield (row[i:] if self.layout == "upper" else row[: i + 1]).tobytes()

    def unpack(self, entries: NDArray[np.uint8]) -> AnyArray:
        """The array from its bytes."""
        if self.dtype == "bool" and entries.max(initial=0) > 1:
            raise _damaged("an array of truth values holds others")
        values = entries.view(DTYPES[self.dtype]).astype(self.dtype, copy=False)
        shape = self.shape[::-1] if self.order == "F" else self.shape
        rows = values.reshape(shape) if self.layout == "full" else self._square(values)
        return rows.T if self.order == "F" else rows

    def _square(self, values: AnyArray) -> AnyArray:
        n, start = self.shape[0], 0
        rows = np.zeros((n, n), dtype=self.dtype)
        for i in range(n):
            its = slice(i, n) if self.layout == "upper" else slice(0, i + 1)
            rows[i, its] = values[start : start + its.stop - its.start]
            start += its.stop - its.start
            if self.layout == "symmetric":
                rows[:i, i] = rows[i, :i]
        return rows


def _layout(rows: AnyArray) -> str:
    """The least that must be stored of an array in C's order; zeros are compared by their bits."""
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or rows.dtype != np.float64:
        return "full"
    bits = np.ascontiguousarray(rows).view(np.int64)
    if not np.triu(bits, 1).any():
        return "lower"
    if not np.tril(bits, -1).any():
        return "upper"
    return "symmetric" if np.array_equal(bits, bits.T) else "full"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def write(path: Path, header: dict[str, Json], arrays: Sequence[AnyArray]) -> None:
    """Write a file, or leave what was there before untouched if that fails."""
    specs = [ArraySpec.of(array) for array in arrays]
    described: list[Json] = [spec.to_json() for spec in specs]
    text = json.dumps({**header, "arrays": described}, allow_nan=False, ensure_ascii=False).encode()

    def content() -> Iterator[bytes | memoryview]:
        yield PREFIX.pack(MAGIC, VERSION, len(text))
        yield text
        for spec, array in zip(specs, arrays, strict=True):
            yield from spec.pack(array)

    def fill(file: BinaryIO) -> None:
        digest = hashlib.sha256()
        for part in content():
            digest.update(part)
            file.write(part)
        file.write(digest.digest())

    replace_file(Path(os.path.realpath(path)), fill)


def read(path: Path) -> tuple[dict[str, Json], list[AnyArray]]:
    """Header and arrays of a file, once everything about them has been checked."""
    with path.open("rb") as file:
        reader = _Reader(file, path)
        header = reader.header()
        arrays = reader.arrays(header.pop("arrays", None))
        reader.finish()
    return header, arrays


class _Reader:
    """Reads a file once, from its beginning to its end, and adds up its checksum."""

    def __init__(self, file: BufferedReader, path: Path) -> None:
        self._file, self._path = file, path
        self._size = os.fstat(file.fileno()).st_size
        self._digest = hashlib.sha256()

    def _take(self, count: int) -> NDArray[np.uint8]:
        buffer = np.empty(count, dtype=np.uint8)
        if count and self._file.readinto(buffer.data) != count:
            raise _damaged(f"{self._path} ended while it was read")
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
            raise _damaged(f"{self._path} has only {self._size} bytes")
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
            raise _damaged(
                f"{self._path} claims version {version} and a header of {length} bytes, and has "
                f"{self._size} bytes in all"
            )
        return self._parsed(self._take(length).tobytes())

    def _parsed(self, text: bytes) -> dict[str, Json]:
        try:
            header = json.loads(text.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise _damaged(f"the header of {self._path} cannot be read: {error}") from None
        if not isinstance(header, dict):
            raise _damaged(f"the header of {self._path} is {_short(header)}")
        return header

    def arrays(self, described: Json) -> list[AnyArray]:
        if not isinstance(described, list):
            raise _damaged(f"the header of {self._path} describes no arrays")
        specs = [ArraySpec.from_json(entry, self._size) for entry in described]
        total = sum(spec.n_bytes for spec in specs)
        if total != self._left:
            raise _damaged(
                f"{self._path} holds {max(self._left, 0)} bytes of arrays, and its header "
                f"describes {total}"
            )
        return [spec.unpack(self._take(spec.n_bytes)) for spec in specs]

    def finish(self) -> None:
        if self._file.read() != self._digest.digest():
            raise _damaged(f"the checksum of {self._path} is wrong")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
