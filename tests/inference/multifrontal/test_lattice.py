"""Lattices for trees: the requested number of atoms, where rows are; and what fits in memory."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial import cKDTree

from rwf.data.rows import Block
from rwf.features import ConstantFeatures, Stack
from rwf.inference.multifrontal import (
    AtomTree,
    TreeTooLargeError,
    accumulate_tree,
    draw_multifrontal_lattice,
    draw_within,
    largest_that_fits,
    memory_needed,
)
from rwf.inference.multifrontal.lattice import CLOSE, OVERLAP
from rwf.inference.multifrontal.supports import support_radius
from rwf.wavelets import CompactHat, ComplexMorlet, MexicanHat
from rwf.wavelets.radial import Bump


@given(
    n=st.integers(1, 80),
    d=st.integers(1, 3),
    size=st.integers(1, 300),
    distinct=st.integers(1, 80),
    seed=st.integers(0, 99),
)
@example(n=2, d=1, size=29, distinct=2, seed=2)  # rows so far apart that no atom reaches both
def test_a_lattice_keeps_to_its_number_and_halves_its_scales(n, d, size, distinct, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(2.0, 3.0, (n, d))[rng.integers(min(distinct, n), size=n)]
    lattice = draw_multifrontal_lattice(CompactHat(), X, size, rng)
    assert 1 <= sum(octave.n_features for octave in lattice) <= size
    scales = np.array([octave.scales[0] for octave in lattice])
    ratios = scales[:-1] / scales[1:]
    assert_allclose(np.log2(ratios), np.round(np.log2(ratios)), atol=1e-9)
    assert (ratios > 1.5).all()
    for octave in lattice:
        assert octave.shifts.shape == (octave.n_features, d)
        assert (octave.scales == octave.scales[0]).all()


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("size", [500, 3000])
def test_a_frame_has_nearly_as_many_atoms_as_are_asked_for(d, size, rng):
    X = np.concatenate([rng.normal(0, 1, (30_000, d)), rng.normal(7, 0.05, (30_000, d))])
    total = sum(octave.n_features for octave in draw_multifrontal_lattice(Bump(), X, size, rng))
    assert 0.9 * size <= total <= size
    assert CLOSE > 0.9


@pytest.mark.parametrize("d, wavelet", [(1, CompactHat()), (2, Bump())])
def test_every_row_is_covered_by_all_octaves_and_no_atom_is_idle(d, wavelet, rng):
    X = rng.uniform(-3.0, 5.0, (20_000, d))
    lattice = draw_multifrontal_lattice(wavelet, X, 2000, rng)
    assert len(lattice) >= 4
    for octave in lattice:
        radius = support_radius(wavelet, d) * octave.scales[0]
        rows, atoms = cKDTree(X), cKDTree(octave.shifts)
        assert (rows.query_ball_point(octave.shifts, radius, return_length=True) >= 8).all()
        met = atoms.query_ball_point(X[:500], radius, return_length=True)
        volume = {1: 2.0, 2: np.pi}[d] * OVERLAP[d] ** d
        assert met.min() >= 1
        assert 0.7 * volume < met.mean() < 1.3 * volume


def test_as_many_atoms_as_rows_are_drawn_though_their_number_hardly_follows_the_spacing(rng):
    X = rng.uniform(size=(20_000, 1))
    assert (
        sum(part.n_features for part in draw_multifrontal_lattice(CompactHat(), X, 20_000, rng))
        == 20_000
    )


def test_dense_regions_have_finer_atoms(rng):
    X = np.concatenate([rng.uniform(0, 1, (20_000, 2)), rng.uniform(4, 8, (300, 2))])
    finest = draw_multifrontal_lattice(Bump(), X, 3000, rng)[-1]
    assert (finest.shifts < 2).all()


def test_a_long_tail_does_not_thin_a_frame_out(rng):
    X = rng.uniform(size=(5000, 1))
    hats = draw_multifrontal_lattice(MexicanHat(), X, 500, rng)
    compact = draw_multifrontal_lattice(CompactHat(), X, 500, rng)
    assert hats[-1].scales[0] == pytest.approx(compact[-1].scales[0], rel=0.25)


def test_complex_wavelets_have_two_columns_an_atom(rng):
    lattice = draw_multifrontal_lattice(ComplexMorlet(), rng.uniform(size=(2000, 1)), 400, rng)
    assert 300 < sum(octave.n_features for octave in lattice) <= 400


def test_a_frame_of_a_hundred_thousand_atoms_is_drawn_at_once(rng):
    X = rng.uniform(size=(300_000, 2))
    begun = time.process_time()
    lattice = draw_multifrontal_lattice(Bump(), X, 30_000, rng)
    assert time.process_time() - begun < 3.0
    assert sum(octave.n_features for octave in lattice) > 0.9 * 30_000


def test_frames_are_for_few_inputs_and_some_rows(rng):
    with pytest.raises(ValueError, match="one, two or three"):
        draw_multifrontal_lattice(Bump(), rng.normal(size=(50, 4)), 100, rng)
    with pytest.raises(ValueError, match="ask for more"):
        draw_multifrontal_lattice(Bump(), rng.normal(size=(50, 1)), 0, rng)
    with pytest.raises(ValueError, match="ask for more"):
        draw_multifrontal_lattice(Bump(), rng.normal(size=(0, 1)), 10, rng)


# ------------------------------------------------------------------------------------------- memory


def drawn(X: np.ndarray, n: int) -> AtomTree:
    lattice = draw_multifrontal_lattice(Bump(), X, n, np.random.default_rng(0))
    return AtomTree.of(Stack((*lattice, ConstantFeatures())), X.shape[1])


def test_memory_is_foretold(rng):
    X = rng.uniform(size=(4000, 2))
    tree = drawn(X, 1500)
    moments = accumulate_tree(tree, [Block(X, rng.normal(size=(4000, 1)), np.ones(4000))], 1)
    posterior = moments.posterior(0, np.ones(tree.n_features), 0.1)
    kept = moments.grams.nbytes + posterior.factor.panels.nbytes
    kept += posterior.factor.inverse.leaves.nbytes
    need = memory_needed(tree.dissection)
    assert kept < need < 4 * kept


def test_the_largest_tree_fits_and_a_larger_one_does_not(rng):
    X = rng.uniform(size=(20_000, 2))
    budget = memory_needed(drawn(X, 800).dissection)
    largest = largest_that_fits(lambda n: drawn(X, n), 3000, budget)
    assert memory_needed(largest.dissection) <= budget
    assert memory_needed(drawn(X, int(1.15 * largest.n_features)).dissection) > budget
    assert largest_that_fits(lambda n: drawn(X, n), 300, budget).n_features <= 301


def test_what_does_not_fit_says_what_would(rng):
    X = rng.uniform(size=(20_000, 1))
    budget = memory_needed(drawn(X, 800).dissection)
    assert draw_within(lambda n: drawn(X, n), 500, budget).n_features <= 501
    with pytest.raises(TreeTooLargeError, match=r"ask for at most [0-9]+ columns"):
        draw_within(lambda n: drawn(X, n), 3000, budget)
    with pytest.raises(TreeTooLargeError, match="not even one"):
        largest_that_fits(lambda n: drawn(X, n), 3000, 16)
