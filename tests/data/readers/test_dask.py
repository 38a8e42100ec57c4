"""Dask arrays and dataframes give the model of the same rows on one machine, whoever computes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RWFRegressor
from rwf.data.readers import ArrayReader, DaskReader, base, dask_tasks, open_rows
from rwf.data.rows import distinct
from rwf.fit import pipeline as fitting
from rwf.linalg.threads import cores, in_parallel, one_thread

QUICK = {
    "n_components": 30,
    "prior": "random_features",
    "max_iter": 2,
    "n_restarts": 0,
    "random_state": 0,
}
TREE = {**QUICK, "prior": "auto", "n_components": None, "calibration": "global"}
MANY = 4000
"""Rows that are more than the sample of a quick model, so that they stay on the cluster."""

NAMES = ["height", "width", "depth", "age"]
CHUNKS = ((700, 0, 1500, 1, 1000, 799), (2, 2))
PARTS = (700, 1500, 1, 1000, 799)


def make(n: int, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, 4))
    y = 5.0 + np.sin(X[:, 0]) + 0.1 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    w = rng.integers(0, 4, n) * 1.0
    return pd.DataFrame({**dict(zip(NAMES, X.T, strict=True)), "y": y, "w": w})


def series(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.uniform(2.0, 5.0, n)
    return x[:, None], 4.0 + np.sin(8 * x) + 0.1 * rng.normal(size=n)


def streamed(settings, X, y, weights=None):
    """The model of the same rows on one machine."""
    weights = np.ones(len(X)) if weights is None else weights

    def blocks():
        return (
            (X[i : i + 900], y[i : i + 900], weights[i : i + 900]) for i in range(0, len(X), 900)
        )

    return RWFRegressor(**settings).fit(blocks)


def assert_same(found, expected, X):
    """Both models predict the same to ten digits."""
    for ours, theirs in zip(
        found.predict(X, return_std=True), expected.predict(X, return_std=True), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module")
def frame():
    return make(MANY)


@pytest.fixture(scope="module")
def arrays(frame):
    return frame[NAMES].to_numpy(), frame["y"].to_numpy()


@pytest.fixture(scope="module")
def local(arrays):
    return streamed(QUICK, *arrays)


@pytest.fixture
def here():
    """Dask without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def client():
    """Four workers, each a process."""
    with (
        LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_four_workers_give_the_model_of_one_machine(client, arrays, local):
    X, y = arrays
    given = da.from_array(X, chunks=CHUNKS), da.from_array(y, chunks=900)
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == 4
    spread = RWFRegressor(**QUICK).fit(*given)
    assert spread.fit_report_.n_rows == MANY
    assert_same(spread, local, X)
    mean, std = spread.predict(given[0], return_std=True)
    assert isinstance(mean, da.Array)
    assert_allclose(dask.compute(mean, std), local.predict(X, return_std=True), rtol=1e-10)
    with dask.config.set(scheduler="synchronous"):
        alone = RWFRegressor(**QUICK).fit(*given)
    assert_array_equal(spread.model_.base.statistics.ZtZ, alone.model_.base.statistics.ZtZ)
    assert_array_equal(spread.predict(X), alone.predict(X))


def test_a_tree_grows_on_four_workers_as_on_one_machine(client, monkeypatch):
    monkeypatch.setattr(fitting, "STREAM_SAMPLE", 3000)
    X, y = series(20_500)
    spread = RWFRegressor(**TREE, noise="constant").fit(
        da.from_array(X, chunks=(4000, 1)), da.from_array(y, chunks=4000)
    )
    assert spread.fit_report_.solver.startswith("multifrontal: 20500 rows")
    assert_same(spread, streamed({**TREE, "noise": "constant"}, X, y), X)


def test_a_worker_that_is_killed_in_mid_fit_is_not_missed(client, arrays, local, tmp_path):
    X, y = arrays
    seen, killed = tmp_path / "seen", tmp_path / "killed"

    def deadly(block, block_id):
        """The worker that has this block in the second pass, the one for moments, dies of it."""
        time.sleep(0.1)
        if block_id[0] == 7:
            if seen.exists() and not killed.exists():
                killed.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            seen.touch()
        return block

    rows = da.from_array(X, chunks=(400, 4)).map_blocks(deadly, dtype=float, meta=np.empty((0, 0)))
    before = set(client.run(os.getpid).values())
    spread = RWFRegressor(**QUICK).fit(rows, da.from_array(y, chunks=400))
    lost = int(killed.read_text())
    assert lost in before
    assert lost not in client.run(os.getpid).values()
    assert_same(spread, local, X)


def test_a_dataframe_by_the_name_of_its_target(here, frame, arrays):
    X, y = arrays
    spread = dd.from_pandas(frame, npartitions=7)
    model = RWFRegressor(**QUICK).fit(spread, "y", sample_weight="w")
    assert list(model.feature_names_in_) == NAMES
    assert_same(model, streamed(QUICK, X, y, frame["w"].to_numpy()), X)
    expected = model.predict(frame)
    for columns in (NAMES, NAMES[::-1], [*NAMES, "y", "w"]):
        assert_allclose(model.predict(spread[columns]).compute(), expected, rtol=1e-13)


def test_targets_and_weights_of_their_own(here, frame, arrays):
    X, y = arrays
    spread, weights = dd.from_pandas(frame, npartitions=5), frame["w"].to_numpy()
    expected = streamed(QUICK, X, y, weights)
    lengths = tuple(len(part) for part in dask.compute(*spread.to_delayed()))
    for given in (
        (spread[NAMES], spread["y"], spread["w"]),
        (spread[NAMES], da.from_array(y, chunks=(lengths,)), spread["w"]),
        (spread[NAMES].to_dask_array(), spread["y"].to_dask_array(), spread["w"]),
        (da.from_array(X, chunks=CHUNKS), da.from_array(y), da.from_array(weights, chunks=333)),
    ):
        assert_same(RWFRegressor(**QUICK).fit(*given), expected, X)


def test_several_targets(here, frame):
    X, Y = frame[NAMES].to_numpy(), frame[["y", "age"]].to_numpy()
    expected = streamed(QUICK, X, Y)
    spread = da.from_array(X, chunks=CHUNKS)
    model = RWFRegressor(**QUICK).fit(spread, da.from_array(Y, chunks=(600, 1)))
    assert_same(model, expected, X)
    mean, std = model.predict(spread, return_std=True)
    assert mean.shape == std.shape == (MANY, 2)
    assert mean.chunks[0] == PARTS
    # The second target has hardly any noise, and its deviations are differences of larger ones.
    here = expected.predict(X, return_std=True)[1]
    assert_allclose(std.compute(), here, rtol=1e-10, atol=1e-12)


def test_few_rows_are_fitted_in_memory_with_the_very_same_numbers(here):
    few = make(300)
    expected = RWFRegressor(**QUICK).fit(few[NAMES], few["y"]).predict(few[NAMES])
    found = RWFRegressor(**QUICK).fit(dd.from_pandas(few[[*NAMES, "y"]], npartitions=4), "y")
    assert_array_equal(found.predict(few[NAMES]), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sample_is_the_one_that_is_drawn_from_rows_in_memory(here, frame, arrays, weighted):
    X, y = arrays
    w = frame["w"].to_numpy() if weighted else None
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    expected, n = ArrayReader(X, y, w).sample(500, theirs)
    for chunks in (CHUNKS[0], (MANY,), (400,) * 10):
        rng = np.random.default_rng(3)
        parts = [None if v is None else da.from_array(v, chunks=(chunks,)) for v in (y, w)]
        reader = open_rows(da.from_array(X, chunks=(chunks, 4)), *parts, None)
        found, count = reader.sample(500, rng)
        assert count == n == MANY
        assert_array_equal(distinct(found).X, distinct(expected).X)
        ours = rng
    assert ours.uniform() == theirs.uniform()


def test_a_partition_that_is_computed_again_draws_the_same(arrays):
    rows = next(ArrayReader(*arrays).read())
    rng = np.random.default_rng(3)
    first, again = (dask_tasks._candidates(rng, 50, rows) for _ in range(2))
    assert_array_equal(first[0].X, again[0].X)


def test_what_is_wrong_is_found_in_its_partition(here, frame):
    wrong = frame.drop(columns="w")
    wrong.loc[1234, "depth"] = np.nan
    model = RWFRegressor(**QUICK)
    with pytest.raises(ValueError, match=r"partition 2, row 234 .*, column 'depth': a missing"):
        model.fit(dd.from_pandas(wrong, npartitions=8), "y")
    X, y = (da.from_array(wrong[c].to_numpy(), chunks=500) for c in (NAMES, "y"))
    with pytest.raises(ValueError, match=r"partition 2, row 234 .*, column 2: a missing"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"partition \d, row 0 .*, target 0: infinity"):
        model.fit(da.ones((4000, 2), chunks=2000), da.full(4000, np.inf, chunks=2000))
    text = dd.from_pandas(frame.assign(age="old"), npartitions=3)
    with pytest.raises(ValueError, match=r"partition \d, X, column 'age' holds .* no number"):
        model.fit(text, "y")
    negative = dd.from_pandas(frame.assign(w=-1.0), npartitions=3)
    with pytest.raises(ValueError, match=r"partition \d, row 0 .* negative"):
        model.fit(negative, "y", "w")
    with pytest.raises(ValueError, match="weight zero"):
        model.fit(dd.from_pandas(frame.assign(w=0.0), npartitions=3), "y", "w")
    short = da.ones(4000, chunks=1000)[da.arange(4000, chunks=1000) > 5]
    with pytest.raises(ValueError, match=r"partition 0 has 1000 rows of X, y of shape \(994, 1\)"):
        model.fit(da.ones((4000, 2), chunks=(1000, 2)), short)


def test_what_cannot_be_fitted_is_refused_before_anything_is_computed(frame):
    X, y = da.ones((100, 2), chunks=(20, 2)), da.ones(100, chunks=20)
    spread = dd.from_pandas(frame, npartitions=3)
    model = RWFRegressor(**QUICK)
    for wrong, given, message in (
        (TypeError, (X, np.ones(100)), "from_array"),
        (TypeError, (X, None), "from_array"),
        (TypeError, (X, y, np.ones(100)), "sample_weight"),
        (TypeError, (y, y), r"shape \(n, d\)"),
        (TypeError, (spread["y"], y), "give a dataframe"),
        (ValueError, (X, y[:80]), "X has 100 rows and y has 80"),
        (ValueError, (spread[NAMES], y), "3 partitions and y has 5"),
        (ValueError, (X, "y"), "no column 'y'"),
        (ValueError, (spread, "z"), "no column 'z'"),
        (ValueError, (spread[["y"]], "y"), "no column beside"),
    ):
        with pytest.raises(wrong, match=message):
            model.fit(*given)


def test_no_rows_at_all(here):
    X, y = da.ones((0, 2), chunks=(10, 2)), da.ones(0, chunks=10)
    with pytest.raises(ValueError, match="no rows"):
        RWFRegressor(**QUICK).fit(X, y)
    fitted = RWFRegressor(**QUICK).fit(*series(100))
    with pytest.raises(ValueError, match="no rows"):
        fitted.partial_fit(X[:, :1], y)


def test_predictions_are_made_when_they_are_computed(here, arrays, local):
    X, _ = arrays
    spread = da.from_array(X, chunks=CHUNKS)
    for name in ("predict", "support", "predict_function", "predict_interval"):
        found, expected = getattr(local, name)(spread), getattr(local, name)(X)
        found, expected = (v if isinstance(v, tuple) else (v,) for v in (found, expected))
        for ours, theirs in zip(found, expected, strict=True):
            assert isinstance(ours, da.Array)
            assert ours.chunks[0] == PARTS
            assert_allclose(ours.compute(), theirs, rtol=1e-12)
    few = spread[:50]
    assert local.predict(few, return_cov=True)[1].shape == (50, 50)
    assert_allclose(local.sample_y(few, 2, 0), local.sample_y(X[:50], 2, 0), rtol=1e-12)
    broken = local.predict(da.where(spread > 3.0, np.nan, spread))
    with pytest.raises(ValueError, match=r"partition \d, row \d+ .*, column \d: a missing"):
        broken.compute()
    with pytest.raises(ValueError, match="expecting 4 features"):
        local.predict(spread[:, :3])


def test_further_rows_and_models_add(here, arrays, local):
    X, y = arrays
    spread, targets = da.from_array(X, chunks=CHUNKS), da.from_array(y, chunks=900)
    left = local.empty_copy().partial_fit(spread[:1500], targets[:1500])
    right = local.empty_copy().partial_fit(spread[1500:], targets[1500:])
    assert_same(left.merge(right), local, X)


def test_noise_that_varies_and_projected_weights_travel(here):
    X, y = series(MANY)
    y = y + (X[:, 0] > 3.5) * np.random.default_rng(8).normal(size=MANY)
    model = streamed({**QUICK, "prior": "nystrom", "noise": "heteroscedastic"}, X, y)
    spread = da.from_array(X, chunks=(1100, 1)), da.from_array(y, chunks=1100)
    ours = model.empty_copy().partial_fit(*spread).model_.base.statistics
    theirs = model.model_.base.statistics
    assert ours.log_volume == pytest.approx(theirs.log_volume, rel=1e-12)
    assert_allclose(ours.ZtZ, theirs.ZtZ, rtol=1e-12, atol=1e-12 * np.abs(theirs.ZtZ).max())


def test_error_bars_that_follow_errors_are_the_same_as_far_as_they_are_learned(here):
    X, y = series(MANY)
    y = y + (X[:, 0] > 3.5) * np.random.default_rng(8).normal(size=MANY)
    settings = {**QUICK, "prior": "nystrom", "noise": "constant"}
    expected = streamed(settings, X, y)
    assert max(expected.model_.densities[0].features.amplitudes[1:]) > 0
    spread = da.from_array(X, chunks=(1100, 1)), da.from_array(y, chunks=1100)
    found = RWFRegressor(**settings).fit(*spread)
    (mean, std), (mean_here, std_here) = (m.predict(X, return_std=True) for m in (found, expected))
    assert_allclose(mean, mean_here, rtol=1e-10, atol=1e-10)
    # The density is climbed until a step gains a hundredth of a nat, and last bits decide where.
    assert_allclose(std, std_here, rtol=2e-2)


def test_who_needs_all_rows_gathers_them_if_they_are_few_enough(here, monkeypatch):
    X, y = series(300)
    spread = da.from_array(X, chunks=(70, 1)), da.from_array(y, chunks=70)
    settings = {**QUICK, "prior": "multiscale", "neighbors": 16}
    found = RWFRegressor(**settings).fit(*spread)
    assert_array_equal(found.predict(X), RWFRegressor(**settings).fit(X, y).predict(X))
    monkeypatch.setattr(base, "IN_MEMORY", 3 * 8 * 100)
    with pytest.raises(ValueError, match=r"needs all rows in memory.* 100 that make"):
        RWFRegressor(**settings).fit(*spread)


def test_a_checkpoint_keeps_complete_sums(here, arrays, local, monkeypatch, tmp_path):
    X, y = arrays
    given = da.from_array(X, chunks=CHUNKS), da.from_array(y, chunks=900)
    path = tmp_path / "fit.checkpoint"
    monkeypatch.setattr("rwf.persistence.checkpoint.SECONDS", 0.0)
    monkeypatch.setattr("rwf.persistence.checkpoint.SHARE", 1e9)
    with monkeypatch.context() as broken:
        broken.setattr(fitting, "report_on", None)
        with pytest.raises(TypeError):
            RWFRegressor(**QUICK).fit(*given, checkpoint=path)
    with monkeypatch.context() as gone:
        gone.setattr(dask_tasks, "_tree", None)
        model = RWFRegressor(**QUICK).fit(*given, checkpoint=path)
    assert_same(model, local, X)
    assert not path.exists()


def test_rows_that_are_elsewhere_are_not_counted_before_they_must_be(frame):
    reader = open_rows(dd.from_pandas(frame, npartitions=3), "y", None, None)
    assert isinstance(reader, DaskReader)
    assert reader.n_rows is None
    assert open_rows(da.ones((9, 2)), da.ones(9), None, None).n_rows == 9


def test_a_task_keeps_to_its_thread():
    with one_thread():
        assert cores() == 1
        assert in_parallel(lambda job: job + cores(), range(3)) == [1, 2, 3]
    assert cores() == len(os.sched_getaffinity(0))


WITHOUT = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
import numpy as np
from rwf import RWFRegressor
X = np.linspace(2, 5, 40)[:, None]
quick = {"n_components": 10, "prior": "random_features", "max_iter": 1, "n_restarts": 0}
model = RWFRegressor(**quick).fit(X, np.sin(X[:, 0]))
model.partial_fit(lambda: iter([(X, np.sin(X[:, 0]))]))
model.predict(X, return_std=True)
"""


def test_without_dask_all_else_works():
    subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT], check=True)


NO_CLUSTER = """
import sys
import dask.array as da
import numpy as np
from rwf import RWFRegressor
rng = np.random.default_rng(3)
X = rng.normal(3.0, 2.0, (9000, 5))
y = X[:, 0] + rng.normal(size=9000)
quick = {"prior": "random_features", "max_iter": 1, "n_restarts": 0, "random_state": 0}
assert "distributed" not in sys.modules
RWFRegressor(50, **quick).fit(da.from_array(X, chunks=(1000, 5)), da.from_array(y, chunks=1000))
"""


def test_dask_arrays_need_no_cluster():
    subprocess.run([sys.executable, "-W", "ignore", "-c", NO_CLUSTER], check=True)
