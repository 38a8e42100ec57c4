"""Groups and blocks of training rows: every way to give them, and what a fit does with them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf import RWFRegressor
from rwf.errors import RepeatedInputsWarning
from rwf.estimators.grouping import blocks_of
from rwf.models.blended import NeighborBlend


def speakers(seed=0, groups=30, rows=10, d=1):
    """A function of x, and an offset of every group, which its rows share."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(groups), rows)
    X = rng.normal(size=(groups, d))[who] + 0.2 * rng.normal(size=(len(who), d))
    offset = 0.5 * rng.normal(size=groups)[who]
    return X, np.sin(2.0 * X[:, 0]) + offset + 0.1 * rng.normal(size=len(who)), who


def quick(**options):
    given = {"prior": "multiscale", "n_components": 30, "n_restarts": 0, "max_iter": 5}
    return RWFRegressor(**given | {"random_state": 0} | options)


@pytest.fixture(scope="module")
def data():
    return speakers()


@pytest.fixture(scope="module")
def model(data):
    X, y, who = data
    return quick().fit(X, y, groups=who)


def test_every_way_to_give_groups_gives_the_same_model(data, model, tmp_path):
    X, y, who = data
    frame = pd.DataFrame({"x": X[:, 0], "y": y, "who": [f"speaker {i}" for i in who]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    shuffled = np.random.default_rng(1).permutation(len(y))
    others = [
        quick().fit(frame, "y", groups="who"),
        quick().fit(frame[["x", "who"]], y, groups="who"),
        quick().fit(frame[["x"]], y, groups=frame["who"]),
        quick().fit(tmp_path / "rows.csv", "y", groups="who"),
        quick().fit(X[shuffled], y[shuffled], groups=who[shuffled]),
    ]
    expected = model.predict(X, return_std=True)
    for other in others:
        given = frame[["x"]] if hasattr(other, "feature_names_in_") else X
        assert_allclose(other.predict(given, return_std=True), expected, rtol=1e-12)
        assert other.n_features_in_ == 1
    assert_array_equal(others[0].predict(frame), expected[0])
    left = others[-1].leave_group_out()
    assert_allclose(left.mean, model.leave_group_out().mean[shuffled], rtol=1e-9)
    assert_array_equal(left.groups, who[shuffled])


def test_intervals_hold_new_groups_and_not_only_new_rows_of_known_ones(data, model):
    X, y, _ = data
    new_X, new_y, _ = speakers(1, groups=200)

    def coverage(fitted):
        low, high = fitted.predict_interval(new_X)
        return ((low <= new_y) & (new_y <= high)).mean()

    alone = quick().fit(X, y)
    assert coverage(model) > max(0.9, coverage(alone))
    assert model.fit_report_.nll > alone.fit_report_.nll


def test_leave_group_out_has_every_row_and_the_scores_of_every_group(data, model):
    X, y, _ = data
    found, scores = model.leave_group_out(), model.fit_report_.group_scores
    assert found.mean.shape == found.std.shape == found.y.shape == y.shape
    assert_array_equal(found.y, y)
    assert_array_equal(found.labels, np.arange(30))
    errors = (y - found.mean).reshape(30, 10)
    assert_allclose(found.rmse, np.sqrt((errors**2).mean(axis=1)))
    assert_allclose(scores.rmse, np.sqrt((errors**2).mean()))
    assert_allclose(scores.nll, found.nll.mean())
    assert_allclose(scores.coverage, found.coverage.mean())
    assert scores.n_groups == 30
    assert scores.rmse > np.sqrt(((y - model.predict(X)) ** 2).mean())


def test_several_outputs_and_weights(data):
    X, y, who = data
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    found = quick().fit(X, np.column_stack([y, -2.0 * y]), weights, groups=who).leave_group_out()
    assert found.mean.shape == (300, 2)
    assert np.isfinite(found.std).all()
    assert_allclose(found.mean[:, 1], -2.0 * found.mean[:, 0], rtol=1e-6, atol=1e-6)


def test_blocks_are_cells_of_a_grid():
    X = np.array([[0.0, 5.0], [0.9, 5.0], [1.1, 9.0], [3.0, 9.0]])
    assert_array_equal(blocks_of(X, 1.0), [0, 0, 1, 2])
    assert_array_equal(blocks_of(X, [np.inf, 2.0]), [0, 0, 1, 1])
    x = np.linspace(2.0, 12.0, 101)[:, None]
    assert_array_equal(np.bincount(blocks_of(x, "auto")), [10] * 9 + [11])
    assert len(np.unique(blocks_of(np.hstack([x, 0 * x]), "auto"))) == 10


def test_blocks_leave_whole_stretches_out(data):
    X, y, _ = data
    model = quick().fit(X, y, blocks=0.5)
    assert model.fit_report_.group_scores.n_groups == len(np.unique(blocks_of(X, 0.5)))
    assert (
        model.fit_report_.group_scores.rmse
        > quick().fit(X, y, groups=np.arange(len(y))).fit_report_.group_scores.rmse
    )


def test_neighbors_of_a_group_are_in_other_groups():
    """Rough terrain, which 60 atoms miss and neighbors do not, in groups of four random rows."""
    rng = np.random.default_rng(3)
    X, who = rng.uniform(size=(1200, 2)), np.arange(1200) // 4
    y = np.sin(20.0 * X).prod(axis=1)
    model = RWFRegressor(60, solver="multifrontal", neighbors=8, random_state=0)
    model.fit(X, y, groups=who)
    assert isinstance(model.model_.model, NeighborBlend)
    gp = model.model_.model.blends[0].gp
    _, near = gp.nearest_others(np.arange(1200), 8)
    assert (gp.groups[near] != gp.groups[:, None]).all()
    rows = model.model_.units.rows(rwf.data.rows.Block(X, y[:, None], np.ones(1200), groups=who))
    assert np.isfinite(model.model_.leave_one_out(rows).variance).all()


def test_held_out_groups_choose_the_metric_of_many_columns():
    X, y, who = speakers(2, groups=40, rows=5, d=5)
    model = quick(prior="nystrom", n_components=60, neighbors=None).fit(X, y, groups=who)
    tried = [t.name for t in model.fit_report_.trials if t.held_out is not None]
    assert tried == ["metric 'isotropic'", "metric 'auto'"]
    given = quick(prior="nystrom", n_components=60, neighbors=None, metric="ard")
    assert not [t for t in given.fit(X, y, groups=who).fit_report_.trials if t.held_out]


def test_a_saved_model_has_the_scores_and_not_the_targets(model, data, tmp_path):
    X, _, _ = data
    model.save(tmp_path / "model.rwf")
    loaded = rwf.load(tmp_path / "model.rwf")
    assert loaded.fit_report_ == model.fit_report_
    assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="Files do not hold them"):
        loaded.leave_group_out()


def test_rows_that_come_later_are_in_no_group(data):
    X, y, who = data
    model = quick().fit(X, y, groups=who)
    assert model.leave_group_out() is model.leave_group_out()
    model.partial_fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="fit with groups= or blocks="):
        model.leave_group_out()


