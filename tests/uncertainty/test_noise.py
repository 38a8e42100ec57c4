"""Noise models: what each returns, and heteroscedastic noise that is found, kept or refused."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from rwf import RWFRegressor
from rwf.data.readers import base as readers
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.features import ConstantFeatures, LinearFeatures, Stack
from rwf.features.lattice import draw_lattice
from rwf.fit import pipeline
from rwf.models.base import Prediction
from rwf.models.dense import DenseModel, Hyperparameters, collect
from rwf.uncertainty import noise
from rwf.uncertainty.noise import NOISE_MODELS, NoiseTask
from rwf.wavelets import CompactHat

# ------------------------------------------------------------------------- each of the noise models


def no_progress(_message):
    pass


def constant_sd(x):
    return np.full(len(x), 3.0)


def rising_sd(x):
    return 3.0 * np.exp(0.7 * (x - 5.0))


def noise_task(sd, n=1500, seed=0, d=1, progress=no_progress):
    """A wave between 3 and 7 with this noise, in a model whose noise is constant."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    y = 50.0 + 10.0 * np.sin(X[:, 0]) + sd(X[:, 0]) * rng.normal(size=n)
    rows = Block(X, y[:, None], np.ones(n))
    units = Standardizer.learn(rows, ard=True)
    known = units.rows(rows)
    local = draw_lattice(CompactHat(), known.X, 20, rng) if d <= 3 else ()
    stack = Stack((*local, ConstantFeatures(), LinearFeatures(d)))
    parameters = Hyperparameters(stack, np.zeros(len(stack.maps)), np.array([np.log(0.1)]))
    model = DenseModel(
        units=units, hyperparameters=parameters, statistics=collect(parameters, known, "gram")
    )
    return NoiseTask(model, known, known, np.random.default_rng(seed + 1), progress)


def noise_sd(model, X):
    """Standard deviations of the noise of the first output, in the units of y."""
    p = model.predict(model.units.inputs(X))
    return np.sqrt(p.noise_variance[:, 0]) * model.units.y.scale[0]


@pytest.mark.parametrize("sd", [constant_sd, rising_sd])
def test_constant_noise_is_the_model_itself(sd):
    task = noise_task(sd)
    assert NOISE_MODELS["constant"].fit(task) is task.model
    assert task.model.noise is None


def test_heteroscedastic_noise_finds_a_known_variance_function():
    task = noise_task(rising_sd)
    model = NOISE_MODELS["heteroscedastic"].fit(task)
    X = np.linspace(3.1, 6.9, 60)[:, None]
    # The variance of log s² from the rows that one of eight features sees.
    error = np.sqrt(0.5 / (1500 / 8))
    assert (np.abs(np.log(noise_sd(model, X) / rising_sd(X[:, 0]))) < 5 * error).all()
    assert np.mean(1.0 / model.noise(task.rows.X)) == pytest.approx(1.0, rel=1e-9)
    assert model.n_rows == task.model.n_rows


def test_heteroscedastic_noise_is_nearly_constant_where_the_noise_is():
    model = NOISE_MODELS["heteroscedastic"].fit(noise_task(constant_sd))
    assert model.noise is not None
    X = np.linspace(3.1, 6.9, 60)[:, None]
    assert_allclose(np.log(noise_sd(model, X) / 3.0), 0.0, atol=5 * np.sqrt(0.5 / (1500 / 8)))


@pytest.mark.parametrize("seed", range(3))
def test_automatic_noise_stays_constant_for_homoscedastic_rows(seed):
    messages = []
    task = noise_task(constant_sd, n=500, seed=seed, progress=messages.append)
    assert NOISE_MODELS["auto"].fit(task) is task.model
    assert messages == ["noise constant"]


def test_automatic_noise_is_heteroscedastic_where_densities_gain():
    messages = []
    found = NOISE_MODELS["auto"].fit(noise_task(rising_sd, progress=messages.append))
    given = NOISE_MODELS["heteroscedastic"].fit(noise_task(rising_sd))
    X = np.linspace(0.0, 9.0, 40)[:, None]
    assert_array_equal(noise_sd(found, X), noise_sd(given, X))
    assert messages == ["noise heteroscedastic"]


def test_automatic_noise_is_constant_in_four_columns_and_without_noise():
    for task in (noise_task(rising_sd, d=4), noise_task(lambda x: np.zeros(len(x)), n=200)):
        assert NOISE_MODELS["auto"].fit(task) is task.model
    assert task.model.noise_free
    assert NOISE_MODELS["heteroscedastic"].fit(noise_task(rising_sd, d=4)).noise is not None


