"""Tables with categorical columns: what is learned of them, their encoding, their folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rwf
from rwf.data.readers import ArrayReader, csv, open_table
from rwf.data.schema import (
    CategoryColumn,
    EncodedReader,
    Fold,
    NumberColumn,
    TableSchema,
    learn,
    learn_schema,
)
from rwf.data.writers import write_columns
from rwf.errors import ModelFileError, NoSuchColumnError, UnknownCategoryWarning
from rwf.estimators.table import TableModel
from rwf.persistence.checks import check
from rwf.persistence.codec import Mismatch

SCHEMA = TableSchema(
    (CategoryColumn("town", "string", ("Bern", "Chur")), NumberColumn("area", "double")), "price"
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


def encoded(table, schema=SCHEMA, **options):
    blocks = [*EncodedReader.of(table, schema, targets=False, **options).read()]
    return np.concatenate([block.X for block in blocks])


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
    learned = learn_schema(open_table(path), "price", ["town", "area", "sold"])
    assert learned.names == ("town=Bern", "town=Chur", "area", "sold")
    assert_array_equal(encoded(path, learned)[:, 3], frame().sold)


def test_a_polars_frame_is_a_table():
    polars = pytest.importorskip("polars")
    assert_array_equal(encoded(polars.from_pandas(frame())), encoded(frame()))


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="give a path, or a pandas or polars"):
        open_table(np.ones((3, 2)))


def test_all_files_of_a_folder_teach_categories(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    frame().assign(town="Visp").to_csv(tmp_path / "b.csv", index=False)
    learned = learn_schema(open_table(tmp_path), "price", ["town"])
    assert learned.columns[0].categories == ("Bern", "Chur", "Visp")
    frame().assign(town=3.5).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="should hold text"):
        learn_schema(open_table(tmp_path), "price", ["town"])


def test_gaps_are_filled_by_what_was_learned():
    rows = frame()
    rows.loc[0, "area"] = np.nan
    rows.loc[[1, 2], "town"] = [None, ""]
    learned = learn_schema(open_table(rows), "price", ["town", "area"], missing="impute")
    town, area = learned.columns
    assert (town.fill, area.fill) == ("Bern", pytest.approx(rows.area.median()))
    filled = rows.assign(area=rows.area.fillna(area.fill), town=rows.town.replace("", "Bern"))
    filled["town"] = filled.town.fillna("Bern")
    assert_array_equal(encoded(rows, learned), encoded(filled, learned))
    with pytest.raises(ValueError, match=r"row 1 .*column 'town': a missing value.*impute"):
        encoded(rows)


def test_medians_of_many_rows_are_those_of_a_sample(monkeypatch, rng):
    monkeypatch.setattr(learn, "MEDIAN_ROWS", 400)
    sample = learn._Sample(1)
    for _ in range(20):
        sample.add(rng.normal(7.0, 1.0, (300, 1)))
    assert len(sample._rows) == 400
    (median,) = sample.medians
    assert abs(median - 7.0) < 5 * 1.2533 / 20  # the standard error of a median of 400


def test_categories_that_are_new():
    rows = frame()
    rows.loc[4, "town"] = "Visp"
    with pytest.raises(ValueError, match=r"row 4 .*'Visp' was not among.*'Bern', 'Chur'"):
        encoded(rows)
    with pytest.warns(UnknownCategoryWarning, match="encoded as zeros"):
        found = encoded(rows, unknown="zeros")
    assert_array_equal(found[4, :2], [0, 0])


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows.assign(town=[f"t{i}" for i in range(len(rows))]), "an identifier"),
        (lambda rows: rows.assign(town=""), "has no text in it"),
        (lambda rows: rows.assign(town=pd.Timestamp("2020-01-01")), "days since a date"),
        (lambda rows: rows.assign(area=np.nan), "has no finite number"),
        (lambda rows: rows.assign(price="dear"), "the target must be numbers"),
        (lambda rows: rows[["price"]], "no column beside"),
    ],
)
def test_tables_that_teach_nothing(change, message):
    with pytest.raises(ValueError, match=message):
        learn_schema(open_table(change(frame(300))), "price", missing="impute")


def test_columns_that_are_not_there_are_named_with_what_may_be_meant():
    with pytest.raises(NoSuchColumnError, match=r"no column 'prize'.*Did you mean 'price'"):
        learn_schema(open_table(frame()), "prize")
    many = pd.DataFrame({f"c{i}": [1.0] for i in range(50)})
    with pytest.raises(NoSuchColumnError, match="and 20 more"):
        learn_schema(open_table(many), "target")


def test_nothing_but_known_words_are_options():
    with pytest.raises(ValueError, match="use 'error' or 'impute'"):
        learn_schema(open_table(frame()), "price", missing="drop")
    quick = rwf.RWFRegressor(8, max_iter=1, n_restarts=0, random_state=0)
    model = TableModel.fit(frame(40), "price", features=["area"], regressor=quick)
    with pytest.raises(ValueError, match="use 'error' or 'zeros'"):
        model.predict(frame(), unknown="ignore")
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        model.predict_to(frame(), "p.csv", level=95)
    with pytest.raises(ValueError, match="no rows to predict"):
        model.predict(frame(0))


@pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")
def test_a_loaded_table_model_is_the_same(tmp_path):
    quick = rwf.RWFRegressor(8, max_iter=1, n_restarts=0, random_state=0)
    model = TableModel.fit(frame(60), "price", missing="impute", regressor=quick)
    assert model.regressor.prior == "nystrom"  # because of the categories
    model.validate(frame(60)).save(tmp_path / "model.rwf")
    found = rwf.load(tmp_path / "model.rwf")
    assert type(found) is TableModel
    assert (found.schema, found.scores) == (model.schema, model.scores)
    assert_array_equal(
        found.predict(frame(), return_std=True), model.predict(frame(), return_std=True)
    )


@pytest.mark.parametrize(
    "value, message",
    [
        (CategoryColumn("a", "string", ()), "no categories"),
        (CategoryColumn("a", "string", ("x", "x")), "repeated"),
        (CategoryColumn("a", "string", ("x",), "y"), "no category"),
        (TableSchema((), "y"), "no columns"),
        (TableSchema((NumberColumn("a", "double"),) * 2, "y"), "repeated"),
        (TableSchema((NumberColumn("y", "double"),), "y"), "repeated"),
    ],
)
def test_schemas_that_make_no_sense_are_not_loaded(value, message):
    with pytest.raises(Mismatch, match=message):
        check(value)


@pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")
def test_a_schema_of_another_model_is_refused(tmp_path):
    quick = rwf.RWFRegressor(8, max_iter=1, n_restarts=0, random_state=0)
    model = TableModel.fit(frame(40), "price", features=["area"], regressor=quick)
    TableModel(SCHEMA, model.regressor).save(tmp_path / "model.rwf")
    with pytest.raises(ModelFileError, match="a table has other columns"):
        rwf.load(tmp_path / "model.rwf")


@pytest.mark.parametrize("n", [1, 5, 23, 10_003])
def test_folds_are_equal_and_have_every_row_once(n):
    X = np.arange(float(n))[:, None]
    reader = ArrayReader(X, X)
    held = [_rows(Fold(reader, index, held=True)) for index in range(5)]
    assert_array_equal(np.sort(np.concatenate(held)), X[:, 0])
    assert np.ptp([len(rows) for rows in held]) <= 1
    for index in range(5):
        others = _rows(Fold(reader, index, held=False))
        assert_array_equal(np.sort(np.concatenate([others, held[index]])), X[:, 0])
        assert_array_equal(_rows(Fold(reader, index, held=False), 2), others[2:])


def _rows(fold, start=0):
    return np.concatenate([np.empty(0), *(block.X[:, 0] for block in fold.read(start))])


def test_files_that_fuzzing_found(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,\xe2\x82,y\n1,2,3\n")
    with pytest.raises(ValueError, match=r"rows\.csv is no CSV.*not UTF-8") as caught:
        learn_schema(open_table(path), "y")
    assert type(caught.value) is ValueError
    path.write_bytes(b"a,a,y\n1,2,3\n")
    with pytest.raises(ValueError, match="several columns that are called 'a'"):
        rwf.RWFRegressor().fit(path, "y")
    binary = pa.array([b"Bern", b"\xff"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, binary.buffers())
    pq.write_table(pa.table({"town": texts, "price": [1.0, 2.0]}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="text of column 'town' cannot be read"):
        learn_schema(open_table(tmp_path / "rows.parquet"), "price")


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
    learned = learn_schema(open_table(tmp_path / "rows.csv"), "price", ["town"])
    assert learned.columns[0].categories == ("Bern", "Chur", "Visp")
