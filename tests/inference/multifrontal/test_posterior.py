"""Both solvers agree: same atoms, same prior, same posterior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf.data.rows import Block
from rwf.errors import IncompatibleModelsError, NotPositiveDefiniteError
from rwf.features import ConstantFeatures, FourierFamily, LinearFeatures, Stack
from rwf.features.local import LocalAtoms
from rwf.features.wavelet import unit_directions
from rwf.inference.empirical_bayes import Variances, mackay_fixed_point
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import Moments, accumulate
from rwf.inference.multifrontal import (
    AtomTree,
    TreeMoments,
    TreePosterior,
    accumulate_tree,
    draw_multifrontal_lattice,
    power_law,
    tree_fixed_point,
)
from rwf.inference.multifrontal import elimination as elimination_module
from rwf.inference.multifrontal import moments as moments_module
from rwf.inference.multifrontal import schedule as schedule_module
from rwf.inference.posterior import Posterior
from rwf.wavelets import CompactHat, ComplexMorlet, Haar, MexicanHat, Morlet
from rwf.wavelets.radial import Bump


def scattered(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Clusters of very different density, a gap between them, and repeated rows."""
    tight = rng.normal(3.0, 0.02, (n // 3, d))
    wide = rng.uniform(-2.0, 2.5, (n - n // 3, d))
    X = np.concatenate([tight, wide])
    X[:: max(n // 20, 1)] = X[0]
    return X[rng.permutation(n)]


def random_atoms(wavelet, m: int, d: int, rng: np.random.Generator) -> LocalAtoms:
    """Atoms of any size anywhere, not only where rows are."""
    shifts = np.concatenate([scattered(m - m // 4, d, rng), rng.uniform(-6, 9, (m // 4, d))])
    return LocalAtoms(
        wavelet, np.exp(rng.uniform(-4.0, 0.0, m)), shifts, unit_directions(m, d, rng)
    )


class Problem:
    """Rows, features and variances away from every neutral element, for both solvers."""

    def __init__(
        self,
        rng: np.random.Generator,
        *,
        n: int = 300,
        d: int = 1,
        m: int = 120,
        k: int = 1,
        wavelet=None,
        leaf: int = 12,
        weighted: bool = True,
        lattice: bool = False,
    ) -> None:
        self.d, self.k = d, k
        X = scattered(n, d, rng)
        weights = rng.uniform(0.0, 2.0, n) if weighted else np.ones(n)
        noise = rng.uniform(0.5, 2.0, n) if weighted else None
        self.rows = Block(X, rng.normal(1.5, 1.0, (n, k)), weights, noise)
        wavelet = wavelet or (CompactHat() if d == 1 else Bump())
        octaves = (
            draw_multifrontal_lattice(wavelet, X, m, rng)
            if lattice
            else (random_atoms(wavelet, m - m // 3, d, rng), random_atoms(wavelet, m // 3, d, rng))
        )
        self.features = Stack((LinearFeatures(d), *octaves, ConstantFeatures()))
        self.tree = AtomTree.of(self.features, d, leaf)
        self.groups, self.n_groups = self.features.groups, len(self.features.maps)
        self.log_priors = rng.normal(1.0, 1.0, self.n_groups)
        self.noise = float(np.exp(rng.normal(-1.5, 0.5)))
        # In the clusters, in the gap, far outside, and on the rows themselves.
        self.X_new = np.concatenate(
            [scattered(40, d, rng), rng.uniform(-9, 12, (40, d)), X[:20], np.full((1, d), 1e6)]
        )

    @property
    def prior(self) -> np.ndarray:
        return np.exp(self.log_priors)[self.groups]

    @property
    def dense(self) -> Moments:
        return accumulate(self.features, [self.rows], self.k)

    @property
    def local(self) -> TreeMoments:
        return accumulate_tree(self.tree, [self.rows], self.k)

    def posteriors(self, output: int = 0) -> tuple[Posterior, TreePosterior]:
        return (
            self.dense.posterior(output, self.prior, self.noise),
            self.local.posterior(output, self.prior, self.noise),
        )


def assert_same(problem: Problem, output: int = 0) -> None:
    dense, tree = problem.posteriors(output)
    largest = np.abs(dense.mean).max()
    assert_allclose(tree.mean, dense.mean, rtol=1e-8, atol=1e-9 * largest)
    assert tree.log_evidence == pytest.approx(dense.log_evidence, rel=1e-8, abs=1e-8)
    expected, found = dense.predict(problem.features(problem.X_new)), tree.predict(problem.X_new)
    assert_allclose(found.mean, expected.mean, rtol=1e-8, atol=1e-8)
    assert_allclose(found.variance, expected.variance, rtol=1e-8)
    slope = variance_gradient(dense, problem.groups, problem.n_groups)
    mine = variance_gradient(tree, problem.groups, problem.n_groups)
    assert mine.log_noise == pytest.approx(slope.log_noise, rel=1e-6, abs=1e-6)
    assert_allclose(mine.log_priors, slope.log_priors, rtol=1e-6, atol=1e-6)


# --------------------------------------------------------------------------------- the same numbers


@given(
    n=st.integers(1, 250),
    d=st.integers(1, 3),
    m=st.integers(3, 150),
    leaf=st.integers(1, 40),
    lattice=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_the_tree_has_the_numbers_of_the_dense_solver(n, d, m, leaf, lattice, weighted, seed):
    rng = np.random.default_rng(seed)
    assert_same(Problem(rng, n=n, d=d, m=m, leaf=leaf, lattice=lattice, weighted=weighted))


@pytest.mark.parametrize(
    "wavelet",
    [CompactHat(3), CompactHat(6), Bump(), MexicanHat(), Haar(), Morlet(2.0), ComplexMorlet(2.0)],
    ids=lambda w: f"{type(w).__name__}",
)
@pytest.mark.parametrize("d", [1, 2])
def test_every_wavelet_has_the_numbers_of_the_dense_engine(wavelet, d, rng):
    assert_same(Problem(rng, d=d, m=90, wavelet=wavelet))


def test_columns_that_are_everywhere_need_not_be_a_trend(rng):
    problem = Problem(rng, n=200, d=2)
    waves = FourierFamily("se", 1.3).draw(10, problem.rows.X, rng)
    problem.features = Stack((waves, *problem.features.maps))
    problem.tree = AtomTree.of(problem.features, 2, 12)
    problem.groups, problem.n_groups = problem.features.groups, len(problem.features.maps)
    problem.log_priors = rng.normal(size=problem.n_groups)
    assert_same(problem)


@pytest.mark.parametrize("d, m", [(1, 2000), (2, 1500)])
def test_thousands_of_columns_have_the_numbers_of_the_dense_engine(d, m, rng):
    problem = Problem(rng, n=5000, d=d, m=m, leaf=100, lattice=True)
    assert problem.tree.n_features > 0.4 * m
    assert problem.tree.dissection.n_nodes > 10
    assert_same(problem)


def test_outputs_have_their_own_posteriors(rng):
    problem = Problem(rng, k=3, d=2)
    for output in range(3):
        assert_same(problem, output)


def test_no_rows_give_the_prior(rng):
    problem = Problem(rng, d=2)
    nothing = problem.rows.part(slice(0, 0))
    for moments in (
        accumulate_tree(problem.tree, [], 1),
        accumulate_tree(problem.tree, [nothing], 1),
    ):
        posterior = moments.posterior(0, problem.prior, problem.noise)
        assert not posterior.mean.any()
        assert posterior.log_evidence == pytest.approx(0.0, abs=1e-12)
        Z = problem.features(problem.X_new)
        expected = (Z**2 * problem.prior).sum(axis=1)
        found = posterior.predict(problem.X_new, with_noise=False)
        assert_allclose(found.variance, expected, rtol=1e-12)
        assert_array_equal(found.mean, 0.0)


def test_gradients_are_slopes_of_the_evidence(rng):
    problem, step = Problem(rng, d=2), 1e-5
    moments, groups = problem.local, problem.groups
    posterior = moments.posterior(0, problem.prior, problem.noise)
    gradient = variance_gradient(posterior, groups, problem.n_groups)

    def value(log_priors: np.ndarray, log_noise: float) -> float:
        return moments.posterior(0, np.exp(log_priors)[groups], np.exp(log_noise)).log_evidence

    at, noise = problem.log_priors, np.log(problem.noise)
    slope = (value(at, noise + step) - value(at, noise - step)) / (2 * step)
    assert gradient.log_noise == pytest.approx(slope, rel=1e-6, abs=1e-5)
    for g in range(problem.n_groups):
        e = step * np.eye(problem.n_groups)[g]
        slope = (value(at + e, noise) - value(at - e, noise)) / (2 * step)
        assert gradient.log_priors[g] == pytest.approx(slope, rel=1e-6, abs=1e-5)


# ------------------------------------------------------------------------------------------ moments


@given(
    size=st.integers(1, 24),
    gathered=st.integers(1, 24),
    k=st.integers(1, 3),
    d=st.integers(1, 2),
    weighted=st.booleans(),
)
def test_any_split_of_rows_gives_the_same_moments(size, gathered, k, d, weighted):
    problem = Problem(np.random.default_rng(size), n=24, d=d, k=k, weighted=weighted)
    whole = problem.local
    parts = [problem.rows.part(slice(i, i + size)) for i in range(0, 24, size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moments_module, "LEAST_GATHERED", gathered)
        patch.setattr(moments_module, "ROWS_PER_LEAF", 0)
        streamed = accumulate_tree(problem.tree, parts, k)
    added = TreeMoments.empty(problem.tree, k)
    for part in parts:
        added = added + accumulate_tree(problem.tree, [part], k)
    for other in (streamed, added):
        assert_allclose(other.grams, whole.grams, rtol=1e-11, atol=1e-12)
        assert_allclose(other.Zty, whole.Zty, rtol=1e-11, atol=1e-12)
        assert_allclose(other.yty, whole.yty, rtol=1e-12)
        assert other.n == pytest.approx(whole.n)
        assert other.log_volume == pytest.approx(whole.log_volume)


def test_blocks_with_and_without_noise_can_be_joined(rng):
    problem = Problem(rng)
    plain = Block(problem.rows.X, problem.rows.y, problem.rows.weights)
    both = accumulate_tree(problem.tree, [plain, problem.rows], 1)
    expected = accumulate(problem.features, [plain, problem.rows], 1)
    assert_allclose(both.Zty, expected.Zty, rtol=1e-11, atol=1e-12)
    assert both.log_volume == pytest.approx(expected.log_volume)


def test_moments_hold_what_the_gram_matrix_holds(rng):
    problem = Problem(rng, d=2, k=2)
    dense, tree = problem.dense, problem.local
    assert tree.n_outputs == 2
    assert_allclose(tree.Zty, dense.Zty, rtol=1e-10, atol=1e-12)
    assert_allclose(tree.column_energies, dense.column_energies, rtol=1e-11, atol=1e-14)
    w = rng.normal(size=problem.tree.n_features)
    assert tree.quadratic_form(w) == pytest.approx(w @ dense.ZtZ @ w)
    assert 1e-18 < tree.resolvable_noise(problem.prior) < 0.1
    assert tree.resolvable_noise(2 * problem.prior) == pytest.approx(
        2 * tree.resolvable_noise(problem.prior)
    )


def test_moments_of_other_trees_or_outputs_cannot_be_added(rng):
    one, other = Problem(rng), Problem(rng)
    with pytest.raises(IncompatibleModelsError, match="one tree"):
        _ = one.local + other.local
    with pytest.raises(IncompatibleModelsError, match="outputs"):
        _ = one.local + TreeMoments.empty(one.tree, 2)
    with pytest.raises(ValueError, match="columns"):
        accumulate_tree(one.tree, [one.rows], 2)


def test_moments_of_equal_trees_can_be_added(rng):
    problem = Problem(rng)
    again = accumulate_tree(AtomTree.of(problem.features, 1, 12), [problem.rows], 1)
    assert_allclose((problem.local + again).grams, 2 * problem.local.grams)


@pytest.mark.parametrize("d", [1, 2])
def test_sizes_of_pieces_change_nothing(d, rng, monkeypatch):
    monkeypatch.setattr("rwf.inference.multifrontal.atom_tree.CELL_ROWS", 7)
    monkeypatch.setattr("rwf.inference.multifrontal.inverse.STRIP", 5)
    monkeypatch.setattr("rwf.inference.multifrontal.elimination.SOLVED_AT_ONCE", 3)
    assert_same(Problem(rng, d=d, n=500, m=200, leaf=20))


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_threads_change_nothing(cores, rng, monkeypatch):
    problem = Problem(rng, d=2, n=500, m=300)
    for module in (
        "rwf.linalg.threads",
        "rwf.inference.multifrontal.schedule",
        "rwf.inference.multifrontal.cells",
    ):
        monkeypatch.setattr(f"{module}.cores", lambda: cores)
    top, subtrees = schedule_module.schedule(problem.tree.dissection)
    assert len(subtrees) == {1: 1, 2: 4, 5: 7}[cores]  # leaves are not parted
    assert sorted([*top, *(v for part in subtrees for v in part)]) == list(
        range(problem.tree.dissection.n_nodes)
    )
    assert_same(problem)


# ---------------------------------------------------------------------------------------- posterior


def test_variances_without_noise_and_with_noise_by_row(rng):
    problem = Problem(rng, d=2)
    dense, tree = problem.posteriors()
    Z = problem.features(problem.X_new)
    noise = rng.uniform(0.5, 2.0, len(Z))
    assert_allclose(
        tree.predict(problem.X_new, noise).variance, dense.predict(Z, noise).variance, rtol=1e-9
    )
    expected = dense.covariance_of(Z)
    found = tree.predict(problem.X_new, with_noise=False)
    assert_allclose(found.variance, expected.diagonal(), rtol=1e-8, atol=1e-12)
    assert_allclose(tree.covariance(problem.X_new), expected, rtol=1e-7, atol=1e-10)
    mean = problem.tree.times(problem.X_new, tree.mean[:, None])[:, 0]
    assert_allclose(mean, found.mean, rtol=1e-10, atol=1e-12)


def test_predictions_keep_the_order_of_rows_and_do_not_depend_on_their_company(rng):
    problem = Problem(rng, d=2, n=800)
    _, tree = problem.posteriors()
    X = scattered(900, 2, rng)
    together = tree.predict(X)
    for i in range(0, 900, 90):
        alone = tree.predict(X[i : i + 1])
        assert_allclose(alone.mean, together.mean[i], rtol=1e-9, atol=1e-12)
        assert_allclose(alone.variance, together.variance[i], rtol=1e-9)
    nothing = tree.predict(X[:0])
    assert nothing.mean.shape == nothing.variance.shape == (0,)


def test_draws_have_the_posteriors_mean_and_covariance(rng):
    problem = Problem(rng, n=60, m=12, leaf=3)
    dense, tree = problem.posteriors()
    count = 20_000
    draws = tree.sample_weights(count, rng)
    S = dense.weight_covariance()
    sd = np.sqrt(S.diagonal())
    assert (np.abs(draws.mean(axis=1) - dense.mean) < 5 * sd / np.sqrt(count)).all()
    # The standard error of a covariance of normal variables.
    error = np.sqrt((np.outer(sd, sd) ** 2 + S**2) / count)
    assert (np.abs(np.cov(draws) - S) < 5.5 * error).all()


def test_rows_are_left_out_as_in_the_dense_engine(rng):
    problem = Problem(rng, d=2)
    dense, tree = problem.posteriors()
    rows, y = problem.rows, problem.rows.y[:, 0]
    expected = dense.leave_one_out(problem.features(rows.X), y, rows.weights, rows.noise)
    found = tree.leave_one_out(rows.X, y, rows.weights, rows.noise)
    assert_allclose(found.mean, expected.mean, rtol=1e-7, atol=1e-8)
    assert_allclose(found.variance, expected.variance, rtol=1e-7)


def test_sums_as_arrays_are_the_same_moments(rng):
    problem = Problem(rng, d=2, k=2)
    again = TreeMoments.of_sums(problem.local.tree, problem.local.sums())
    before = problem.local.posterior(1, problem.prior, problem.noise)
    after = again.posterior(1, problem.prior, problem.noise)
    assert after.log_evidence == before.log_evidence
    assert_array_equal((again + problem.local).grams, 2 * problem.local.grams)


def test_variances_are_checked(rng):
    problem = Problem(rng)
    moments = problem.local
    with pytest.raises(ValueError, match="columns"):
        moments.posterior(0, problem.prior[1:], 0.1)
    with pytest.raises(ValueError, match="not negative"):
        moments.posterior(0, -problem.prior, 0.1)
    with pytest.raises(ValueError, match="finite"):
        moments.posterior(0, problem.prior * np.nan, 0.1)
    for noise in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="positive"):
            moments.posterior(0, problem.prior, noise)


def test_a_front_without_a_factor_gets_jitter_or_an_error(rng):
    problem = Problem(rng, n=400, m=150)
    tiny = 1e-17
    factor = elimination_module.factor_tree(problem.local, problem.prior, tiny)
    assert factor.jitter >= 0
    broken = problem.local
    broken.grams[:] *= -1.0
    with pytest.raises(NotPositiveDefiniteError, match="Raise the noise variance"):
        broken.posterior(0, problem.prior, 1e-3)


# ---------------------------------------------------------------------------------- empirical Bayes


def test_the_fixed_point_is_that_of_the_dense_engine(rng):
    problem = Problem(rng, n=400, d=1, m=150, lattice=True)
    problem.rows = Block(
        problem.rows.X, np.sin(4 * problem.rows.X) + 0.1 * rng.normal(size=(400, 1)), np.ones(400)
    )
    groups = problem.groups
    start = power_law(problem.features)
    expected = mackay_fixed_point(
        problem.dense, 0, groups, np.arange(problem.n_groups), start, max_iter=6
    )
    found = tree_fixed_point(problem.local, 0, groups, start, max_iter=6)
    assert found.evaluations == expected.evaluations
    assert_allclose(found.variances.log_priors, expected.variances.log_priors, atol=1e-5)
    assert found.variances.log_noise == pytest.approx(expected.variances.log_noise, abs=1e-6)
    assert found.posterior.log_evidence == pytest.approx(expected.posterior.log_evidence)
    assert isinstance(found.posterior, TreePosterior)
    before = problem.local.posterior(0, start.prior_variances(groups), start.noise_variance)
    assert found.posterior.log_evidence > before.log_evidence
    assert found.variances.noise_variance == pytest.approx(0.01, rel=0.3)


def test_cells_are_tied_to_their_octaves_as_in_the_dense_engine(rng):
    problem = Problem(rng, n=300, d=1, m=100, lattice=True, weighted=False)
    cells = tuple(
        part.cells(4.0) if isinstance(part, LocalAtoms) else np.zeros(part.n_features, dtype=int)
        for part in problem.features.maps
    )
    stack = Stack(problem.features.maps, cells)
    start = power_law(stack)
    assert len(start.log_priors) == len(stack.parents)
    expected = mackay_fixed_point(problem.dense, 0, stack.groups, stack.parents, start, max_iter=5)
    found = tree_fixed_point(
        problem.local, 0, stack.groups, start, parents=stack.parents, max_iter=5
    )
    assert_allclose(found.variances.log_priors, expected.variances.log_priors, atol=1e-5)


def test_a_power_law_starts_with_less_variance_in_finer_octaves(rng):
    problem = Problem(rng, lattice=True, d=2, m=400, n=2000)
    start = power_law(problem.features)
    peak = [
        np.exp(log_prior) / part.n_features
        for log_prior, part in zip(start.log_priors, problem.features.maps, strict=True)
        if part.local
    ]
    assert_allclose(np.array(peak[1:]) / peak[:-1], 1 / 3)
    assert isinstance(start, Variances)