def test_noise_is_that_of_its_model_in_every_kind_of_prediction():
    model = NOISE_MODELS["heteroscedastic"].fit(noise_task(rising_sd, n=400))
    X = np.linspace(-1.5, 1.5, 9)[:, None]
    p = model.predict(X)
    assert_allclose(p.noise_variance, model.noise(X)[:, None] * model.noise_levels, rtol=1e-12)
    apart = model.covariance(X) - model.covariance(X, noise=False)
    assert_allclose(apart[..., 0], np.diag(p.noise_variance[:, 0]), atol=1e-12)


# ---------------------------------------------------------------------------- through the regressor


def stepped(n, seed=0):
    """A wave between 5 and 7 whose noise is ten times as large above 6."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(5.0, 7.0, (n, 1))
    sd = np.where(X[:, 0] < 6.0, 2.0, 20.0)
    return X, 100.0 + 40.0 * np.sin(5.0 * X[:, 0]) + sd * rng.normal(size=n), sd


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = stepped(600)
    options = {"solver": "multifrontal", "calibration": "global", "random_state": 0}
    return X, y, RWFRegressor(30, **options).fit(X, y)


def test_a_step_of_the_noise_is_found(fitted):
    X, _, model = fitted
    new, y, sd = stepped(2000, 1)
    away = np.abs(new[:, 0] - 6.0) > 0.2
    assert np.median(np.abs(np.log(noise_sd(model.model_, new) / sd)[away])) < 0.25
    mean, std = model.predict(new, return_std=True)
    for side in (new[:, 0] < 5.8, new[:, 0] > 6.2):
        inside = np.abs(y - mean)[side] < 1.96 * std[side]
        assert abs(inside.mean() - 0.95) < 5 * np.sqrt(0.95 * 0.05 * (1 / 270 + 1 / side.sum()))
    base = model.model_.base
    assert np.mean(1.0 / base.noise(base.units.inputs(X))) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("solver", ["multifrontal", "dense"])
def test_heteroscedastic_noise_is_larger_where_rows_are_noisier(solver):
    X, y, sd = stepped(600)
    options = {"noise": "heteroscedastic", "calibration": "global", "random_state": 0}
    model = RWFRegressor(60, solver=solver, prior="multiscale", **options).fit(X, y)
    away = np.abs(X[:, 0] - 6.0) > 0.2
    assert np.median(np.abs(np.log(noise_sd(model.model_, X) / sd)[away])) < 0.25


def test_every_prediction_of_the_regressor_has_the_noise_of_its_place(fitted):
    X = np.linspace(5.05, 6.95, 12)[:, None]
    model = copy.copy(fitted[2])
    base = model.model_ = model.model_.base  # the posterior itself
    std, of_f = model.predict(X, return_std=True)[1], model.predict_function(X)[1]
    own = model.noise_variance_ * base.noise(base.units.inputs(X))
    assert_allclose(std**2, of_f**2 + own, rtol=1e-9)
    assert_allclose(np.diag(model.predict(X, return_cov=True)[1]), std**2, rtol=1e-7)
    for noisy, spread in ((True, std), (False, of_f)):
        draws = model.sample_y(X, 4000, random_state=0, noise=noisy)
        assert_allclose(draws.std(1), spread, rtol=5 / np.sqrt(2 * 4000))


def test_automatic_noise_of_the_regressor_is_constant_for_even_noise():
    rng = np.random.default_rng(0)
    X = 5.0 + 2.0 * rng.uniform(size=(400, 1))
    smooth = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=400)
    model = RWFRegressor(40, solver="multifrontal", random_state=0).fit(X, smooth)
    assert model.model_.base.noise is None


# ---------------------------------------------------------------------------- lower bounds of noise


def seismogram(n, quiet):
    x = np.linspace(10.0, 20.0, n)
    rng = np.random.default_rng(0)
    trace = np.sin(40.0 * x) + 0.3 * rng.normal(size=n)
    return x[:, None], np.where(x < 18.0, quiet, 1.0) * trace


@pytest.mark.parametrize("quiet", [1e-5, 0.0])
def test_noise_does_not_fall_below_what_the_statistics_resolve(quiet, monkeypatch):
    found = []
    learn = noise.learn_variance

    def spy(*args, least):
        found.append((least, learn(*args, least=least)))
        return found[-1][1]

    monkeypatch.setattr(noise, "learn_variance", spy)
    X, y = seismogram(600, quiet)
    options = {"solver": "multifrontal", "calibration": "global", "random_state": 0}
    plain = RWFRegressor(500, noise="constant", **options).fit(X, y)
    model = RWFRegressor(500, noise="heteroscedastic", **options).fit(X, y)
    own = plain.model_.base.fits[0].posterior
    least = plain.model_.base.statistics.resolvable_noise(own.prior_variances) / own.noise_variance
    assert plain.model_.base.least_noise == pytest.approx(least, rel=1e-12, abs=0.0)
    unit = model.model_.units.inputs(X)
    assert len(found) == 2  # by the errors of constant noise, and by those that it leaves
    for given, v in found:
        assert given == pytest.approx(least, rel=1e-6, abs=0.0)
        assert v(unit).min() >= given * (1 - 1e-9)
    for p in (model.predict(X, return_std=True), model.predict_function(X)):
        assert np.isfinite(p).all()
    assert (model.predict(X, return_std=True)[1] > 0).all()


def test_the_least_noise_is_that_of_the_output_that_needs_most():
    rng = np.random.default_rng(0)
    X = 5.0 + 2.0 * rng.uniform(size=(300, 1))
    y = 100 + 20 * (np.sin(40 / (X[:, 0] - 4.7)) + 0.1 * rng.normal(size=300))
    Y = np.column_stack([y, np.sin(X[:, 0])])
    options = {"solver": "multifrontal", "noise": "constant", "random_state": 0}
    model = RWFRegressor(60, **options).fit(X, Y).model_.base
    each = [
        model.statistics.resolvable_noise(t.posterior.prior_variances) / t.posterior.noise_variance
        for t in model.fits
    ]
    assert model.least_noise == max(each) > min(each)


# ----------------------------------------------------------------------------------- the comparison


@dataclass(frozen=True)
class Stub:
    """A model whose leave-one-out errors all have one size, for the comparison of two models."""

    error: float
    variance: float
    noise: object = None

    def unbiased_rows(self, known):
        return known

    def leave_one_out(self, rows):
        signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)[:, None]
        variance, zero = np.full((len(rows), 1), self.variance), np.zeros((len(rows), 1))
        return Prediction(self.error * signs, variance, zero, np.ones(len(rows)))


@dataclass(frozen=True)
class Weighted:
    weights: np.ndarray


def test_heteroscedastic_noise_is_kept_if_densities_gain_and_errors_do_not_grow():
    rows = Block(np.ones((100, 1)), np.zeros((100, 1)), np.ones(100))
    few, many = Weighted(np.ones(3)), Weighted(np.ones(200))
    plain = Stub(error=1.0, variance=9.0)  # underconfident, so that densities may gain much

    def kept(squared, variance, v=few):
        varying = Stub(np.sqrt(squared), variance, v)
        return noise._better(plain, varying, rows) is varying

    assert kept(1.09, 1.0)
    assert not kept(1.11, 1.0)
    assert not kept(1.0, 9.0)
    assert not kept(1.0, 25.0)
    assert kept(1.0, 1e-2)  # overconfident variances are calibrated before the comparison
    assert not kept(1.0, 1.0, many)  # two nats for parameters, of half a nat to gain


def test_densities_are_compared_after_calibration():
    rows = Block(np.ones((100, 1)), np.zeros((100, 1)), np.ones(100))
    errors = noise._Errors.of(Stub(error=3.0, variance=1.0), rows)
    assert_allclose(errors.inflation, 9.0)
    assert_allclose(errors.log_densities, -0.5 * (np.log(2 * np.pi * 9.0) + 1.0))
    assert errors.squared == pytest.approx(900.0)
    assert replace(errors, inflation=np.ones(1)).log_densities.mean() < errors.log_densities.mean()


# --------------------------------------------------------------------------------- Student-t noise


def polluted(n=300, d=1, seed=0, share=0.06):
    """A wave between 3 and 7, of which some rows are 15 to 40 standard deviations off."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(3.0, 7.0, (n, d))
    f = 50.0 + 10.0 * np.sin(2.0 * X[:, 0]) + (X[:, 1] * X[:, 2] if d > 2 else 0.0)
    y, far = f + rng.normal(size=n), rng.random(n) < share
    y[far] += rng.choice([-1, 1], far.sum()) * rng.uniform(15.0, 40.0, far.sum())
    return X, y, f


