"""Dates as numbers: days since 1970, whatever their unit, and phases of the year, week and day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import f as f_distribution

from rwf._types import Array
from rwf.data.readers.files import arrow

if TYPE_CHECKING:
    import pyarrow

CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # and their lengths in days
TURNS = 2.0  # times that dates must span a cycle
CHANCE = 1e-3  # probability that a cycle which says nothing of y is taken nonetheless
HARMONICS = 2
MICROSECONDS = 86_400e6  # of a day
FIRST_DAY = "1970-01-01"  # of times without a date
NO_DATE = ("", "#N/A", "N/A", "NA", "NULL", "NaN", "NaT", "None", "n/a", "nan", "null")


def is_date(dtype: pyarrow.DataType) -> bool:
    """Whether a column of this type holds dates, times of the day, or durations."""
    types = arrow().types
    kinds = (types.is_date, types.is_timestamp, types.is_time, types.is_duration)
    return any(is_kind(dtype) for is_kind in kinds)


def is_text(dtype: pyarrow.DataType) -> bool:
    types = arrow().types
    kinds = (types.is_string, types.is_large_string, types.is_string_view)
    return any(is_kind(dtype) for is_kind in kinds)


def days_in(values: pyarrow.Array) -> Array:
    """A column of dates as days since 1970, those of a time zone in UTC; what is missing is NaN."""
    pa = arrow()
    if is_text(values.type):
        values = _parsed(values.cast(pa.string()))
    if pa.types.is_time(values.type):
        exact = pa.time64("us")
    elif pa.types.is_duration(values.type):
        exact = pa.duration("us")
    else:
        exact = pa.timestamp("us", getattr(values.type, "tz", None))
    counts = values.cast(exact, safe=False).cast(pa.int64())
    days: Array = counts.to_numpy(zero_copy_only=False) / MICROSECONDS
    return days


def date_text(days: float) -> str:
    """The date, or the date and time, of a number of days since 1970."""
    moment = np.datetime64(0, "s") + np.timedelta64(round(days * 86_400), "s")
    return str(moment).removesuffix("T00:00:00")


def _parsed(text: pyarrow.Array) -> pyarrow.Array:
    """Dates as ISO 8601 writes them."""
    pa, compute = arrow(), arrow("compute")
    missing = compute.is_in(text, value_set=pa.array(NO_DATE))
    text = compute.if_else(missing, pa.scalar(None, pa.string()), text)
    local, zoned = pa.timestamp("us"), pa.timestamp("us", "UTC")
    times = compute.binary_join_element_wise(FIRST_DAY, text, " ")
    for candidate, dtype in ((text, local), (text, zoned), (times, local)):
        try:
            return candidate.cast(dtype)
        except pa.ArrowInvalid:
            continue
    parsed = compute.strptime(compute.utf8_slice_codeunits(text, 0, 10), "%Y-%m-%d", "s", True)
    wrong = text.filter(parsed.is_null()).drop_null()
    raise ValueError(f"{(wrong if len(wrong) else text.drop_null())[0].as_py()!r} is no date")


def reads_as_dates(text: pyarrow.Array) -> bool:
    """Whether all entries of some text are dates, and at least one is not missing."""
    try:
        return bool(np.isfinite(days_in(text)).any())
    except ValueError:
        return False


def phases(days: Array, cycle: str, harmonics: int = 1) -> Array:
    """Sine and cosine of the phase within a cycle, shape (n, 2·harmonics)."""
    turns = 2 * np.pi * days[:, None] / CYCLES[cycle] * np.arange(1, harmonics + 1)
    return np.hstack([np.sin(turns), np.cos(turns)])


def cycles_in(days: Array, y: Array) -> tuple[str, ...]:
    """The cycles that y follows, by F tests of their harmonics beside a line.

    Cycles are tested from the longest to the shortest, each beside those that were found.
    """
    known = np.isfinite(days) & np.isfinite(y)
    days, y = days[known], y[known]
    found: tuple[str, ...] = ()
    if len(y) == 0 or np.ptp(days) == 0:
        return found
    Z = np.column_stack([np.ones(len(y)), (days - days.min()) / np.ptp(days)])
    for cycle, length in CYCLES.items():
        wave = phases(days, cycle, HARMONICS)
        if np.ptp(days) < TURNS * length or np.ptp(wave[:, :2], axis=0).max() < 1e-6:
            continue
        wider = np.hstack([Z, wave])
        if _is_better(Z, wider, y):
            found, Z = (*found, cycle), wider
    return found


def _is_better(Z: Array, wider: Array, y: Array) -> bool:
    """Whether further columns lower the squared error of least squares by more than chance."""
    free = len(y) - wider.shape[1]
    if free < len(y) / 2:
        return False
    before, after = (_squared_error(columns, y) for columns in (Z, wider))
    extra = wider.shape[1] - Z.shape[1]
    if after <= 1e-12 * before:
        return before > 0
    ratio = (before - after) / extra / (after / free)
    return bool(f_distribution.sf(ratio, extra, free) < CHANCE)


def _squared_error(Z: Array, y: Array) -> float:
    centered = y - y.mean()
    residual = centered - Z @ np.linalg.lstsq(Z, centered, rcond=None)[0]
    return float(residual @ residual)
