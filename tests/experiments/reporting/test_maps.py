"""Maps of a withheld block."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from experiments.data import splits
from experiments.reporting.maps import block_map, draw_map
from experiments.runner.methods import make


def test_a_map_has_the_truth_at_its_place_and_nothing_of_the_block_was_learned(hills):
    X, z = hills
    found = block_map("dem_jacksboro-block", "linear", 0)
    rows = splits.block(X, 0)
    for row in (rows.test[0], rows.test[-1], rows.test[3]):
        line, column = np.searchsorted(found.y, X[row, 1]), np.searchsorted(found.x, X[row, 0])
        assert found.truth[line, column] == z[row]
        mean, std = make("linear", {}, 0).fit(X[rows.train], z[rows.train]).predict(X[row][None])
        assert_allclose([found.mean[line, column], found.std[line, column]], [mean[0], std[0]])
    assert_array_equal(
        [found.low, found.high], [X[rows.test].min(axis=0), X[rows.test].max(axis=0)]
    )
    assert found.x[0] < found.low[0] < found.high[0] < found.x[-1]
    assert found.unit == "m"
    panels = draw_map(found).axes
    assert [ax.get_title() for ax in panels[:4]] == [
        "truth",
        "mean",
        "standard deviation",
        "mean − truth",
    ]
