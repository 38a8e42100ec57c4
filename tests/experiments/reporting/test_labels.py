"""Labels of methods."""

from experiments.reporting.labels import LABELS
from experiments.runner.methods import METHODS


def test_every_method_has_a_label():
    assert set(LABELS) == {*METHODS, "best-printed", "exact-printed"}
