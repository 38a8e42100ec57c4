"""Numbers as bad as float64 can hold: the model stays finite, exact where it can be, and no worse
than a constant; what float64 cannot do is refused before anything is computed.

No warning of numpy's gets out: an overflow or a NaN anywhere is a failure.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rwf import RFFRegressor, RWFRegressor
from rwf.data.rows import LEAST_WEIGHT, MOST_WEIGHT
from rwf.data.scaling import LARGEST_INPUT, LARGEST_TARGET

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::rwf.NoImprovementWarning"),
    pytest.mark.filterwarnings("ignore::rwf.NoAtomsNearbyWarning"),
]

QUICK = {"n_components": 24, "n_restarts": 0, "max_iter": 5, "random_state": 0}
REGRESSORS = {
    "nystrom": lambda: RWFRegressor(prior="nystrom", **QUICK),
    "random_features": lambda: RWFRegressor(prior="random_features", **QUICK),
    "multiscale": lambda: RWFRegressor(prior="multiscale", solver="dense", **QUICK),
    "tree": lambda: RWFRegressor(prior="multiscale", solver="multifrontal", **QUICK),
    "adaptive": lambda: RWFRegressor(prior="adaptive", **QUICK),
    "rff": lambda: RFFRegressor(**QUICK),
}
each_regressor = pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)


def signal(n=60, d=2, seed=0):
    """A step and a wave over the first column, with a little noise, far from zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(2.0, 5.0, (n, d))
    y = 7.0 + np.sin(3 * X[:, 0]) + (X[:, 0] > 3.3) + 0.05 * rng.normal(size=n)
    return X, y


def collinear(condition, n=60):
    """Three columns that are one, but for a part that is so many times smaller."""
    rng = np.random.default_rng(1)
    first = rng.uniform(2.0, 5.0, (n, 1))
    return first + np.hstack([np.zeros((n, 1)), rng.normal(size=(n, 2)) / condition])


X, Y = signal()
RNG = np.random.default_rng(2)
STEPS = np.arange(40.0)

HARD = {
    **{f"condition 1e{e}": (collinear(10.0**e), Y) for e in (8, 12, 16)},
    **{f"inputs times 1e{e}": (10.0**e * X, Y) for e in (-300, 299)},
    **{f"one column times 1e{e}": (X * [1.0, 10.0**e], Y) for e in (-200, 200)},
    **{f"targets times 1e{e}": (X, 10.0**e * Y) for e in (-298, 150)},
    **{f"inputs plus 1e{e}": (X + 10.0**e, Y) for e in (12, 15)},
    **{f"targets plus 1e{e}": (X, Y + 10.0**e) for e in (12, 15)},
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
    "one place, two targets": (X[[0, 0]], Y[:2]),
    "fewer rows than columns": (RNG.normal(3.0, 2.0, (2, 3)), np.array([4.0, 9.0])),
    "a constant column": (np.c_[X, np.full(60, 3e8)], Y),
    "a constant target": (X, np.full(60, 1e150)),
    "a subnormal constant target": (X, np.full(60, 5e-324)),
    "all constant and subnormal": (np.full((9, 2), 1e-310), np.full(9, -1e-310)),
    "subnormal inputs": (STEPS[:, None] * [5e-324, 15e-324], STEPS % 7),
    "subnormal targets": (X[:40], 5e-324 * STEPS),
    "whole numbers": ((1e18 * X).astype(np.int64), (100 * Y).astype(np.int32)),
    "truth values": (X > 3, Y > 7),
    "nothing but noise": (X, 1e-6 * np.sin(X[:, 0]) + 1e6 * RNG.normal(size=60)),
    "no noise": (X, np.sin(X[:, 0])),
    "one target of 1e100": (X, np.r_[Y[:-1], 1e100]),
    "one input of 1e200": (np.r_[X[:-1], [[1e200, 3.0]]], Y),
    "inputs of all sizes": (np.exp(40 * RNG.normal(size=(60, 2))), Y),
    "targets of all sizes": (X, 10.0 ** np.linspace(-300, 150, 60)),
}


def assert_sound(model, X, y):
    """Finite means and scores, positive deviations, and no more error than a constant has."""
    y = np.asarray(y, dtype=np.longdouble)  # whose squares are finite
    far = np.vstack([X, X[:1] + 3.0, 1e3 * X[:1], np.full((2, X.shape[1]), [[0.0], [1.7e308]])])
    mean, std = model.predict(far, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std > 0).all()
    assert np.isfinite(model.log_marginal_likelihood())
    assert np.isfinite(model.noise_variance_)
    assert np.isfinite(model.sample_y(far, 2, random_state=0)).all()
    error = np.sqrt(np.mean((y - mean[: len(y)]) ** 2))
    # Noise that varies gives rows their own weights, so that even the mean is another one.
    assert error <= 1.02 * y.std() + 1e-12 * np.abs(y).max()


