"""Awkward input works, or is refused with an error that says where it is wrong and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rwf import (
    Adaptive,
    RandomFeatures,
    RandomFourierFeatures,
    RandomWaveletFeatures,
    RFFRegressor,
    RWFRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")

REGRESSORS = {
    "nystrom": lambda **k: RWFRegressor(
        **{"n_components": 30, "n_restarts": 0, "max_iter": 5, "random_state": 0} | k
    ),
    "random_features": lambda **k: RWFRegressor(
        prior="random_features",
        **{"n_components": 30, "n_restarts": 0, "max_iter": 5, "random_state": 0} | k,
    ),
    "paper": lambda **k: RWFRegressor.from_paper(
        **{"n_components": 30, "n_restarts": 0, "max_iter": 5, "random_state": 0} | k
    ),
    "rff": lambda **k: RFFRegressor(
        **{"n_components": 30, "n_restarts": 0, "max_iter": 5, "random_state": 0} | k
    ),
}
each_regressor = pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)


def assert_sane(model, X, y):
    """Finite means, positive finite deviations, on the data and away from them."""
    far = np.vstack(
        [X, X + 3.0, 1e3 * X, np.zeros((1, X.shape[1])), np.full((1, X.shape[1]), 1e200)]
    )
    mean, std = model.predict(far, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
    _, covariance = model.predict(X, return_cov=True)
    assert (np.diag(covariance) >= 0).all()  # the square of a deviation of 1e-200 is zero
    assert np.isfinite(model.sample_y(X, 3, random_state=0)).all()
    assert np.isfinite(model.log_marginal_likelihood())
    return mean[: len(X)]


AWKWARD = {
    "one row": (np.array([[3.0, 4.0]]), np.array([5.0])),
    "two rows": (np.array([[3.0, 4.0], [1.0, 2.0]]), np.array([5.0, 7.0])),
    "one unique x": (np.full((9, 2), 2.5), np.arange(9.0)),
    "constant column": (np.c_[np.arange(9.0), np.full(9, 7.0)], np.arange(9.0) ** 2),
    "constant up to rounding": (
        np.c_[np.arange(9.0), 0.1 * 3 + 1e-17 * np.arange(9)],
        np.arange(9.0),
    ),
    "duplicate rows": (np.repeat([[1.0], [2.0], [4.0]], 5, axis=0), np.tile([1.0, 2.0, 1.5], 5)),
    "constant y": (np.arange(12.0)[:, None], np.full(12, -3.0)),
    "zero y": (np.arange(12.0)[:, None], np.zeros(12)),
    "duplicate columns": (np.c_[np.arange(9.0), np.arange(9.0)], np.sin(np.arange(9.0))),
    "wide": (np.random.default_rng(1).normal(size=(5, 40)), np.arange(5.0)),
    "whole numbers": (np.arange(20)[:, None], np.arange(20) % 3),
    "outlier": (np.r_[np.arange(20.0), 1e9][:, None], np.r_[np.sin(np.arange(20.0)), 0.0]),
    "huge": (1e150 * np.arange(1, 9.0)[:, None], 1e150 * np.arange(8.0)),
    "tiny": (1e-150 * np.arange(1, 9.0)[:, None], 1e-150 * np.arange(8.0)),
    "exact function": (np.linspace(3, 4, 60)[:, None], np.linspace(3, 4, 60) ** 2),
    "two far clusters": (
        np.r_[np.linspace(0, 1, 20), np.linspace(1e6, 1e6 + 1, 20)][:, None],
        np.tile([0.0, 1.0], 20),
    ),
}


@each_regressor
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_but_lawful_data_give_finite_predictions(make, case):
    X, y = AWKWARD[case]
    assert_sane(make().fit(X, y), np.asarray(X, float), y)


@pytest.mark.parametrize("case", ["constant y", "zero y"])
def test_a_constant_target_is_predicted(case):
    X, y = AWKWARD[case]
    mean, std = REGRESSORS["nystrom"]().fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-3)
    assert (std < 0.1).all()


def test_defaults_work_on_a_handful_of_rows():
    X, y = AWKWARD["two rows"]
    assert_sane(RWFRegressor(random_state=0).fit(X, y), X, y)


numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    elements = draw(st.sampled_from([numbers, st.integers(-2, 2).map(float), st.just(3.0)]))
    X = draw(arrays(np.float64, (n, d), elements=elements))
    y = draw(arrays(np.float64, (n,), elements=elements))
    weights = draw(st.none() | arrays(np.float64, (n,), elements=st.floats(0.1, 5)))
    return X, y, weights


@settings(max_examples=60)
@given(table=tables(), kind=st.sampled_from(sorted(REGRESSORS)))
def test_any_small_table_gives_finite_predictions(table, kind):
    X, y, weights = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_sane(REGRESSORS[kind](max_iter=3).fit(X, y, weights), X, y)


@given(
    d=st.integers(1, 4),
    atoms=st.fixed_dictionaries(
        {
            "wavelet": st.sampled_from(
                ["mexican_hat", "compact_hat", "morlet", "complex_morlet", "haar", "db3"]
            ),
            "scales": st.sampled_from([(0.5, 2.0), (1.0, 1.0), (1e-3, 10.0)]),
            "shifts": st.sampled_from(["data", "box", "hull"]),
            "normalization": st.sampled_from(["peak", "energy"]),
            "blocks": st.sampled_from([("radial",), ("ridge",), ("ridge", "radial")]),
            "variances": st.sampled_from(["block", "unit"]),
        }
    ),
    parameters=st.fixed_dictionaries(
        {
            "metric": st.sampled_from(["isotropic", "ard"]),
            "calibration": st.sampled_from(["local", "global", None]),
            "trend": st.sampled_from(["linear", "constant", "none"]),
            "n_components": st.sampled_from([1, 2, 7, 50]),
        }
    ),
)
def test_any_choice_of_parameters_gives_finite_predictions(d, atoms, parameters):
    rng = np.random.default_rng(d)
    X = rng.normal(3.0, 2.0, (25, d))
    y = np.abs(X).sum(1) + 0.1 * rng.normal(size=25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = {"max_iter": 3, "n_restarts": 1, "random_state": 0}
        model = RWFRegressor(prior=RandomFeatures(**atoms), **quick, **parameters).fit(X, y)
    assert_sane(model, X, y)


X, Y = np.random.default_rng(0).normal(3, 2, (20, 3)), np.arange(20.0)


def with_value(value, row=4, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


BAD_INPUTS = {
    "nan": (lambda: (with_value(np.nan), Y), "NaN in row 4, column 1.*SimpleImputer"),
    "infinity": (lambda: (with_value(np.inf), Y), "infinity in row 4, column 1.*Drop those rows"),
    "nan in a frame": (
        lambda: (pd.DataFrame(with_value(np.nan), columns=["a", "heat", "c"]), Y),
        "row 4, column 1 \\('heat'\\)",
    ),
    "text": (
        lambda: (pd.DataFrame({"a": Y, "town": ["Bern"] * 20}), Y),
        "column 1 \\('town'\\) of X holds text, such as 'Bern' in row 0.*rwf.TableRegressor",
    ),
    "dates": (
        lambda: (X.astype("datetime64[ns]"), Y),
        r"X holds dates \(datetime64\[ns\]\).*rwf.TableRegressor",
    ),
    "dates in a frame": (
        lambda: (pd.DataFrame({"a": Y, "day": pd.date_range("2020-01-01", periods=20)}), Y),
        "column 'day' of X holds dates.*rwf.TableRegressor",
    ),
    "dates beside their target": (
        lambda: (pd.DataFrame({"a": Y, "day": pd.date_range("2020-01-01", periods=20)}), "a"),
        "column 'day' of X holds dates.*rwf.TableRegressor",
    ),
    "text in y": (lambda: (X, ["dear"] * 20), "y holds text, such as 'dear'.*TableRegressor"),
    "text in one y": (lambda: (X, [1.0] * 19 + ["?"]), r"y holds text, such as '(\?|1.0)'"),
    "dates in y": (lambda: (X, Y.astype("datetime64[D]")), r"y holds dates \(datetime64\[D\]\)"),
    "nan in y": (lambda: (X, np.where(Y == 7, np.nan, Y)), "y contains NaN in row 7"),
    "lengths": (lambda: (X, Y[:-1]), "X has 20 rows and y has 19"),
    "no rows": (lambda: (X[:0], Y[:0]), "0 sample"),
    "one-dimensional X": (lambda: (Y, Y), "Reshape your data"),
    "three-dimensional y": (lambda: (X, np.zeros((20, 2, 2))), "dim 3|several"),
}


@each_regressor
@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_is_refused_with_its_place_and_a_remedy(make, case):
    bad, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        make().fit(*bad())


@each_regressor
def test_sparse_matrices_are_refused_with_a_remedy(make):
    with pytest.raises(TypeError, match="toarray"):
        make().fit(scipy.sparse.csr_array(X), Y)


@each_regressor
def test_the_width_of_queries_is_checked(make):
    model = make().fit(X, Y)
    with pytest.raises(ValueError, match=r"has 2 features, but .* is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN in row 4"):
        model.predict(with_value(np.nan))
    with pytest.raises(ValueError, match="same outputs"):
        model.partial_fit(X, np.c_[Y, Y])
    with pytest.raises(ValueError, match="not both"):
        model.predict(X, return_std=True, return_cov=True)


def test_weights_are_checked():
    model = REGRESSORS["nystrom"]()
    with pytest.raises(ValueError, match=r"sample_weight\[3\] = -1 is negative.*Use zero"):
        model.fit(X, Y, sample_weight=np.where(Y == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, Y, sample_weight=np.zeros(20))


BAD_PARAMETERS = [
    ({"n_components": 0}, "positive integer"),
    ({"prior": "gaussian"}, "one of 'auto', 'nystrom', 'field', 'multiscale', 'adaptive'"),
    ({"n_components": 2.5}, "positive integer"),
    ({"trend": "cubic"}, "'linear', 'constant' or 'none'"),
    ({"max_iter": 0}, "at least 1"),
    ({"n_restarts": -1}, "at least 0"),
    ({"n_jobs": 0}, "an integer other than 0"),
    ({"n_jobs": 1.5}, "an integer other than 0"),
    ({"prior": Adaptive(wavelet="db99")}, "db2 to db38"),
    *(
        ({"prior": RandomFeatures(**{name: value})}, message)
        for name, value, message in (
            ("wavelet", "mexican", "use one of mexican_hat"),
            ("wavelet", "db99", "db2 to db38"),
            ("scales", (2.0, 1.0), "0 < low <= high"),
            ("scales", 3.0, "a pair"),
            ("shifts", "grid", "'data', 'box', 'hull'"),
            ("normalization", "l2", "'peak', 'energy'"),
            ("blocks", ("radial", "square"), "'radial' and 'ridge'"),
            ("blocks", (), "'radial' and 'ridge'"),
            ("variances", "all", "'block', 'unit'"),
        )
    ),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_refused_with_a_remedy(parameters, message):
    with pytest.raises(ValueError, match=message):
        RWFRegressor(**parameters).fit(X, Y)


def test_bad_parameters_of_the_others_are_refused_too():
    with pytest.raises(ValueError, match="se, matern12, matern32, matern52"):
        RFFRegressor(kernel="rbf").fit(X, Y)
    with pytest.raises(ValueError, match="positive integer"):
        RFFRegressor(n_blocks=0).fit(X, Y)
    for transformer in (RandomWaveletFeatures, RandomFourierFeatures):
        with pytest.raises(ValueError, match="one per column"):
            transformer(length_scale=[1.0, -2.0, 1.0]).fit(X)
        with pytest.raises(ValueError, match="positive integer"):
            transformer(n_components=0).fit(X)


def test_a_failed_fit_leaves_the_fitted_model_alone():
    model = REGRESSORS["nystrom"]().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(with_value(np.nan), Y)
    np.testing.assert_array_equal(model.predict(X), before)