ROBUST = {
    "dense": (1, {"prior": "multiscale", "n_components": 60}),
    "multifrontal": (1, {"prior": "multiscale", "solver": "multifrontal", "n_components": 80}),
    "random_features": (1, {"prior": "random_features", "n_components": 60, "max_iter": 20}),
    "adaptive": (1, {"prior": "adaptive", "n_components": 40}),
    "exact": (4, {"prior": "nystrom"}),
    "inducing": (4, {"prior": "nystrom", "n_components": 150}),
}


def robust(name, noise="student", **data):
    d, options = ROBUST[name]
    X, y, f = polluted(d=d, **data)
    model = RWFRegressor(noise=noise, n_restarts=0, random_state=0, **options)
    return model.fit(X, y), X, y, f


def error(model, X, f):
    return np.sqrt(np.mean((model.predict(X) - f) ** 2))


@pytest.mark.parametrize("name", ROBUST)
def test_outliers_hardly_move_means_under_student_noise(name):
    model, X, _, f = robust(name)
    constant = robust(name, "constant")[0]
    assert error(model, X, f) < 0.5 * error(constant, X, f)
    new, targets, _ = polluted(2000, X.shape[1], seed=1)
    low, high = model.predict_interval(new, 0.9)
    inside = np.mean((low < targets) & (targets < high))
    assert abs(inside - 0.9) < 5 * np.sqrt(0.9 * 0.1 * (1 / 300 + 1 / 2000))


