"""Frames, cells, adaptation: prior variances and atoms that know where they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from rwf import Adaptive, RWFRegressor
from rwf.data.rows import Block
from rwf.errors import NoAtomsNearbyWarning
from rwf.features import ConstantFamily, LinearFamily
from rwf.features.base import ConstantFeatures, Stack
from rwf.features.lattice import DENSITY, LEAST_ROWS, REACH, draw_lattice
from rwf.features.local import LocalAtoms
from rwf.features.wavelet import unit_directions
from rwf.inference.empirical_bayes import SHRINKAGE, Variances, mackay_fixed_point
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import accumulate
from rwf.priors.adaptive import by_octave, joined_atoms, learn_atoms
from rwf.priors.multiscale import learn_cells
from rwf.wavelets import Cliff, CompactHat, Haar, MexicanHat

TREND = (ConstantFamily(), LinearFamily())


def quiet(message: str) -> None:
    pass


def rows_of(X: np.ndarray, *targets: np.ndarray) -> Block:
    return Block(X, np.column_stack(targets), np.ones(len(X)))


def chirp(n: int, rng: np.random.Generator) -> Block:
    """Fast and strong on the left, slow and weak on the right."""
    x = np.sort(rng.uniform(-1.7, 1.7, n))
    f = np.where(x < 0, np.sin(40 * x), 0.3 * np.sin(3 * x))
    return rows_of(x[:, None], f + 0.1 * rng.normal(size=n))


# ------------------------------------------------------------------------------------------- frames


@given(
    n=st.integers(1, 60),
    d=st.integers(1, 3),
    size=st.integers(1, 200),
    seed=st.integers(0, 50),
    distinct=st.integers(1, 60),
)
def test_a_frame_keeps_to_its_number_and_halves_its_scales(n, d, size, seed, distinct):
    rng = np.random.default_rng(seed)
    X = rng.normal(2.0, 3.0, (n, d))[rng.integers(min(distinct, n), size=n)]
    frame = draw_lattice(CompactHat(), X, size, rng)
    assert 1 <= sum(octave.n_features for octave in frame) <= size
    scales = np.array([octave.scales[0] for octave in frame])
    assert_allclose(scales[1:], scales[:-1] / 2)
    for octave in frame:
        assert np.isfinite(octave(X)).all()
        assert octave.n_features == 1 or _reached(octave, X).min() >= min(LEAST_ROWS, n)


def _reached(octave: LocalAtoms, X: np.ndarray) -> np.ndarray:
    return np.sum(cdist(octave.shifts, X) <= REACH * octave.scales[:, None], axis=1)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_place_among_the_rows_has_atoms_of_every_scale(d, rng):
    X = rng.uniform(size=(4000, d))
    frame = draw_lattice(CompactHat(), X, 1500, rng)
    assert sum(octave.n_features for octave in frame) > 700
    for octave in frame:
        nearest = cdist(X[:300], octave.shifts).min(axis=1)
        assert nearest.max() <= 2 * np.sqrt(d) * octave.scales[0] / DENSITY[d]


def test_crowded_rows_have_finer_atoms(rng):
    X = np.concatenate([rng.uniform(0, 1, 3000), rng.uniform(1, 10, 60)])[:, None]
    finest = draw_lattice(CompactHat(), X, 1000, rng)[-1]
    assert (finest.shifts < 1.2).mean() > 0.9


def test_local_atoms_are_what_their_formula_says(rng):
    X, shifts, scales = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)), rng.uniform(0.3, 2, 5)
    e = unit_directions(5, 2, rng)
    Z = LocalAtoms(Cliff(aspect=3.0), scales, shifts, e)(X)
    U = (X[:, None] - shifts) / scales[:, None]
    p, q = np.sum(U * e, axis=2), np.sum(U**2, axis=2)
    expected = p * np.exp(-(p**2 + (q - p**2) / 9) / 2) / np.sqrt(5)
    assert_allclose(Z, expected, rtol=1e-12, atol=1e-15)


def test_cells_are_as_wide_as_asked_and_scales_do_not_mix(rng):
    octave = LocalAtoms.of_scale(CompactHat(), 0.5, rng.uniform(0, 20, (300, 1)))
    cells = octave.cells(4.0)
    for label in range(cells.max() + 1):
        inside = octave.shifts[cells == label, 0]
        assert len(inside)
        assert np.ptp(inside) <= 4.0 * 0.5
    stack = Stack((octave, octave.take(np.arange(10)), ConstantFeatures()))
    stack = Stack(stack.maps, (cells, np.zeros(10, dtype=int), np.zeros(1, dtype=int)))
    assert_array_equal(stack.parents[stack.groups], stack.blocks)
    assert len(np.unique(stack.groups)) == len(stack.parents) == cells.max() + 3


# ---------------------------------------------------------------------------------- the fixed point


def test_the_fixed_point_is_where_the_evidence_is_flat(rng):
    rows = chirp(400, rng)
    stack = Stack((*draw_lattice(CompactHat(), rows.X, 60, rng), ConstantFeatures()))
    moments = accumulate(stack, [rows], 1)
    start = Variances(np.zeros(len(stack.maps)), np.log(0.1))
    fits = mackay_fixed_point(
        moments, 0, stack.groups, stack.parents, start, max_iter=3000, tol=1e-9
    )
    gradient = variance_gradient(fits.posterior, stack.groups, len(stack.maps))
    assert abs(gradient.log_noise) < 1e-3
    # A block that is its own mean: shrinkage towards it changes nothing.
    at_floor = fits.variances.log_priors < -17.9
    assert_allclose(gradient.log_priors[~at_floor], 0.0, atol=0.05)


def test_a_cell_without_rows_has_the_variance_of_its_octave(rng):
    rows = chirp(300, rng)
    near = LocalAtoms.of_scale(CompactHat(), 0.3, rng.uniform(-1.7, 1.7, (20, 1)))
    far = LocalAtoms.of_scale(CompactHat(), 0.3, rng.uniform(50, 51, (5, 1)))
    both = near.joined(far)
    stack = Stack((both,), (np.repeat([0, 1], [20, 5]),))
    moments = accumulate(stack, [rows], 1)
    start = Variances(np.zeros(2), np.log(0.1))
    fits = mackay_fixed_point(moments, 0, stack.groups, stack.parents, start, max_iter=50)
    assert_allclose(*np.exp(fits.variances.log_priors), rtol=10 * SHRINKAGE)


def test_cells_find_where_the_signal_is(rng):
    rows = chirp(1200, rng)
    frame = draw_lattice(CompactHat(), rows.X, 400, rng)
    shape, tried = learn_cells(frame, [ConstantFeatures()], rows, rng, quiet)
    chosen = next(report for report in tried if report.chosen)
    assert chosen.name.startswith("cells")
    assert chosen.held_out > tried[0].held_out
    variances = np.exp(shape.log_priors)[shape.features.groups]
    octave = int(np.argmin([abs(np.log(part.scales[0] / 0.05)) for part in frame]))
    mine = shape.features.blocks == octave
    left = frame[octave].shifts[:, 0] < -0.3
    right = frame[octave].shifts[:, 0] > 0.3
    assert np.median(variances[mine][left]) > 10 * np.median(variances[mine][right])


def test_a_stationary_signal_needs_no_cells_and_coverage_holds(rng):
    x = rng.uniform(size=(900, 1))
    f = np.sin(9 * x[:, 0])
    y = f + 0.2 * rng.normal(size=900)
    model = RWFRegressor(300, prior="multiscale", random_state=0).fit(x[:600], y[:600])
    mean, std = model.predict_function(x[600:])
    assert np.sqrt(np.mean((mean - f[600:]) ** 2)) < 0.06
    assert np.mean(np.abs(mean - f[600:]) < 1.96 * std) > 0.75  # one function: errors go together
    lower, upper = model.predict_interval(x[600:])
    assert 0.91 < np.mean((lower < y[600:]) & (y[600:] < upper)) < 0.99


# --------------------------------------------------------------------------------------- adaptation


def test_octaves_keep_all_atoms_and_their_order(rng):
    atoms = LocalAtoms(
        MexicanHat(), rng.uniform(0.1, 3.0, 40), rng.normal(size=(40, 1)), np.ones((40, 1))
    )
    stack = by_octave(atoms, [ConstantFeatures()])
    again = joined_atoms(stack)
    assert_array_equal(np.sort(again.shifts, axis=0), np.sort(atoms.shifts, axis=0))
    X = rng.normal(size=(5, 1))
    sizes = [np.sqrt(len(part.scales)) for part in stack.maps[:-1]]
    unscaled = [part(X) * size for part, size in zip(stack.maps[:-1], sizes, strict=True)]
    assert_allclose(np.hstack(unscaled), again(X) * np.sqrt(40), rtol=1e-12)


def test_atoms_gather_where_the_signal_is(rng):
    x = np.sort(rng.uniform(0, 1, 1500))
    y = np.where(x > 0.5, 1.0, -1.0) + 0.1 * rng.normal(size=1500)
    rows = rows_of(x[:, None], y)
    shape, rounds = learn_atoms(MexicanHat(), [ConstantFeatures()], rows, 60, rng, quiet)
    atoms = joined_atoms(shape.features)
    fine = atoms.scales < 0.05
    assert np.mean(np.abs(atoms.shifts[fine, 0] - 0.5) < 0.1) > 0.5
    best = max(rounds, key=lambda r: r.held_out)
    assert best.chosen
    assert best.held_out > rounds[0].held_out + 0.1


def test_adaptive_atoms_beat_random_ones_on_a_step(rng):
    x = rng.uniform(size=(1500, 1))
    f = np.where(x[:, 0] > 0.37, 1.0, 0.0)
    y = f + 0.05 * rng.normal(size=1500)
    errors = {}
    for prior in ("adaptive", "random_features"):
        model = RWFRegressor(40, prior=prior, random_state=0).fit(x[:1000], y[:1000])
        errors[prior] = np.sqrt(np.mean((model.predict(x[1000:]) - f[1000:]) ** 2))
    assert errors["adaptive"] < 0.8 * errors["random_features"]


def test_haar_atoms_are_not_finer_than_their_rows_allow(rng):
    x = rng.uniform(size=(400, 1))
    rows = rows_of(x, np.sign(x[:, 0] - 0.5) + 0.1 * rng.normal(size=400))
    shape, _ = learn_atoms(Haar(), [ConstantFeatures()], rows, 40, rng, quiet)
    assert joined_atoms(shape.features).scales.min() > 12 / 400


def test_oriented_atoms_turn_along_a_cliff(rng):
    X = rng.uniform(-1, 1, (2500, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0) + 0.1 * rng.normal(size=2500)
    model = RWFRegressor(60, prior=Adaptive(wavelet=Cliff()), random_state=1).fit(X, y)
    atoms = joined_atoms(model.model_.base.hyperparameters.features)
    across = np.abs(atoms.directions @ np.array([1.0, 1.0]) / np.sqrt(2))
    near = np.abs(atoms.shifts.sum(axis=1)) < 0.5
    assert np.median(across[near & (atoms.scales < 0.5)]) > 0.85


# --------------------------------------------------------------------------- where nothing is known


@pytest.mark.parametrize("prior", ["random_features", "multiscale", "adaptive", "nystrom"])
def test_in_a_gap_and_far_away_the_prior_comes_back(prior, rng):
    x = np.concatenate([rng.uniform(0, 0.4, 300), rng.uniform(0.6, 1.0, 300)])[:, None]
    y = np.sin(60 * x[:, 0]) + 0.05 * rng.normal(size=600)
    quick = {"trend": "constant", "n_restarts": 0, "random_state": 0}
    model = RWFRegressor(200, prior=prior, **quick).fit(x, y)
    signal = np.std(np.sin(60 * x[:, 0]))
    _, among = model.predict_function(np.array([[0.2], [0.8]]))
    _, gap = model.predict_function(np.array([[0.5]]))
    _, far = model.predict_function(np.array([[40.0]]))
    assert among.max() < 0.3 * signal
    assert gap.min() > 0.6 * signal
    assert far.min() > 0.6 * signal


@pytest.mark.parametrize("prior", ["multiscale", "adaptive"])
def test_a_row_without_atoms_is_warned_about(prior, rng):
    x = rng.uniform(size=(300, 1))
    model = RWFRegressor(100, prior=prior, random_state=0).fit(x, np.sin(9 * x[:, 0]))
    assert model.support(x).mean() > 0.95
    assert_allclose(model.support(np.array([[100.0]])), 0.0, atol=1e-6)
    with pytest.warns(NoAtomsNearbyWarning, match="1 of 2 rows"):
        model.predict(np.array([[0.5], [100.0]]), return_std=True)


def test_the_variance_of_the_raw_posterior_vanishes_far_away(rng):
    x = rng.uniform(size=(300, 1))
    y = np.sin(9 * x[:, 0]) + 0.1 * rng.normal(size=300)
    raw = {"trend": "none", "calibration": None}
    model = RWFRegressor(100, prior="multiscale", **raw, random_state=0).fit(x, y)
    _, std = model.predict_function(np.array([[100.0]]))
    assert std.max() < 1e-6


# ------------------------------------------------------------------------------- as everywhere else


@pytest.mark.parametrize("prior", ["multiscale", "adaptive"])
def test_rows_in_pieces_give_the_same_model(prior, rng):
    x = rng.uniform(size=(240, 1))
    y = np.sin(20 * x[:, 0]) + 0.1 * rng.normal(size=240)
    whole = RWFRegressor(60, prior=prior, random_state=0).fit(x, y)
    left = whole.empty_copy().partial_fit(x[:100], y[:100])
    right = whole.empty_copy().partial_fit(x[100:], y[100:])
    left.merge(right)
    assert_allclose(left.predict(x), whole.predict(x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("prior", ["multiscale", "adaptive"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_are_enough_to_run(prior, n, rng):
    x = rng.normal(size=(n, 1))
    model = RWFRegressor(20, prior=prior, random_state=0).fit(x, rng.normal(size=n))
    assert np.isfinite(model.predict(x, return_std=True)).all()


@pytest.mark.parametrize("prior", ["multiscale", "adaptive"])
def test_too_many_columns_are_refused(prior, rng):
    with pytest.raises(ValueError, match=r"X has 4: use prior='nystrom'"):
        RWFRegressor(prior=prior).fit(rng.normal(size=(9, 4)), rng.normal(size=9))


# ------------------------------------------------------------------------------- noise that varies


def noisy(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.sort(rng.uniform(size=n))
    sd = 0.05 + 0.5 * x**2
    return x[:, None], np.sin(6 * x) + sd * rng.normal(size=n), sd


def test_the_noise_is_found_where_it_is(rng):
    x, y, sd = noisy(800, rng)
    model = RWFRegressor(60, prior="multiscale", random_state=0).fit(x, y)
    _, total = model.predict(x, return_std=True)
    _, of_f = model.predict_function(x)
    found = np.sqrt(total**2 - of_f**2)
    assert np.median(np.abs(np.log(found / sd))) < 0.2


def test_constant_noise_is_left_alone_and_varying_can_be_forced(rng):
    x = rng.uniform(size=(400, 1))
    y = np.sin(6 * x[:, 0]) + 0.2 * rng.normal(size=400)
    assert RWFRegressor(50, prior="multiscale", random_state=0).fit(x, y).model_.base.noise is None
    forced = RWFRegressor(50, prior="multiscale", noise="heteroscedastic", random_state=0).fit(x, y)
    v = forced.model_.base.relative_noise(forced.model_.units.inputs(x))
    assert 1.0 < v.max() / v.min() < 4.0
    with pytest.raises(ValueError, match="noise='often' must be one of"):
        RWFRegressor(noise="often").fit(x, y)


def test_varying_noise_improves_the_density_and_streams(rng):
    x, y, _ = noisy(700, rng)
    nll = {}
    for noise in ("constant", "auto"):
        model = RWFRegressor(
            60, prior="multiscale", noise=noise, calibration="global", random_state=0
        ).fit(x[::2], y[::2])
        mean, std = model.predict(x[1::2], return_std=True)
        nll[noise] = np.mean(np.log(std) + 0.5 * ((y[1::2] - mean) / std) ** 2)
    assert nll["auto"] < nll["constant"] - 0.15
    parts = model.empty_copy().partial_fit(x[:100:2], y[:100:2])
    parts.partial_fit(x[100::2], y[100::2])
    assert_allclose(parts.predict(x), model.predict(x), rtol=1e-7, atol=1e-9)
    assert_allclose(parts.log_marginal_likelihood(), model.log_marginal_likelihood(), rtol=1e-7)
    draws = model.sample_y(x[[0, -1]], 4000, random_state=1)
    assert draws[1].std() > 3 * draws[0].std()
    _, covariance = model.predict(x[:5], return_cov=True)
    _, std = model.predict(x[:5], return_std=True)
    assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