@each_regressor
@pytest.mark.parametrize("case", HARD)
def test_hard_data_give_sound_fits_that_take_more_rows(make, case):
    X, y = (np.asarray(values) for values in HARD[case])
    model = make().fit(X, y)
    assert_sound(model, X.astype(float), y)
    assert np.isfinite(model.fit_report_.nll)
    assert_sound(model.partial_fit(X, y), X.astype(float), y)


@each_regressor
@pytest.mark.parametrize("a, b", [(332, -332), (-332, 332), (960, -900), (-900, 480)])
def test_powers_of_two_change_nothing_but_units(make, a, b):
    """Factors of 1e±100, 1e±270 and 1e±145, whose products are exact."""
    model = make().fit(X, Y)
    moved = make().fit(2.0**a * X, 2.0**b * Y)
    expected = [2.0**b * part for part in model.predict(X, return_std=True)]
    assert_array_equal(moved.predict(2.0**a * X, return_std=True), expected)
    assert_allclose(moved.fit_report_.nll, model.fit_report_.nll + b * np.log(2), rtol=1e-12)
    model.partial_fit(X[:9], Y[:9])
    moved.partial_fit(2.0**a * X[:9], 2.0**b * Y[:9])
    assert_array_equal(moved.predict(2.0**a * X), 2.0**b * model.predict(X))


@each_regressor
@pytest.mark.parametrize("a, b", [(1e100, 1e-100), (1e-100, 1e100), (-3e90, -7e-90)])
def test_other_factors_change_results_by_rounding(make, a, b):
    """Rounding of 1e-16 in the data moves learning, which stops at relative changes near 1e-9."""
    mean, std = make().fit(X, Y).predict(X, return_std=True)
    moved, moved_std = make().fit(a * X, b * Y).predict(a * X, return_std=True)
    if a > 0:  # atoms at a mirror image are drawn like others, and are others
        assert_allclose(moved / b, mean, atol=1e-6 * Y.std())
        assert_allclose(moved_std / abs(b), std, rtol=1e-5)
    assert np.isfinite([moved, moved_std]).all()


@each_regressor
@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12])
def test_offsets_cost_no_more_than_the_digits_they_take(make, offset):
    """The same rounded data with the offset and without; units round to ulps of the offset."""
    inputs, targets = (X + offset) - offset, (Y + offset) - offset
    mean, std = make().fit(inputs, targets).predict(inputs, return_std=True)
    moved, moved_std = (
        make().fit(inputs + offset, targets + offset).predict(inputs + offset, return_std=True)
    )
    ulps = 50 * np.spacing(offset)
    assert_allclose(moved - offset, mean, atol=ulps + 1e-6)
    assert_allclose(moved_std, std, atol=ulps + 1e-6)


@pytest.mark.parametrize("kind", ["nystrom", "random_features", "tree", "rff"])
def test_a_million_copies_of_a_few_rows(kind):
    rng = np.random.default_rng(4)
    places = np.array([[2.0, 3.0], [2.5, 1.0], [3.0, 2.0], [4.5, 2.5], [5.0, 1.5]])
    which = rng.integers(0, 5, 1_000_000)
    y = np.sin(3 * places[which, 0]) + 0.1 * rng.choice([-1.0, 0.0, 2.0], len(which))
    model = REGRESSORS[kind]().fit(places[which], y)
    mean, std = model.predict(places, return_std=True)
    means = [y[which == place].mean() for place in range(5)]
    # All that is random about the mean at a place is a share of 2e5 rows with noise of 0.125.
    assert_allclose(mean, means, atol=5 * 0.125 / np.sqrt(2e5))
    assert_allclose(std, 0.125, rtol=0.1)


@each_regressor
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16, np.uint8])
def test_narrow_numbers_count_as_what_they_are(make, dtype):
    narrow, targets = (10 * X).astype(dtype), (10 * Y).astype(dtype)
    found = make().fit(narrow, targets).predict(narrow, return_std=True)
    wide, wide_targets = narrow.astype(np.float64), targets.astype(np.float64)
    expected = make().fit(wide, wide_targets).predict(wide, return_std=True)
    assert_array_equal(found, expected)


@each_regressor
def test_noise_a_million_million_times_the_signal_is_noise(make):
    rng = np.random.default_rng(6)
    X, _ = signal(300)
    y = 1e-6 * np.sin(3 * X[:, 0]) + 1e6 * rng.normal(size=300)
    mean, std = make().fit(X, y).predict(X, return_std=True)
    assert_allclose(std, 1e6, rtol=0.5)
    assert np.abs(mean).max() < 1e6


