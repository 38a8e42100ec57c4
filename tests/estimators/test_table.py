"""The regressor of tables: the same model from every source, and scikit-learn's contract."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import rwf
from rwf import RWFRegressor, TableRegressor, cli
from rwf.datasets import diamonds
from rwf.errors import IncompatibleModelsError, ModelFileError, UnknownCategoryWarning

pytestmark = pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")

QUICK = {"n_components": 30, "n_restarts": 0, "max_iter": 3, "random_state": 3}


def cars(n=150, seed=4):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(1, 20, n),
            "fuel": rng.choice(["gas", "oil", "sun"], n),
            "sold": pd.Timestamp("2021-05-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "dealer": [f"d{i}" for i in rng.integers(0, 25, n)],
            "new": rng.uniform(size=n) < 0.3,
        }
    )
    frame.loc[::9, "age"] = np.nan
    age = frame.age.fillna(8)
    frame["price"] = 30 - age + 4 * (frame.fuel == "sun") + np.sin(age) + rng.normal(0, 0.2, n)
    return frame


@parametrize_with_checks([TableRegressor(n_restarts=0, max_iter=5)])
def test_scikit_learn_can_use_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return TableRegressor(**QUICK).fit(cars(), target="price")


def sources(folder):
    frame = cars()
    frame.to_csv(folder / "cars.csv", index=False)
    frame.to_parquet(folder / "cars.parquet")
    polars = pytest.importorskip("polars")
    inputs = frame.drop(columns="price")
    return {
        "csv": (str(folder / "cars.csv"), "price"),
        "parquet": (folder / "cars.parquet", "price"),
        "polars": (polars.from_pandas(frame), "price"),
        "series": (inputs, frame.price),
        "array of targets": (inputs, frame.price.to_numpy()),
        "objects": (inputs.to_numpy(dtype=object), frame.price.to_list()),
        "other units": (inputs.assign(sold=inputs.sold.astype("datetime64[s]")), frame.price),
    }


def test_the_same_rows_give_the_same_model_from_every_source(model, tmp_path):
    mean, std = model.predict(cars(), return_std=True)
    for name, (X, y) in sources(tmp_path).items():
        same = TableRegressor(**QUICK).fit(X, y)
        assert_array_equal(same.predict(X, return_std=True), (mean, std), err_msg=name)
        assert same.n_features_in_ == 5
        assert hasattr(same, "feature_names_in_") == (name != "objects")


def test_tables_commands_and_dummies_have_the_same_scores(tmp_path, monkeypatch):
    table = pd.DataFrame(diamonds(1200, np.random.default_rng(1)))
    rows, held, quick = table[:900], table[900:], {**QUICK, "neighbors": 8}
    inputs = table.drop(columns="price")
    # In the order of the table: that of the rows, and so the inducing ones, depends on it.
    dummies = pd.concat([pd.get_dummies(inputs[[name]], dtype=float) for name in inputs], axis=1)
    plain = RWFRegressor(**quick).fit(dummies[:900], rows.price)
    found = TableRegressor(**quick).fit(rows, target="price")
    assert_allclose(found.predict(held), plain.predict(dummies[900:]), rtol=1e-6)
    assert found.fit_report_.nll == pytest.approx(plain.fit_report_.nll, abs=1e-6)
    assert found.model_.keeps_rows == plain.model_.keeps_rows
    low, high = found.predict_interval(held)
    assert (low > 0).all()
    inside = ((low < held.price) & (held.price < high)).to_numpy()
    order = np.argsort(found.predict(held))
    assert min(inside[its].mean() for its in np.array_split(order, 3)) > 0.88  # of 100 rows each
    monkeypatch.chdir(tmp_path)
    rows.to_csv("rows.csv", index=False)
    options = "--n-components 30 --n-restarts 0 --max-iter 3 --seed 3 --neighbors 8 --quiet"
    command = f"rwf fit rows.csv --target price --out d.rwf --validate none {options}"
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit):
        cli.main()
    assert_array_equal(rwf.load("d.rwf").predict(held), found.predict(held))


def test_a_checkpoint_changes_nothing_in_a_table_that_fits_into_memory(model, tmp_path):
    path = tmp_path / "fit.checkpoint"
    same = TableRegressor(**QUICK).fit(cars(), target="price", checkpoint=path)
    assert_array_equal(same.predict(cars()), model.predict(cars()))


def test_clones_searches_pipelines_and_pickles(model):
    X, y = cars().drop(columns="price"), cars().price
    assert clone(model).get_params() == model.get_params()
    same = pickle.loads(pickle.dumps(model))
    assert_array_equal(same.predict(X), model.predict(X))
    quick = TableRegressor(**QUICK)
    assert cross_val_score(quick, X, y, cv=3).min() > 0.8
    search = GridSearchCV(quick, {"max_one_hot": [2, 20]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"max_one_hot"}
    older = FunctionTransformer(lambda rows: rows.assign(age=rows.age + 1))
    assert make_pipeline(older, clone(quick)).fit(X, y).score(X, y) > 0.9
    logged = TransformedTargetRegressor(clone(quick), func=np.log, inverse_func=np.exp)
    assert logged.fit(X, y).score(X, y) > 0.9


def test_intervals_samples_and_functions_take_tables(model):
    rows = cars()[:7]
    low, high = model.predict_interval(rows, 0.9)
    mean, std = model.predict(rows, return_std=True)
    assert_allclose((low + high) / 2, mean)
    assert (high > low).all()
    assert model.sample_y(rows, 3, random_state=0).shape == (7, 3)
    assert (model.predict_function(rows)[1] < std).all()
    assert model.support(rows).shape == (7,)


def test_a_loaded_model_is_the_same(model, tmp_path):
    scored = clone(model).fit(cars(), target="price").validate(cars())
    scored.save(tmp_path / "model.rwf")
    found = rwf.load(tmp_path / "model.rwf")
    assert type(found) is TableRegressor
    assert found.preparation_ == scored.preparation_
    assert found.scores_ == scored.scores_
    assert found.get_params() == scored.get_params()
    given = cars(), cars().drop(columns="price"), cars()[["sold", "age", "new", "dealer", "fuel"]]
    for rows in given:
        expected = scored.predict(cars(), return_std=True)
        assert_array_equal(found.predict(rows, return_std=True), expected)
    stones = pd.DataFrame(diamonds(60, np.random.default_rng(1)))
    found.preparation_ = TableRegressor(**QUICK).fit(stones, target="price").preparation_
    found.save(tmp_path / "wrong.rwf")
    with pytest.raises(ModelFileError, match="other"):
        rwf.load(tmp_path / "wrong.rwf")


def test_rows_add(model):
    parts = [model.empty_copy().partial_fit(cars()[i::2]) for i in (0, 1)]
    rest = cars().drop(columns="price")
    whole = model.empty_copy().partial_fit(rest, cars().price)
    assert_allclose(parts[0].merge(parts[1]).predict(rest), whole.predict(rest), rtol=1e-9)
    assert whole.model_.n_rows == 150
    first = TableRegressor(**QUICK, neighbors=None).partial_fit(cars(), "price")
    assert_allclose(first.predict(rest), model.predict(rest), rtol=0.2)
    with pytest.raises(IncompatibleModelsError, match="columns, categories or imputed values"):
        model.empty_copy().merge(TableRegressor(**QUICK).fit(cars(80), target="price"))


def test_weights_and_groups_are_columns_or_arrays():
    rows = cars().assign(times=np.arange(150) % 3, who=np.arange(150) // 5)
    named = TableRegressor(**QUICK).fit(rows, "price", "times", groups="who")
    X = rows.drop(columns=["price", "times", "who"])
    given = TableRegressor(**QUICK).fit(X, rows.price, rows.times, groups=rows.who)
    assert_array_equal(named.predict(X), given.predict(X))
    assert named.fit_report_.group_scores == given.fit_report_.group_scores
    assert (given.schema_.weight, given.schema_.group) == ("times", "who")
    assert given.model_.n_rows == rows.times.sum()
    assert named.validate(rows).scores_.method == "hold-out of every fifth group"


def test_copies_of_a_row_are_said_and_held_out_together():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(2, 9, 60), "y": rng.normal(5, 2, 60)})  # nothing to learn
    often = pd.concat([rows] * 4)
    with pytest.warns(rwf.NoImprovementWarning) as caught:
        model = TableRegressor(**QUICK).fit(often, target="y")
    assert caught[0].filename == __file__
    assert model.preparation_.repeated == 180
    assert "180 repeat another exactly" in str(model.preparation_)
    assert model.validate(often).scores_.n_rows == 48
    assert model.scores_.model.rmse > 0.8 * model.scores_.constant.rmse


def test_scores_do_not_know_the_targets_of_held_out_rows():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"town": rng.integers(0, 40, 200).astype(str), "x": rng.normal(size=200)})
    rows["y"] = 3 + rng.normal(size=200)
    model = TableRegressor(**QUICK).fit(rows, target="y").validate(rows, method="cross-validation")
    assert model.scores_.n_rows == 200
    assert model.scores_.model.rmse > 0.95 * model.scores_.constant.rmse


def test_strict_models_refuse_what_others_repair(model):
    rows = cars()
    with pytest.raises(ValueError, match=r"needs 3 repairs(.|\n)*'age'(.|\n)*'dealer': 25 cat"):
        TableRegressor(strict=True).fit(rows, target="price")
    with pytest.warns(UnknownCategoryWarning, match="'steam' was not among"):
        model.predict(rows[:3].assign(fuel="steam"))
    strict = clone(model).set_params(strict=True, max_one_hot=25)
    tidy = rows.drop(columns="sold").assign(age=rows.age.fillna(8))
    strict.fit(tidy, target="price")
    for change, what in (({"fuel": "steam"}, "'steam'"), ({"age": np.nan}, "a missing value")):
        with pytest.raises(ValueError, match=f"row 0 .*{what}"):
            strict.predict(tidy[:3].assign(**change))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((cars(),), r"the target y is None.*target='price'"),
        (("cars.csv",), r"fit\('cars.csv', target='price'\)"),
        (("cars.csv", np.ones(3)), "names of columns"),
        ((cars(), ["dear"] * 150), r"y holds text, such as 'dear'.*TableRegressor"),
        ((cars(), cars().sold.to_numpy()), "y holds dates"),
        ((cars(), cars().price), r"'price' was given beside X.*target='price'"),
        ((cars(), np.ones(7)), "inconsistent numbers of samples"),
    ],
)
def test_what_cannot_be_fitted(arguments, message):
    with pytest.raises(ValueError, match=message):
        TableRegressor().fit(*arguments)


@pytest.mark.parametrize("wrong", [{"categorical": "zip"}, {"max_one_hot": 0}, {"trend": "cubic"}])
def test_parameters_are_checked_before_the_table_is_read(wrong):
    with pytest.raises(ValueError, match="must be"):
        TableRegressor(**wrong).fit(cars(), target="price")


def test_predictions_are_written_in_blocks(model, tmp_path):
    assert model.predict_to(cars(), tmp_path / "p.csv", 0.8) == 150
    found = pd.read_csv(tmp_path / "p.csv")
    p = model.predict_distribution(cars())
    assert_allclose(found[["mean", "std"]], np.column_stack([p.mean, p.std]))
    assert_allclose(found["upper"], p.ppf(0.9))
    assert model.predict_to(cars(), tmp_path / "q.csv", quantiles=(0.25, 0.5)) == 150
    assert_allclose(pd.read_csv(tmp_path / "q.csv")["q0.25"], p.ppf(0.25))
    with pytest.raises(ValueError, match=r"0\.95 is usual"):
        model.predict_to(cars(), tmp_path / "p.csv", level=95)
    with pytest.raises(ValueError, match="no rows to predict"):
        model.predict(cars()[:0])


def test_few_rows_are_not_kept_back(model):
    with pytest.raises(ValueError, match="7 rows are too few"):
        TableRegressor(**QUICK).fit(cars(7), target="price").validate(cars(7))