WRONG = {
    "groups and blocks were both given": {"groups": np.zeros(300), "blocks": 1.0},
    "in 4 group": {"groups": np.arange(300) % 4},
    "give shorter blocks": {"blocks": 100.0},
    "one label for each row": {"groups": np.arange(7)},
    "no label for row 2": {"groups": [1.0, 2.0, np.nan] * 100},
    "X has no names": {"groups": "speaker"},
    "must be 'auto', or a positive length": {"blocks": [1.0, 2.0]},
    "or a positive length": {"blocks": -1.0},
    "no checkpoint": {"blocks": 1.0, "checkpoint": "file"},
}


@pytest.mark.parametrize(("message", "options"), WRONG.items(), ids=WRONG)
def test_errors_say_what_to_do(data, message, options):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        quick().fit(X, y, **options)


def test_streams_have_no_groups(data):
    X, y, who = data
    with pytest.raises(ValueError, match="give arrays, a dataframe"):
        quick().fit(lambda: iter([(X, y)]), groups=who)
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="not for blocks of rows or Dask"):
        quick().fit(da.from_array(X), da.from_array(y), groups=who)


def test_fields_have_no_groups(rng):
    X = rng.uniform(size=(1200, 2))
    y = np.sin(5.0 * X.sum(axis=1))
    with pytest.raises(ValueError, match="use prior='auto' with groups"):
        RWFRegressor(prior="field").fit(X, y, blocks=0.2)


def test_many_repeated_inputs_give_a_warning(rng):
    X = np.repeat(rng.normal(size=(40, 2)), 3, axis=0)
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    with pytest.warns(RepeatedInputsWarning, match="pass groups="):
        quick().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedInputsWarning)
        quick().fit(X + 1e-6 * rng.normal(size=X.shape), y)
        quick().fit(X, y, groups=np.repeat(np.arange(40), 3))
        quick().fit(X[::3], y[::3], np.full(40, 3.0))


@pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")
def test_copies_of_rows_count_once_and_weights_as_often_as_they_say(rng):
    X = rng.normal(size=(60, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=60)
    once = quick().fit(X, y)
    with pytest.warns(RepeatedInputsWarning, match="67% of the rows are exact copies"):
        thrice = quick().fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    weighted = quick().fit(X, y, np.full(60, 3.0))
    assert (once.fit_report_.copies, thrice.fit_report_.copies) == (0, 120)
    assert "120 rows repeat another exactly" in str(thrice.fit_report_)
    expected = once.predict(X, return_std=True)
    assert_allclose(thrice.predict(X, return_std=True), expected, rtol=1e-9)
    assert not np.allclose(weighted.predict(X, return_std=True)[1], expected[1], rtol=0.01)
    # Observations of few places that are alike now and then are none.
    places, answers = np.repeat(X, 3, axis=0), rng.integers(0, 2, 180)
    with pytest.warns(RepeatedInputsWarning, match="pass groups="):
        assert quick().fit(places, answers).fit_report_.copies == 0
