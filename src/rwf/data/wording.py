"""Numbers and labelled lines, as people read them."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill

WIDTH = 88  # characters of a line
WHOLE = 9999.5  # from which four digits would be too few for all before the decimal point
LONG = 1e9  # from which numbers have an exponent


def numeral(value: float) -> str:
    """A number with four digits, or with all before its decimal point: 0.1235 and 12,346."""
    return f"{value:,.0f}" if WHOLE <= abs(value) < LONG else f"{value:.4g}"


def counted(count: int, noun: str) -> str:
    """A count and a noun: 1 row, 2,345 rows."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def aligned(lines: Iterable[tuple[str, str]]) -> str:
    """Labels, and what is said about each in a column beside them."""
    lines = list(lines)
    width = max((len(label) for label, _ in lines), default=0) + 2
    return "\n".join(
        fill(
            f"{label:<{width}}{text}",
            WIDTH,
            subsequent_indent=" " * width,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for label, text in lines
    )
