"""Leaving groups out: from one posterior, the predictions of a model that never saw the group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from rwf import RWFRegressor
from rwf.data.rows import Block
from rwf.inference.spike_slab import Schedule
from rwf.models import dense, tree
from rwf.models.gaussian import GaussianModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.priors.spike_slab import SpikeSlab

SHORT = Schedule(chains=2, sweeps=6, burn_in=2, keeping=2, attempts=1, draws=10)


def grouped(n=240, seed=0, noise=0.3):
    """A wave with more noise to the right, in twelve groups of different sizes, with weights."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(3.0, 7.0, (n, 1)), axis=0)
    y = 50.0 + 2.0 * np.sin(2.0 * X) + noise * (0.3 + (X > 5.0)) * rng.normal(size=(n, 1))
    groups = rng.permutation(np.repeat(np.arange(12), np.arange(9, 32, 2))[:n])
    return Block(X, y, rng.integers(1, 4, n).astype(float), groups=groups)


KINDS = {
    "gram": {"prior": "multiscale", "noise": "constant"},
    "heteroscedastic": {"prior": "multiscale", "noise": "heteroscedastic"},
    "student": {"prior": "multiscale", "noise": "student"},
    "few columns": {"prior": "multiscale", "noise": "constant", "n_components": 8},
    "nystrom": {"prior": "nystrom", "max_iter": 5, "n_restarts": 0},
    "multifrontal": {"solver": "multifrontal", "noise": "constant"},
    "multifrontal, heteroscedastic": {"solver": "multifrontal", "noise": "heteroscedastic"},
    "multifrontal, student": {"solver": "multifrontal", "noise": "student"},
}


def fitted(**options) -> tuple[GaussianModel, Block]:
    rows = grouped()
    given = {"n_components": 60, "random_state": 0, "neighbors": None, "calibration": None}
    model = RWFRegressor(**given | options).fit(rows.X, rows.y, rows.weights).model_
    return model, model.units.rows(rows)


def without(model: GaussianModel, rows: Block, group: int) -> np.ndarray:
    """Mean and variance of f at a group's rows, from the statistics of all other rows alone."""
    held = rows.groups == group
    p = model.fits[0].posterior
    others = model.collect(replace(rows.part(~held), groups=None), model.noise)
    refitted = others.posterior(0, p.prior_variances, p.noise_variance)
    at = rows.X[held] if model.solver == "multifrontal" else model.features(rows.X[held])
    f = refitted.predict(np.asarray(at), 0.0)
    return np.stack([f.mean, f.variance])


def difference(model: GaussianModel, rows: Block) -> float:
    found, largest = model.leave_one_out(rows), 0.0
    lacking = model.predict(rows.X).function_variance[:, 0]
    for output, t in enumerate(model.fits):
        lacking = lacking - _function_variance(model, t, rows)
        f = np.stack([found.mean[:, output], found.function_variance[:, output] - lacking])
        for group in np.unique(rows.groups):
            held = rows.groups == group
            largest = max(largest, np.abs(f[:, held] - without(model, rows, group)).max())
    return largest


def _function_variance(model, t, rows):
    at = rows.X if model.solver == "multifrontal" else np.asarray(model.features(rows.X))
    return t.posterior.predict(at, 0.0).variance


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_leaving_a_group_out_is_a_refit_without_it(options):
    model, rows = fitted(**options)
    assert difference(model, rows) < 1e-8


def test_the_same_in_square_root_form():
    model, rows = fitted(prior="multiscale", noise="constant")
    root = replace(model, statistics=dense.collect(model.hyperparameters, rows, "root"))
    assert root.statistics.form == "root"
    assert difference(root, rows) < 1e-8


