"""The regressors as a user meets them: identities, streaming, merging, several outputs."""

from __future__ import annotations

import copy
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rwf
from rwf import (
    Box,
    IncompatibleModelsError,
    NoImprovementWarning,
    RandomFeatures,
    RandomFourierFeatures,
    RandomWaveletFeatures,
    RFFRegressor,
    RWFRegressor,
)
from rwf.estimators.validation import generator

REGRESSORS = {
    "nystrom": lambda **k: RWFRegressor(40, n_restarts=0, max_iter=10, random_state=3, **k),
    "random_features": lambda **k: RWFRegressor(
        40, prior="random_features", n_restarts=0, max_iter=10, random_state=3, **k
    ),
    "paper": lambda **k: RWFRegressor.from_paper(
        40, n_restarts=0, max_iter=10, random_state=3, **k
    ),
    "rff": lambda **k: RFFRegressor(40, n_restarts=0, max_iter=10, random_state=3, **k),
}
pytestmark = pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning")
each_regressor = pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)


QUICK = {"n_restarts": 0, "max_iter": 10}


@parametrize_with_checks(
    [
        RWFRegressor(**QUICK),
        RWFRegressor(prior="random_features", **QUICK),
        RFFRegressor(**QUICK),
        RandomWaveletFeatures(),
        RandomFourierFeatures(),
    ]
)
def test_estimators_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def make_data(rng):
    X = rng.normal(3.0, 2.0, (120, 2))
    y = 5.0 + 2.0 * np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=120)
    return X, y


@pytest.fixture
def data(rng):
    return make_data(rng)


@pytest.fixture
def queries(rng):
    return rng.normal(3.0, 2.5, (25, 2))


@pytest.fixture(scope="module", params=REGRESSORS.values(), ids=REGRESSORS)
def predicted(request):
    """A kind of regressor, rows, new inputs, and what it predicts there from these rows."""
    rng = np.random.default_rng(20261115)
    (X, y), queries = make_data(rng), rng.normal(3.0, 2.5, (25, 2))
    model = request.param().fit(X, y)
    return request.param, X, y, queries, model.predict(queries, return_std=True)


class FiniteKernel(Kernel):
    """k(x, x′) = z(x)ᵀΛz(x′) of a fitted model in units of y, for scikit-learn's regressor."""

    def __init__(self, features, prior):
        self.features = features
        self.prior = prior

    def __call__(self, X, Y=None, eval_gradient=False):
        Z = [self.features(A) for A in (X, X if Y is None else Y)]
        return (Z[0] * self.prior) @ Z[1].T

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False


@pytest.mark.parametrize("kind", ["random_features", "paper", "rff"])
def test_predictions_equal_those_of_scikit_learns_gaussian_process_with_the_same_kernel(
    kind, data, queries
):
    X, y = data
    plain = {} if kind == "paper" else {"calibration": None}
    model = REGRESSORS[kind](**plain).fit(X, y)
    center = model.model_.units.y.center[0]
    units, features = model.model_.units, model.model_.base.features
    kernel = FiniteKernel(lambda X: features(units.inputs(X)), model.prior_variances_)
    peer = GaussianProcessRegressor(kernel, alpha=model.noise_variance_, optimizer=None)
    peer.fit(X, y - center)
    mean, covariance = model.predict(queries, return_cov=True)
    peer_mean, peer_covariance = peer.predict(queries, return_cov=True)
    scale = np.abs(y).max()
    assert_allclose(mean - center, peer_mean, atol=1e-7 * scale)
    noise = model.noise_variance_ * np.eye(len(queries))
    assert_allclose(covariance - noise, peer_covariance, atol=1e-7 * scale**2)
    assert_allclose(model.log_marginal_likelihood(), peer.log_marginal_likelihood_value_, rtol=1e-8)


class MixturePlusTrend(Kernel):
    """The kernel of a Nyström model, without inducing inputs, in the units of y."""

    def __init__(self, model):
        self.model = model

    def __call__(self, X, Y=None, eval_gradient=False):
        A, B = (self.model.units.inputs(V) for V in (X, X if Y is None else Y))
        atoms, _, linear = self.model.features.maps
        c2, g2, b2 = np.exp(self.model.fits[0].variances.log_priors)
        K = c2 * atoms.kernel(A, B) + g2 + b2 * linear(A) @ linear(B).T
        return K * self.model.units.y.scale[0] ** 2

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False


