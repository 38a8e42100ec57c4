"""Files, memory maps, dataframes and functions that give the same rows give one model."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare

from rwf import RWFRegressor
from rwf.data import progress, stream
from rwf.data.progress import ProgressMeter
from rwf.data.readers import (
    ArrayReader,
    BlockReader,
    TableReader,
    base,
    csv,
    open_inputs,
    open_rows,
)
from rwf.data.rows import Block, RowSum, distinct, resized, sample
from rwf.data.stream import Stream

QUICK = {
    "n_components": 30,
    "prior": "random_features",
    "max_iter": 2,
    "n_restarts": 0,
    "random_state": 0,
}
MANY = 4000
"""Rows that are more than the sample of a quick model."""

NAMES = ["height", "width", "depth", "age"]


def make(n: int, seed: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (n, 4))
    y = 5.0 + np.sin(X[:, 0]) + 0.1 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return pd.DataFrame({**dict(zip(NAMES, X.T, strict=True)), "y": y})


def parquet(frame, path, rows=300):
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=rows)
    return path


@pytest.fixture(scope="module")
def frame():
    return make(MANY)


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    path = parquet(frame, tmp_path_factory.mktemp("rows") / "rows.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "SMALL", 0)
        return RWFRegressor(**QUICK).fit(path, "y")


@pytest.fixture
def streaming(monkeypatch):
    """No file is small enough to be read into memory."""
    monkeypatch.setattr(base, "SMALL", 0)


def memmap(values, path, dtype):
    mapped = np.memmap(path, dtype=dtype, mode="w+", shape=values.shape)
    mapped[:] = values
    return mapped


def as_folder(frame, home):
    for index, start in enumerate(range(0, len(frame), 900)):
        parquet(frame.iloc[start : start + 900], home / f"part-{index}.parquet", 250)
    (home / "_metadata.parquet").write_bytes(b"another program's notes")
    return home


def sources(frame, home):
    """Every way to give the same rows, as arguments of fit."""
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    (home / "folder").mkdir()
    folder = as_folder(frame, home / "folder")
    frame.to_csv(home / "rows.csv", index=False)
    frame.to_csv(home / "rows.csv.gz", index=False)

    def blocks():
        return ((X[i : i + 333], y[i : i + 333]) for i in range(0, len(X), 333))

    class Loader:
        def __iter__(self):
            return iter(blocks())

    return {
        "one row group": (parquet(frame, home / "one.parquet", 10**6), "y"),
        "as text": (str(home / "one.parquet"), "y"),
        "csv": (home / "rows.csv", "y"),
        "compressed csv": (home / "rows.csv.gz", "y"),
        "folder": (folder, "y"),
        "pattern": (str(folder / "part-*.parquet"), "y"),
        "memory map": (memmap(X, home / "X", "float64"), memmap(y, home / "y", "float64")),
        "memory map and array": (memmap(X, home / "X2", "float64"), y),
        "function": (blocks,),
        "object": (Loader(),),
        "list": (list(blocks()),),
    }


def test_all_sources_stream_to_the_same_model_to_the_last_bit(frame, model, streaming, tmp_path):
    for name, given in sources(frame, tmp_path).items():
        other = RWFRegressor(**QUICK).fit(*given)
        for part in ("ZtZ", "Zty", "yty"):
            ours, theirs = (getattr(m.model_.base.statistics, part) for m in (other, model))
            assert_array_equal(ours, theirs, err_msg=name)
        assert other.fit_report_.n_rows == MANY


def test_statistics_of_streamed_rows_are_those_of_rows_in_memory(frame, model):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    again = model.empty_copy().partial_fit(X, y)
    for part in ("ZtZ", "Zty", "yty"):
        ours, theirs = (getattr(m.model_.base.statistics, part) for m in (again, model))
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())


def test_few_rows_are_fitted_in_memory_with_the_very_same_numbers(tmp_path):
    few = make(300)
    whole = RWFRegressor(**QUICK).fit(few[NAMES].to_numpy(), few["y"].to_numpy())
    expected = whole.predict(few[NAMES].to_numpy(), return_std=True)
    for given in sources(few, tmp_path).values():
        found = RWFRegressor(**QUICK).fit(*given).predict(few[NAMES].to_numpy(), return_std=True)
        assert_array_equal(found, expected)


def test_a_map_in_single_precision_is_the_map_of_its_values_in_double(frame, tmp_path):
    X, y = frame[NAMES].to_numpy().astype("float32"), frame["y"].to_numpy()
    single = RWFRegressor(**QUICK).fit(memmap(X, tmp_path / "X", "float32"), y)
    double = RWFRegressor(**QUICK).fit(memmap(X.astype(float), tmp_path / "X8", "float64"), y)
    assert_array_equal(single.model_.base.statistics.ZtZ, double.model_.base.statistics.ZtZ)


def test_weights_stream_as_well(frame, streaming, tmp_path):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    w = np.random.default_rng(1).integers(0, 4, MANY) * 1.0
    path = parquet(frame.assign(w=w), tmp_path / "rows.parquet")

    def blocks():
        return ((X[i : i + 500], y[i : i + 500], w[i : i + 500]) for i in range(0, MANY, 500))

    named = RWFRegressor(**QUICK).fit(path, "y", sample_weight="w")
    own = RWFRegressor(**QUICK).fit(blocks)
    mapped = RWFRegressor(**QUICK).fit(memmap(X, tmp_path / "X", "float64"), y, w)
    assert list(named.feature_names_in_) == NAMES
    assert named.model_.n_rows == w.sum()
    for other in (own, mapped):
        assert_array_equal(other.model_.base.statistics.ZtZ, named.model_.base.statistics.ZtZ)


def test_several_targets_by_name(frame, tmp_path):
    both = frame.assign(z=frame["y"] ** 2)
    path = parquet(both, tmp_path / "rows.parquet")
    model = RWFRegressor(**QUICK).fit(path, ["z", "y"])
    assert list(model.feature_names_in_) == NAMES
    assert model.predict(path).shape == (MANY, 2)
    assert RWFRegressor(**QUICK).fit(path, ["y"]).predict(path).shape == (MANY, 2 - 1)
    error = np.abs(model.predict(path) - both[["z", "y"]].to_numpy()).mean(axis=0)
    assert (error < both[["z", "y"]].std().to_numpy()).all()


def frames(frame):
    polars = pytest.importorskip("polars")
    return {"pandas": frame, "polars": polars.DataFrame(frame.to_dict("list"))}


def test_columns_of_dataframes_are_taken_by_name(frame):
    few = frame[:300]
    X = few[NAMES]
    whole = RWFRegressor(**QUICK).fit(X, few["y"].to_numpy())
    for name, given in frames(few).items():
        model = RWFRegressor(**QUICK).fit(given, "y")
        assert list(model.feature_names_in_) == NAMES
        assert_array_equal(model.predict(given), whole.predict(X), err_msg=name)
        shuffled = given[["age", "y", "depth", "width", "height"]]
        mean = model.predict(shuffled)
        assert_array_equal(mean, whole.predict(X))
        assert type(mean) is np.ndarray
        with pytest.raises(ValueError, match="no column 'width', 'age'"):
            model.predict(given[["height", "depth"]])
        with pytest.raises(ValueError, match="no column 'z'"):
            RWFRegressor(**QUICK).fit(given, "z")


def test_a_column_of_a_dataframe_may_hold_weights(frame):
    for given in frames(frame[:300].assign(w=2.0)).values():
        model = RWFRegressor(**QUICK).fit(given, "y", sample_weight="w")
        assert list(model.feature_names_in_) == NAMES
        assert model.model_.n_rows == 600


def test_text_in_a_dataframe_is_named(frame):
    for given in frames(frame[:300].assign(city="Basel")).values():
        with pytest.raises(ValueError, match="'city'"):
            RWFRegressor(**QUICK).fit(given, "y")
        with pytest.raises(ValueError, match="'city'"):
            RWFRegressor(**QUICK).fit(given, "city")


def test_dataframes_without_names_of_targets_keep_the_rules_of_scikit_learn(frame):
    few = frame[:300]
    model = RWFRegressor(**QUICK).fit(few[NAMES], few["y"])
    with pytest.raises(ValueError, match="order"):
        model.predict(few[NAMES[::-1]])


def test_predictions_stream_by_name_in_any_order(frame, model, tmp_path):
    X = frame[NAMES].to_numpy()
    expected = model.predict(X, return_std=True)
    without = parquet(frame[NAMES[::-1]], tmp_path / "other.parquet")
    with_target = tmp_path / "rows.csv"
    frame[["y", *NAMES[::-1]]].to_csv(with_target, index=False)
    inputs = [
        without,
        with_target,
        frame[NAMES[::-1]],
        memmap(X, tmp_path / "X", "float64"),
        lambda: (X[i : i + 999] for i in range(0, MANY, 999)),
    ]
    for given in inputs:
        for ours, theirs in zip(model.predict(given, return_std=True), expected, strict=True):
            assert_allclose(ours, theirs, rtol=1e-11)
            assert type(ours) is np.ndarray
    assert_allclose(model.predict(without), expected[0], rtol=1e-11)
    assert_allclose(model.predict_function(without)[0], expected[0], rtol=1e-11)
    low, high = model.predict_interval(without)
    assert (low < high).all()
    assert model.sample_y(without, 2, 0).shape == (MANY, 2)
    assert_allclose(model.support(without), model.support(X), rtol=1e-11)


def test_partial_fit_takes_all_sources(frame, model, tmp_path):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    expected = model.empty_copy().partial_fit(X, y).model_.base.statistics.ZtZ
    path = parquet(frame[["y", *NAMES[::-1]]], tmp_path / "rows.parquet")
    given = [
        (path, "y"),
        (frame, "y"),
        (memmap(X, tmp_path / "X", "float64"), y),
        (lambda: iter([(X[:100], y[:100]), (X[100:], y[100:])]),),
    ]
    for rows in given:
        found = model.empty_copy().partial_fit(*rows).model_.base.statistics.ZtZ
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    with pytest.raises(ValueError, match="same outputs"):
        model.empty_copy().partial_fit(path, ["y"])
    with pytest.raises(ValueError, match="is expecting 4 features"):
        model.empty_copy().partial_fit(lambda: iter([(X[:, :2], y)]))


def test_an_error_in_the_middle_of_partial_fit_leaves_the_model_as_it_was(frame, model):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy().copy()
    y[3333] = np.inf
    before = model.model_
    with pytest.raises(ValueError, match="block 3, row 333, target 0: infinity"):
        model.partial_fit(
            lambda: ((X[i : i + 1000], y[i : i + 1000]) for i in range(0, MANY, 1000))
        )
    assert model.model_ is before


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("small", [0, base.SMALL])
def test_what_is_missing_is_named_by_file_column_and_row(frame, tmp_path, kind, small, monkeypatch):
    monkeypatch.setattr(base, "SMALL", small)
    (tmp_path / "rows").mkdir()
    bad = frame.copy()
    bad.loc[2517, "depth"] = np.nan
    for index in range(4):
        part = bad[1000 * index : 1000 * (index + 1)]
        path = tmp_path / "rows" / f"{index}.{kind}"
        parquet(part, path) if kind == "parquet" else part.to_csv(path, index=False)
    with pytest.raises(ValueError, match=rf"2\.{kind}, row 517 .*'depth': a missing value or NaN"):
        RWFRegressor(**QUICK).fit(tmp_path / "rows", "y")
    bad["depth"] = frame["depth"]
    bad.loc[1, "y"] = np.inf
    path = parquet(bad, tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"row 1 .*'y': infinity"):
        RWFRegressor(**QUICK).fit(path, "y")
    with pytest.raises(ValueError, match=r"row 1 .*weight: infinity"):
        RWFRegressor(**QUICK).fit(path, "age", sample_weight="y")
    path = parquet(frame, tmp_path / "fine.parquet")
    with pytest.raises(ValueError, match=r"weight .* is negative"):
        RWFRegressor(**QUICK).fit(path, "y", sample_weight="height")


def test_a_memory_map_with_nan_names_the_row(frame, tmp_path):
    X = frame[NAMES].to_numpy().copy()
    X[3210, 2] = np.nan
    with pytest.raises(ValueError, match="row 3210, column 2"):
        RWFRegressor(**QUICK).fit(memmap(X, tmp_path / "X", "float64"), frame["y"].to_numpy())


def test_columns_that_are_no_numbers_are_named(frame, tmp_path):
    text = parquet(frame.assign(city="Basel"), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"'city' of .*text\.parquet holds .*string"):
        RWFRegressor(**QUICK).fit(text, "y")
    category = frame.assign(city=pd.Categorical(["a", "b"] * (MANY // 2)))
    with pytest.raises(ValueError, match=r"'city'.*dictionary"):
        RWFRegressor(**QUICK).fit(parquet(category, tmp_path / "category.parquet"), "y")
    frame.assign(city="Basel").to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(ValueError, match=r"'city' of .*text\.csv"):
        RWFRegressor(**QUICK).fit(tmp_path / "text.csv", "y")


def test_text_that_begins_late_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "CSV_BYTES", 1000)
    lines = [f"{i},{i % 7}" for i in range(500)]
    lines[400] = "400.5,seven"
    (tmp_path / "rows.csv").write_text("\n".join(["a,y", *lines]))
    with pytest.raises(ValueError, match=r"rows\.csv, after row \d+: .*seven"):
        RWFRegressor(**QUICK).fit(tmp_path / "rows.csv", "y")
    lines[400] = "400.5,7"
    (tmp_path / "rows.csv").write_text("\n".join(["a,y", *lines]))
    rows = TableReader.of(str(tmp_path / "rows.csv"), ["y"]).read_all()
    assert rows.X[400, 0] == 400.5  # although the column begins with whole numbers


def test_numbers_of_all_kinds_are_read(tmp_path):
    from decimal import Decimal

    table = pa.table(
        {
            "small": pa.array([1, 2, 3], pa.int8()),
            "truth": pa.array([True, False, True]),
            "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "money": pa.array([Decimal("1.25"), Decimal("2.5"), Decimal("3.75")]),
            "y": pa.array([2**60, 1, 2], pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = TableReader.of(str(tmp_path / "rows.parquet"), ["y"]).read_all()
    assert_array_equal(rows.X, [[1, 1, 0.5, 1.25], [2, 0, 1.5, 2.5], [3, 1, 2.5, 3.75]])
    assert_array_equal(rows.y[:, 0], [2.0**60, 1, 2])


def test_what_cannot_be_read_is_refused_with_advice(frame, model, tmp_path):
    fit = RWFRegressor(**QUICK).fit
    path = parquet(frame, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"no column 'z'.*'height'"):
        fit(path, "z")
    with pytest.raises(ValueError, match="needs the name of the target's column"):
        fit(path)
    with pytest.raises(ValueError, match="needs the name of the target's column"):
        fit(path, np.zeros(3))
    with pytest.raises(ValueError, match="sample_weight is the name"):
        fit(path, "y", np.ones(MANY))
    with pytest.raises(FileNotFoundError, match="matches none"):
        fit(tmp_path / "absent*.parquet", "y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no files"):
        fit(tmp_path / "empty", "y")
    (tmp_path / "rows.xlsx").write_bytes(b"")
    with pytest.raises(ValueError, match="end of its name"):
        fit(tmp_path / "rows.xlsx", "y")
    with pytest.raises(ValueError, match="no column beside"):
        fit(parquet(frame[["y"]], tmp_path / "y.parquet"), "y")
    with pytest.raises(ValueError, match="no column 'age'"):
        model.predict(parquet(frame[NAMES[:3]], tmp_path / "less.parquet"))
    with pytest.raises(ValueError, match="columns without names"):
        RWFRegressor(**QUICK).fit(frame[NAMES].to_numpy()[:200], frame["y"][:200]).predict(path)


def test_empty_tables_are_refused(frame, model, tmp_path):
    (tmp_path / "nothing.csv").write_text("")
    with pytest.raises(ValueError, match=r"nothing\.csv is no CSV file"):
        RWFRegressor(**QUICK).fit(tmp_path / "nothing.csv", "y")
    (tmp_path / "nothing.parquet").write_text("")
    with pytest.raises(ValueError, match=r"nothing\.parquet is no Parquet file"):
        RWFRegressor(**QUICK).fit(tmp_path / "nothing.parquet", "y")
    frame[:0].to_csv(tmp_path / "header.csv", index=False)
    empty = parquet(frame[:0], tmp_path / "header.parquet")
    for path in (empty, tmp_path / "header.csv"):
        with pytest.raises(ValueError, match="no rows"):
            RWFRegressor(**QUICK).fit(path, "y")
        with pytest.raises(ValueError, match="no rows"):
            model.predict(path)
    with pytest.raises(ValueError, match="not a single block"):
        RWFRegressor(**QUICK).fit(lambda: iter(()))


def test_what_can_be_read_only_once_is_refused(frame):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    generator = ((X, y) for _ in range(1))
    with pytest.raises(TypeError, match=r"generator .* only once.*give a function"):
        RWFRegressor(**QUICK).fit(generator)
    once = iter([(X[:2000], y[:2000]), (X[2000:], y[2000:])])
    with pytest.raises(TypeError, match=r"list_iterator of this function .* only once"):
        RWFRegressor(**QUICK).fit(lambda: once)
    shared = ((X[i : i + 10], y[i : i + 10]) for i in range(0, MANY, 10))
    with pytest.raises(ValueError, match="rows when it was first read, and now 0"):
        RWFRegressor(**QUICK).fit(lambda: (block for block in shared))


def test_blocks_of_other_shapes_are_refused(frame):
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    fit = RWFRegressor(**QUICK).fit
    with pytest.raises(ValueError, match="block 1 has X of shape"):
        fit(lambda: iter([(X, y), (X[:, :3], y)]))
    with pytest.raises(ValueError, match="block 0 has X of shape"):
        fit(lambda: iter([(X, y[:-1])]))
    with pytest.raises(ValueError, match="block 0 has X of shape"):
        fit(lambda: iter([(X[0], y)]))
    with pytest.raises(TypeError, match=r"not a tuple \(X, y\)"):
        fit(lambda: iter([X]))
    with pytest.raises(ValueError, match="X of block 0 holds something that is no number"):
        fit(lambda: iter([(np.array([["a"]]), y[:1])]))
    with pytest.raises(ValueError, match="bring their own weights"):
        fit(lambda: iter([(X, y)]), sample_weight=y)


def test_rows_can_be_read_from_anywhere_on(frame, tmp_path):
    as_folder(frame, tmp_path)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    X, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    readers = [
        TableReader.of(str(tmp_path / "part-*.parquet"), ["y"]),
        TableReader.of(str(tmp_path / "rows.csv"), ["y"]),
        ArrayReader(X, y),
        BlockReader.of(
            lambda: ((X[i : i + 70], y[i : i + 70]) for i in range(0, MANY, 70)), targets=True
        ),
    ]
    for reader in readers:
        for start in (0, 1, 250, 899, 900, 2345, MANY - 1):
            rows = np.vstack([piece.X for piece in reader.read(start)])
            assert_array_equal(rows, X[start:])
        assert list(reader.read(MANY)) == []
    assert [reader.n_rows for reader in readers] == [MANY, None, MANY, None]


def test_resized_blocks_hold_every_row_once_in_order(rng):
    X = rng.normal(size=(1000, 2))
    cuts = np.sort(rng.integers(0, 1000, 17))
    pieces = [Block(x, x[:, :1], np.ones(len(x))) for x in np.split(X, cuts)]
    for size in (1, 7, 100, 999, 1000, 5000):
        blocks = list(resized(pieces, size))
        assert_array_equal(np.vstack([block.X for block in blocks]), X)
        assert {len(block) for block in blocks[:-1]} <= {size}
        assert 0 < len(blocks[-1]) <= size


def tiny(weights, piece=3):
    X = np.arange(len(weights), dtype=float)[:, None]
    rows = [
        (X[i : i + piece], X[i : i + piece], weights[i : i + piece])
        for i in range(0, len(X), piece)
    ]
    return BlockReader.of(rows, targets=True)


def test_every_row_is_drawn_equally_often():
    counts = np.zeros(12)
    for seed in range(3000):
        rows, n = tiny(np.ones(12)).sample(4, np.random.default_rng(seed))
        counts[rows.X[:, 0].astype(int)] += 1
        assert (len(rows), n) == (4, 12)
    # Counts of a draw without replacement vary less than a multinomial's by (12 - 4)/(12 - 1).
    assert chisquare(counts).statistic * 11 / 8 < 35  # p of 2e-4 for 11 degrees of freedom


def test_the_sample_is_that_of_rows_in_memory(rng):
    weights = rng.integers(0, 5, 500).astype(float)
    X = np.arange(500.0)[:, None]
    expected = sample(Block(X, X, weights), 60, np.random.default_rng(3))
    drawn, _ = tiny(weights, 41).sample(60, np.random.default_rng(3))
    assert_array_equal(distinct(drawn).X, expected.X)
    everything, _ = tiny(weights, 41).sample(500, np.random.default_rng(3))
    assert_array_equal(everything.weights, weights)


def test_rows_of_no_weight_are_not_drawn(rng):
    weights = np.r_[np.zeros(90), np.ones(10)]
    rows, n = tiny(weights).sample(30, rng)
    assert n == 100
    assert rows.X.min() == 90
    for read in (lambda rows: rows.sample(30, rng), lambda rows: rows.read_all()):
        with pytest.raises(ValueError, match="weight zero"):
            read(tiny(np.zeros(90)))


def counting(size, workers, failing=False):
    """A sum that lists rows by the thread that gathered them."""

    def gather(blocks):
        found = [block.X[:, 0] for block in blocks]
        if failing and found:
            raise ArithmeticError("a worker fails")
        return [np.concatenate(found) if found else np.empty(0)]

    return RowSum("rows", size, gather, lambda a, b: a + b, lambda a: {}, lambda a: [], workers)


def test_blocks_are_dealt_in_turn_and_added_in_order(monkeypatch):
    monkeypatch.setattr(stream, "SEGMENT", 4)
    first, second, third, fourth = tiny(np.ones(23)).sum(counting(3, 2))
    assert_array_equal(first, [0, 1, 2, 6, 7, 8])
    assert_array_equal(second, [3, 4, 5, 9, 10, 11])
    assert_array_equal(third, [12, 13, 14, 18, 19, 20])
    assert_array_equal(fourth, [15, 16, 17, 21, 22])
    assert_array_equal(
        np.concatenate(Stream(tiny(np.ones(24)), 24).total(counting(3, 1))), np.arange(24)
    )


def test_threads_end_when_something_fails(frame):
    X = np.arange(4000.0)[:, None]
    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="a worker fails"):
        ArrayReader(X, X).sum(counting(256, 2, failing=True))
    X[3999] = np.nan
    with pytest.raises(ValueError, match="row 3999"):
        ArrayReader(X, X).sum(counting(256, 2))
    assert threading.active_count() == before


def test_a_source_that_changes_is_noticed():
    with pytest.raises(ValueError, match=r"had 25 rows .* now 24"):
        Stream(tiny(np.ones(24)), 25).total(counting(3, 2))


def test_progress_tells_rows_speed_and_time_left(monkeypatch, frame, streaming, tmp_path, capsys):
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.0)
    lines = []
    ProgressMeter("pass", 2000, lines.append).reached(500)
    assert "500 rows of 2,000" in lines[0]
    assert "rows/s" in lines[0]
    assert "left" in lines[0]
    path = parquet(frame, tmp_path / "rows.parquet")
    RWFRegressor(**QUICK, verbose=1).fit(path, "y")
    told = capsys.readouterr().err
    assert "first pass: 4,000 rows" in told
    assert "rows/s" in told


def test_the_tree_takes_streams(monkeypatch, streaming, tmp_path):
    from rwf.fit import pipeline as fitting

    monkeypatch.setattr(fitting, "STREAM_SAMPLE", 3000)
    rng = np.random.default_rng(2)
    n = 21_000
    x = rng.uniform(2.0, 5.0, n)
    frame = pd.DataFrame({"x": x, "y": 4.0 + np.sin(8 * x) + 0.1 * rng.normal(size=n)})
    path = parquet(frame, tmp_path / "rows.parquet", 5000)
    settings = {"n_components": None, "prior": "auto", "noise": "constant", "calibration": "global"}
    model = RWFRegressor(**{**QUICK, **settings}).fit(path, "y")
    assert model.fit_report_.solver.startswith("multifrontal: 21000 rows")
    again = model.empty_copy().partial_fit(frame[["x"]], frame["y"])
    for part in ("grams", "Zty", "yty"):
        ours, theirs = (getattr(m.model_.base.statistics, part) for m in (model, again))
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
    truth = 4.0 + np.sin(8 * x)
    assert np.sqrt(np.mean((model.predict(path) - truth) ** 2)) < 0.03


def test_noise_that_varies_is_learned_from_streams(streaming, tmp_path):
    rng = np.random.default_rng(2)
    x = rng.uniform(2.0, 5.0, MANY)
    noise = np.where(x < 3.5, 0.05, 0.5)
    frame = pd.DataFrame({"x": x, "y": np.sin(x) + noise * rng.normal(size=MANY)})
    path = parquet(frame, tmp_path / "rows.parquet")
    model = RWFRegressor(**{**QUICK, "prior": "multiscale"}, noise="heteroscedastic").fit(path, "y")
    assert model.fit_report_.n_rows == MANY
    std = model.predict(np.array([[2.5], [4.5]]), return_std=True)[1]
    assert std[1] > 4 * std[0]


def test_models_that_need_all_rows_read_them_if_they_are_few_enough(
    monkeypatch, streaming, tmp_path
):
    rng = np.random.default_rng(2)
    x = rng.uniform(2.0, 5.0, 300)
    frame = pd.DataFrame({"x": x, "y": np.sin(x) + 0.1 * rng.normal(size=300)})
    path = parquet(frame, tmp_path / "rows.parquet")
    settings = {**QUICK, "prior": "multiscale", "neighbors": 16}
    streamed = RWFRegressor(**settings).fit(path, "y")
    whole = RWFRegressor(**settings).fit(frame, "y")
    assert_array_equal(streamed.predict(path), whole.predict(frame))
    monkeypatch.setattr(base, "IN_MEMORY", 3 * 8 * 100)
    for extra in ({"neighbors": 16}, {"prior": "spike_slab", "n_components": None}):
        with pytest.raises(ValueError, match=r"needs all rows in memory.* 100 that make"):
            RWFRegressor(**{**QUICK, **extra}).fit(path, "y")


def test_arrays_and_dataframes_need_no_reader(frame):
    X, y = frame[NAMES], frame["y"]
    for given in (X, X.to_numpy(), X.to_numpy().tolist()):
        assert open_rows(given, y, None, None) is None
        assert open_inputs(given, NAMES) is None


MEASURE = """
import json, resource, sys
import numpy as np
from rwf import RWFRegressor
from rwf.data import stream

