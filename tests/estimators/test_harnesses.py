"""What wraps scikit-learn's estimators wraps these, and gets their means and deviations."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rwf import RandomWaveletFeatures, RWFRegressor

TRAIN, REST, NEW = slice(0, 60), slice(60, 100), slice(100, None)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(3.0, 2.0, (130, 4))
    return X, 20 + 5 * np.sin(X[:, 0]) + X[:, 1] * rng.normal(0.2, 0.1, 130)


def quick():
    return RWFRegressor(20, max_iter=3, n_restarts=0, neighbors=None, random_state=0)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y = rows
    return quick().fit(X[TRAIN], y[TRAIN])


def test_mapie_divides_errors_by_our_deviations(rows, fitted):
    regression = pytest.importorskip("mapie.regression", reason="needs MAPIE")
    scores = pytest.importorskip("mapie.conformity_scores", reason="needs MAPIE")
    X, y = rows
    wrapped = regression.SplitConformalRegressor(
        fitted, confidence_level=0.9, conformity_score=scores.StdConformityScore(), prefit=True
    )
    wrapped.conformalize(X[REST], y[REST])
    _, interval = wrapped.predict_interval(X[NEW])

    mean, std = fitted.predict(X[NEW], return_std=True)
    low, high = interval[:, :, 0].T
    below, above = (mean - low) / std, (high - mean) / std
    assert_allclose(below, below[0], rtol=1e-9)
    assert_allclose(above, above[0], rtol=1e-9)
    mean, std = fitted.predict(X[REST], return_std=True)
    errors = (y[REST] - mean) / std
    assert np.mean((-below[0] - 1e-9 <= errors) & (errors <= above[0] + 1e-9)) >= 0.9


def test_skpro_gets_a_distribution(rows, fitted):
    pd = pytest.importorskip("pandas", reason="needs pandas")
    adapters = pytest.importorskip("skpro.regression.adapters.sklearn", reason="needs skpro")
    X, y = (pd.DataFrame(values) for values in rows)
    X.columns, y.columns = list("abcd"), ["y"]
    wrapped = adapters.SklearnProbaReg(quick(), inner_type="np.ndarray").fit(X[TRAIN], y[TRAIN])
    found = wrapped.predict_proba(X[NEW])
    mean, std = fitted.predict(rows[0][NEW], return_std=True)
    assert_allclose(found.mean()["y"], mean, rtol=1e-10)
    assert_allclose(found.var()["y"], std**2, rtol=1e-10)


def test_dask_ml_predicts_dask_arrays(rows, fitted):
    wrappers = pytest.importorskip("dask_ml.wrappers", reason="needs dask-ml")
    da = pytest.importorskip("dask.array", reason="needs dask")
    X, y = rows
    wrapped = wrappers.ParallelPostFit(quick()).fit(X[TRAIN], y[TRAIN])
    found = wrapped.predict(da.from_array(X, chunks=(40, 4)))
    assert found.chunks == ((40, 40, 40, 10),)
    assert_allclose(found.compute(scheduler="synchronous"), fitted.predict(X), rtol=1e-10)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_pipelines_and_folds(rows):
    X, y = rows
    weights = np.random.default_rng(4).integers(1, 4, len(y)).astype(float)
    weighing = quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), weighing)

    found = pipe.fit(X, y, sample_weight=weights)[-1]
    expected = quick().fit(pipe[:-1].transform(X), y, sample_weight=weights)
    assert_array_equal(found.predict(X), expected.predict(X))
    assert found.model_.n_rows == expected.model_.n_rows

    folds = [(np.arange(len(y))[TRAIN], np.arange(len(y))[NEW])]
    scored = cross_validate(
        weighing, X, y, cv=folds, params={"sample_weight": weights}, return_estimator=True
    )
    (weighted,) = scored["estimator"]
    expected = quick().fit(X[TRAIN], y[TRAIN], sample_weight=weights[TRAIN])
    assert_array_equal(weighted.predict(X), expected.predict(X))


@pytest.mark.usefixtures("routing")
def test_return_std_is_routed_through_a_pipeline(rows):
    X, y = rows
    pipe = make_pipeline(StandardScaler(), quick().set_predict_request(return_std=True))
    mean, std = pipe.fit(X, y).predict(X, return_std=True)
    expected = pipe[-1].predict(pipe[:-1].transform(X), return_std=True)
    assert_array_equal((mean, std), expected)


def test_transformers_name_the_columns_of_dataframes(rows):
    pytest.importorskip("pandas", reason="needs pandas")
    features = RandomWaveletFeatures(5, random_state=0).set_output(transform="pandas")
    table = features.fit_transform(rows[0])
    assert list(table.columns) == list(features.get_feature_names_out())
    assert_array_equal(
        table.to_numpy(), features.set_output(transform="default").transform(rows[0])
    )