def test_with_every_row_as_an_inducing_input_nystrom_is_the_exact_gaussian_process(data, queries):
    X, y = data
    quick = {"n_restarts": 0, "max_iter": 10, "random_state": 3}
    model = RWFRegressor(prior="nystrom", calibration=None, **quick).fit(X, y)
    center = model.model_.units.y.center[0]
    kernel = MixturePlusTrend(model.model_.base)
    peer = GaussianProcessRegressor(kernel, alpha=model.noise_variance_, optimizer=None)
    peer.fit(X, y - center)
    mean, covariance = model.predict(queries, return_cov=True)
    peer_mean, peer_covariance = peer.predict(queries, return_cov=True)
    noise = model.noise_variance_ * np.eye(len(queries))
    # Equal up to the jitter of K_TT, 1e-8 of k(x, x). In a direction of eigenvalue λ it changes
    # predictions by √λ·jitter/(λ + jitter), at worst by ½√jitter = 5e-5 of k's scale.
    assert_allclose(mean - center, peer_mean, atol=1e-4)
    assert_allclose(covariance - noise, peer_covariance, atol=1e-4)
    value = peer.log_marginal_likelihood_value_
    assert_allclose(model.log_marginal_likelihood(), value, rtol=1e-5)


def test_few_inducing_inputs_are_not_overconfident(rng):
    """Between few inducing inputs the variance is that of the prior."""
    x = np.sort(rng.uniform(3.0, 5.0, 400))
    y = np.sin(40 * x) + 0.05 * rng.normal(size=400)
    test = rng.uniform(3.0, 5.0, 2000)
    for n_components in (15, 60, 400):
        quick = {"n_restarts": 0, "random_state": 0}
        model = RWFRegressor(n_components, prior="nystrom", **quick).fit(x[:, None], y)
        mean, std = model.predict(test[:, None], return_std=True)
        z = (np.sin(40 * test) + 0.05 * rng.normal(size=2000) - mean) / std
        assert (np.abs(z) < 1.96).mean() > 0.9, n_components
        assert 0.5 < np.sqrt(np.mean(z**2)) < 1.3


@each_regressor
def test_pieces_merges_and_one_fit_agree_for_fixed_hyperparameters(make, data, queries, rng):
    X, y = data
    whole = make().fit(X, y)
    order = rng.permutation(len(y))
    parts = np.split(order, [13, 14, 80])

    streamed = whole.empty_copy()
    for part in parts:
        streamed.partial_fit(X[part], y[part])

    merged = whole.empty_copy().partial_fit(X[parts[0]], y[parts[0]])
    for part in parts[1:]:
        merged.merge(whole.empty_copy().partial_fit(X[part], y[part]))

    expected = whole.predict(queries, return_std=True)
    for model in (streamed, merged):
        for a, b in zip(model.predict(queries, return_std=True), expected, strict=True):
            assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        assert_allclose(
            model.log_marginal_likelihood(), whole.log_marginal_likelihood(), rtol=1e-10
        )
        assert model.model_.base.statistics.n == 120


def test_partial_fit_alone_starts_with_fit_and_learns_from_later_rows(data, queries):
    X, y = data
    make = REGRESSORS["nystrom"]
    model = make().partial_fit(X[:60], y[:60])
    assert_array_equal(model.predict(queries), make().fit(X[:60], y[:60]).predict(queries))
    before = model.log_marginal_likelihood()
    model.partial_fit(X[60:], y[60:])
    assert model.model_.base.statistics.n == 120
    assert model.log_marginal_likelihood() != before


def test_models_with_other_features_cannot_be_merged(data):
    X, y = data
    a = RWFRegressor(30, n_restarts=0, max_iter=3, random_state=1).fit(X, y)
    b = RWFRegressor(30, n_restarts=0, max_iter=3, random_state=2).fit(X, y)
    with pytest.raises(IncompatibleModelsError, match="empty_copy"):
        a.merge(b)


