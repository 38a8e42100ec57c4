"""Seconds and ratios."""

from benchmarks.timing import typical_ratio


def test_ratios_are_medians_of_pairs():
    ticks = iter([0.0, 3.0, 3.0, 4.0, 4.0, 6.0, 6.0, 7.0, 7.0, 17.0, 17.0, 18.0])
    taken, ratio = typical_ratio([(lambda: None, lambda: None)] * 3, lambda: next(ticks))
    assert taken == 15.0
    assert ratio == 3.0