@pytest.mark.parametrize("noise", ["heteroscedastic", "student"])
def test_large_groups_are_left_out_in_parts(monkeypatch, noise):
    model, rows = fitted(prior="multiscale", noise=noise)
    whole = model.leave_one_out(rows)
    monkeypatch.setattr(dense, "block_rows", lambda *_: 7)
    for name in ("mean", "function_variance", "noise_variance", "support"):
        assert_allclose(
            getattr(model.leave_one_out(rows), name), getattr(whole, name), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("noise", ["heteroscedastic", "student"])
def test_large_groups_are_left_out_of_a_tree_by_its_moments(monkeypatch, noise):
    model, rows = fitted(solver="multifrontal", noise=noise)
    whole = model.leave_one_out(rows)
    monkeypatch.setattr(tree, "GROUP_BYTES", 8 * model.tree.n_features * 4)
    found = model.leave_one_out(rows)
    assert_allclose(found.mean, whole.mean, rtol=0, atol=1e-9)
    assert_allclose(found.variance, whole.variance, rtol=0, atol=1e-9)


ALL = KINDS | {
    "spike_slab": {"prior": SpikeSlab(SHORT), "n_components": None},
    "calibrated": {"prior": "multiscale", "calibration": "local"},
}


@pytest.mark.parametrize("options", ALL.values(), ids=ALL)
def test_groups_of_one_row_are_rows_left_out_alone(options):
    model, rows = fitted(**options)
    alone = replace(rows, groups=np.random.default_rng(0).permutation(len(rows)))
    one, group = model.leave_one_out(replace(rows, groups=None)), model.leave_one_out(alone)
    assert_allclose(group.mean, one.mean, rtol=0, atol=1e-9)
    assert_allclose(group.variance, one.variance, rtol=1e-8, atol=1e-10)


def test_a_weight_is_as_many_rows_of_the_group():
    model, rows = fitted(prior="multiscale")
    count = rows.weights.astype(int)
    repeated = rows.part(np.repeat(np.arange(len(rows)), count))
    repeated = replace(repeated, weights=np.ones(len(repeated)))
    found = model.leave_one_out(repeated)
    once = model.leave_one_out(rows)
    assert_allclose(found.mean, np.repeat(once.mean, count, axis=0), rtol=0, atol=1e-9)
    assert_allclose(found.variance, np.repeat(once.variance, count, axis=0), rtol=1e-8)


def test_spike_and_slab_leaves_a_group_out_of_every_draw():
    """With one draw, the mixture is one Gaussian, and its group can be left out by a refit."""
    model, rows = fitted(prior=SpikeSlab(SHORT), n_components=None)
    assert isinstance(model, SpikeSlabModel)
    mixture = model._posteriors[0].mixtures[0]
    single = replace(mixture, draws=mixture.draws[:1])
    window = model.hyperparameters.fits[0].windows[0]
    held = rows.groups == 5
    others = window.fit.collect(replace(rows.part(~held), groups=None))
    refitted = replace(single, moments=others)
    Z = np.asarray(window.fit.features(rows.X[held]), dtype=np.float64)
    expected = refitted.predict(Z)
    found = single.leave_group_out(Z, rows.y[held, 0], rows.weights[held]).y
    assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-8)
    assert_allclose(found.variance, expected.variance, rtol=1e-7)


def test_the_density_of_a_group_is_the_joint_one_of_its_rows():
    model, rows = fitted(prior="multiscale", noise="constant")
    p, held = model.fits[0].posterior, rows.groups == 7
    Z, y, ones = np.asarray(model.features(rows.X)), rows.y[:, 0], np.ones(len(rows))
    all_rows = model.collect(replace(rows, groups=None, weights=ones), None)
    others = model.collect(replace(rows.part(~held), groups=None, weights=ones[~held]), None)
    seen, rest = (m.posterior(0, p.prior_variances, p.noise_variance) for m in (all_rows, others))
    C = rest.covariance_of(Z[held]) + p.noise_variance * np.eye(held.sum())
    expected = multivariate_normal(Z[held] @ rest.mean, C).logpdf(y[held])
    found = seen.leave_group_out(Z[held], y[held], ones[held])
    assert_allclose(found.log_density, expected, rtol=1e-8)