def test_a_model_without_rows_asks_for_them(data):
    X, y = data
    blank = REGRESSORS["nystrom"]().fit(X, y).empty_copy()
    with pytest.raises(ValueError, match="partial_fit"):
        blank.predict(X)


@each_regressor
def test_samples_have_the_mean_and_covariance_of_the_prediction(make, data, queries):
    model = make().set_params(calibration=None).fit(*data)
    mean, covariance = model.predict(queries, return_cov=True)
    _, std = model.predict(queries, return_std=True)
    assert_allclose(std**2, np.diag(covariance), rtol=1e-9)
    n = 40_000
    draws = model.sample_y(queries, n, random_state=1)
    assert draws.shape == (25, n)
    assert (np.abs(draws.mean(1) - mean) < 5 * std / np.sqrt(n)).all()
    error = np.sqrt((np.outer(std**2, std**2) + covariance**2) / n)
    assert (np.abs(np.cov(draws) - covariance) < 5 * error).all()
    functions = model.sample_y(queries, n, random_state=1, noise=False)
    assert_allclose(
        np.var(functions, axis=1),
        std**2 - model.noise_variance_,
        atol=5 * std.max() ** 2 * np.sqrt(2 / n),
    )


def test_intervals_hold_the_asked_share_of_the_predictive_distribution(data, queries):
    model = REGRESSORS["nystrom"]().fit(*data)
    low, high = model.predict_interval(queries, coverage=0.8)
    draws = model.sample_y(queries, 20_000, random_state=0)
    inside = ((draws > low[:, None]) & (draws < high[:, None])).mean()
    assert abs(inside - 0.8) < 5 * np.sqrt(0.8 * 0.2 / 20_000)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(queries, coverage=95)


def test_intervals_hold_errors_that_are_not_normal(rng):
    X = rng.uniform(3.0, 5.0, (1500, 1))
    noise = rng.standard_t(2.5, 1500)  # heavy tails: normal quantiles are too narrow far out
    y = np.sin(3 * X[:, 0]) + 0.1 * noise
    model = RWFRegressor(100, prior="multiscale", random_state=0).fit(X[:750], y[:750])
    for coverage in (0.5, 0.8, 0.99):
        low, high = model.predict_interval(X[750:], coverage=coverage)
        inside = ((y[750:] > low) & (y[750:] < high)).mean()
        # Both the 750 scores and the 750 tests have sampling error.
        assert abs(inside - coverage) < 5 * np.sqrt(coverage * (1 - coverage) * 2 / 750)
    assert model.predict_distribution(X[750:]).dof.max() < 6


@pytest.mark.parametrize("q", [0.0, 1.0, [0.5, 95]])
def test_quantiles_need_probabilities(q, data, queries):
    model = REGRESSORS["nystrom"]().fit(*data)
    with pytest.raises(ValueError, match="must lie between 0 and 1, such as"):
        model.predict_quantiles(queries, q)


@each_regressor
def test_several_outputs_share_features_and_have_their_own_noise(make, data, queries, rng):
    X, y = data
    Y = np.column_stack([y, 3.0 - 10 * X[:, 1] + 4.0 * rng.normal(size=120)])
    model = make().set_params(calibration=None).fit(X, Y)
    mean, std = model.predict(queries, return_std=True)
    assert mean.shape == std.shape == (25, 2)
    assert model.predict(queries, return_cov=True)[1].shape == (25, 25, 2)
    assert model.sample_y(queries, 7).shape == (25, 2, 7)
    assert model.noise_variance_[1] > 5 * model.noise_variance_[0]
    assert model.prior_variances_.shape == (model.n_features_out_, 2)
    for output in (0, 1):
        single = model.model_.base.statistics.posterior(
            output,
            model.model_.base.fits[output].posterior.prior_variances,
            model.model_.base.fits[output].posterior.noise_variance,
        )
        Z = model.model_.base.features(model.model_.units.inputs(queries))
        unit = model.model_.units.y
        assert_allclose(
            mean[:, output], unit.scale[output] * (Z @ single.mean) + unit.center[output]
        )


