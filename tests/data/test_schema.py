"""Tables with columns of all kinds: what is learned of them, their encoding, their folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf.data.readers import csv, open_table
from rwf.data.rows import Block
from rwf.data.schema import (
    CategoryColumn,
    DateColumn,
    EncodedReader,
    NumberColumn,
    Roles,
    TableSchema,
    TargetEncodedColumn,
    counts,
    dealt,
    first_copies,
    learn_schema,
    rows_of_fold,
    with_targets,
)
from rwf.data.writers import write_columns
from rwf.errors import NoSuchColumnError, UnknownCategoryWarning
from rwf.persistence.checks import check
from rwf.persistence.registry import Mismatch

SCHEMA = TableSchema(
    (CategoryColumn("town", "string", ("Bern", "Chur"), "Bern"), NumberColumn("area", "double")),
    "price",
)


def frame(n=6):
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "area": rng.uniform(3, 9, n),
            "town": np.array(["Chur", "Bern"])[np.arange(n) % 2],
            "sold": np.arange(n) % 3 == 0,
            "price": rng.normal(5, 2, n),
        }
    )


def learned(table, *features, **options):
    roles = {name: options.pop(name) for name in ("weight", "categorical") if name in options}
    found, _ = learn_schema(
        open_table(table), Roles("price", features=features or None, **roles), **options
    )
    return found


def encoded(table, schema=SCHEMA, **options):
    reader = EncodedReader.of(open_table(table), schema, targets=False, **options)
    return np.concatenate([block.X for block in reader.read()])


def test_categories_are_one_hot_encoded_in_the_order_of_the_schema():
    rows = frame()
    expected = np.column_stack([rows.town == "Bern", rows.town == "Chur", rows.area])
    assert_array_equal(encoded(rows), expected)
    assert SCHEMA.names == ("town=Bern", "town=Chur", "area")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "dictionary"])
def test_files_give_what_dataframes_give(tmp_path, kind):
    path = tmp_path / f"rows.{kind.replace('dictionary', 'parquet')}"
    if "csv" in kind:
        frame().to_csv(path, index=False)
    else:
        rows = frame().astype({"town": "category"}) if kind == "dictionary" else frame()
        rows.to_parquet(path)
    assert_allclose(encoded(path), encoded(frame()), rtol=1e-15)
    schema = learned(path, "town", "area", "sold").schema
    assert schema.names == ("town=Bern", "town=Chur", "area", "sold")
    assert_array_equal(encoded(path, schema)[:, 3], frame().sold)


def test_dataframes_of_other_libraries_are_tables():
    polars = pytest.importorskip("polars")
    assert_array_equal(encoded(polars.from_pandas(frame())), encoded(frame()))
    table = pa.Table.from_pandas(frame())
    assert_array_equal(encoded(table), encoded(frame()))
    assert_array_equal(encoded(table.to_batches()[0]), encoded(frame()))


class Dataset:
    """As that of xarray."""

    def to_dataframe(self):
        raise AssertionError("not called")


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="give a path, or a dataframe of pandas, polars or pyarrow"):
        open_table(np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"give X.to_dataframe\(\).reset_index\(\)"):
        open_table(Dataset())


def test_all_files_of_a_folder_teach_categories(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().assign(town="Visp").to_csv(tmp_path / "b.csv", index=False)
    assert learned(tmp_path, "town").schema.columns[0].categories == ("Bern", "Chur", "Visp")
    frame().assign(town=3.5).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="should hold text"):
        learned(tmp_path, "town")


@pytest.mark.parametrize("n", [6, 1000])
def test_gaps_are_filled_by_what_was_learned_and_marked_where_there_are_many(n):
    rows = frame(n)
    rows.loc[0, "area"] = np.nan
    rows.loc[[1, 2], "town"] = [None, ""]
    schema = learned(rows, "town", "area").schema
    town, area = schema.columns
    assert (town.fill, town.gaps, area.gaps) == (frame(n).town[3:].mode()[0], 2, 1)
    assert area.fill == pytest.approx(rows.area.median())
    found, marked = encoded(rows, schema), n == 6
    assert found.shape[1] == 3 + 2 * marked
    assert (town.indicated, area.indicated) == (marked, marked)
    assert found[0, 2 + marked] == area.fill
    if marked:
        assert schema.names[2::2] == ("town is missing", "area is missing")
        assert_array_equal(found[:, 2], [0, 1, 1, 0, 0, 0])
        assert_array_equal(found[:, 4], [1, 0, 0, 0, 0, 0])
        assert_array_equal(found[1:3, :2], np.zeros((2, 2)))
    else:
        assert_array_equal(found[1:3, :2] == 1, [[c == town.fill for c in town.categories]] * 2)
    with pytest.raises(ValueError, match=r"row 1 .*column 'town': a missing value.*strict"):
        encoded(rows, schema, strict=True)


def test_medians_of_many_rows_are_those_of_a_sample(monkeypatch, rng):
    monkeypatch.setattr(counts, "SAMPLE_ROWS", 400)
    sample = counts.Sample(1)
    for _ in range(20):
        sample.add(rng.normal(7.0, 1.0, (300, 1)))
    assert len(sample.rows) == 400
    # 1.2533/√400 is the standard error of the median
    assert abs(np.median(sample.rows) - 7.0) < 5 * 1.2533 / 20


def test_categories_that_are_new():
    rows = frame()
    rows.loc[4, "town"] = "Visp"
    with pytest.raises(ValueError, match=r"row 4 .*'Visp' was not among.*'Bern', 'Chur'"):
        encoded(rows, strict=True)
    with pytest.warns(UnknownCategoryWarning, match="encoded as zeros"):
        found = encoded(rows)
    assert_array_equal(found[4, :2], [0, 0])


@pytest.mark.parametrize("dtype", ["category", "int64"])
def test_numbers_are_categories_where_they_are_declared(dtype):
    rows = frame(60).assign(zone=np.arange(60) % 4 * 100).astype({"zone": dtype})
    declared = ["zone"] if dtype == "int64" else []
    schema = learned(rows, "area", "zone", categorical=declared).schema
    assert schema.names == ("area", "zone=0", "zone=100", "zone=200", "zone=300")
    expected = np.arange(60)[:, None] % 4 == np.arange(4)
    for same in (rows, rows.astype({"zone": "int32"}), rows.astype({"zone": "float64"})):
        if dtype == "int64":
            assert_array_equal(encoded(same, schema)[:, 1:], expected)
    assert_array_equal(encoded(rows, schema)[:, 1:], expected)


DAYS = pd.date_range("2019-03-01 06:00", periods=900, freq="17h")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_are_days_whatever_their_unit(unit, tmp_path):
    rows = frame(900).assign(when=DAYS.as_unit(unit))
    expected = (DAYS - pd.Timestamp(0)) / pd.Timedelta(days=1)
    for same in (rows, rows.astype({"when": str}), rows.assign(when=DAYS.tz_localize("UTC"))):
        assert_array_equal(encoded(same, learned(same, "when").schema)[:, 0], expected)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert_array_equal(encoded(tmp_path / "rows.csv", learned(rows, "when").schema)[:, 0], expected)


def test_dates_have_the_cycles_that_the_target_follows(rng):
    phase = 2 * np.pi * DAYS.hour / 24
    rows = frame(900).assign(when=DAYS)
    assert learned(rows, "when").schema.columns[0].cycles == ()
    rows["price"] += 3 * np.cos(phase) + 20 * rows.area
    column = learned(rows, "when", "area").schema.columns[0]
    assert column.cycles == ("day",)
    assert column.names == ("when", "when: sine of day", "when: cosine of day")
    found = encoded(rows, learned(rows, "when", "area").schema)
    assert_allclose(found[:, 1:3], np.column_stack([np.sin(phase), np.cos(phase)]), atol=1e-9)
    yearly = 2 * np.pi * ((DAYS - pd.Timestamp(0)) / pd.Timedelta(days=1)) / 365.2425
    rows["price"] += 5 * np.sin(yearly)
    assert learned(rows[:400], "when", "area").schema.columns[0].cycles == ("day",)
    rows["when"] = DAYS - pd.Timedelta(days=20_000)  # before 1970
    assert learned(rows, "when", "area").schema.columns[0].cycles == ("day",)


def test_times_and_dates_with_gaps(tmp_path):
    lines = ["when,clock,price", "2020-01-02,06:00:00,1", "NA,12:00:00,2", ",,3", "2020-01-04,,4"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    schema = learned(tmp_path / "rows.csv").schema
    day = 18263.0
    when, clock = schema.columns
    assert (when.fill, clock.fill, when.gaps, clock.gaps) == (day + 1, 0.375, 2, 2)
    found = encoded(tmp_path / "rows.csv", schema)
    assert_array_equal(found[:, 0], [day, day + 1, day + 1, day + 2])
    assert_array_equal(found[:, 2], [0.25, 0.5, 0.375, 0.375])
    with pytest.raises(ValueError, match=r"column 'when': 'soon' is no date.*categorical="):
        encoded(pd.DataFrame({"when": ["2020-01-02", "soon"], "clock": [None, None]}), schema)


def test_text_among_numbers_of_a_file_is_missing(tmp_path):
    cells = ["1.5", "?", " -2e1", "3", "+.5", *map(str, range(9))]
    lines = [
        "x,code,price",
        *(f"{cell},{'x1' if i % 3 else '007'},{i}" for i, cell in enumerate(cells)),
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    found = learned(tmp_path / "rows.csv")
    column, code = found.schema.columns
    assert (column.gaps, column.indicated, code.categories) == (1, True, ("007", "x1"))
    values = encoded(tmp_path / "rows.csv", found.schema)
    known = np.array([1.5, -20.0, 3.0, 0.5, *range(9)])
    assert_array_equal(np.delete(values[:, 0], 1), known)
    assert values[1, 0] == np.median(known)
    assert_array_equal(values[:, 1], np.arange(14) == 1)
    assert_array_equal(
        encoded(pd.DataFrame({"x": [7], "code": ["x1"]}), found.schema)[0, :2], [7, 0]
    )
    with pytest.raises(ValueError, match="column 'x': text among numbers"):
        learned(tmp_path / "rows.csv", strict=True)
    with pytest.raises(ValueError, match="column 'x': a missing value"):
        encoded(tmp_path / "rows.csv", found.schema, strict=True)


def many_towns(n=400):
    rows = frame(n)
    towns = np.random.default_rng(5).integers(0, 40, n)
    return rows.assign(town=[f"t{t}" for t in towns], price=towns + rows.price), towns


def test_many_categories_become_means_of_the_targets_of_other_rows():
    rows, towns = many_towns()
    files = open_table(rows)
    found, files = learn_schema(files, Roles("price", features=["town", "area"]))
    column = found.schema.columns[0]
    assert found.schema.names == ("mean target of town", "area")
    learning = EncodedReader.of(files, found.schema, targets=True, learning=True).read_all().X[:, 0]
    folds, y, m = dealt(np.arange(len(rows))), rows.price.to_numpy(), column.smoothing
    assert 0 < m < 1  # towns differ far more than the rows of a town
    for row in (0, 7, 399):
        others = folds != folds[row]
        same = others & (towns == towns[row])
        mean = (y[same].sum() + m * y[others].mean()) / (same.sum() + m)
        assert learning[row] == pytest.approx(mean, rel=1e-12)
    same = towns == towns[7]
    mean = (y[same].sum() + m * y.mean()) / (same.sum() + m)
    assert encoded(rows, found.schema)[7, 0] == pytest.approx(mean, rel=1e-12)
    with pytest.warns(UnknownCategoryWarning, match="the mean of the target"):
        new = encoded(rows.assign(town="elsewhere"), found.schema)
    assert_allclose(new[:, 0], y.mean())


def test_the_target_of_a_row_is_not_in_its_own_mean():
    rows, _ = many_towns()
    rows["price"] = np.random.default_rng(6).normal(size=len(rows))  # towns say nothing
    found, files = learn_schema(open_table(rows), Roles("price", features=["town", "area"]))
    learning = EncodedReader.of(files, found.schema, targets=True, learning=True).read_all()
    assert abs(np.corrcoef(learning.X[:, 0], rows.price)[0, 1]) < 5 / np.sqrt(len(rows))


def test_means_of_weighted_rows_are_those_of_repeated_rows():
    rows, _ = many_towns()
    rows["times"] = np.arange(len(rows)) % 3
    weighted = learned(rows, "town", weight="times").schema
    repeated = learned(rows.loc[rows.index.repeat(rows.times)], "town").schema
    kept = rows[rows.times > 0]
    assert_allclose(encoded(kept, weighted), encoded(kept, repeated), rtol=0.05)
    total = [np.sum(schema.columns[0].counts) for schema in (weighted, repeated)]
    assert total == [rows.times.sum()] * 2


def troubled():
    """Everything that stopped a fit."""
    rows = frame(300).assign(
        when=pd.date_range("2020-01-01", periods=300),
        zone=[f"z{i % 30}" for i in range(300)],
        note=[f"note {i}" for i in range(300)],
        source="web",
        empty=np.nan,
    )
    rows.loc[5, "area"], rows.loc[9, "town"] = np.nan, None
    rows.loc[[3, 8], "price"] = np.nan
    return rows


@pytest.mark.parametrize("kind", ["frame", "csv"])
def test_all_that_must_be_done_is_done_and_said_or_listed_in_one_error(kind, tmp_path):
    troubled().to_csv(tmp_path / "rows.csv", index=False)
    table = troubled() if kind == "frame" else tmp_path / "rows.csv"
    said = str(learned(table)).splitlines()
    assert repr(learned(table)).splitlines() == said
    median = troubled().area[troubled().price.notna()].median()
    assert said == [
        "rows         300 read, 2 without 'price' left out",
        "inputs       5 columns, as 6 numbers",
        "numbers      area, sold",
        "dates        when (days)",
        "one-hot      town (2)",
        "mean target  zone (30)",
        f"missing      area (1: the median {median:.6g}), town (1: 'Chur')",
        "left out     note (another text in almost every row), source (constant), empty (empty)",
    ]
    with pytest.raises(ValueError) as caught:
        learned(table, strict=True)
    lines = str(caught.value).splitlines()
    assert "needs 9 repairs" in lines[0]
    for name in ("area", "town", "when", "zone", "note", "source", "empty", "price"):
        assert any(f"column {name!r}" in line for line in lines), name
    assert "row 3 (the first is 0)" in next(line for line in lines if "'price'" in line)
    assert "strict=True, or --strict" in lines[-1]


@pytest.mark.parametrize("strict", [False, True])
def test_a_tidy_table_needs_nothing(strict):
    found = learned(frame(40), strict=strict)
    assert (found.left_out, found.without_target) == ((), 0)
    assert found.schema.given == ("area", "town", "sold")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows.assign(price="dear"), "the target must be numbers"),
        (lambda rows: rows.assign(price=np.nan), "no row of .* has a target"),
        (lambda rows: rows[["price"]], "no column beside"),
        (lambda rows: rows[["price"]].assign(a=np.nan, b=None), "'a': empty; 'b': empty"),
        (lambda rows: rows.assign(area=np.where(rows.index == 4, np.inf, 1)), "row 4 .*infinity"),
    ],
)
def test_tables_that_teach_nothing(change, message):
    with pytest.raises(ValueError, match=message):
        learned(change(frame(300)))


def test_a_table_of_constants_keeps_one_of_them():
    rows = frame(30).assign(area=2.0, town="Bern")[["area", "town", "price"]]
    found = learned(rows)
    assert found.schema.names == ("area",)
    assert dict(found.left_out) == {"town": "constant"}


def test_columns_that_are_not_there_are_named_with_what_may_be_meant():
    with pytest.raises(NoSuchColumnError, match=r"no column 'prize'.*Did you mean 'price'"):
        learn_schema(open_table(frame()), Roles("prize"))
    many = pd.DataFrame({f"c{i}": [1.0] for i in range(50)})
    with pytest.raises(NoSuchColumnError, match="and 20 more"):
        learn_schema(open_table(many), Roles("target"))


SUMS = ((1.0, 2.0),) * 5


@pytest.mark.parametrize(
    "value, message",
    [
        (CategoryColumn("a", "string", ()), "there are none"),
        (CategoryColumn("a", "string", ("x", "x"), "x"), "repeated"),
        (CategoryColumn("a", "string", ("x",), "y"), "no category"),
        (TargetEncodedColumn("a", "string", ("x",), SUMS, SUMS, 1.0), "other categories"),
        (TargetEncodedColumn("a", "string", ("x", "y"), SUMS, SUMS[1:], 1.0), "other folds"),
        (TargetEncodedColumn("a", "string", ("x", "y"), SUMS, SUMS, 0.0), "not smoothed"),
        (DateColumn("a", "date32[day]", cycles=("month",)), "no such cycle"),
        (TableSchema((), "y"), "no columns"),
        (TableSchema((NumberColumn("a", "double"),) * 2, "y"), "repeated"),
        (TableSchema((NumberColumn("y", "double"),), "y"), "repeated"),
    ],
)
def test_schemas_that_make_no_sense_are_not_loaded(value, message):
    with pytest.raises(Mismatch, match=message):
        check(value)


@pytest.mark.parametrize("n", [1, 5, 23, 10_003])
def test_folds_are_equal_and_have_every_row_once(n):
    table = pa.table({"y": np.arange(float(n)), "x": np.arange(float(n))})
    files = open_table(table)
    own = dealt(np.arange(n))
    for folds in (None, own):
        held = [_rows(rows_of_fold(files, "y", i, held=True, folds=folds)) for i in range(5)]
        assert_array_equal(np.sort(np.concatenate(held)), np.arange(n))
        assert np.ptp([len(rows) for rows in held]) <= 1
        for index in range(5):
            others = rows_of_fold(files, "y", index, held=False, folds=folds)
            assert_array_equal(np.sort(np.concatenate([_rows(others), held[index]])), np.arange(n))
            assert_array_equal(_rows(others, 2), _rows(others)[2:])


def _rows(files, start=0):
    batches = [b for file in files for b in file.batches(["x"], start)]
    return np.concatenate([np.empty(0), *(b.column("x").to_numpy() for b in batches)])


def test_folds_of_several_files_are_those_of_their_rows(tmp_path):
    frame(7).to_csv(tmp_path / "a.csv", index=False)
    frame(5).assign(area=1.0).to_csv(tmp_path / "b.csv", index=False)
    folds = np.array([0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    held = rows_of_fold(open_table(tmp_path), "price", 1, held=True, folds=folds)
    found = np.concatenate([block["area"] for f in held for block in f.batches(["area"], 0)])
    assert_array_equal(found, [frame(7).area[1], 1.0])


def test_rows_without_a_target_are_passed_over():
    rows = frame(9)
    rows.loc[[0, 4], "price"] = np.nan
    (file,) = (with_targets(file, "price") for file in open_table(rows))
    areas = [b.column("area").to_numpy() for b in file.batches(["area"], 3)]
    assert_array_equal(np.concatenate(areas), rows.area[[5, 6, 7, 8]])


def test_copies_have_the_number_of_the_first():
    X = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [1.0, 0.0]])
    rows = Block(X, np.array([[5.0], [5.0], [5.0], [6.0]]), np.ones(4))
    assert_array_equal(first_copies(rows), [0, 1, 0, 3])


def test_files_that_fuzzing_found(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,\xe2\x82,y\n1,2,3\n")
    with pytest.raises(ValueError, match=r"rows\.csv is no CSV.*not UTF-8") as caught:
        learn_schema(open_table(path), Roles("y"))
    assert type(caught.value) is ValueError
    path.write_bytes(b"a,a,y\n1,2,3\n")
    with pytest.raises(ValueError, match="several columns that are called 'a'"):
        rwf.RWFRegressor().fit(path, "y")
    binary = pa.array([b"Bern", b"\xff"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    pq.write_table(pa.table({"town": texts, "price": [1.0, 2.0]}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="text of column 'town' cannot be read"):
        learned(tmp_path / "rows.parquet")


def test_a_parquet_file_that_ends_early_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    frame(300).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[4:600] = bytes(596)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read to its end"):
        encoded(path)


def test_columns_are_written_in_blocks_all_or_nothing(tmp_path):
    path = tmp_path / "out.csv"
    blocks = ({"mean": np.arange(3.0) + i, "std": np.ones(3)} for i in range(4))
    assert write_columns(path, blocks) == 12
    assert len(pd.read_csv(path)) == 12

    def broken():
        yield {"mean": np.ones(3)}
        raise ValueError("in the middle")

    before = path.read_bytes()
    with pytest.raises(ValueError, match="in the middle"):
        write_columns(path, broken())
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]
    with pytest.raises(ValueError, match="written by the end of its name"):
        write_columns(tmp_path / "out.xlsx", [])


def test_categories_are_learned_from_batches_of_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "CSV_BYTES", 500)
    rows = frame(200)
    rows.loc[150:, "town"] = "Visp"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert learned(tmp_path / "rows.csv", "town").schema.columns[0].categories == (
        "Bern",
        "Chur",
        "Visp",
    )
