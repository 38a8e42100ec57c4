"""How arrays lie in a file: all of their entries, a triangle, deflated, or left out."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rwf.errors import ModelFileError

DTYPES = {"float64": "<f8", "int64": "<i8", "bool": "|b1"}  # in memory, in the file
# Stored are all entries, or a triangle, or nothing, as they are computed again.
LAYOUTS = ("full", "lower", "upper", "symmetric", "derived")
WORTH = 0.9  # share of the bytes that deflating may leave
PROBED = 2**16  # bytes by which it is seen whether deflating is worth it
MOST_DEFLATED = 1100  # times that zlib can make bytes fewer, a little more than it does

AnyArray: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.bool_]
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

AGAIN = "The file is damaged, or was not written by rwf: save the model again."


def damaged(what: str) -> ModelFileError:
    """What to say of a file that contradicts itself."""
    return ModelFileError(f"{what}. {AGAIN}")


@dataclass(frozen=True)
class ArraySpec:
    """How one array lies in the file."""

    dtype: str  # one of DTYPES
    shape: tuple[int, ...]
    order: str  # "C" or "F", as in memory, so that products are the same to the last bit
    layout: str  # one of LAYOUTS, of the array in C's order or else of its transpose
    deflated: int | None = None  # bytes in the file, if these were deflated

    @classmethod
    def of(cls, array: AnyArray, *, derived: bool = False) -> Self:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        layout = "derived" if derived else _layout(array.T if fortran else array)
        return cls(array.dtype.name, array.shape, "F" if fortran else "C", layout)

    @classmethod
    def from_json(cls, entry: Json, most: int) -> Self:
        """A spec whose lengths are all at most ``most``."""
        names = ("dtype", "shape", "order", "layout", "deflated")
        entries = entry if isinstance(entry, dict) and set(entry) == set(names) else {}
        dtype, shape, order, layout, deflated = (entries.get(name) for name in names)
        if not (
            isinstance(dtype, str)
            and dtype in DTYPES
            and isinstance(shape, list)
            and len(shape) <= 3
            and order in ("C", "F")
            and layout in LAYOUTS
            and (deflated is None or (type(deflated) is int and 0 <= deflated <= most))
            and (layout in ("full", "derived") or (len(shape) == 2 and shape[0] == shape[1]))
        ):
            raise damaged(f"the header describes an array by {short(entry)}")
        longest = most if deflated is None else MOST_DEFLATED * most
        lengths = tuple(n for n in shape if type(n) is int and 0 <= n <= longest)
        if len(lengths) < len(shape):
            raise damaged(
                f"the header claims an array of shape {short(shape)}, in a file of {most} bytes"
            )
        spec = cls(dtype, lengths, str(order), str(layout), deflated)
        if spec.n_entry_bytes > MOST_DEFLATED * max(spec.n_bytes, 1) and layout != "derived":
            raise damaged(f"the header claims that {deflated} bytes are those of {short(shape)}")
        return spec

    def to_json(self) -> Json:
        shape: list[Json] = [*self.shape]
        own = {"dtype": self.dtype, "order": self.order, "layout": self.layout}
        return {**own, "shape": shape, "deflated": self.deflated}

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return self.n_entry_bytes if self.deflated is None else self.deflated

    @property
    def n_entry_bytes(self) -> int:
        """Bytes of the entries that are stored."""
        if self.layout == "derived":
            return 0
        entries = math.prod(self.shape)
        if self.layout != "full":
            entries = self.shape[0] * (self.shape[0] + 1) // 2
        return entries * np.dtype(DTYPES[self.dtype]).itemsize

    def pack(self, array: AnyArray) -> Iterator[bytes | memoryview]:
        """The bytes of the entries that are stored."""
        if self.layout == "derived":
            return
        rows = np.ascontiguousarray(array.T if self.order == "F" else array)
        rows = rows.astype(DTYPES[self.dtype], copy=False)
        if self.layout == "full":
            if rows.size:
                yield rows.reshape(-1).view(np.uint8).data
            return
        for i, row in enumerate(rows):
            yield (row[i:] if self.layout == "upper" else row[: i + 1]).tobytes()

    def deflate(self, array: AnyArray) -> tuple[ArraySpec, bytes | None]:
        """The bytes deflated, all first bytes of entries before all second ones, if that pays."""
        size = np.dtype(DTYPES[self.dtype]).itemsize
        if self.n_entry_bytes < size:
            return self, None
        entries = np.frombuffer(b"".join(self.pack(array)), dtype=np.uint8).reshape(-1, size)
        middle = len(entries) // 2
        probe = entries[middle : middle + PROBED // size].T.tobytes()
        if len(zlib.compress(probe, 1)) > WORTH * len(probe):
            return self, None
        found = zlib.compress(entries.T.tobytes(), 6)
        if len(found) > WORTH * self.n_entry_bytes:
            return self, None
        return replace(self, deflated=len(found)), found

    def _inflated(self, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
        size, count = np.dtype(DTYPES[self.dtype]).itemsize, self.n_entry_bytes
        try:
            found = zlib.decompressobj().decompress(stored.data, count + 1)
        except zlib.error as error:
            raise damaged(f"an array cannot be inflated: {error}") from None
        if len(found) != count:
            raise damaged(f"an array of {count} bytes was deflated from others")
        planes = np.frombuffer(found, dtype=np.uint8).reshape(size, -1)
        return np.ascontiguousarray(planes.T).reshape(-1)

    def unpack(self, entries: NDArray[np.uint8]) -> AnyArray:
        """The array from its bytes; one that is derived is yet to be filled."""
        if self.layout == "derived":
            return np.empty(self.shape, dtype=self.dtype, order="F" if self.order == "F" else "C")
        if self.deflated is not None:
            entries = self._inflated(entries)
        if self.dtype == "bool" and entries.max(initial=0) > 1:
            raise damaged("an array of truth values holds others")
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


def short(value: object) -> str:
    """A value, cut to a line, for errors."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