@pytest.mark.parametrize("factor", [1e-6, 1e6, 7.3])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_units_do_not_matter(predicted, factor, shift):
    make, X, y, queries, expected = predicted
    scale = np.abs(expected[0]).max()
    moved = make().fit(factor * (X + shift), y).predict(factor * (queries + shift), return_std=True)
    for a, b in zip(moved, expected, strict=True):
        assert_allclose(a, b, atol=1e-6 * scale)
    mean, std = make().fit(X, factor * (y + shift)).predict(queries, return_std=True)
    assert_allclose(mean / factor - shift, expected[0], atol=1e-6 * scale)
    assert_allclose(std / factor, expected[1], atol=1e-6 * scale)


def test_the_order_of_rows_does_not_matter(data, queries, rng):
    X, y = data
    order = rng.permutation(len(y))
    a = REGRESSORS["nystrom"]().fit(X, y).predict(queries)
    b = REGRESSORS["nystrom"]().fit(X[order], y[order]).predict(queries)
    assert_allclose(a, b, rtol=1e-9)


def test_rows_that_are_sampled_do_not_follow_the_seed_that_made_them():
    # Data and model with the same seed, as in every notebook: the sample must still be uniform.
    x = np.random.default_rng(0).uniform(size=5000)
    u = generator(0).uniform(size=5000)
    assert abs(np.corrcoef(x, u)[0, 1]) < 5 / np.sqrt(5000)


def test_the_same_seed_gives_the_same_model(data, queries):
    a, b = (REGRESSORS["nystrom"]().fit(*data).predict(queries) for _ in range(2))
    assert_array_equal(a, b)
    generators = [
        RWFRegressor(30, max_iter=3, n_restarts=0, random_state=np.random.RandomState(5))
        for _ in "ab"
    ]
    a, b = (model.fit(*data).predict(queries) for model in generators)
    assert_array_equal(a, b)


def test_fitted_attributes_are_in_the_units_of_the_data(data):
    X, y = data
    model = REGRESSORS["random_features"]().fit(X, y)
    rows = {tuple(row) for row in np.round(X, 9)}
    assert all(tuple(t) in rows for t in np.round(model.shifts_, 9))
    assert model.length_scales_.shape == (3, 2)
    assert model.scales_.shape == (40,)
    assert model.n_features_out_ == 40 + 3
    assert 0.1**2 < model.noise_variance_ < 0.4**2
    assert model.log_marginal_likelihood_value_ == model.log_marginal_likelihood()


def test_a_users_own_shift_sampler_works_in_the_units_of_the_data(data):
    X, y = data
    seen = {}

    def left_half(X, m, rng):
        seen["X"] = X
        return np.column_stack([rng.uniform(-1, 0, m), rng.uniform(10, 11, m)])

    model = RWFRegressor(
        20, prior=RandomFeatures(shifts=left_half), n_restarts=0, max_iter=2, random_state=0
    ).fit(X, y)
    assert_allclose(np.sort(seen["X"], axis=0), np.sort(X, axis=0), rtol=1e-9)
    assert (model.shifts_[:, 0] <= 1e-9).all()
    assert (model.shifts_[:, 1] >= 10 - 1e-9).all()
    with pytest.raises(ValueError, match=r"must return \(\d+, 2\)"):
        RWFRegressor(
            20, prior=RandomFeatures(shifts=lambda X, m, rng: np.zeros((m, 5))), random_state=0
        ).fit(X, y)


@pytest.mark.parametrize(
    "wavelet",
    [
        "mexican_hat",
        "compact_hat",
        "morlet",
        "complex_morlet",
        "gaussian_derivative",
        "haar",
        "db4",
    ],
)
@pytest.mark.parametrize("shifts", ["data", "box", "hull", Box(0.3)])
def test_every_wavelet_and_measure_fits(wavelet, shifts, data):
    X, y = data
    model = RWFRegressor(
        60,
        prior=RandomFeatures(wavelet=wavelet, shifts=shifts),
        n_restarts=0,
        max_iter=8,
        calibration=None,
        random_state=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoImprovementWarning)
        assert model.fit(X, y).score(X, y) > 0.2