stream.BLOCK_BYTES = 2**20  # so that few rows, too, are many blocks for all workers

def blocks():
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X = rng.normal(3, 2, (20_000, 8))
        yield X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))

quick = {"max_iter": 2, "n_restarts": 0, "random_state": 0}
most = []
for count in map(int, sys.argv[1:]):
    model = RWFRegressor(20, prior="random_features", **quick).fit(blocks)
    assert model.fit_report_.n_rows == 20_000 * count
    most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(json.dumps(most))
"""


def test_memory_does_not_grow_with_the_number_of_rows():
    run = [sys.executable, "-c", MEASURE, "10", "50"]
    few, many = json.loads(subprocess.run(run, capture_output=True, check=True).stdout)
    # 800 000 more rows of 80 bytes are 64 MB.
    assert many < few + 25


class Raster:
    """As an array of xarray: it has a graph only if what it holds is Dask's."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)

    def __len__(self):
        return len(self.values)

    def __dask_graph__(self):
        return None


def test_containers_without_a_graph_are_arrays(rng):
    X = rng.normal(3.0, 2.0, (60, 4))
    y = np.sin(X[:, 0])
    quick = {"max_iter": 2, "n_restarts": 0, "random_state": 0}
    model = RWFRegressor(20, **quick).fit(Raster(X), Raster(y))
    assert_array_equal(model.predict(Raster(X)), RWFRegressor(20, **quick).fit(X, y).predict(X))
