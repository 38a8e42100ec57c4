"""The dissection: columns that meet share a leaf, wherever a point lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rwf.features import ConstantFeatures, LinearFeatures, Stack
from rwf.features.local import LocalAtoms
from rwf.features.wavelet import unit_directions
from rwf.inference.multifrontal import AtomTree
from rwf.inference.multifrontal.dissection import Dissection, dissect
from rwf.inference.multifrontal.supports import ColumnSupports, support_radius
from rwf.wavelets import CompactHat, ComplexMorlet, Daubechies, Haar, MexicanHat, Morlet
from rwf.wavelets.radial import Bump

WAVELETS = [CompactHat(), CompactHat(7), Bump(), MexicanHat(), Haar(), Daubechies(4)]
ALL = [*WAVELETS, Morlet(2.0), ComplexMorlet(2.0)]


def supports(d: int, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Supports of many sizes, in clusters, some in one place, some without bounds."""
    centres = rng.normal(3.0, 2.0, (p, d)) + 9.0 * rng.integers(0, 2, (p, 1))
    centres[: p // 5] = centres[0]
    radii = np.exp(rng.uniform(-5.0, 1.0, p))
    radii[rng.uniform(size=p) < 0.02] = np.inf
    return centres, radii


def path(tree: Dissection, x: np.ndarray) -> list[int]:
    """The nodes from the root to the leaf of a point."""
    nodes = [0]
    while tree.axes[nodes[-1]] >= 0:
        v = nodes[-1]
        left, right = tree.children(v)
        nodes.append(left if x[tree.axes[v]] < tree.cuts[v] else right)
    return nodes


@given(d=st.integers(1, 3), p=st.integers(1, 400), leaf=st.integers(1, 40), seed=st.integers(0, 99))
def test_every_point_finds_all_its_columns_in_its_leaf_and_on_its_path(d, p, leaf, seed):
    rng = np.random.default_rng(seed)
    centres, radii = supports(d, p, rng)
    tree = dissect(centres, radii, leaf)
    points = np.concatenate(
        [rng.normal(5.0, 6.0, (20, d)), centres[:10] + 1e-3, np.full((1, d), 1e9)]
    )
    for x in points:
        met = np.linalg.norm(x - centres, axis=1) < radii
        nodes = path(tree, x)
        listed = tree.order[tree.columns(nodes[-1])]
        assert set(np.flatnonzero(met)) <= set(listed)
        owned = [tree.order[tree.own_starts[v] : tree.own_starts[v + 1]] for v in nodes]
        assert set(np.flatnonzero(met)) <= set(np.concatenate(owned))


@given(d=st.integers(1, 3), p=st.integers(1, 400), leaf=st.integers(1, 40), seed=st.integers(0, 99))
def test_lists_are_own_columns_then_a_part_of_the_parents_list(d, p, leaf, seed):
    tree = dissect(*supports(d, p, np.random.default_rng(seed)), leaf)
    assert_array_equal(np.sort(tree.order), np.arange(p))
    assert_array_equal(tree.fronts, np.diff(tree.list_starts))
    for v in range(tree.n_nodes):
        own, rest = tree.sizes(v)
        assert_array_equal(
            tree.columns(v)[:own], np.arange(tree.own_starts[v], tree.own_starts[v + 1])
        )
        places = tree.boundary_places(v)
        assert len(places) == rest
        assert (np.diff(places) > 0).all()
        for child in tree.children(v):
            assert tree.parents[child] == v
            assert_array_equal(tree.boundary(child), tree.columns(v)[tree.boundary_places(child)])
            assert tree.depths[child] == tree.depths[v] + 1
            assert v < child < tree.ends[child] <= tree.ends[v]


def test_a_dissection_cuts_where_few_columns_straddle(rng):
    left, right = rng.uniform(0.0, 1.0, (150, 1)), rng.uniform(5.0, 6.0, (150, 1))
    tree = dissect(np.concatenate([left, right]), np.full(300, 0.2), 150)
    assert tree.own[0] == 0
    assert tree.n_nodes == 3
    assert tree.cuts[0] == pytest.approx(left.max() + 0.2)


def test_columns_in_one_place_are_one_leaf():
    tree = dissect(np.zeros((500, 2)), np.ones(500))
    assert tree.n_nodes == 1
    assert tree.own[0] == 500


def test_fronts_of_a_frame_do_not_grow_with_it(rng):
    widest = []
    for p in (2000, 16000):
        tree = dissect((np.arange(p) + rng.uniform(size=p))[:, None], np.full(p, 5.0))
        widest.append(tree.fronts.max())
    assert max(widest) < 130
    assert abs(widest[0] - widest[1]) < 15


@pytest.mark.parametrize("wavelet", ALL, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("d", [1, 2])
def test_features_vanish_outside_their_supports(wavelet, d, rng):
    m = 40
    atoms = LocalAtoms(
        wavelet, rng.uniform(0.01, 0.5, m), rng.normal(3, 1, (m, d)), unit_directions(m, d, rng)
    )
    columns = ColumnSupports(Stack((atoms, ConstantFeatures())), d)
    assert columns.radii[-1] == np.inf
    X = rng.normal(3.0, 1.0, (500, d))
    inside = np.linalg.norm(X[:, None] - columns.centres, axis=2) <= columns.radii
    Z = columns.features(X)
    assert not Z[~inside].any()
    assert np.abs(Z[inside]).max() > 0


@pytest.mark.parametrize("wavelet", ALL, ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_features_of_cells_are_those_of_the_stack(wavelet, d, rng):
    m = 60
    atoms = LocalAtoms(
        wavelet, np.exp(rng.uniform(-3, 0, m)), rng.normal(3, 2, (m, d)), unit_directions(m, d, rng)
    )
    stack = Stack((ConstantFeatures(), atoms, LinearFeatures(d)))
    tree = AtomTree.of(stack, d, leaf_columns=10)
    X = rng.normal(3.0, 3.0, (700, d))
    expected = stack(X)[:, tree.dissection.order].T
    np.testing.assert_allclose(tree.in_columns(X), expected, rtol=1e-12, atol=1e-15)


def test_a_gaussian_envelope_ends_where_the_feature_maps_end_it():
    assert support_radius(MexicanHat(), 2) == pytest.approx(np.sqrt(80.0))
    assert support_radius(CompactHat(), 2) == pytest.approx(np.sqrt(8.0))
    assert support_radius(Bump(), 2) == 2.0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_bump_falls_smoothly_to_zero_at_its_radius(d):
    bump, q = Bump(), np.linspace(1e-3, 5.0, 400)
    step = 1e-6
    slope = (bump.profile(q + step, d) - bump.profile(q - step, d)) / (2 * step)
    np.testing.assert_allclose(bump.slope(q, d), slope, rtol=1e-6, atol=1e-9)
    assert bump.profile(np.zeros(1), d) == 1.0
    assert not bump.profile(np.linspace(bump.radius(d) ** 2, 9.0, 20), d).any()
    constants = bump.constants(d)
    assert constants.sup == 1.0
    assert constants.mean > 0
    assert constants.vanishing_moments == 0


def test_inputs_must_be_as_many_as_the_atoms_have(rng):
    stack = Stack((LocalAtoms.of_scale(CompactHat(), 0.5, rng.normal(size=(20, 2))),))
    with pytest.raises(ValueError, match="expected"):
        AtomTree.of(stack, 3)
    tree = AtomTree.of(stack, 2)
    with pytest.raises(ValueError, match="give an array"):
        tree.sorted_rows(rng.normal(size=(5, 3)))


@given(
    n=st.integers(0, 600),
    d=st.integers(1, 3),
    distinct=st.integers(1, 600),
    most=st.integers(1, 99),
)
def test_cells_hold_every_row_once_and_not_too_many(n, d, distinct, most):
    from rwf.inference.multifrontal.cells import SortedRows

    rng = np.random.default_rng(n)
    X = (
        rng.normal(2.0, 3.0, (n, d))[rng.integers(min(distinct, n), size=n)]
        if n
        else rng.normal(size=(0, d))
    )
    tree = dissect(rng.normal(2.0, 3.0, (200, d)), rng.uniform(0.01, 1.0, 200), 20)
    rows = SortedRows.of(tree, X, None, most)
    assert_array_equal(np.sort(rows.order), np.arange(n))
    assert_array_equal(rows.XT, X[rows.order].T)
    leaves, begins, ends = rows.cells.T
    assert (np.diff(leaves) >= 0).all()
    assert (ends - begins <= most).all()
    assert (ends > begins).all()
    taken = np.concatenate([np.arange(b, e) for b, e in zip(begins, ends, strict=True)] or [[]])
    assert_array_equal(np.sort(taken), np.arange(n))
    for leaf, begin in zip(leaves, begins, strict=True):
        assert path(tree, rows.XT[:, begin])[-1] == leaf
    batches = rows.batches()
    assert sum(len(part) for part in batches) == len(rows.cells)
    parts = [set(part[:, 0]) for part in batches]
    assert len(set().union(*parts)) == sum(map(len, parts))