def test_the_report_says_what_happened_and_how_good_trivial_predictors_are(data, rng):
    X, y = data
    model = RWFRegressor(120, prior="nystrom", n_restarts=1, max_iter=10, random_state=0)
    begun = time.perf_counter()
    report = model.fit(X, y).fit_report_
    elapsed = time.perf_counter() - begun
    assert len(report.trials) == 2
    assert report.n_rows == 120
    assert report.statistics == "gram"
    assert report.jitter == 0.0
    stages = ["sample", "learning", "conditioning", "calibration", "report"]
    assert list(report.seconds) == stages
    assert sum(report.seconds.values()) <= elapsed < 1.2 * sum(report.seconds.values()) + 0.2
    assert f"{sum(report.seconds.values()):.1f}: sample 0.0, learning" in str(report)
    assert report.nll < report.linear_nll < report.constant_nll
    # The constant's leave-one-out density, computed the long way.
    direct = []
    for i in range(len(y)):
        rest = np.delete(y, i)
        spread = y.var(ddof=1) * (1 + 1 / (len(y) - 1))
        direct.append(0.5 * np.log(2 * np.pi * spread) + 0.5 * (y[i] - rest.mean()) ** 2 / spread)
    assert_allclose(report.constant_nll, np.mean(direct), rtol=1e-6)


def test_noise_gets_a_warning_and_a_signal_does_not(data, rng):
    X, y = data
    with pytest.warns(NoImprovementWarning, match="no better than a .* learning failed") as caught:
        RWFRegressor(60, random_state=0).fit(X, rng.normal(size=120))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RWFRegressor(60, random_state=0).fit(X, y)


def test_a_linear_signal_is_called_so(rng):
    X = rng.normal(3.0, 2.0, (200, 4))
    y = X @ [1.0, -2.0, 3.0, 0.5] + 0.3 * rng.normal(size=200)
    quick = RWFRegressor(60, n_restarts=0, max_iter=20, random_state=0)
    with pytest.warns(NoImprovementWarning, match="y is about linear in the inputs") as caught:
        assert quick.fit(X, y).score(X, y) > 0.99
    assert "failed" not in str(caught[0].message)


def test_the_prior_is_chosen_by_the_inputs_and_by_what_is_asked_for(data):
    X, y = data

    def is_nystrom(columns, **parameters):
        model = RWFRegressor(20, n_restarts=0, max_iter=2, random_state=0, **parameters)
        return model.fit(X[:90, :columns], y[:90]).model_.base.nystrom is not None

    assert is_nystrom(2)  # 90 rows are too few to hold some out and let them choose
    assert is_nystrom(1, prior="nystrom")
    assert not is_nystrom(2, prior=RandomFeatures(wavelet="haar"))
    assert not is_nystrom(2, prior="random_features")
    for unknown in ("cells", None, 3):
        with pytest.raises(ValueError, match=r"prior=.* is unknown: use one of 'auto', 'nystrom'"):
            is_nystrom(2, prior=unknown)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("n_components", 0, "a positive integer, or None"),
        ("n_components", True, "a positive integer, or None"),
        ("solver", "tree", "'auto', 'dense' or 'multifrontal'"),
        ("metric", "mixed", "'auto', 'isotropic', 'ard' or 'full'"),
        ("neighbors", True, "'auto', None, or an integer of at least 2"),
        ("neighbors", 1, "'auto', None, or an integer of at least 2"),
        ("trend", "cubic", "'linear', 'constant' or 'none'"),
        ("noise", "varying", "'auto', 'constant', 'heteroscedastic'"),
        ("calibration", "none", "'local', 'global' or None"),
        ("log_skewed", "yes", "True or False"),
        ("n_restarts", -1, "an integer of at least 0"),
        ("max_iter", 0.5, "an integer of at least 1"),
    ],
)
def test_a_parameter_out_of_its_range_is_refused(name, value, remedy, data):
    with pytest.raises(ValueError, match=f"{name}={value!r} must be .*{remedy}"):
        RWFRegressor(**{name: value}).fit(*data)


def test_the_raw_posterior_is_not_calibrated(data, queries):
    raw = REGRESSORS["random_features"](calibration=None).fit(*data)
    assert raw.model_ is raw.model_.base
    assert RWFRegressor.from_paper().calibration is None
    mean, std = raw.predict(queries, return_std=True)
    low, high = raw.predict_interval(queries, 0.9)
    assert_allclose(high - low, 2 * 1.6448536 * std, rtol=1e-6)
    assert_allclose(high + low, 2 * mean)
    overall = REGRESSORS["random_features"](calibration="global").fit(*data)
    assert_allclose(overall.noise_variance_, raw.noise_variance_, rtol=1e-12)