WEIGHTS = {
    "all 1e-100": np.full(60, LEAST_WEIGHT),
    "all 1e-9": np.full(60, 1e-9),
    "all 1e6": np.full(60, 1e6),
    "all 1e15": np.full(60, MOST_WEIGHT),
    "1e-15 to 1e15": np.geomspace(1e-15, MOST_WEIGHT, 60),
    "1e-100 to 1": np.geomspace(LEAST_WEIGHT, 1.0, 60),
    "one of 1e12": np.r_[1e12, np.ones(59)],
    "one and no other": np.r_[1.0, np.zeros(59)],
}


@each_regressor
@pytest.mark.parametrize("case", WEIGHTS)
def test_extreme_weights_give_sound_fits(make, case):
    weights = WEIGHTS[case]
    model = make().fit(X, Y, weights)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(std).all()
    assert (std > 0).all()
    share = weights / weights.sum()
    spread = np.sqrt(share @ (Y - share @ Y) ** 2)
    assert np.sqrt(share @ (Y - mean) ** 2) <= 1.02 * spread + 1e-12
    assert np.isfinite(model.log_marginal_likelihood())


@pytest.mark.parametrize("weight", [5e-324, 1e-200, 1e16, 1e300, 1.7e308])
def test_weights_that_no_sum_can_hold_are_refused(weight):
    weights = np.where(np.arange(60) == 3, weight, 1.0)
    with pytest.raises(ValueError, match=r"sample_weight\[3\] .* outside 1e-100 to 1e\+15.*zero"):
        REGRESSORS["rff"]().fit(X, Y, weights)
    with pytest.raises(ValueError, match=r"row 3: the weight .* outside .*zero"):
        REGRESSORS["rff"]().fit(lambda: iter([(X, Y, weights)]))


@pytest.mark.parametrize(
    "weights",
    [np.full(200, 1 / 200), np.full(200, 1e-100), np.r_[1e12, np.ones(199)]],
    ids=["of sum one", "tiny", "one of 1e12"],
)
def test_a_prior_that_cannot_cope_with_weights_stands_back(weights):
    """By default, all priors compete for one column; sparse weights count rows and need digits."""
    X, y = signal(200, 1)
    model = RWFRegressor(n_restarts=0, max_iter=3, random_state=0).fit(X, y, weights)
    mean, std = model.predict(X, return_std=True)
    share = weights / weights.sum()
    assert share @ (y - mean) ** 2 <= share @ (y - share @ y) ** 2
    assert np.isfinite(std).all()
    assert (std > 0).all()


@pytest.mark.parametrize("case", ["targets times 1e-298", "inputs plus 1e12", "two rows"])
def test_sparse_weights_stand_hard_data_too(case):
    X, y = HARD[case]
    model = RWFRegressor(prior="spike_slab", n_restarts=0, random_state=0).fit(X[:, :1], y)
    mean, std = model.predict(X[:, :1], return_std=True)
    assert np.isfinite(model.fit_report_.nll)
    assert (std > 0).all()
    assert np.isfinite(std).all()
    assert np.abs(y - mean).mean() <= 1.02 * np.abs(y - y.mean()).mean()


@each_regressor
@pytest.mark.parametrize(
    "inputs, targets, message",
    [
        (X, 10 * LARGEST_TARGET * Y, "targets reach .* column 0.* squares overflow.*larger unit"),
        (X, np.r_[Y[:-1], -1.7e308], "targets reach 1.7e.308 in column 0"),
        (X * [1.0, LARGEST_INPUT], Y, "inputs reach .* column 1.* differences overflow.*larger"),
    ],
    ids=["targets", "one target", "inputs"],
)
def test_what_would_overflow_is_refused(make, inputs, targets, message):
    with pytest.raises(ValueError, match=message):
        make().fit(inputs, targets)
    with pytest.raises(ValueError, match=message):
        make().fit(lambda: iter([(inputs, targets)]))


@each_regressor
@pytest.mark.parametrize("target", [1e40, -1e160, 1.7e308])
def test_rows_that_would_drown_all_others_are_refused_and_change_nothing(make, target):
    model = make().fit(X, Y)
    before = model.predict(X, return_std=True)
    with pytest.raises(ValueError, match=r"times what targets deviated by.*fit a new model"):
        model.partial_fit(X[:2], [7.0, target])
    assert_array_equal(model.predict(X, return_std=True), before)


@each_regressor
@pytest.mark.parametrize("place", [1e40, -1e200, 1.7e308])
def test_rows_from_far_away_do_no_harm(make, place):
    model = make().fit(X, Y).partial_fit(np.full((1, 2), place), [7.0])
    mean, std = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((Y - mean) ** 2)) < 1.02 * Y.std()
    assert np.isfinite(std).all()
    assert (std > 0).all()