@pytest.mark.parametrize("name", ROBUST)
def test_without_outliers_student_noise_is_nearly_constant_noise(name):
    model, X, _, f = robust(name, share=0.0)
    constant = robust(name, "constant", share=0.0)[0]
    assert error(model, X, f) < error(constant, X, f) + 0.05  # of a noise of one
    assert model.noise_variance_ == pytest.approx(constant.noise_variance_, rel=0.15)


def in_units(model, X, y):
    rows = model.model_.units.rows(Block(X, y.reshape(len(y), -1), np.ones(len(y))))
    return model.model_.base, rows


def test_the_posterior_is_the_process_whose_rows_have_their_own_noise():
    model, X, y, _ = robust("random_features", n=80)
    base, rows = in_units(model, X, y)
    posterior, u = base.fits[0].posterior, base.noise_of(rows)
    assert u.max() > 20.0
    new = rows.X[:9] + 0.1
    Z, at = (np.asarray(base.features(A)) * posterior.scale for A in (rows.X, new))
    K = Z @ Z.T + posterior.noise_variance * np.diag(u)
    gain = np.linalg.solve(K, Z @ at.T).T
    p = base.predict(new)
    assert_allclose(p.mean[:, 0], gain @ rows.y[:, 0], rtol=1e-6)
    exact = np.einsum("ij,ij->i", at, at) - np.einsum("ij,ij->i", gain, at @ Z.T)
    assert_allclose(p.function_variance[:, 0] - base.lacking_at(new)[:, 0], exact, rtol=1e-6)
    assert_allclose(p.noise_variance, posterior.noise_variance)
    density = multivariate_normal(cov=K).logpdf(rows.y[:, 0])
    assert posterior.log_evidence == pytest.approx(density, rel=1e-6)


@pytest.mark.parametrize("name", ["dense", "multifrontal", "exact"])
def test_a_row_left_out_is_predicted_as_by_a_fit_without_it_and_without_its_factor(name):
    model, X, y, _ = robust(name, n=120)
    base, rows = in_units(model, X, y)
    p, posterior = base.leave_one_out(rows), base.fits[0].posterior
    assert_allclose(p.noise_variance, base.predict(rows.X).noise_variance, rtol=1e-12)
    farthest = np.argsort(base.noise_of(rows))[-4:]
    for row in (*farthest, 0, 1):
        others = base.collect(rows.part(np.arange(120) != row), base.noise)
        rest = others.posterior(0, posterior.prior_variances, posterior.noise_variance)
        at = rows.X[[row]] if name == "multifrontal" else np.asarray(base.features(rows.X[[row]]))
        f = rest.predict(at, 0.0)
        assert p.mean[row, 0] == pytest.approx(f.mean[0], rel=1e-5, abs=1e-7)
        lacking = base.lacking_at(rows.X[[row]])[0, 0]
        assert p.function_variance[row, 0] - lacking == pytest.approx(f.variance[0], rel=1e-4)


@pytest.mark.parametrize("name", ["dense", "multifrontal", "exact"])
def test_the_order_of_rows_does_not_matter(name):
    model, X, y, _ = robust(name)
    order, (_, options) = np.random.default_rng(3).permutation(len(X)), ROBUST[name]
    other = RWFRegressor(noise="student", n_restarts=0, random_state=0, **options)
    assert_array_equal(other.fit(X[order], y[order]).predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["dense", "multifrontal"])