def test_in_low_dimension_held_out_rows_choose_the_prior(rng):
    x = np.sort(rng.uniform(size=400))
    steps = np.where(x < 0.31, -1.0, np.where(x < 0.64, 1.0, 0.2)) + 0.02 * rng.normal(size=400)
    model = RWFRegressor(60, n_restarts=0, max_iter=10, random_state=0).fit(x[:, None], steps)
    trials = model.fit_report_.trials
    best = next(trial for trial in trials if trial.chosen)
    assert best.name.startswith("prior '")
    others = [s for s in trials if s.name.startswith("prior '") and s is not best]
    assert len(others) == 2
    chosen = best.name.split("'")[1]
    assert chosen not in {other.name.split("'")[1] for other in others}
    again = RWFRegressor(60, prior=chosen, n_restarts=0, max_iter=10, random_state=0)
    again.fit(x[:, None], steps)
    assert type(again.model_.base.hyperparameters.features.maps[0]) is type(
        model.model_.base.hyperparameters.features.maps[0]
    )


def test_progress_is_shown_on_standard_error_when_asked_for(data, capsys):
    REGRESSORS["nystrom"](verbose=1).fit(*data)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "prior 'adaptive': held-out log density" in shown.err
    assert "fitted 120 rows" in shown.err
    REGRESSORS["nystrom"]().fit(*data)
    assert capsys.readouterr().err == ""


def test_models_copy_pickle_and_clone(data, queries):
    model = REGRESSORS["nystrom"]().fit(*data)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_array_equal(twin.predict(queries), model.predict(queries))
    assert not hasattr(clone(model), "model_")


def test_estimators_work_in_pipelines_searches_and_with_frames(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["depth", "heat"])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RWFRegressor(30, n_restarts=0, max_iter=3, random_state=0)),
        {"rwfregressor__prior": ["nystrom", RandomFeatures(wavelet="db4")]},
        cv=2,
    ).fit(frame, y)
    assert search.predict(frame).shape == (120,)
    names = RandomWaveletFeatures(5).set_output(transform="pandas").fit_transform(frame).columns
    assert list(names) == [f"randomwaveletfeatures{i}" for i in range(5)]


def test_transformed_features_approximate_a_kernel(data):
    X, _ = data
    Z = RandomFourierFeatures(4000, length_scale=[1.5, 3.0], random_state=0).fit_transform(X)
    r2 = (((X[:, None] - X) / [1.5, 3.0]) ** 2).sum(-1)
    # One pair of features has variance (1 + k(2τ))/2 - k² <= 1/2, and there are 2000 pairs.
    assert np.abs(Z @ Z.T - np.exp(-r2 / 2)).max() < 6 * np.sqrt(0.5 / 2000)
    single = RandomWaveletFeatures(50, random_state=0).fit(X)
    assert single.transform(X.astype(np.float32)).dtype == np.float32


def test_public_names_are_all_there_and_no_others_load():
    for name in rwf.__all__:
        assert getattr(rwf, name).__module__.startswith("rwf.")
    assert set(dir(rwf)) == set(rwf.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        rwf.Nothing  # noqa: B018


PRIORS = ("auto", "random_features", "nystrom", "multiscale", "adaptive", "spike_slab")


@pytest.mark.parametrize("prior", PRIORS)
def test_notebooks_can_list_and_show_a_model_of_every_prior(prior, rng):
    X = np.sort(rng.uniform(2.0, 5.0, (80, 1)), axis=0)
    y = np.where(X[:, 0] > 3.5, 4.0, 1.0) + 0.1 * rng.normal(size=80)
    model = RWFRegressor(prior=prior, max_iter=2, n_restarts=0, random_state=0).fit(X, y)
    assert "predict" in dir(model)
    assert "RWFRegressor" in model._repr_html_()
    if not hasattr(model, "scales_"):
        with pytest.raises(AttributeError, match="exist for prior="):
            _ = model.shifts_
