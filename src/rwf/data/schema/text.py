"""Columns of text: which entries are missing, and which are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rwf._types import Array, BoolArray
from rwf.data.readers.files import arrow, values_in

if TYPE_CHECKING:
    import pyarrow

NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"


def spelled_numbers(text: pyarrow.Array) -> Array:
    """Numbers in text; NaN for other text."""
    compute, pa = arrow("compute"), arrow()
    text = compute.utf8_trim_whitespace(text)
    known = compute.match_substring_regex(text, NUMBER)
    return values_in(compute.if_else(known, text, pa.scalar(None, pa.string())))


def as_strings(values: pyarrow.Array, name: str) -> pyarrow.Array:
    """The column of this name as strings."""
    strings = values.cast(arrow().string())
    try:
        strings.validate(full=True)
    except arrow().ArrowInvalid as error:
        raise ValueError(f"the text of column {name!r} cannot be read: {error}") from None
    return strings


def missing_strings(strings: pyarrow.Array) -> BoolArray:
    """Which strings are missing, or empty, as they are in a CSV file, shape (n,)."""
    empty = arrow("compute").equal(strings, "").fill_null(True)
    found: BoolArray = empty.to_numpy(zero_copy_only=False).astype(bool)
    return found