def test_weights_and_factors_multiply(name):
    d, options = ROBUST[name]
    X, y, _ = polluted(d=d)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, len(X))
    model = RWFRegressor(noise="student", random_state=0, **options).fit(X, y, weights)
    base, rows = in_units(model, X, y)
    precision = weights / base.noise_of(rows)
    Z = base.features_at(rows.X)
    energies = (precision[:, None] * Z**2).sum(axis=0)
    assert_allclose(base.statistics.column_energies, energies, rtol=1e-9, atol=1e-12)
    assert np.average(1.0 / base.noise_of(rows), weights=weights) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", ["dense", "multifrontal"])
def test_rows_keep_their_factors_and_further_rows_count_in_full(name):
    model, X, y, _ = robust(name)
    again = model.empty_copy().partial_fit(X[:90], y[:90]).partial_fit(X[90:], y[90:])
    assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)
    new, targets, _ = polluted(40, seed=5)
    more = copy.copy(model).partial_fit(new, targets)
    _, rows = in_units(model, new, targets)
    before, after = (m.model_.base.statistics.column_energies for m in (model, more))
    Z = model.model_.base.features_at(rows.X)
    assert_allclose(after - before, (Z**2).sum(axis=0), rtol=1e-6, atol=1e-9)
    assert_allclose(more.forget(new, targets).predict(X), model.predict(X), rtol=1e-6)


def test_an_outlier_in_one_of_two_outputs_counts_little_in_both():
    X, y, f = polluted()
    Y = np.column_stack([y, 3.0 - 0.1 * f + np.random.default_rng(2).normal(size=len(y))])
    model = RWFRegressor(60, prior="multiscale", noise="student", random_state=0).fit(X, Y)
    base, rows = in_units(model, X, Y)
    far = np.abs(y - f) > 10.0
    assert (base.noise_of(rows)[far] > 10.0).all()
    assert (base.noise_of(rows)[~far] < 10.0).all()
    assert np.sqrt(np.mean((model.predict(X)[:, 0] - f) ** 2)) < 0.5


def test_outliers_do_not_average_means_with_a_line():
    """They make most of the squared errors by which a model and a line are compared."""
    model, X, _, f = robust("exact", n=150, seed=1)
    assert model.fit_report_.line_share == 0.0
    assert error(model, X, f) < 1.0


def test_hyperparameters_are_learned_again(monkeypatch):
    model, X, _, f = robust("exact", n=200, seed=1)
    monkeypatch.setattr(pipeline, "NOISE_OF_ROWS", ())
    once = robust("exact", n=200, seed=1)[0]
    assert error(model, X, f) < 0.5 * error(once, X, f)


def test_rows_of_a_group_are_scored_one_by_one():
    X, y, f = polluted()
    groups = np.arange(len(X)) % 15
    model = RWFRegressor(60, prior="multiscale", noise="student", random_state=0)
    model.fit(X, y, groups=groups)
    base, rows = in_units(model, X, y)
    far = np.abs(y - f) > 10.0
    assert base.noise_of(rows)[far].min() > base.noise_of(rows)[~far].max()
    assert error(model, X, f) < 0.5


def test_rows_without_noise_have_no_factors():
    task = noise_task(lambda x: np.zeros(len(x)), n=200)
    assert NOISE_MODELS["student"].fit(task) is task.model


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"prior": "spike_slab"}, "leave out"),
        ({"prior": "field"}, "prior='multiscale'"),
        ({"neighbors": 16}, "neighbors=None"),
    ],
)
def test_what_has_no_factors_of_rows_is_refused(options, remedy):
    X, y, _ = polluted()
    with pytest.raises(ValueError, match=remedy):
        RWFRegressor(noise="student", **options).fit(X, y)


def test_auto_takes_no_prior_and_no_neighbors_without_factors():
    X, y, _ = polluted(1100, 2)
    quick = {"n_restarts": 0, "max_iter": 3, "random_state": 0}
    model = RWFRegressor(40, noise="student", **quick).fit(X, y)
    assert model.model_.base.noise is not None
    X, y, _ = polluted(400, 5)
    model = RWFRegressor(noise="student", **quick).fit(X, y)
    assert not model.model_.keeps_rows


def test_rows_that_stream_are_read_or_refused(monkeypatch):
    X, y, _ = polluted()
    quick = {"prior": "multiscale", "n_components": 30, "random_state": 0}
    model = RWFRegressor(noise="student", **quick)
    expected = model.fit(X, y).predict(X)

    def stream():
        yield from ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70))

    assert_array_equal(model.fit(stream).predict(X), expected)
    monkeypatch.setattr(readers, "IN_MEMORY", 2 * 8 * 100)
    with pytest.raises(ValueError, match=r"noise='student' needs all rows in memory.*do without"):
        model.fit(stream)
