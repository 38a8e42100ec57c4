"""Numbers and labelled lines, as people read them."""

import numpy as np
import pytest

from rwf.data.wording import WIDTH, aligned, counted, numeral


@pytest.mark.parametrize(
    "value, text",
    [
        (0.123456, "0.1235"),
        (-3.0, "-3"),
        (9999.4, "9999"),
        (9999.6, "10,000"),
        (-12345.6, "-12,346"),
        (98_765_432.1, "98,765,432"),
        (1.5e9, "1.5e+09"),
        (2e-7, "2e-07"),
        (np.nan, "nan"),
        (np.inf, "inf"),
    ],
)
def test_numbers_have_four_digits_or_all_before_the_decimal_point(value, text):
    assert numeral(value) == text


def test_one_is_singular():
    assert [counted(n, "row") for n in (0, 1, 2345)] == ["0 rows", "1 row", "2,345 rows"]


def test_labels_stand_before_what_is_said_and_long_lines_are_broken():
    words = "held-out " * 20
    first, *more = aligned([("a", words), ("label", "short")]).splitlines()
    assert first.startswith("a      held-out held-out")
    assert all(line.startswith("       held-out") for line in more[:-1])
    assert len(more) > 2
    assert max(map(len, [first, *more])) <= WIDTH
    assert more[-1] == "label  short"
    assert aligned([]) == ""
